"""Similarity of two sentences: BLEU, ROUGE-L and CIDEr over the same words.

A word is a run of letters and digits, with inner apostrophes, hyphens and points ("don't", "half-open", "0.5"), or one
character of a script that writes no spaces (`merton.cognition.words`). Case,
punctuation and the Unicode form of a letter do not count: "Pick up the cube." and "pick up the cube" are the same
answer to all three, and so are an accented letter as one code point and as two.

Every measure has a batch form that compares the i-th reference with the i-th candidate. The result of a pair does not
depend, to the last bit, on the rest of the batch: an interrupted study ends with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq
from scipy.sparse import csr_array

from merton.cognition.ngrams import ORDERS, Integers, NGrams, clipped_matches, ngrams_of, word_ranks
from merton.cognition.words import corpus_version, words
from merton.errors import InputError

ROUGE_BETA = 1.2
"""Weight of recall in ROUGE-L: the value of the COCO caption evaluation."""

CIDER_SIGMA = 6.0
CIDER_MAXIMUM = 10.0

BATCH = 10_000
"""Pairs whose n-grams are in memory at once; without effect on the results."""

Scores = NDArray[np.float64]


def bleu(reference: str, candidate: str) -> float:
    """Sentence BLEU-4 in 0..1 (Papineni et al. 2002), by sacrebleu's formula.

    Smoothing: the k-th n-gram order without a match counts as 1 / 2^k matches (NIST's, sacrebleu's "exp"); sentences
    of fewer than 4 words are compared by the orders they have. Sentences without a common word give 0, identical ones
    1; Ours: two sentences without any word are identical.
    """
    return float(bleu_batch([reference], [candidate])[0])


def bleu_batch(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    """`bleu` of each pair, shape (n,); raises InputError for lists of different lengths or anything but text."""
    return _joined(_bleu(pairs) for pairs in _batches(references, candidates))


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L in 0..1 (Lin 2004, eq. 2-4): F-measure of the longest common subsequence of words, beta = 1.2.

    Sentences without a common word give 0, identical ones 1; Ours: two sentences without any word are identical.
    """
    return float(rouge_l_batch([reference], [candidate])[0])


def rouge_l_batch(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    """`rouge_l` of each pair, shape (n,); raises InputError for lists of different lengths or anything but text."""
    return _joined(_rouge_l(pairs) for pairs in _batches(references, candidates))


class Cider:
    """CIDEr (Vedantam et al. 2015): similarity of n-grams, each weighted by how rare it is in a corpus.

    The variant is the one the COCO caption evaluation runs (CIDEr-D with counts clipped to the reference's and a
    Gaussian penalty on the difference of lengths): n = 1..4, sigma = 6, times 10.

    Args:
        reference_corpus: every reference answer of the study's model, one document each; or lists of texts, each list
            one document. An n-gram that is in all documents has no weight: with a single one every score would be 0.

    Attributes:
        version: `corpus_version` of the corpus.

    Raises:
        InputError: fewer than two documents, or a document that is not text.
    """

    def __init__(self, reference_corpus: Iterable[str | Sequence[str]]) -> None:
        documents = [] if isinstance(reference_corpus, str) else list(reference_corpus)
        if len(documents) < 2:
            raise InputError(
                "CIDEr needs a list of at least two reference answers to tell rare words from common ones, "
                f"got {len(documents)}"
            )
        parts = [list(one) if isinstance(one, list | tuple) else [cast(str, one)] for one in documents]
        sentences = [words(text) for texts in parts for text in texts]
        self.version = corpus_version("\n".join(texts) for texts in parts)
        owners = np.repeat(np.arange(len(parts)), [len(texts) for texts in parts])
        of_document = csr_array((np.ones(len(owners), np.int64), (owners, np.arange(len(owners)))))
        self.ranks = word_ranks(sentences)
        known = ngrams_of(sentences, self.ranks)
        # an n-gram is the one before its last word, and that word; kept, because they are as many as the corpus is long
        self._keys = [order.prefixes * len(self.ranks) + order.last_words for order in known]
        # the weight of an n-gram in 0, 1, 2 ... documents
        frequencies = range(len(documents) + 1)
        weights = np.array([math.log(len(documents)) - math.log(max(1, frequency)) for frequency in frequencies])
        self._unknown = weights[0]
        held = [of_document @ (order.counts > 0).astype(np.int64) for order in known]  # n-grams of each document
        self._weights = [weights[np.asarray((counts > 0).sum(axis=0)).astype(np.int64)] for counts in held]

    def score(self, reference: str, candidate: str) -> float:
        """CIDEr of `candidate` against one `reference`, 0..10.

        A sentence against itself gives less than 10 if it has fewer than 4 words, or if all its n-grams of some order
        are in every document of the corpus.
        """
        return float(self.score_batch([reference], [candidate])[0])

    def score_batch(self, references: Sequence[str], candidates: Sequence[str]) -> Scores:
        """`score` of each pair, shape (n,); raises InputError for lists of different lengths or anything but text."""
        return _joined(self._scores(pairs)[0] for pairs in _batches(references, candidates, self.ranks))

    def _scores(self, pairs: _Pairs) -> tuple[Scores, Scores]:
        """CIDEr of each candidate against its reference, and of each reference against itself; shape (n,) each."""
        weighted = []
        for order, weights in zip(pairs.ngrams, self._weights_of(pairs.ngrams), strict=True):
            scaled = order.counts.astype(np.float64)
            scaled.data *= weights[scaled.indices]
            weighted.append((scaled, np.asarray(scaled.power(2).sum(axis=1))))
        distinct, back = np.unique(pairs.references, return_inverse=True)
        return (
            self._similarity(pairs, weighted, pairs.references, pairs.candidates),
            self._similarity(pairs, weighted, distinct, distinct)[back],
        )

    @staticmethod
    def _similarity(
        pairs: _Pairs, weighted: list[tuple[csr_array, Scores]], references: Integers, candidates: Integers
    ) -> Scores:
        similarity = np.zeros(len(references))
        for vectors, squared_norms in weighted:
            of_reference = vectors[references]
            shared = of_reference.minimum(vectors[candidates]).multiply(of_reference).sum(axis=1)
            norms = np.sqrt(squared_norms[references] * squared_norms[candidates])
            similarity += np.divide(shared, norms, out=np.zeros_like(norms), where=norms > 0)
        gaps = (pairs.lengths[candidates] - pairs.lengths[references]).tolist()
        penalty = np.array([math.exp(-(gap**2) / (2 * CIDER_SIGMA**2)) for gap in gaps])
        return np.minimum(CIDER_MAXIMUM, CIDER_MAXIMUM * penalty * similarity / ORDERS)

    def _weights_of(self, ngrams: list[NGrams]) -> Iterator[Scores]:
        """The weight of each n-gram of a batch; one that is not in the corpus counts as in one document."""
        base = len(self.ranks)
        place = np.zeros(1, dtype=np.int64)  # column in the corpus of each n-gram of the order below, or -1
        for order, keys, weights in zip(ngrams, self._keys, self._weights, strict=True):
            prefixes = place[order.prefixes]
            wanted = prefixes * base + order.last_words
            place = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
            there = (prefixes >= 0) & (order.last_words < base)
            there &= keys[place] == wanted if len(keys) else False
            place = np.where(there, place, -1)
            yield np.where(there, weights[place], self._unknown) if len(keys) else np.full(len(wanted), self._unknown)


def text_scores(
    references: Sequence[str], candidates: Sequence[str], cider: Cider | None
) -> tuple[Scores, Scores, Scores, Scores]:
    """BLEU, ROUGE-L, CIDEr, and CIDEr of the reference against itself, shape (n,) each, with the work shared.

    Without `cider` the latter two are 0.

    Raises:
        InputError: lists of different lengths, or anything but text.
    """
    parts = []
    for pairs in _batches(references, candidates, cider.ranks if cider else None):
        nothing = np.zeros(len(pairs.references))
        parts.append((_bleu(pairs), _rouge_l(pairs), *(cider._scores(pairs) if cider else (nothing, nothing))))
    b, r, c, best = (_joined(part[index] for part in parts) for index in range(4))
    return b, r, c, best


class _Pairs:
    """Pairs of sentences, each distinct sentence split into words once.

    Attributes:
        lengths: (sentences,) number of words of the distinct sentences.
        references, candidates: (n,) indices into `sentences`.
        ngrams: of the sentences, by order.
    """

    def __init__(self, references: Sequence[str], candidates: Sequence[str], ranks: dict[str, int] | None) -> None:
        row: dict[str, int] = {}
        self.sentences: list[list[str]] = []
        for text in (*references, *candidates):
            if text not in row:
                self.sentences.append(words(text))
                row[text] = len(row)
        self.lengths = np.array([len(sentence) for sentence in self.sentences], dtype=np.int64)
        self.references = np.array([row[text] for text in references], dtype=np.int64)
        self.candidates = np.array([row[text] for text in candidates], dtype=np.int64)
        self._ranks = ranks

    @cached_property
    def equal(self) -> NDArray[np.bool_]:
        """(n,) whether reference and candidate have the same words."""
        number: dict[tuple[str, ...], int] = {}
        numbers = np.array([number.setdefault(tuple(words), len(number)) for words in self.sentences], dtype=np.int64)
        return numbers[self.references] == numbers[self.candidates]

    @cached_property
    def word_numbers(self) -> Integers:
        """The words of all sentences, one sentence after the other, as numbers."""
        number: dict[str, int] = {}
        return np.array([number.setdefault(word, len(number)) for s in self.sentences for word in s], dtype=np.int64)

    @cached_property
    def ngrams(self) -> list[NGrams]:
        return ngrams_of(self.sentences, word_ranks(self.sentences, self._ranks))


def _batches(
    references: Sequence[str], candidates: Sequence[str], ranks: dict[str, int] | None = None
) -> Iterator[_Pairs]:
    if isinstance(references, str) or isinstance(candidates, str) or len(references) != len(candidates):
        raise InputError(
            "every reference answer needs one candidate: give two lists of texts of the same length, got "
            f"{_counted(references)} and {_counted(candidates)}"
        )
    for start in range(0, len(references), BATCH):
        yield _Pairs(references[start : start + BATCH], candidates[start : start + BATCH], ranks)


def _counted(texts: Sequence[str]) -> str:
    return "a single text" if isinstance(texts, str) else f"{len(texts)}"


def _joined(parts: Iterable[Scores]) -> Scores:
    return np.concatenate([np.zeros(0), *parts])


def _bleu(pairs: _Pairs) -> Scores:
    """sacrebleu's formula, with method "exp" and effective order, over arrays; its logarithms and sums in its order."""
    reference_lengths, lengths = pairs.lengths[pairs.references], pairs.lengths[pairs.candidates]
    logarithms, orders = np.zeros(len(lengths)), np.zeros(len(lengths), dtype=np.int64)
    smoothing = np.ones(len(lengths))  # doubles with every order without a match
    ends = np.concatenate([[0], np.cumsum(pairs.lengths)])
    matches_by_order = clipped_matches(pairs.word_numbers, ends, pairs.references, pairs.candidates).T
    for order, matches in enumerate(matches_by_order, 1):
        possible = lengths - order + 1
        there = possible > 0
        orders += there
        smoothing = np.where(there & (matches == 0), 2 * smoothing, smoothing)
        precisions = np.where(matches == 0, 100.0 / smoothing, 100.0 * matches) / np.maximum(1, possible)
        logarithms += np.where(there, _each(math.log, precisions), 0.0)
    brevity = _each(math.exp, np.minimum(0.0, 1 - reference_lengths / np.maximum(1, lengths)))
    scores = np.minimum(1.0, brevity * _each(math.exp, logarithms / np.maximum(1, orders)) / 100.0)
    return np.where(pairs.equal, 1.0, np.where(matches_by_order[0] > 0, scores, 0.0))


def _each(function: Callable[[float], float], values: Scores) -> Scores:
    """A function of `math` of each value: those of numpy round differently on different processors."""
    distinct, back = np.unique(values, return_inverse=True)
    return np.array([function(value) for value in distinct.tolist()], dtype=np.float64)[back]


def _rouge_l(pairs: _Pairs) -> Scores:
    references = [pairs.sentences[row] for row in pairs.references]
    candidates = [pairs.sentences[row] for row in pairs.candidates]
    common = process.cpdist(references, candidates, scorer=LCSseq.similarity, dtype=np.int64)
    precision = common / np.maximum(1, pairs.lengths[pairs.candidates])
    recall = common / np.maximum(1, pairs.lengths[pairs.references])
    weighted = recall + ROUGE_BETA**2 * precision
    scores = (1 + ROUGE_BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1.0)
    return np.where(pairs.equal, 1.0, scores)
