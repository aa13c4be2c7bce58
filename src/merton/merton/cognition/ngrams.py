"""The n-grams of many sentences at once, as sparse matrices: a row for each sentence, a column for each n-gram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

ORDERS = 4
"""N-grams of 1 to 4 words, as BLEU and CIDEr count them."""

Words = Sequence[str]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class NGrams:
    """The n-grams of one order.

    Attributes:
        counts: (sentences, n-grams) number of occurrences. Columns are in the order of the ranks of their words, so
            the order of two n-grams does not depend on the others.
        prefixes: (n-grams,) the column, one order lower, of an n-gram without its last word; 0 for single words.
        last_words: (n-grams,) the rank of the last word.
    """

    counts: csr_array
    prefixes: Integers
    last_words: Integers


def word_ranks(sentences: Iterable[Words], known: dict[str, int] | None = None) -> dict[str, int]:
    """A number for each word: those of `known` keep theirs, the others follow in alphabetical order."""
    known = known or {}
    new = sorted({word for sentence in sentences for word in sentence} - known.keys())
    return {**known, **{word: rank for rank, word in enumerate(new, len(known))}}


def ngrams_of(sentences: Sequence[Words], ranks: dict[str, int]) -> list[NGrams]:
    """All n-grams of the orders 1 to `ORDERS`, order by order; every word must have a rank."""
    lengths = [len(sentence) for sentence in sentences]
    words = np.array([ranks[word] for sentence in sentences for word in sentence], dtype=np.int64)
    rows = np.repeat(np.arange(len(sentences)), lengths)
    starts, columns, found = np.arange(len(words)), np.zeros(len(words), dtype=np.int64), []
    for order in range(1, ORDERS + 1):
        # an n-gram is its first n - 1 words, already numbered, and one more word of the same sentence
        inside = starts + order - 1 < len(words)
        starts, columns = starts[inside], columns[inside]
        inside = rows[starts] == rows[starts + order - 1]
        starts, columns = starts[inside], columns[inside]
        keys, columns = np.unique(columns * len(ranks) + words[starts + order - 1], return_inverse=True)
        counts = coo_array(
            (np.ones(len(starts), dtype=np.int64), (rows[starts], columns)), shape=(len(sentences), len(keys))
        ).tocsr()
        found.append(NGrams(counts, *np.divmod(keys, max(1, len(ranks)))))
    return found


@njit(cache=True)
def clipped_matches(words: Integers, ends: Integers, references: Integers, candidates: Integers) -> Integers:
    """The n-grams that candidates have in common with their references, each counted as often as both have it.

    For answers: the work grows with the product of the two lengths, 0.3 s for 10^4 words.

    Args:
        words: the words of all sentences, one sentence after the other, as numbers.
        ends: (sentences + 1,) 0 and the end of each sentence in `words`.
        references, candidates: (n,) sentences.

    Returns:
        (n, `ORDERS`) matches by order.
    """
    matches = np.zeros((len(references), ORDERS), np.int64)
    for pair in range(len(references)):
        reference = words[ends[references[pair]] : ends[references[pair] + 1]]
        candidate = words[ends[candidates[pair]] : ends[candidates[pair] + 1]]
        for last in range(len(candidate)):
            # of the n-grams that end at this word: how often the reference has them, less how often they came before
            free = np.zeros(ORDERS + 1, np.int64)
            for other in range(len(reference)):
                free[_common_end(candidate, last, reference, other)] += 1
            for other in range(last):
                free[_common_end(candidate, last, candidate, other)] -= 1
            longer = 0
            for order in range(ORDERS, 0, -1):
                longer += free[order]
                matches[pair, order - 1] += longer > 0
    return matches


@njit(cache=True)
def _common_end(first: Integers, last: int, second: Integers, other: int) -> int:
    """Number of equal words, `ORDERS` at most, up to and with `first[last]` and `second[other]`."""
    count = 0
    while count < ORDERS and count <= last and count <= other and first[last - count] == second[other - count]:
        count += 1
    return count
