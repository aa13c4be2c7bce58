"""Dimensions without a taxonomy and without a model: the labels of the pool where each question has one."""

from __future__ import annotations

from merton_studies.curation.given import given
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.taxonomy import read_taxonomy


def pool(*labels: str) -> Pool:
    made = [
        Question(id=f"s/{place}", source="s", text="?", answer_kind="free_text", dimension=label)
        for place, label in enumerate(labels)
    ]
    return Pool.of(made, [BenchmarkSource(name="s")])


def test_labels_are_the_dimensions_where_each_question_has_one() -> None:
    labelled = pool("object recognition", "2nd look", "object recognition")
    taxonomy, voter, sentence = given(labelled)
    assert taxonomy.names == ("D-2nd-look", "object-recognition")
    assert voter is not None
    votes = voter.vote(labelled.questions, taxonomy)
    assert votes == ["object-recognition", "D-2nd-look", "object-recognition"]
    assert sentence == (
        "dimensions: the 2 that the questions are labelled with, because no taxonomy and no model is named, and each "
        "of 3 questions has one"
    )


def test_labels_of_a_known_taxonomy_have_its_definitions() -> None:
    taxonomy, voter, _ = given(pool("QuantNum", "SpatGeo"))
    known = {one.name: one for one in read_taxonomy("a2eval").dimensions}
    assert taxonomy.dimensions == (known["SpatGeo"], known["QuantNum"]), "those that occur, in its order"
    assert voter is not None


def test_a_pool_that_is_not_wholly_labelled_has_the_papers() -> None:
    taxonomy, voter, sentence = given(pool("QuantNum", "", "SpatGeo"))
    assert (taxonomy, voter) == (read_taxonomy("a2eval"), None)
    assert sentence.endswith("and 1 of 3 questions have no label")


def test_labels_that_make_one_name_are_no_dimensions() -> None:
    for labels in (("left of", "left-of"), ("other", "QuantNum")):
        taxonomy, voter, sentence = given(pool(*labels))
        assert (taxonomy.name, voter) == ("a2eval", None)
        assert sentence.endswith("labels cannot be names")
