"""The Jinja environment of every page."""

from __future__ import annotations

import jinja2

from merton.pages import svg, words
from merton.results.text import MISSING, WITHHELD, count_of, one_line


def environment(package: str, **values: object) -> jinja2.Environment:
    """The templates of a package and of this one. Everything is escaped; an undefined name is an error.

    Filters are `shown` (one line of printable text) and those of `merton.pages.words`; `svg` is `merton.pages.svg`.

    Args:
        package: with a folder `templates`, such as "merton.study".
        **values: further names for its templates.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader("merton.pages")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters.update(
        shown=one_line,
        number=words.number,
        signed=words.signed,
        interval=words.interval_words,
        beside=words.beside,
        percent=words.percent,
        p_value=words.p_value,
        words=words.readable,
        moment=words.moment,
    )
    words_of = {"MISSING": MISSING, "WITHHELD": WITHHELD, "marks": words.OUTCOME_MARKS}
    made.globals.update(svg=svg, count_of=count_of, **words_of, **values)
    return made
