"""A proposer without an LLM: its taxonomy comes from clusters of questions.

Clusters are kinds of wording, not capabilities: the proposer understands no question. What keeps a cluster near to a
capability is that it sees how a question begins and which kind of answer it wants, beside its sentence vector, in
which the things asked about weigh most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton.seeding import generator
from merton_studies.curation.agents import Critique, Memory
from merton_studies.curation.computed.texts import opening, own_texts
from merton_studies.curation.induction import Embed
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.sampling import one_thread
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy

FEWEST, MOST = 4, 12
"""Clusters tried; ours."""
_JUDGED = 1500
"""Questions that the silhouette is computed from."""
_FITTED, _STARTS = 4000, 3
"""Questions that k-means is fitted to, and its starts, the best of which counts."""
_FORMS = 200
_FARTHEST = 0.05
"""Share of the questions, those farthest from their centroid, that make a cluster added."""
_TERMS, _TYPICAL, _LONGEST = 4, 3, 160
"""Terms and typical questions in a definition, and characters of one such question."""
_SHORTEST = 4
"""Letters of a name."""
_USER = "proposing dimensions without an LLM"

Labels = NDArray[np.intp]
Vectors = NDArray[np.float64]


class ClusterProposer:
    """Clusters the questions by k-means and names the clusters by their distinguishing terms.

    The number of clusters, 4 to 12, is that with the largest mean silhouette. Later proposals answer the findings of
    all critiques in the memory, in their order: "merge" joins clusters, "split" halves one by k-means, "drop" gives its
    questions to the nearest other clusters, "add" makes one of the twentieth of the questions that are farthest from
    their centroids; "redefine" changes nothing, because terms and examples follow from the cluster. So a proposal is a
    function of pool, seed and memory.

    Args:
        embed: texts to (n, d) rows of norm 1.
        seed: of k-means.
    """

    name = "clusters"

    def __init__(self, embed: Embed, seed: int = 0) -> None:
        self._embed, self._seed = embed, seed
        self._pool: Pool | None = None
        self._texts: list[str] = []
        self._vectors: Vectors = np.empty((0, 0))
        self._first: Labels = np.empty(0, np.intp)

    def propose(self, pool: Pool, critique: Critique | None, memory: Memory) -> Taxonomy:
        """D_t; raises InputError for a pool without two different questions."""
        if self._pool is not pool:
            self._pool, self._texts = pool, own_texts(pool.questions)
            self._vectors = question_vectors(self._texts, pool.questions, self._embed)
            self._first = self._clusters(len(set(self._texts)))
        labels = self._first
        for entry in memory:
            if entry.critique is not None:
                labels = self._answered(labels, entry.taxonomy, entry.critique)
        return _named(self._texts, self._vectors, labels)

    def _clusters(self, distinct: int) -> Labels:
        """The first clusters, with the number that has the largest mean silhouette; the largest first."""
        if distinct < 2:
            raise InputError("the pool has no two different questions, so no dimensions can be found in it")
        metrics = require("sklearn.metrics", "curation", _USER)
        judged = generator("silhouette", self._seed).permutation(len(self._vectors))[:_JUDGED]
        best, found = -2.0, np.zeros(len(self._vectors), np.intp)
        for count in range(min(FEWEST, distinct), min(MOST, distinct) + 1):
            labels = self._k_means(np.arange(len(self._vectors)), count)
            kinds = len(np.unique(labels[judged]))
            if 1 < kinds < len(judged):
                with one_thread():
                    value = float(metrics.silhouette_score(self._vectors[judged], labels[judged]))
                if value > best:
                    best, found = value, labels
        return np.argsort(np.argsort(-np.bincount(found), kind="stable"))[found]

    def _k_means(self, rows: Labels, count: int) -> Labels:
        """The cluster of each of these rows, 0 to count - 1; fitted to a sample of a large pool."""
        cluster = require("sklearn.cluster", "curation", _USER)
        model = cluster.KMeans(n_clusters=count, n_init=_STARTS, random_state=self._seed)
        sample = generator("clusters", self._seed).permutation(len(rows))[:_FITTED]
        with one_thread():
            model.fit(self._vectors[rows[np.sort(sample)]])
            return np.asarray(model.predict(self._vectors[rows]), np.intp)

    def _answered(self, labels: Labels, taxonomy: Taxonomy, critique: Critique) -> Labels:
        """The clusters after the findings about the taxonomy they were proposed as; a wrong name changes nothing."""
        number = {name: place for place, name in enumerate(taxonomy.names)}
        for finding in critique.findings:
            named = [number[name] for name in finding.dimensions if name in number]
            there = [place for place in named if (labels == place).any()]
            new = max(len(number), int(labels.max()) + 1)
            if finding.action == "merge" and len(there) > 1:
                labels = np.where(np.isin(labels, there), min(there), labels)
            elif finding.action == "split" and there:
                labels = self._split(labels, there[0], new)
            elif finding.action == "drop" and there and len(np.unique(labels)) > len(there):
                labels = self._dropped(labels, there)
            elif finding.action == "add":
                far = np.argsort(_distances(self._vectors, labels), kind="stable")[::-1]
                labels = labels.copy()
                labels[far[: max(1, int(_FARTHEST * len(labels)))]] = new
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)

    def _split(self, labels: Labels, one: int, new: int) -> Labels:
        members = np.flatnonzero(labels == one)
        found = labels.copy()
        if len(np.unique(self._vectors[members], axis=0)) > 1:
            found[members[self._k_means(members, 2) == 1]] = new
        return found

    def _dropped(self, labels: Labels, dropped: Sequence[int]) -> Labels:
        rest = np.setdiff1d(labels, dropped)
        centers = np.stack([self._vectors[labels == one].mean(axis=0) for one in rest])
        members = np.flatnonzero(np.isin(labels, dropped))
        found = labels.copy()
        found[members] = rest[_nearest(self._vectors[members], centers)]
        return found


def question_vectors(texts: Sequence[str], questions: Sequence[Question], embed: Embed) -> Vectors:
    """(n, d) rows of norm 1 at most: the sentence vector beside the form of the question, with equal weight (ours).

    The form is TF-IDF of the first three words, of pairs and triples of them, and of the kind of answer: the 200 most
    frequent.
    """
    text = require("sklearn.feature_extraction.text", "curation", _USER)
    sentences = embed(texts).astype(float)
    openings = [f"{opening(own)} answer_{question.answer_kind}" for own, question in zip(texts, questions, strict=True)]
    features = text.TfidfVectorizer(ngram_range=(1, 3), token_pattern=r"\b\w+\b", max_features=_FORMS)
    return np.hstack([sentences, features.fit_transform(openings).toarray()]) * np.sqrt(0.5)


def _nearest(vectors: Vectors, centers: Vectors) -> Labels:
    distances: Vectors = (centers**2).sum(axis=1) - 2.0 * vectors @ centers.T
    return distances.argmin(axis=1)


def _distances(vectors: Vectors, labels: Labels) -> Vectors:
    """(n,) of each question to the centroid of its cluster."""
    found = np.zeros(len(labels))
    for one in np.unique(labels):
        members = labels == one
        found[members] = np.linalg.norm(vectors[members] - vectors[members].mean(axis=0), axis=1)
    return found


def _named(texts: Sequence[str], vectors: Vectors, labels: Labels) -> Taxonomy:
    """The clusters as dimensions, named by the terms that set each apart."""
    text = require("sklearn.feature_extraction.text", "curation", _USER)
    counter = text.CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=r"\b[^\W\d_]+\b", min_df=2)
    try:
        present = counter.fit_transform(texts).tocsr()
        vocabulary = list(counter.get_feature_names_out())
    except ValueError:  # no word stands in two questions
        present, vocabulary = None, []
    distance = _distances(vectors, labels)
    taken: set[str] = set()
    dimensions = []
    for one in range(int(labels.max()) + 1):
        members = labels == one
        terms: list[str] = []
        if present is not None:
            here = np.asarray(present[members].mean(axis=0)).ravel()
            # one cluster alone has no others
            others = np.asarray(present[~members].mean(axis=0)).ravel() if not members.all() else np.zeros(len(here))
            terms = _distinguishing(vocabulary, here - others)
        order = np.flatnonzero(members)[np.argsort(distance[members], kind="stable")]
        typical = list(dict.fromkeys(_quoted(texts[index]) for index in order))[:_TYPICAL]
        told = ", ".join(terms) or "questions alike"
        dimensions.append(
            Dimension(
                name=_name(terms, one, taken),
                title=f"Questions with {' / '.join(terms[:2])}" if terms else "",
                definition=f"{told}; such as {' '.join(typical)}",
            )
        )
    origin = "clusters of questions, named by their distinguishing terms; no LLM"
    return Taxonomy(name="clusters", origin=origin, dimensions=tuple(dimensions))


def _distinguishing(vocabulary: Sequence[str], difference: Vectors) -> list[str]:
    """Words and pairs by the share of questions that have them, here less elsewhere; no two with a common word.

    Of equal ones, a pair stands before its words.
    """
    found: list[str] = []
    single = np.array([" " not in term for term in vocabulary])
    for index in np.lexsort((single, -difference.round(6))):
        words = set(vocabulary[index].split())
        if len(found) == _TERMS or difference[index] <= 0:
            break
        if not any(words & set(other.split()) for other in found):
            found.append(vocabulary[index])
    return found


def _quoted(text: str) -> str:
    """A question in typographic quotation marks, which `phrases` reads as one."""
    plain = " ".join(text.replace("“", '"').replace("”", '"').split())
    return f"“{plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + '…'}”"


def _name(terms: Sequence[str], number: int, taken: set[str]) -> str:
    """A free name of the first terms, such as HowMany, or HowManyTable where that is taken; letters of ASCII alone."""
    words = [re.sub("[^a-z]", "", word.lower()).capitalize() for term in terms for word in term.split()]
    words = [word for word in words if word]
    first = max(1, len(terms[0].split())) if terms else 0
    wished = ["".join(words[:count])[:60] for count in range(first, len(words) + 1)]
    fallback = f"Cluster{number + 1}"
    free = (one for one in wished if len(one) >= _SHORTEST and one.lower() not in taken | {OTHER.lower()})
    name = next(free, fallback)
    taken.add(name.lower())
    return name
