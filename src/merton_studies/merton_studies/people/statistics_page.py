"""The page of a study's statistics: for the operator's browser, or as one file that works offline."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import fmean

import jinja2
from markupsafe import Markup

from merton.files import write_file
from merton.pages import svg
from merton.pages.environment import environment
from merton.statistics.raters import RaterAgreement
from merton_studies.people.statistics import LEAST_ITEMS, LEAST_SCENES, CriterionAgreement, RaterStatistics, Summary

LEAST_SHOWN = -0.2
"""The left end of the bars of coefficients, whose right end is 1."""


def page(found: Summary, style: str | None = None) -> str:
    """The page as HTML, without script.

    Args:
        found: the statistics.
        style: address of `style_sheet`, where a server's policy allows no style within a page; None: it is within.
    """
    return _environment().get_template("statistics.html.j2").render(found=found, style=style)


def style_sheet() -> str:
    """The style of the page, for a server that sends it apart."""
    return _environment().get_template("statistics.css.j2").render()


def write_page(found: Summary, path: Path) -> None:
    """Write the page to a file; raises InfrastructureError if that fails."""
    write_file(path, page(found).encode("utf-8", "replace"))


def coefficient_bar(found: RaterAgreement) -> Markup:
    """A coefficient as a dot on its 95 % interval, from -0.2 to 1, with a tick at 0; empty without a value."""
    if found.value is None:
        return Markup("")

    def x(value: float) -> str:
        return f"{100.0 * (min(max(value, LEAST_SHOWN), 1.0) - LEAST_SHOWN) / (1.0 - LEAST_SHOWN):.2f}%"

    parts = [
        svg.tag("line", x1=0, x2="100%", y1=9, y2=9, class_="track"),
        svg.tag("line", x1=x(0.0), x2=x(0.0), y1=4, y2=14, class_="track"),
    ]
    if found.interval is not None:
        low, high = found.interval
        parts.append(svg.tag("line", x1=x(low), x2=x(high), y1=9, y2=9, class_="interval"))
    parts.append(svg.tag("circle", cx=x(found.value), cy=9, r=4, class_="dot"))
    return svg.tag("svg", *parts, class_="bar", role="img", aria_label=found.shown)


def counts_bar(one: CriterionAgreement) -> Markup:
    """Bar chart of the counts of values: columns side by side, the highest as high as the figure; empty without any."""
    most = max((times for _, times in one.counts), default=0)
    if not most:
        return Markup("")
    width = 100.0 / len(one.counts)
    parts = [
        svg.tag(
            "rect",
            svg.tag("title", f"{_value(value)}: {times}"),
            x=f"{place * width + 0.1 * width:.2f}%",
            width=f"{0.8 * width:.2f}%",
            y=24.0 - 24.0 * times / most,
            height=24.0 * times / most,
            class_="column",
        )
        for place, (value, times) in enumerate(one.counts)
    ]
    told = ", ".join(f"{_value(value)}: {times}" for value, times in one.counts)
    return svg.tag("svg", *parts, class_="counts", role="img", aria_label=told)


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _bias(one: RaterStatistics) -> float | None:
    """The mean of the biases by the criteria."""
    biases = one.screened.biases if one.screened else ()
    return fmean(bias.mean for bias in biases) if biases else None


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton_studies.people.serve",
        coefficient_bar=coefficient_bar,
        counts_bar=counts_bar,
        bias_of=_bias,
        LEAST_ITEMS=LEAST_ITEMS,
        LEAST_SCENES=LEAST_SCENES,
    )
