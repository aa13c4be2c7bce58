"""The words of an answer, which all measures of a text compare, and the version of a corpus of answers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from merton.errors import InputError

VERSION = 2
"""Raised with every change that makes other words of a text; stored beside scores. 1 took a run of a script without
spaces for one word, and signs of Indian and Thai vowels for the ends of words."""

_UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"  # kana, Bopomofo
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"  # kana and Han of the later planes
)
"""Characters of scripts that write no spaces between words. Each is a word, as sacrebleu's tokenizer "zh" has it for
Han; ours for the others, which sacrebleu leaves to a morphological analysis. Korean writes spaces."""
_ASCII_WORD = re.compile(r"\w+(?:['.\-]\w+)*", re.ASCII)
"""The same where there are no accents, in half the time."""


def words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; raises InputError if it is not text."""
    if not isinstance(sentence, str):
        raise InputError(f"an answer must be text, got {type(sentence).__name__}")
    text = sentence.lower()
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _pattern().findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'"))


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """A word: one letter of a script without spaces, or a run of others; each letter with its combining marks."""
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M")
    letter = rf"(?:(?![{_UNSPACED}])\w[{marks}]*)"
    return re.compile(rf"[{_UNSPACED}](?<=\w)[{marks}]*|{letter}+(?:['.\-]{letter}+)*")


def corpus_version(reference_corpus: Iterable[str]) -> str:
    """A hash of 16 hexadecimal digits of a corpus of answers: equal for equal words, in any order.

    It is stored with CIDEr scores, which are comparable only for equal corpora.
    """
    documents = sorted(" ".join(words(text)) for text in reference_corpus)
    return hashlib.sha256("\n".join(documents).encode()).hexdigest()[:16]
