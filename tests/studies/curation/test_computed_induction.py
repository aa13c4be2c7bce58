"""Dimensions found without an LLM: clusters and their names, the answers to findings, the rules of the Reviewer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from computed_roles import embed, family_pool

from merton.errors import InputError
from merton_studies.curation.agents import (
    Balance,
    Critique,
    Finding,
    Round,
)
from merton_studies.curation.assignment import assign
from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.computed.proposers import ClusterProposer
from merton_studies.curation.computed.reviewer import RuleReviewer
from merton_studies.curation.computed.texts import own_texts
from merton_studies.curation.induction import Iterations, induce
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy

POOL = family_pool()


@pytest.fixture(scope="module")
def proposer() -> ClusterProposer:
    return ClusterProposer(embed, seed=1)


@pytest.fixture(scope="module")
def first(proposer: ClusterProposer) -> Taxonomy:
    return proposer.propose(POOL, None, ())


def critique(action: str, *names: str) -> Critique:
    return Critique(findings=(Finding(kind="unclear", action=action, dimensions=names),))  # type: ignore[arg-type]


def answered(proposer: ClusterProposer, taxonomy: Taxonomy, *critiques: Critique) -> Taxonomy:
    memory: list[Round] = []
    for number, one in enumerate(critiques, 1):
        memory.append(Round(outer=1, inner=number, taxonomy=taxonomy, critique=one))
        taxonomy = proposer.propose(POOL, one, memory)
    return taxonomy


def test_each_family_is_a_cluster_with_the_name_of_its_words(first: Taxonomy) -> None:
    assert first.names == ("AreOn", "BehindIt", "FallOr", "OpenOr")
    assert first.dimensions[2].definition.startswith("fall or, if it, is pushed, would the; such as “Would the")
    assigned = assign(POOL, first, zero_shot_voters(embed))
    pairs = Counter(zip(assigned.dimension, (q.dimension for q in POOL.questions), strict=True))
    assert sum(sorted(pairs.values())[-4:]) > 0.9 * len(POOL.questions)


def test_the_same_pool_seed_and_memory_give_the_same_dimensions(proposer: ClusterProposer, first: Taxonomy) -> None:
    assert ClusterProposer(embed, seed=1).propose(POOL, None, ()) == first
    again = answered(proposer, first, critique("split", first.names[0]))
    assert answered(ClusterProposer(embed, seed=1), first, critique("split", first.names[0])) == again


@pytest.mark.parametrize(
    ("action", "number", "change"), [("merge", 2, -1), ("split", 1, 1), ("drop", 1, -1), ("add", 0, 1)]
)
def test_findings_are_answered(
    proposer: ClusterProposer, first: Taxonomy, action: str, number: int, change: int
) -> None:
    found = answered(proposer, first, critique(action, *first.names[:number]))
    assert len(found.dimensions) == len(first.dimensions) + change


@pytest.mark.parametrize("one", [critique("redefine", "x"), critique("merge", "x", "y"), critique("split"), Critique()])
def test_what_cannot_be_answered_changes_nothing(proposer: ClusterProposer, first: Taxonomy, one: Critique) -> None:
    assert answered(proposer, first, one, one) == first


def test_findings_add_up(proposer: ClusterProposer, first: Taxonomy) -> None:
    both = Critique(findings=critique("merge", *first.names[:2]).findings + critique("drop", first.names[3]).findings)
    merged = answered(proposer, first, both)
    assert len(merged.dimensions) == 2
    all_but_one = critique("drop", *first.names)
    assert answered(proposer, first, all_but_one) == first


def test_a_pool_of_one_question_has_no_dimensions() -> None:
    alike = [Question(id=name, source="s", text="Where?", answer_kind="free_text") for name in "ab"]
    with pytest.raises(InputError, match="no two different questions"):
        ClusterProposer(embed).propose(Pool.of(alike, [BenchmarkSource(name="s")]), None, ())


def test_questions_without_a_common_word_still_have_names() -> None:
    texts = ["Alpha?", "Beta?", "Gamma “quoted” text?"]
    odd = [Question(id=text, source="s", text=text, answer_kind="free_text") for text in texts]
    found = ClusterProposer(embed).propose(Pool.of(odd, [BenchmarkSource(name="s")]), None, ())
    assert found.names[0] == "Cluster1"


def balance(**assigned: int) -> Balance:
    return Balance(assigned={OTHER: 0, **assigned}, kept={}, contested=0, entropy=0.5)


def reviewed(
    statistics: Balance | None, *memory: Critique, definitions: str = "ABCD"
) -> list[tuple[str, tuple[str, ...]]]:
    words = {"A": "red", "B": "red", "C": "far away", "D": "many things"}
    taxonomy = Taxonomy(
        name="t", dimensions=tuple(Dimension(name=n, title=words[n], definition=words[n]) for n in definitions)
    )
    rounds = [Round(outer=1, inner=n, taxonomy=taxonomy, critique=one) for n, one in enumerate(memory, 1)]
    found = RuleReviewer(embed).review(taxonomy, POOL, rounds, statistics)
    return [(finding.action, finding.dimensions) for finding in found.findings]


def test_alike_dimensions_are_merged_until_one_was_split() -> None:
    assert reviewed(None) == [("merge", ("A", "B"))]
    assert reviewed(None, definitions="ACD") == []
    assert reviewed(None, critique("split", "A")) == []


def test_balance_decides_in_its_order() -> None:
    assert reviewed(balance(A=50, B=50, C=50, D=50)) == []
    assert reviewed(balance(A=50, B=50, C=0, D=1)) == [("drop", ("C",)), ("merge", ("D", "A"))]
    assert reviewed(balance(A=1, B=50, C=50, D=50)) == [("merge", ("A", "B"))]
    assert reviewed(balance(A=90, B=6, C=6, D=6)) == [("split", ("A",))]
    assert reviewed(balance(A=90, B=6, C=6, D=6, Other=20)) == [("add", ()), ("split", ("A",))]
    assert reviewed(balance(A=90, B=6, C=6, D=6, Other=20), critique("add")) == [("split", ("A",))]
    assert reviewed(balance(A=1, B=50, C=50, D=50), critique("split", "A")) == []
    assert reviewed(balance(A=0, B=0, C=0, D=0)) == []


def test_a_whole_induction_without_an_llm_ends_stable(proposer: ClusterProposer, tmp_path: Path) -> None:
    voters = zero_shot_voters(embed)

    def try_out(taxonomy: Taxonomy) -> Balance:
        return assign(POOL, taxonomy, voters).balance()

    found = induce(POOL, proposer, RuleReviewer(embed), try_out, Iterations(), tmp_path / "memory", embed)
    assert found.ended == "stable"


def test_sentences_that_many_questions_share_are_left_out() -> None:
    texts = [f"Look at the picture. Where is thing {number}? Answer: Point at it." for number in range(9)]
    texts += ["Look at the picture. Point at it.", "Look at the picture."]
    questions = [Question(id=f"{n}", source="s", text=text, answer_kind="free_text") for n, text in enumerate(texts)]
    found = own_texts(questions)
    assert found[0] == "Where is thing 0?"
    assert found[9:] == ["Point at it.", "Look at the picture."]
    assert own_texts(questions[:4])[0] == texts[0]
