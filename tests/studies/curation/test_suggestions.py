"""Suggestions that people correct: numbers by hand, planted anchoring, tables, and refusals with their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton_studies.curation.people import read_suggested
from merton_studies.curation.suggestions import SuggestedVerdict, effects, read_suggestions, sentences
from merton_studies.curation.taxonomy import Dimension, Taxonomy

TAXONOMY = Taxonomy(name="two", dimensions=tuple(Dimension(name=name, definition=name) for name in ("Color", "Count")))
HEADER = "question_id,dimension,rater,verdict,suggestion,shown\n"


def verdict(question: int, rater: str, said: str, suggestion: str, shown: bool) -> SuggestedVerdict:
    return SuggestedVerdict(f"q{question}", "Color", rater, f"scene {question // 2}", suggestion, said, shown)


def test_numbers_by_hand() -> None:
    """Four questions; rater A sees the suggestion and B does not, C and D likewise on the first.

    The pairs (suggestion, with, without): q0 yes yes no four times (A and C beside B and D: A yes, C no; both no), so
    yes-yes-no twice and yes-no-no twice; q1 no no no; q2 yes yes yes; q3 no yes yes.
    """
    found = effects(
        [
            verdict(0, "A", "yes", "yes", True), verdict(0, "C", "no", "yes", True),
            verdict(0, "B", "no", "yes", False), verdict(0, "D", "no", "yes", False),
            verdict(1, "A", "no", "no", True), verdict(1, "B", "no", "no", False),
            verdict(2, "A", "yes", "yes", True), verdict(2, "B", "yes", "yes", False),
            verdict(3, "A", "yes", "no", True), verdict(3, "B", "yes", "no", False),
        ]
    )  # fmt: skip
    assert [one.name for one in found] == ["Color"]
    one = found[0]
    assert (one.shown, one.hidden) == (5, 5)
    assert one.corrected.value == pytest.approx(2 / 5)
    # with suggestion yes y/n 2 1, no y/n 1 1: equal 3/5; chance (3/5)(3/5) + (2/5)(2/5) = 13/25
    assert one.kept.value == pytest.approx((3 / 5 - 13 / 25) / (12 / 25))
    # seven pairs; suggestion yes 5 of 7, without yes 2 of 7, equal 2 of 7; chance (10 + 10) / 49
    assert (one.before.n, one.before.value) == (7, pytest.approx((2 / 7 - 20 / 49) / (29 / 49)))
    # with yes 4 of 7, equal 5 of 7; chance (8 + 15) / 49
    assert one.after.value == pytest.approx((5 / 7 - 23 / 49) / (26 / 49))
    assert one.gain.value == pytest.approx(3 / 7)
    # equal to the suggestion with it less without: q0 1/2 - 0, q1 1 - 1, q2 1 - 1, q3 0 - 0
    assert one.anchoring.value == pytest.approx(1 / 8)
    assert (one.anchoring.n, one.anchoring.clusters) == (4, 2)
    assert (one.raters_shown.n, one.raters_hidden.n) == (1, 1)


@pytest.mark.parametrize("pull", [0.0, 0.5])
def test_planted_anchoring_is_found_and_none_where_there_is_none(pull: float) -> None:
    """People are right in 80 of 100 cases, the agent in 60; `pull` of those who see it take its word."""
    rng = np.random.default_rng(4)
    verdicts, other = [], {"yes": "no", "no": "yes"}
    for question in range(600):
        truth = "yes" if rng.random() < 0.5 else "no"
        suggestion = truth if rng.random() < 0.6 else other[truth]
        for rater in range(4):
            own = truth if rng.random() < 0.8 else other[truth]
            shown = rater % 2 == 0
            said = suggestion if shown and rng.random() < pull else own
            verdicts.append(verdict(question, f"R{rater}", said, suggestion, shown))
    one = effects(verdicts)[0]
    # equal to the suggestion: .6 .8 + .4 .2 = .56 without it, pull + (1 - pull) .56 with it
    expected = pull * (1.0 - 0.56)
    assert one.anchoring.value == pytest.approx(expected, abs=0.06)
    assert one.anchoring.interval is not None
    assert (one.anchoring.interval.low > 0.0) == (pull > 0.0)
    # equal to people without it: the suggestion .56, corrected labels pull .56 + (1 - pull)(.8 .8 + .2 .2)
    assert one.gain.value == pytest.approx((1.0 - pull) * (0.68 - 0.56), abs=0.06)
    assert one.before.value == pytest.approx(2 * 0.56 - 1, abs=0.08)


def test_without_hidden_answers_nothing_is_said_of_anchoring() -> None:
    found = effects([verdict(question, "A", "yes", "yes", True) for question in range(4)])
    assert found[0].anchoring.value is found[0].before.value is found[0].gain.value is None
    told = " ".join(sentences(found))
    assert "anchoring" not in told
    assert "how far it drew them is not known" in told
    assert sentences(()) == []


def test_proposals_are_read_several_for_a_question_and_other_is_none(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("question,dimension\nq1,Color\nq1,Count\nq2,Other\n")
    assert read_suggestions(file, TAXONOMY) == {"q1": {"Color", "Count"}, "q2": set()}
    file.write_text("question,dimension\nq1,Colour\n")
    with pytest.raises(UnknownNameError, match=r"s\.csv, line 2: dimension.*Colour.*Color, Count, Other"):
        read_suggestions(file, TAXONOMY)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("q1,Color,A,yes,maybe,yes", "suggestion is 'maybe'; it must be yes or no"),
        ("q1,Color,A,yes,yes,", "suggestion and shown must both be yes or no, or both be blank"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, row: str, why: str) -> None:
    file = tmp_path / "v.csv"
    file.write_text(f"{HEADER}{row}\n")
    with pytest.raises(InputError) as refused:
        read_suggested([file])
    assert str(refused.value) == f"{file}, line 2: {why}"


def test_curate_agreement_says_it_of_a_table_with_suggestions(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    rows = [f"q{n},Color,{rater},{said},yes,{shown}" for n in range(6)
            for rater, said, shown in (("A", "yes", "yes"), ("B", "no" if n % 2 else "yes", "no"))]  # fmt: skip
    file.write_text(HEADER + "\n".join(rows) + "\nq9,Color,A,yes,,\n")
    done = CliRunner().invoke(app, ["curate", "agreement", str(file)])
    assert done.exit_code == 0, done.output
    assert "6 of 12 verdicts were given with a suggestion in sight" in done.output
    assert "corrected 0.00" in done.output
    assert "anchoring 0.50" in done.output
