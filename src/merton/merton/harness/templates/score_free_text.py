"""Any text: the F1 measure of the words in common with the answer, as in SQuAD (Rajpurkar et al., EMNLP 2016)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from merton.harness.templates.score_words import plain

ARTICLES = ("a", "an", "the")


def score_free_text(case: dict[str, Any], prediction: str) -> float:
    """0..1; the best of the answer and those that are right too. The same words are 1, in any order."""
    return max(word_f1(right, prediction) for right in (case["answer"], *case["also"]))


def word_f1(right: str, said: str) -> float:
    """2 x common words / all words, without articles unless there is nothing else; without any words, 0."""
    first, second = Counter(content(right)), Counter(content(said))
    total = sum(first.values()) + sum(second.values())
    return 2 * sum((first & second).values()) / total if total else 0.0


def content(text: str) -> list[str]:
    """The words of a text without articles; with them where it has no others."""
    words = plain(text).split()
    return [word for word in words if word not in ARTICLES] or words
