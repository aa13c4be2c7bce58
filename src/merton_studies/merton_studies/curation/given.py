"""Dimensions where neither a taxonomy nor a model that finds them is named: the labels of the pool, or the paper's.

Ours: free induction without an LLM was tried, and finds kinds of wording (docs/studies/curation.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy, read_taxonomy

PAPERS = "a2eval"
KNOWN = (PAPERS, "open_eqa", "embodied_arena")
"""Taxonomies whose definitions labels with their names have."""
LABELS = "the pool's labels"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class Labelled:
    """The one voter of a pool that is labelled: the dimension that people, or the maker, gave each question."""

    name = LABELS

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """The label of each question."""
        return [self._names[question.dimension] for question in questions]


def given(pool: Pool) -> tuple[Taxonomy, Labelled | None, str]:
    """The dimensions of a pool without an LLM, the voter that knows them, and a sentence that says why these.

    Where every question is labelled, the labels are the dimensions, and the voter is the labels; else the taxonomy is
    `PAPERS`, and None stands for the computed voters.
    """
    unlabelled = sum(not question.dimension for question in pool.questions)
    labels = sorted({question.dimension for question in pool.questions} - {""})
    names = {label: _name(label) for label in labels}
    if unlabelled or len({name.lower() for name in names.values()} | {OTHER.lower()}) <= len(labels):
        why = (
            f"{unlabelled} of {len(pool.questions)} questions have no label" if unlabelled else "labels cannot be names"
        )
        sentence = (
            f"dimensions: the eight of {PAPERS}, assigned by computed voters, because no taxonomy and no model is "
        )
        return read_taxonomy(PAPERS), None, f"{sentence}named, and {why}"
    sentence = (
        f"dimensions: the {len(labels)} that the questions are labelled with, because no taxonomy and no model is "
        f"named, and each of {len(pool.questions)} questions has one"
    )
    for known in KNOWN:
        taxonomy = read_taxonomy(known)
        if set(names.values()) <= set(taxonomy.names):
            used = tuple(one for one in taxonomy.dimensions if one.name in names.values())
            return taxonomy.model_copy(update={"dimensions": used}), Labelled(names), sentence
    dimensions = tuple(
        Dimension(name=name, title=label if label != name else "", definition=f"Labelled {label} in the pool.")
        for label, name in names.items()
    )
    return (
        Taxonomy(name="labels", origin="The labels of the pool's questions", dimensions=dimensions),
        Labelled(names),
        sentence,
    )


def _name(label: str) -> str:
    """A label as the name of a dimension."""
    name = _NAME.sub("-", label).strip("-_")[:60]
    return name if name[:1].isalpha() else f"D-{name}"
