"""CIDEr of answers, each benchmark's with a corpus of its own: the right answers of its questions in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from merton.cognition.text import CIDER_MAXIMUM, Cider
from merton.errors import InvalidAnswerError

COMMON = "every word of its right answers is in all of the benchmark's, so CIDEr says nothing of it"
"""Why an answer has no CIDEr: its right answers have none against themselves."""


def corpora(questions: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Cider]:
    """The corpus of each benchmark, whose documents are its questions, each with all of its right answers.

    So the COCO caption evaluation counts in how many pictures an n-gram is, with "question" for "picture".

    Args:
        questions: (benchmark, item) to the right answers; at least two items a benchmark.
    """
    documents: dict[str, list[Sequence[str]]] = {}
    for (benchmark, _), right in sorted(questions.items()):
        documents.setdefault(benchmark, []).append(right)
    return {benchmark: Cider(found) for benchmark, found in documents.items()}


def cider_score(corpus: Cider, right: Sequence[str], said: str) -> float | InvalidAnswerError:
    """CIDEr-D of an answer, the mean over its right answers, divided by 10, its maximum: 0..1."""
    if not corpus.score_batch(right, right).any():
        return InvalidAnswerError(COMMON)
    return float(corpus.score_batch(right, [said] * len(right)).mean()) / CIDER_MAXIMUM
