"""The printed coefficients of Embodied-IQA against the paper's text, and its claims recomputed from them."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest

from merton.errors import UnknownNameError
from merton.files import resource
from merton_studies.iqa.published_iqa import TABLES, claims, expected_krcc, inconsistent, permuted, published

PAPER = Path(__file__).parents[4] / "shared/seeds/001_2594061f2439df7a.txt"
"""The text of arXiv:2505.16815; lies beside the checkout, where it is at all."""


def printed(text: str) -> list[tuple[str, list[str]]]:
    """Metric and numbers of every line of a table."""
    lines = re.findall(r"^(?:(?:Zero|FR|NR) )?([A-Z][\w+-]+) ?(?:\[\d+\])?((?: 0\.\d{4})+)$", text, re.MULTILINE)
    return [(name, numbers.split()) for name, numbers in lines]


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not beside the checkout")
@pytest.mark.parametrize(
    ("table", "begin", "end", "per_line"),
    [
        ("decision", "Table 2:", "5.3 Cross", 15),
        ("cognition", "Table 4:", "Appendix G", 15),
        ("cross", "Method LIVE", "(a) Cross", 6),
    ],
)
def test_every_value_is_the_printed_one(table: str, begin: str, end: str, per_line: int) -> None:
    text = PAPER.read_text(encoding="utf-8")
    start = text.index(begin)
    lines = printed(text[start : text.index(end, start)])
    assert {len(numbers) for _, numbers in lines} == {per_line}
    with resource("merton_bringup", "config/published/embodied_iqa.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    ours = [row[key] for row in rows for key in ("srcc", "krcc", "plcc") if row[key]]
    assert ours == [number for _, numbers in lines for number in numbers]
    assert len(ours) == (60 if table == "cross" else 675)
    cells = [row["metric"] for row in rows for key in ("srcc", "krcc", "plcc") if row[key]]
    assert cells == [name for name, numbers in lines for _ in numbers]


def test_tables_have_their_groups_and_columns() -> None:
    for table in TABLES:
        rows = published(table)
        groups = {group: {row.metric for row in rows if row.group == group} for group in {row.group for row in rows}}
        assert {len(metrics) for metrics in groups.values()} == {5}
        assert len({(row.metric, row.column) for row in rows}) == len(rows) == (30 if table == "cross" else 225)
    assert [row.column for row in published("decision")[:5]] == ["position", "rotation", "state", "first", "third"]
    assert math.isnan(published("cross")[0].krcc)
    with pytest.raises(UnknownNameError, match="decision"):
        published("execution")


def test_the_permuted_row_and_odd_triples_are_found() -> None:
    assert [(row.table, row.metric, row.column) for row in inconsistent()] == [
        ("decision", "CLIPIQA", "rotation"),
        ("cognition", "Brisque", "real"),
    ]
    assert {(row.metric, row.column, other.column) for row, other in permuted()} == {
        ("Brisque", "mild", "severe"),
        ("Brisque", "medium", "medium"),
        ("Brisque", "severe", "mild"),
        ("Brisque", "real", "real"),
        ("Brisque", "simulation", "simulation"),
    }


def test_expected_krcc_is_that_of_a_normal_distribution() -> None:
    """Kruskal (1958): correlation r gives SRCC (6 / pi) asin(r / 2) and KRCC (2 / pi) asin(r)."""
    for r in (0.0, 0.3, 0.9, 1.0):
        assert expected_krcc(6 / math.pi * math.asin(r / 2)) == pytest.approx(2 / math.pi * math.asin(r), abs=1e-7)


def test_claims_are_judged_by_the_printed_numbers() -> None:
    """Numbers recomputed by hand from the paper's text."""
    found = {claim.text: claim for claim in claims()}
    for part, verdict, numbers in (
        ("Position is the easiest", "holds in part", ["position 0.5198, state 0.4456, rotation 0.4525"]),
        ("less than 0.65", "holds in part", ["rotation 0.6454", "rotation 0.5981", "0.7748", "0.7496"]),
        ("Severe", "does not hold", ["8 of 15", "0 of 14", "0.400 against 0.419"]),
        ("third-person", "holds", ["9 of 15", "13 of 15"]),
        ("real images", "holds", ["10 of 15 metrics in Table 2", "9 of 14 metrics in Table 4"]),
        ("five distortion levels", "holds", ["0.4910", "0.5134", "0.5249", "0.5270", "0.5453"]),
        ("about 0.75", "holds", ["TOPIQ-FR 0.7593, TOPIQ-NR 0.7446"]),
        (
            "worse than the zero-shot",
            "holds in part",
            ["LPIPS 0.4069", "DISTS 0.5338", "SSIM 0.4487", "Q-Align 0.5211"],
        ),
        ("TOPIQ leads", "holds", ["TOPIQ-FR 11 of 15"]),
        ("Cognition better", "holds", ["155 of 210"]),
        ("lower than 0.4 on LIVE", "holds in part", ["CLIPIQA 0.0472, CNNIQA 0.3477"]),
        ("can reach 0.7", "holds", ["AHIQ 0.7240"]),
    ):
        (judged,) = [claim for text, claim in found.items() if part in text]
        assert judged.verdict == verdict, judged
        assert all(number in judged.measured for number in numbers), judged
