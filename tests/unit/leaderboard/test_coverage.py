"""Coverage of the intervals that boards print: small simulations, and the table of docs/reference/ratings.md."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from merton.leaderboard.coverage import (
    INTERVALS,
    SIZES,
    VIDEOS,
    Coverage,
    Size,
    measure,
    measure_agreement,
    study,
    table,
)

RATINGS = Path(__file__).parents[3] / "docs" / "reference" / "ratings.md"
STUDIES = int(os.environ.get("MERTON_COVERAGE_STUDIES", "0"))
CELL = re.compile(r"(0\.\d{3}|1\.000) ± (0\.\d{3})")


def holds(found: Coverage) -> bool:
    """93 to 97 %, give or take three standard errors of the simulation; or not shown."""
    return found.mean is None or 0.93 - 3 * found.error <= found.mean <= 0.97 + 3 * found.error


@pytest.mark.parametrize(
    ("size", "studies"),
    [(Size(3, 60), 60), (Size(20, 30), 30), (Size(20, 30, is_partial=True), 30), (Size(4, 80, scenes=5), 60)],
)
def test_intervals_of_small_studies_hold(size: Size, studies: int) -> None:
    held = [study(size, number) for number in range(studies)]
    for name in INTERVALS:
        assert holds(Coverage.of([one[name] for one in held])), name


def test_the_gap_is_shown_only_where_the_matches_tell_the_spread() -> None:
    assert [study(Size(*plain), 0)["gap"] is None for plain in ((3, 60), (5, 20), (20, 30), (3, 400))] == [
        True,
        True,
        False,
        False,
    ]


def test_scenes_taken_as_independent_cases_do_not_hold() -> None:
    """The same 60 studies of 5 scenes with 16 views each, as all intervals were made before."""
    held = [study(Size(4, 80, scenes=5, is_ignorant=True), number) for number in range(60)]
    for name in ("agent", "score", "total"):
        found = Coverage.of([one[name] for one in held]).mean
        assert found is not None, name
        assert found < 0.8, name


def test_a_coverage_is_over_the_studies_that_show_the_interval() -> None:
    found = Coverage.of([1.0, 0.5, None, None])
    assert (found.mean, found.error, found.shown) == (0.75, pytest.approx(0.25), 0.5)
    assert str(found) == "0.750 ± 0.250 (shown in 50 %)"
    assert str(Coverage.of([None] * 40 + [1.0])) == "not shown"


def test_the_table_in_the_docs_has_every_size_and_nothing_that_does_not_hold() -> None:
    rows = {
        line.split(" | ")[0].lstrip("| "): line
        for line in RATINGS.read_text().splitlines()
        if line.startswith("|") and " ± " in line
    }
    assert set(rows) == {str(size) for size in SIZES} | {f"3 x {videos}" for videos in VIDEOS}
    for name, row in rows.items():
        cells = [cell.strip() for cell in row.strip("|").split(" | ")[2:]]
        for cell in cells:
            found = CELL.match(cell)
            assert found or cell == "not shown", (name, cell)
            if found and "*" not in name:
                assert holds(Coverage(float(found[1]), float(found[2]), 1.0)), (name, cell)


@pytest.mark.skipif(
    not STUDIES, reason="minutes to an hour: MERTON_COVERAGE_STUDIES=400 measures the docs' tables again"
)
def test_the_tables_in_the_docs_are_those_of_the_command() -> None:
    assert table(measure(SIZES, STUDIES), measure_agreement(STUDIES), STUDIES) in RATINGS.read_text()
