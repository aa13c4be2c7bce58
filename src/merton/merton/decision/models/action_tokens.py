"""OpenVLA's actions as tokens: the last 256 words of the vocabulary are bins of -1 .. 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InvalidActionError

END = 2
"""Llama's end-of-text token."""


@dataclass(frozen=True)
class ActionTokens:
    """The bins of a vocabulary (OpenVLA, section 3.2).

    Attributes:
        vocabulary: number of words without padding; 32000 for OpenVLA.
        bins: number of words at its end that are actions, and of evenly spaced edges in -1 .. 1; centres are one fewer.
    """

    vocabulary: int = 32000
    bins: int = 256

    def normalised(self, tokens: ArrayLike) -> NDArray[np.float64]:
        """Centres of the tokens' bins, in -1 .. 1; the last word is the lowest bin.

        Raises:
            InvalidActionError: a token that is no action: the text was cut off, or the model wrote words.
        """
        ids = np.asarray(tokens)
        if not self.are_actions(ids).all():
            raise InvalidActionError(f"tokens {ids.tolist()} are not all among the {self.bins} words of an action")
        edges = np.linspace(-1.0, 1.0, self.bins)
        centers = (edges[:-1] + edges[1:]) / 2.0
        # The top bin has an edge but no centre of its own: it shares the last one, as in training.
        return np.asarray(centers[np.clip(self.vocabulary - ids - 1, 0, self.bins - 2)])

    def are_actions(self, tokens: ArrayLike) -> NDArray[np.bool_]:
        """True for tokens that are actions."""
        ids = np.asarray(tokens)
        return np.asarray((ids >= self.vocabulary - self.bins) & (ids < self.vocabulary))

    def at_the_end(self, tokens: ArrayLike, count: int = 7) -> NDArray[np.float64]:
        """The action (count,), in -1 .. 1, at the end of a text of tokens (n,), before its end-of-text token.

        Raises:
            InvalidActionError: it does not end with an action. A chain of thought that was cut off ends in words, which
                would all be extreme values as an action.
        """
        ids = np.asarray(tokens).reshape(-1)
        if len(ids) and ids[-1] == END:
            ids = ids[:-1]
        if len(ids) < count or not self.are_actions(ids[-count:]).all():
            raise InvalidActionError(f"the chain of {len(ids)} tokens does not end with an action: it was cut off")
        return self.normalised(ids[-count:])
