"""How alike two sentences are: BLEU, ROUGE-L and CIDEr over the same words.

A word is a run of letters and digits, with inner apostrophes, hyphens and points ("don't", "half-open", "0.5"); case
and punctuation do not count. So "Pick up the cube." and "pick up the cube" are the same answer to all three.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from sacrebleu.metrics.bleu import BLEU

from merton.errors import InputError

ROUGE_BETA = 1.2
"""Weight of recall in ROUGE-L: the value of the COCO caption evaluation."""

CIDER_ORDER = 4
CIDER_SIGMA = 6.0
CIDER_MAXIMUM = 10.0

_WORD = re.compile(r"\w+(?:['.\-]\w+)*")
_BLEU = BLEU(tokenize="none", smooth_method="exp", effective_order=True)

NGram = tuple[str, ...]


def words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; raises InputError if it is not text."""
    if not isinstance(sentence, str):
        raise InputError(f"an answer must be text, got {type(sentence).__name__}")
    return _WORD.findall(sentence.lower().replace("\u2019", "'"))


def bleu(reference: str, candidate: str) -> float:
    """Sentence BLEU-4 in 0..1 (Papineni et al. 2002), by sacrebleu.

    Smoothing: the k-th n-gram order without a match counts as 1 / 2^k matches (NIST's, sacrebleu's "exp"); sentences
    of fewer than 4 words are compared by the orders they have. Sentences without a common word give 0, identical ones
    1; Ours: two sentences without any word are identical.
    """
    reference_words, candidate_words = words(reference), words(candidate)
    if reference_words == candidate_words:
        return 1.0
    result = _BLEU.sentence_score(" ".join(candidate_words), [" ".join(reference_words)])
    return min(1.0, result.score / 100.0)


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L in 0..1 (Lin 2004, eq. 2-4): F-measure of the longest common subsequence of words, beta = 1.2.

    Sentences without a common word give 0, identical ones 1; Ours: two sentences without any word are identical.
    """
    reference_words, candidate_words = words(reference), words(candidate)
    if reference_words == candidate_words:
        return 1.0
    common = _longest_common_subsequence(reference_words, candidate_words)
    if common == 0:
        return 0.0
    precision, recall = common / len(candidate_words), common / len(reference_words)
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


class Cider:
    """CIDEr (Vedantam et al. 2015): similarity of n-grams, each weighted by how rare it is in a corpus.

    The variant is the one the COCO caption evaluation runs (CIDEr-D with counts clipped to the reference's and a
    Gaussian penalty on the difference of lengths): n = 1..4, sigma = 6, times 10.

    Args:
        reference_corpus: every reference answer of the study, one document each. An n-gram that is in all of them
            weighs nothing, so a corpus is mandatory: with a single document every score is 0.

    Raises:
        InputError: fewer than two documents, or a document that is not text.
    """

    def __init__(self, reference_corpus: Iterable[str]) -> None:
        documents = [] if isinstance(reference_corpus, str) else [words(text) for text in reference_corpus]
        if len(documents) < 2:
            raise InputError(
                "CIDEr needs a list of at least two reference answers to tell rare words from common ones, "
                f"got {len(documents)}"
            )
        self._log_documents = math.log(len(documents))
        self._document_frequency = Counter(ngram for document in documents for ngram in set(_ngrams(document)))

    def score(self, reference: str, candidate: str) -> float:
        """CIDEr of `candidate` against one `reference`, 0..10.

        Even a sentence against itself gives less than 10 if, of some order, it has no n-gram that weighs anything: it
        has fewer than 4 words, or all documents of the corpus share them.
        """
        reference_words, candidate_words = words(reference), words(candidate)
        reference_weights, candidate_weights = self._weights(reference_words), self._weights(candidate_words)
        similarity = 0.0
        for of_reference, of_candidate in zip(reference_weights, candidate_weights, strict=True):
            norm = math.sqrt(_squared_norm(of_reference) * _squared_norm(of_candidate))
            if norm > 0.0:
                shared = of_reference.keys() & of_candidate.keys()
                # sorted, because the order of a set of text differs from process to process, and so would the last bit
                terms = (min(of_candidate[n], of_reference[n]) * of_reference[n] for n in sorted(shared))
                similarity += sum(terms) / norm
        penalty = math.exp(-((len(candidate_words) - len(reference_words)) ** 2) / (2 * CIDER_SIGMA**2))
        return min(CIDER_MAXIMUM, CIDER_MAXIMUM * penalty * similarity / CIDER_ORDER)

    def _weights(self, sentence: list[str]) -> list[dict[NGram, float]]:
        """One TF-IDF vector per order. The term frequency is the count: the cosine removes the common factor."""
        vectors: list[dict[NGram, float]] = [{} for _ in range(CIDER_ORDER)]
        for ngram, count in Counter(_ngrams(sentence)).items():
            rarity = self._log_documents - math.log(max(1, self._document_frequency[ngram]))
            vectors[len(ngram) - 1][ngram] = count * rarity
        return vectors


def _ngrams(sentence: list[str]) -> Iterator[NGram]:
    """All n-grams of the orders 1..4, as often as they occur."""
    for order in range(1, CIDER_ORDER + 1):
        for start in range(len(sentence) - order + 1):
            yield tuple(sentence[start : start + order])


def _squared_norm(vector: dict[NGram, float]) -> float:
    return sum(weight**2 for weight in vector.values())


def _longest_common_subsequence(first: list[str], second: list[str]) -> int:
    """Length of the longest common subsequence, by bit vectors (Hyyro 2004): fast even for 10^4 words of babble."""
    places: dict[str, int] = {}
    for position, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << position
    everything = (1 << len(first)) - 1
    row = everything  # a 0 bit marks a position of `first` at which the subsequence grows
    for word in second:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & everything
    return len(first) - bin(row).count("1")
