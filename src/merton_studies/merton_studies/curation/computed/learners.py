"""Five voters without an LLM that learn from labelled examples ("shots"), each from other features.

They learn once, from the shots and from the definitions, which count as an example of their dimension each. They read
texts and kinds of answers, no picture. None of them is random: their seed is the draw of the shots.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton_studies.curation.agents import Voter
from merton_studies.curation.computed.cues import capability
from merton_studies.curation.computed.texts import Remembered, described, full_texts, opening, phrases
from merton_studies.curation.induction import Embed
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import Taxonomy

STRENGTH = 10.0
"""Inverse regularisation of the logistic regressions; ours."""
_USER = "voters without an LLM"
_HALF = 0.5
"""Weight of openings and cues beside sentence vectors and words; ours."""

Features = Callable[[Sequence[Question]], Any]
"""Questions to (n, features), dense or sparse."""


class Shot(NamedTuple):
    """A question with the dimension that people gave it."""

    question: Question
    dimension: str


class Learner:
    """A voter that scores the dimensions it has learnt.

    Args:
        name: of the features.
        dimensions: the columns of the scores.
        scores: of questions, (n, dimensions).
    """

    def __init__(
        self, name: str, dimensions: Sequence[str], scores: Callable[[Sequence[Question]], NDArray[np.float64]]
    ) -> None:
        self.name, self._dimensions, self._scores = name, tuple(dimensions), scores

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """The likeliest dimension of the shown ones; None if none of these was learnt. Never "Other"."""
        shown = [name for name in self._dimensions if name in taxonomy.names]
        if not shown or not questions:
            return [None] * len(questions)
        columns = [self._dimensions.index(name) for name in shown]
        return [shown[best] for best in self._scores(questions)[:, columns].argmax(axis=1)]


def shot_voters(taxonomy: Taxonomy, shots: Sequence[Shot], embed: Embed) -> tuple[Voter, ...]:
    """The five voters.

    centroid: cosine of sentence vectors with the mean of a dimension's shots and its definition.
    sentences: logistic regression on sentence vectors of shots, definitions and their parts.
    words: logistic regression on TF-IDF of words, pairs and two to five letters in a row.
    cues: logistic regression on the first three words, the capability that the wording gives away and the kind of
        answer.
    all: logistic regression on all these features.

    Raises:
        InputError: no shots, or one of a dimension that is not in the taxonomy.
    """
    if not shots:
        raise InputError("these voters learn from examples, and none are given")
    for shot in shots:
        if shot.dimension not in taxonomy.names:
            raise InputError(
                f"the example {shot.question.id!r} has the dimension {shot.dimension!r}; "
                f"choose from: {', '.join(taxonomy.names)}"
            )
    vectors = embed if isinstance(embed, Remembered) else Remembered(embed)
    return _voters(taxonomy, tuple(shots), vectors)


def _voters(taxonomy: Taxonomy, shots: tuple[Shot, ...], embed: Remembered) -> tuple[Voter, ...]:
    questions, labels = [shot.question for shot in shots], [shot.dimension for shot in shots]
    told = [_as_question(described(dimension)) for dimension in taxonomy.dimensions]
    names = list(taxonomy.names)
    parts = [(_as_question(part), entry.name) for entry in taxonomy.dimensions for part in phrases(entry)]

    def sentences(some: Sequence[Question]) -> Any:
        return embed(full_texts(some))

    words = _words([*questions, *told])
    cues = _cues(questions)

    def everything(some: Sequence[Question]) -> Any:
        sparse = require("scipy.sparse", "curation", _USER)
        return sparse.hstack([sparse.csr_matrix(sentences(some)), words(some), cues(some) * _HALF]).tocsr()

    return (
        Learner("centroid", names, _centroids(taxonomy, [*questions, *told], [*labels, *names], embed)),
        _regression(
            "sentences",
            sentences,
            [*questions, *told, *(part for part, _ in parts)],
            [*labels, *names, *(name for _, name in parts)],
        ),
        _regression("words", words, [*questions, *told], [*labels, *names]),
        _regression("cues", cues, questions, labels),
        _regression("all", everything, questions, labels),
    )


def _as_question(text: str) -> Question:
    """A part of a definition in the place of a question."""
    return Question(id=text, source="definition", text=text, answer_kind="free_text")


def _centroids(
    taxonomy: Taxonomy, questions: Sequence[Question], labels: Sequence[str], embed: Remembered
) -> Callable[[Sequence[Question]], NDArray[np.float64]]:
    vectors = embed(full_texts(questions)).astype(float)
    means = np.stack([vectors[[label == name for label in labels]].mean(axis=0) for name in taxonomy.names])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return lambda some: np.asarray(embed(full_texts(some)) @ means.T, float)


def _words(questions: Sequence[Question]) -> Features:
    """TF-IDF, words beside letters, with the frequencies of these questions."""
    text = require("sklearn.feature_extraction.text", "curation", _USER)
    sparse = require("scipy.sparse", "curation", _USER)
    parts = [
        text.TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)),
        text.TfidfVectorizer(sublinear_tf=True, ngram_range=(2, 5), analyzer="char_wb"),
    ]
    for part in parts:
        part.fit(full_texts(questions))
    return lambda some: sparse.hstack([part.transform(full_texts(some)) for part in parts]).tocsr()


def _cues(questions: Sequence[Question]) -> Features:
    """The opening in words, the capability given away, and the kind of answer."""
    extraction = require("sklearn.feature_extraction", "curation", _USER)
    features = extraction.DictVectorizer()
    features.fit([_given_away(question) for question in questions])
    return lambda some: features.transform([_given_away(question) for question in some])


def _given_away(question: Question) -> dict[str, float]:
    words = opening(question.text).split()
    starts = {f"begins {' '.join(words[:length])}": 1.0 for length in range(1, len(words) + 1)}
    among = {f"has {word}": _HALF for word in words}
    return {**starts, **among, f"cue {capability(question)}": 1.0, f"answer {question.answer_kind}": 1.0}


def _regression(name: str, features: Features, questions: Sequence[Question], labels: Sequence[str]) -> Learner:
    """A voter by logistic regression; of one dimension alone, it has no choice."""
    if len(set(labels)) == 1:
        return Learner(name, labels[:1], lambda some: np.ones((len(some), 1)))
    linear = require("sklearn.linear_model", "curation", _USER)
    model = linear.LogisticRegression(C=STRENGTH, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(features(questions), list(labels))
    return Learner(name, list(model.classes_), lambda some: np.asarray(model.predict_proba(features(some)), float))
