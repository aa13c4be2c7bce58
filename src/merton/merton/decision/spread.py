"""The likeness of two actions in general form: numbers in the units of an action space, of any robot.

`merton.decision.score` compares chunks of tool motions. A policy whose rows have no such meaning (joints, a plane, two
arms), or whose motions are small beside half a metre, is compared here column by column, each in units of its spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError

Rows = NDArray[np.float64]
LOW, HIGH = 0.01, 0.99
"""The quantiles between which a spread lies, as policies' statistics have them (q01, q99)."""


@dataclass(frozen=True)
class Spread:
    """The width in which each column of an action varies.

    Attributes:
        width: (columns,), >= 0, each in the unit of its column; 0 for a column that never changes, which is not
            compared.
        rows: the number of rows it was taken from; 0 if it was given.
    """

    width: Rows
    rows: int = 0

    @classmethod
    def of(cls, actions: Sequence[ArrayLike]) -> Spread:
        """Of the actions of a policy, or of demonstrations: from the 1st to the 99th percentile over all their rows.

        Args:
            actions: each (n, columns) or (columns,); undistorted ones.

        Raises:
            InputError: there is no row, a number is not finite, or two have different columns.
        """
        chunks = [as_rows(action) for action in actions]
        if not sum(len(chunk) for chunk in chunks):
            raise InputError("a spread of actions needs at least one action")
        if len({chunk.shape[1] for chunk in chunks}) > 1:
            counts = sorted({chunk.shape[1] for chunk in chunks})
            raise InputError(f"a spread is of actions of one length, got rows of {' and '.join(map(str, counts))}")
        rows = np.concatenate(chunks)
        low, high = np.quantile(rows, (LOW, HIGH), axis=0)
        return cls(high - low, len(rows))


def as_rows(action: ArrayLike) -> Rows:
    """An action (columns,) or (n, columns) as float64 rows (n, columns).

    Raises:
        InputError: another shape, or a number that is not finite.
    """
    rows = np.atleast_2d(np.asarray(action, np.float64))
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"an action is rows of finite numbers, got an array of shape {np.shape(action)}")
    return rows


def likeness(reference: ArrayLike, candidate: ArrayLike, spread: Spread) -> float | None:
    """How alike two actions are, 0..1: 1 - mean over rows and columns of min(1, absolute difference / width).

    Ours, because the paper's three parts (section 3.4) need a tool pose. As there, a difference counts as whole from
    the range on. Chunks of different lengths are compared over the shorter one.

    Args:
        reference, candidate: (n, columns) or (columns,), in the units of the action space.

    Returns:
        None if no column varies, or one of them has no row: nothing can be compared then.

    Raises:
        InputError: other columns than those of the spread, or a number that is not finite.
    """
    one, other = as_rows(reference), as_rows(candidate)
    if not one.shape[1] == other.shape[1] == len(spread.width):
        raise InputError(
            f"actions of {one.shape[1]} and {other.shape[1]} numbers cannot be compared by a spread of "
            f"{len(spread.width)}"
        )
    length, varies = min(len(one), len(other)), spread.width > 0
    if not length or not varies.any():
        return None
    apart = np.abs(one[:length, varies] - other[:length, varies]) / spread.width[varies]
    return float(1.0 - np.minimum(apart, 1.0).mean())
