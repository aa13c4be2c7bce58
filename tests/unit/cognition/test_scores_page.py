"""The numbers of docs/reference/scores.md about answers and decisions are those that Merton computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from merton.cognition.score import score as cognition_score
from merton.cognition.slots import slots
from merton.cognition.text import Cider
from merton.cognition.unanswered import is_refusal
from merton.decision.score import score as decision_score
from merton.world.action import ActionChunk, checked_chunk

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "scores.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    """The cells of the table that begins with this cell."""
    lines = PAGE[PAGE.index(f"| {header} |") :].splitlines()
    table = lines[2 : next(place for place, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def written(value: float | None, digits: int) -> str:
    """A share as the page writes it."""
    return "none" if value is None else f"{value:.{digits}f}".removeprefix("0")


def test_the_failures_of_word_overlap_and_the_slots_beside_them() -> None:
    table = rows("to the reference image")
    corpus = Cider([reference for reference, *_ in table])
    assert len(table) == 12
    for reference, candidate, *values in table:
        plain, weighted = cognition_score(reference, candidate), cognition_score(reference, candidate, corpus)
        totals = (plain and plain.total, weighted and weighted.total, slots(reference, candidate))
        assert [written(value, 2) for value in totals] == values, reference


def test_the_refusals() -> None:
    table = rows("no answer")
    assert len(table) == 5
    for refusal, answer in table:
        assert (is_refusal(refusal), is_refusal(answer)) == (True, False)


@pytest.mark.parametrize("row", rows("tool off by [m]"), ids=lambda row: row[0])
def test_the_range_of_the_decision_score(row: list[str]) -> None:
    def chunk(x: float) -> ActionChunk:
        return checked_chunk([[x, 0, 0, 0, 0, 0, 1]], 0.2)

    distance, *values = row
    score = decision_score(chunk(0), chunk(float(distance))).total
    units = [1 - decision_score(chunk(0), chunk(apart)).total for apart in (0.2, 0.01)]
    shares = [1 - min(1, (1 - score) / unit) for unit in units]
    assert [written(value, 3) for value in (score, *shares)] == values
