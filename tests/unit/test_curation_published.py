"""The numbers that A2Eval prints: recomputed from each other, and every changed digit shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.curation import published
from merton.curation.published import Fact, Recomputed, cells_of, check, findings, judge, read_facts

FACTS = read_facts()
BY_KEY = {fact.key: fact for fact in FACTS}
OURS = {fact.key for fact in FACTS if fact.table == "3" and fact.column == "ours"}
ALONE = {
    ("4", row, column) for row in ("Source-proportional", "Dimension-aware only") for column in ("source", "human")
}
"""Nothing else in the paper depends on these four."""


def altered(digits: str) -> str:
    """The number with another last digit."""
    return digits[:-1] + str(int(digits[-1]) + (1 if digits[-1] < "9" else -1))


def test_every_verdict_is_the_known_one() -> None:
    assert len([fact for fact in FACTS if fact.printed]) >= 300
    assert [item.fact.key for item in check(FACTS) if not item.is_as_known] == []


@pytest.mark.parametrize(
    ("key", "value", "verdict"),
    [
        (("2", "Total", "retained"), 3791, "misprint"),
        (("2", "Other", "source share"), 0.0775, "misprint"),
        (("3", "spearman", "ours-human"), 0.8462, "equal"),
        (("3", "kendall", "ours-human"), 0.7179, "equal"),
        (("3", "spearman", "source-human"), 0.8297, "equal"),
        (("3", "kendall", "source-human"), 0.6410, "equal"),
        (("3", "spearman", "ours-source"), 0.9396, "equal"),
        (("3", "kendall", "ours-source"), 0.8205, "misprint"),
        (("3", "pearson", "ours-human"), 0.7129, "not printed"),
        (("3", "pearson", "source-human"), 0.8216, "not printed"),
        (("5", "Qwen3-VL-235B-A22B-Thinking", "speed-up"), 4.619, "equal"),
        (("5", "Qwen2.5-VL-7B-Instruct", "speed-up"), 3.429, "equal"),
        (("6", "AffdFunc", "Avg"), 98.5667, "equal"),
        (("6", "Final Score", "Q2.5-7B"), None, "cannot be recomputed"),
        (("7", "Internvl-3.5-38B", "Avg"), 62.385, "misprint"),
        (("9", "Average", "kappa"), 0.785, "equal after a reading"),
        (("9", "Average", "annotators"), 0.7988, "equal"),
        (("10", "AffdFunc", "Avg"), 91.73, "misprint"),
        (("11", "Average", "Q3-8B"), 96.96, "equal"),
        (("11", "Average", "IVL3.5-8B"), 98.09, "misprint"),
        (("11", "Average", "Avg"), 97.66, "misprint"),
        (("text", "abstract", "examples left out, %"), 84.54, "equal"),
        (("text", "abstract", "cost saved, %"), 77.33, "equal"),
        (("text", "abstract", "speed-up"), 4.619, "equal after a reading"),
        (("text", "1", "GPU hours of a model"), 3303.2, "equal after a reading"),
        (("text", "4.4", "PhysCaus, points apart"), 21.5, "equal"),
    ],
)
def test_what_the_research_of_the_paper_found(key: published.Key, value: float | None, verdict: str) -> None:
    """Values worked out by hand, from the seed, before this file was written."""
    found = {item.fact.key: item for item in check(FACTS)}[key]
    assert found.verdict == verdict
    assert found.value == (None if value is None else pytest.approx(value, abs=5.1e-5 if value < 1 else 5.1e-3))


def test_a_changed_digit_of_any_number_shows() -> None:
    """Of every number but four, on which nothing else in the paper depends. Here one in five, to save time."""
    unseen = []
    for place, fact in enumerate(FACTS):
        if fact.printed and place % 5 == 0:
            changed = [*FACTS[:place], replace(fact, printed=altered(fact.printed)), *FACTS[place + 1 :]]
            if all(item.is_as_known for item in check(changed)):
                unseen.append(fact.key)
    assert set(unseen) <= ALONE


def test_a_misprint_is_known_by_its_size() -> None:
    worse = [replace(fact, printed="3782") if fact.key == ("2", "Total", "retained") else fact for fact in FACTS]
    assert next(item.fact.key for item in check(worse) if not item.is_as_known) == ("2", "Total", "retained")


@pytest.mark.parametrize(
    ("printed", "item", "verdict"),
    [
        ("0.82", Recomputed(("", "", ""), 0.8205, ""), "equal"),
        ("0.81", Recomputed(("", "", ""), 0.8205, ""), "misprint"),
        ("0.5", Recomputed(("", "", ""), 0.45, ""), "equal"),  # halves go up
        ("0.4", Recomputed(("", "", ""), 0.45, ""), "misprint"),
        ("0.4", Recomputed(("", "", ""), 0.45, "", slack=0.001), "equal after a reading"),
        ("4.6", Recomputed(("", "", ""), 4.619, "", read=True), "equal after a reading"),
        (">97", Recomputed(("", "", ""), 97.6, ""), "equal"),
        (">98", Recomputed(("", "", ""), 97.6, "", slack=1.0), "misprint"),
        ("97", None, "cannot be recomputed"),
        ("", Recomputed(("", "", ""), 1.0, ""), "not printed"),
    ],
)
def test_verdicts(printed: str, item: Recomputed | None, verdict: str) -> None:
    assert judge(printed, item) == verdict


def test_the_gain_in_rho_is_not_resolved() -> None:
    """The research note has [-.09, +.18] of another bootstrap."""
    cells = cells_of(FACTS)
    found = findings(cells)
    assert all(finding.holds for finding in found)
    assert "+0.0165 [-0.10, +0.17]" in found[1].text
    perfect = {key: cells["3", key[1], "human"] if key in OURS else value for key, value in cells.items()}
    assert [finding.holds for finding in findings(perfect)][1:4] == [False] * 3


def test_the_command_says_what_does_not_add_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["curate", "paper", "--all"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Table 2, Total, retained: printed 3781, recomputed 3791.0000 (sum of the rows): misprint" in result.stdout
    assert "not as known" not in result.stdout
    assert result.stdout.count("\nTable ") > 300
    text = published.resource("merton_bringup", published.FILE).read_text()
    file = tmp_path / "altered.csv"
    file.write_text(
        text.replace("7,Qwen2.5-VL-7B-Instruct,PercepObj,49.05", "7,Qwen2.5-VL-7B-Instruct,PercepObj,49.06")
    )
    monkeypatch.setattr(published, "resource", lambda package, name: file)
    result = CliRunner().invoke(app, ["curate", "paper"])
    assert result.exit_code == 1
    assert "not as known: Table 7, Qwen2.5-VL-7B-Instruct, Avg" in result.stdout
    assert result.stdout.count("\nTable ") < 30


def test_facts_keep_their_digits() -> None:
    assert BY_KEY["5", "InternVL-3.5-241B-A28B", "source"] == Fact(
        "5", "InternVL-3.5-241B-A28B", "source", "80.0", "cannot be recomputed", None, None
    )
