"""Five voters without an LLM and without examples: each compares a question with the definitions by other features.

They understand nothing. They read the texts of question and definition and, for the cues, the kind of answer; no
picture. docs/studies/curation.md has their agreement with people. None of them is random, so none has a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from merton.errors import require
from merton_studies.curation.agents import Voter
from merton_studies.curation.computed.cues import capability
from merton_studies.curation.computed.texts import Remembered, described, full_texts, phrases
from merton_studies.curation.induction import Embed
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import OTHER, Taxonomy

LEAST_LIKENESS = 0.05
"""Cosine of sentence vectors below which two texts have nothing to do with each other; ours."""

Scores = NDArray[np.float64]
"""(n, dimensions), more is likelier; a row without any value above 0 is "Other"."""


class Matcher:
    """A voter by likeness of a question to each definition.

    Args:
        name: of the features.
        scores: of questions and a taxonomy.
    """

    def __init__(self, name: str, scores: Callable[[Sequence[Question], Taxonomy], Scores]) -> None:
        self.name, self._scores = name, scores

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """The dimension most like each question, the earlier of equal ones; "Other" where none is like it."""
        if not questions:
            return []
        scores = self._scores(questions, taxonomy)
        names = np.array([*taxonomy.names, OTHER], dtype=object)
        best = np.where(scores.max(axis=1) > 0, scores.argmax(axis=1), len(taxonomy.names))
        return list(names[best])


def zero_shot_voters(embed: Embed) -> tuple[Voter, ...]:
    """The five voters.

    definition: cosine of the sentence vectors of question and definition.
    phrases: the same with each part of the definition, the most alike of which counts.
    words: cosine of TF-IDF of single words and pairs.
    letters: cosine of TF-IDF of three to five letters in a row, which knows forms of a word as one.
    cues: the capability that the question's wording or kind of answer gives away (`cues`), with the parts of each
        definition.

    Args:
        embed: texts to (n, d) rows of norm 1; each text is embedded once for all voters.
    """
    vectors = embed if isinstance(embed, Remembered) else Remembered(embed)
    return (
        Matcher("definition", lambda questions, taxonomy: _by_definition(vectors, questions, taxonomy)),
        Matcher("phrases", lambda questions, taxonomy: _by_phrases(vectors, full_texts(questions), taxonomy)),
        Matcher("words", lambda questions, taxonomy: _by_tf_idf(questions, taxonomy, "word", (1, 2))),
        Matcher("letters", lambda questions, taxonomy: _by_tf_idf(questions, taxonomy, "char_wb", (3, 5))),
        Matcher("cues", lambda questions, taxonomy: _by_cues(vectors, questions, taxonomy)),
    )


def _by_definition(embed: Embed, questions: Sequence[Question], taxonomy: Taxonomy) -> Scores:
    definitions = embed([described(dimension) for dimension in taxonomy.dimensions])
    return np.asarray(embed(full_texts(questions)) @ definitions.T, float) - LEAST_LIKENESS


def _by_phrases(embed: Embed, texts: Sequence[str], taxonomy: Taxonomy) -> Scores:
    vectors = embed(texts)
    parts = [embed([described(dimension), *phrases(dimension)]) for dimension in taxonomy.dimensions]
    return np.stack([(vectors @ some.T).max(axis=1) for some in parts], axis=1).astype(float) - LEAST_LIKENESS


def _by_tf_idf(questions: Sequence[Question], taxonomy: Taxonomy, analyzer: str, lengths: tuple[int, int]) -> Scores:
    text = require("sklearn.feature_extraction.text", "curation", "voters without an LLM")
    features = text.TfidfVectorizer(sublinear_tf=True, analyzer=analyzer, ngram_range=lengths)
    definitions = features.fit_transform([described(dimension) for dimension in taxonomy.dimensions])
    return np.asarray((features.transform(full_texts(questions)) @ definitions.T).toarray(), float)


def _by_cues(embed: Embed, questions: Sequence[Question], taxonomy: Taxonomy) -> Scores:
    found = [capability(question) for question in questions]
    told = sorted({text for text in found if text})
    scores = np.zeros((len(questions), len(taxonomy.dimensions)))
    if told:
        of_cue = dict(zip(told, _by_phrases(embed, told, taxonomy), strict=True))
        for row, text in zip(scores, found, strict=True):
            if text:
                row[:] = of_cue[text]
    return scores
