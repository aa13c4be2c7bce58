"""The page of `merton reproduce`: counts, misprints, claims, and every number in one table that can be filtered."""

from __future__ import annotations

from collections.abc import Sequence

from merton.pages.environment import environment
from merton_studies.papers.facts import CLAIM_VERDICTS, VERDICTS
from merton_studies.papers.reproduce import Reproduction, place, shown

MARKS = {
    "equal": "good", "equal after a reading": "good", "misprint": "bad", "holds": "good", "does not hold": "bad",
    "holds in part": "warn",
}  # fmt: skip
"""Verdict to the class of its colour; the others are quiet."""
MEANINGS = {
    "equal": "to the last printed digit, halves rounded up; an entry of a matrix: the same at twenty random sets of "
    "angles; a formula of Embodied Arena: its letters are those of a mean, or of a share",
    "equal after a reading": "equal if the inputs are taken before they were rounded, or the words as the reason says",
    "misprint": "neither; the reason says what is wrong",
    "cannot be known": "a measurement, a decision, or computed from data that are not printed",
    "not printed": "a number that the paper could have given, and that helps to read it",
}


def rendered(found: Sequence[Reproduction]) -> str:
    """The whole page, self-contained."""
    counts = {verdict: sum(paper.counts[verdict] for paper in found) for verdict in VERDICTS}
    return (
        environment("merton_studies.papers", place=place, recomputed=shown)
        .get_template("reproduce.html.j2")
        .render(
            found=found,
            counts=counts,
            printed=sum(paper.printed for paper in found),
            departures=[(paper.paper.name, text) for paper in found for text in paper.departures],
            verdicts=VERDICTS,
            claim_verdicts=CLAIM_VERDICTS,
            meanings=MEANINGS,
            marks_of=MARKS,
        )
    )
