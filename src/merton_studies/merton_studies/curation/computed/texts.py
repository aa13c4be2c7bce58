"""The texts of questions and dimensions that computed voters read, and vectors that are computed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from merton.progress import OnProgress
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import Dimension

_QUOTED = re.compile(r"“([^”]*)”")
_PARTS = re.compile(r"[,:;.]|\bor\b|\band\b")
_SHORTEST = 3
"""Letters of a phrase."""
_OPENING = 3
"""Words that a question begins with."""


class Remembered:
    """An embedding that computes the vector of each text once.

    Args:
        embed: texts to (n, d) rows of norm 1, such as `merton_studies.curation.embedding.embed_texts`.
        texts: embedded at once.
        on_progress: called with (done, total) while they are; `embed` must take it then.
    """

    def __init__(
        self,
        embed: Callable[..., NDArray[np.float32]],
        texts: Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> None:
        self._embed = embed
        self._known: dict[str, NDArray[np.float32]] = {}
        if texts:
            distinct = list(dict.fromkeys(texts))
            vectors = embed(distinct, on_progress) if on_progress else embed(distinct)
            self._known.update(zip(distinct, vectors, strict=True))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) rows of norm 1."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known.update(zip(new, self._embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def described(dimension: Dimension) -> str:
    """Title and definition in one text."""
    return f"{dimension.title or dimension.name}: {dimension.definition}"


def phrases(dimension: Dimension) -> list[str]:
    """The parts of a definition between commas and the like, and each quoted question as a whole."""
    rest = _QUOTED.sub(",", dimension.definition)
    parts = [*_QUOTED.findall(dimension.definition), *(part.strip() for part in _PARTS.split(rest))]
    return [part for part in parts if len(part) >= _SHORTEST] or [dimension.definition]


def full_texts(questions: Sequence[Question]) -> list[str]:
    """Situation, question and choices of each."""
    return [question.full_text for question in questions]


def opening(text: str) -> str:
    """The first three words of a question, in small letters."""
    return " ".join(re.findall(r"\w+", text.lower())[:_OPENING])
