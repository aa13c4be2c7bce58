"""The page of a comparison: its verdict, its pictures in light and dark, its tasks and the scenes that differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import jinja2
from markupsafe import Markup

from merton.pages.environment import environment
from merton.study.gate import Judgement, Pair, difference
from merton.study.values import VALUES

PAIRS_SHOWN = 200
"""Rows of the table of scenes that differ, the largest losses first: more make the page slow."""
VERDICT_COLORS = {"worse": "bad", "not worse": "good", "not resolved": "warn"}
"""Value of `sequential.Conclusion` to the class of its words; the words say it without a colour."""


def gate_page(
    judgement: Judgement,
    names: tuple[str, str],
    sentences: Sequence[str],
    pictures: Sequence[Markup],
    files: Sequence[str],
) -> str:
    """The page as text; the same judgement gives the same bytes.

    Args:
        names: of the candidate and the baseline.
        sentences: `gate_files.summary`: the verdict, then its reasons.
        pictures: the course, the differences and the worst scene (`gate_pictures`).
        files: names of the files beside the page.
    """
    differing = scenes_that_differ(judgement)
    return (
        _environment()
        .get_template("gate.html.j2")
        .render(
            judgement=judgement,
            candidate=names[0],
            baseline=names[1],
            verdict=sentences[0],
            reasons=sentences[1:],
            pictures=pictures,
            files=files,
            differing=differing[:PAIRS_SHOWN],
            differing_count=len(differing),
            outcomes=sorted(set(judgement.outcomes[0]) | set(judgement.outcomes[1])),
        )
    )


def scenes_that_differ(judgement: Judgement) -> list[tuple[Pair, float]]:
    """The pairs whose values differ, with the difference, -1..1: the candidate's largest losses first."""
    value = VALUES[judgement.metric]
    found = [(pair, gain) for pair in judgement.pairs if (gain := difference(pair, value))]
    return sorted(found, key=lambda entry: (entry[1], entry[0][0].case.id))


@cache
def _environment() -> jinja2.Environment:
    return environment("merton.study", VERDICT_COLORS=VERDICT_COLORS)
