"""Votes made into dimensions: majority, ties and second rounds by hand, balance, and the table on disk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from merton.errors import InputError
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton_studies.curation.assignment import Assignment, assign, entropy, read_assignment, write_assignment
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy, read_taxonomy

TAXONOMY = Taxonomy(name="letters", dimensions=tuple(Dimension(name=name, definition=name) for name in "ABC"))


class Scripted:
    """A voter that answers each question by its text: "AB" is A, and B when it is asked again."""

    def __init__(self, place: int) -> None:
        self.name, self.place = f"voter {place}", place
        self.asked: list[tuple[str, ...]] = []

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        self.asked.append(taxonomy.names)
        again = len(taxonomy.names) < len(TAXONOMY.names) or len(self.asked) > 1
        letters = [question.text.split()[self.place] for question in questions]
        found = [letter[-1] if again else letter[0] for letter in letters]
        return [None if letter == "-" else OTHER if letter == "O" else letter for letter in found]


def pool_of(*texts: str) -> Pool:
    questions = [
        Question(id=f"{number:02}", source="made", text=text, answer_kind="free_text")
        for number, text in enumerate(texts)
    ]
    return Pool.of(questions, [BenchmarkSource(name="made")])


def assigned(*texts: str) -> Assignment:
    return assign(pool_of(*texts), TAXONOMY, [Scripted(place) for place in range(len(texts[0].split()))])


def test_more_than_half_decides() -> None:
    found = assigned("A A A B C", "A B B B B", "O O O A A", "C C C - -")
    assert found.dimension == ("A", "B", OTHER, "C")
    assert found.share.tolist() == [0.6, 0.8, 0.6, 0.6]
    assert not found.contested.any()
    assert not found.by_order.any()
    assert not any(found.second)


def test_invalid_votes_count_in_the_quorum() -> None:
    found = assigned("A A - - -", "A - - - -", "- - - - -")
    assert found.dimension == ("A", OTHER, OTHER)
    assert found.contested.all()
    assert not any(found.second)
    assert found.votes[0] == ("A", "A", None, None, None)


def test_nobody_agrees_is_other() -> None:
    found = assigned("A B C O -")
    assert found.dimension == (OTHER,)
    assert found.contested.tolist() == [True]
    assert found.share.tolist() == [0.2]


def test_the_second_round_is_among_the_tied_dimensions_alone() -> None:
    voters = [Scripted(place) for place in range(5)]
    found = assign(pool_of("B B A A CB"), TAXONOMY, voters)
    assert voters[0].asked == [("A", "B", "C"), ("A", "B")]
    assert found.dimension == ("B",)
    assert found.second == (("B", "B", "A", "A", "B"),)
    assert found.contested.tolist() == [True]
    assert found.by_order.tolist() == [False]
    assert found.share.tolist() == [0.4]


def test_one_that_leads_alone_without_a_quorum_meets_the_runners_up() -> None:
    found = assigned("AC AC BC C O", "CB CB B AB -")
    assert found.second == (("C", "C", "C", "C", OTHER), ("B", "B", "B", "B", None))
    assert found.dimension == ("C", "B")


@pytest.mark.parametrize(("text", "winner"), [("B B A A C", "A"), ("BC BC CC CC A", "C"), ("C- C- OO OO A", OTHER)])
def test_a_tie_to_the_end_goes_to_the_earlier_dimension(text: str, winner: str) -> None:
    """C in the second round of A and B is invalid."""
    found = assigned(text)
    assert found.dimension == (winner,)
    assert found.by_order.tolist() == [winner == "A"]


def test_a_second_round_without_a_valid_vote_is_counted() -> None:
    """No second vote is valid, so the order of the taxonomy decides; each voter lacks that one vote."""
    found = assigned("A- A- B- B- C-")
    assert (found.dimension, found.by_order.tolist()) == (("A",), [True])
    assert found.invalid == {f"voter {place}": 1 for place in range(5)}
    assert found.balance().invalid == 5


def test_votes_that_are_no_dimension_are_invalid() -> None:
    found = assigned("Z Z Z Z A")
    assert found.votes == ((None, None, None, None, "A"),)
    assert found.dimension == (OTHER,)


def test_voters_need_names_and_answers_to_all() -> None:
    class Short(Scripted):
        def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
            return ["A"]

    with pytest.raises(InputError, match="different names, got: voter 0, voter 0"):
        assign(pool_of("A A"), TAXONOMY, [Scripted(0), Scripted(0)])
    with pytest.raises(InputError, match="'voter 0' answered 1 of 2 questions"):
        assign(pool_of("A", "B"), TAXONOMY, [Short(0)])


def test_balance_is_that_of_equation_7() -> None:
    balance = assigned("A A A", "A A A", "B B B", "O O O").balance(["A", "B"])
    assert balance.assigned == {"A": 2, "B": 1, "C": 0, OTHER: 1}
    assert balance.kept == {"A": 1, "B": 1, "C": 0}
    expected = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)) / math.log(3)
    assert balance.entropy == pytest.approx(expected)
    assert (entropy([5, 5]), entropy([7]), entropy([0, 0]), entropy([4, 0])) == (1, 1, 0, 0)


def test_the_table_comes_back_and_has_the_same_bytes(tmp_path: Path) -> None:
    found = assigned("B B A A CB", "A B C O -", "A A A A A")
    for name in ("one", "two"):
        write_assignment(found, tmp_path / name)
    back = read_assignment(tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    for field in ("taxonomy", "voters", "ids", "votes", "second", "dimension"):
        assert getattr(back, field) == getattr(found, field)
    for field in ("share", "contested", "by_order"):
        assert np.array_equal(getattr(back, field), getattr(found, field))
    (tmp_path / "two").write_bytes(b"PAR1")
    for name, sentence in (("two", "no table of assignments"), ("three", "cannot read")):
        with pytest.raises(InputError, match=sentence):
            read_assignment(tmp_path / name)


@pytest.mark.parametrize(("name", "dimensions"), [("a2eval", 8), ("embodied_arena", 25), ("open_eqa", 7)])
def test_the_taxonomies_that_come_with_merton(name: str, dimensions: int) -> None:
    assert len(read_taxonomy(name).dimensions) == dimensions


def test_the_taxonomy_of_embodied_arena_is_that_of_its_boards() -> None:
    titles = tuple(dimension.title for dimension in read_taxonomy("embodied_arena").dimensions)
    assert titles == load_taxonomy().dimensions
