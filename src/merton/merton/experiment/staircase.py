"""The level of each distorted trial under `levels: staircase`: a function of the results before it in its chain.

A weighted up-down rule (Kaernbach 1991, "Simple adaptive testing with the weighted up-down method"): after a success
the level rises by a third, after a failure it falls by one. The two balance where success is 75 %.
"""

from __future__ import annotations

_RISE, _FALL = 1, 3
_LOWEST, _FIRST, _HIGHEST = 3, 9, 15
"""Heights are whole thirds of a level, so that no rounding decides a level."""


class Staircase:
    """The height of one chain, from level 3 and within 1 .. 5.

    Steps are ours: those of a whole level after a success and three after a failure, on so few levels, estimate a
    threshold worse (docs/reference/experiments_measured.md).
    """

    def __init__(self) -> None:
        self._height = _FIRST

    @property
    def level(self) -> int:
        """The level of the next trial, the nearest to the height."""
        return (self._height + 1) // 3

    def add(self, success: bool | None) -> None:
        """Enter the result of a trial; None, an infrastructure fault, tells nothing and leaves the level."""
        if success is not None:
            moved = self._height + (_RISE if success else -_FALL)
            self._height = min(max(moved, _LOWEST), _HIGHEST)
