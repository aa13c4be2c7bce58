"""The words of an answer: what all measures of a text compare, and what stands for a corpus of answers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from merton.errors import InputError

_LETTER = r"\w[\u0300-\u036f]*"  # with accents that have no form in one piece
_WORD = re.compile(rf"(?:{_LETTER})+(?:['.\-](?:{_LETTER})+)*")


def words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; raises InputError if it is not text."""
    if not isinstance(sentence, str):
        raise InputError(f"an answer must be text, got {type(sentence).__name__}")
    text = sentence.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return _WORD.findall(text)


def corpus_version(reference_corpus: Iterable[str]) -> str:
    """16 hexadecimal digits that stand for a corpus of answers: equal for equal words, in any order.

    CIDEr scores compare only if they were made with the same corpus, so this is kept beside them.
    """
    documents = sorted(" ".join(words(text)) for text in reference_corpus)
    return hashlib.sha256("\n".join(documents).encode()).hexdigest()[:16]
