"""The words of an answer, which all measures of a text compare, and the version of a corpus of answers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from merton.errors import InputError

_LETTER = r"\w[\u0300-\u036f]*"  # with combining accents
_WORD = re.compile(rf"(?:{_LETTER})+(?:['.\-](?:{_LETTER})+)*")
_ASCII_WORD = re.compile(r"\w+(?:['.\-]\w+)*", re.ASCII)
"""The same where there are no accents, in half the time."""


def words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; raises InputError if it is not text."""
    if not isinstance(sentence, str):
        raise InputError(f"an answer must be text, got {type(sentence).__name__}")
    text = sentence.lower()
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'"))


def corpus_version(reference_corpus: Iterable[str]) -> str:
    """A hash of 16 hexadecimal digits of a corpus of answers: equal for equal words, in any order.

    It is stored with CIDEr scores, which are comparable only for equal corpora.
    """
    documents = sorted(" ".join(words(text)) for text in reference_corpus)
    return hashlib.sha256("\n".join(documents).encode()).hexdigest()[:16]
