"""The entry of a fault of depth or of time: five levels beside the 30 types of images, and outside of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

Levels = tuple[float, float, float, float, float]
"""Parameter values of levels 1..5."""


@dataclass(frozen=True)
class Fault:
    """One fault of the depth or the timing of a camera.

    Attributes:
        name: such as "depth_holes".
        levels: parameter value of levels 1..5, in `unit`, in order of rising severity. Ours: there is no public set.
        unit: quantity and unit of the values.
        description: one line.
        category: its family, "depth" or "time".
        depth_alone: colour stays as it is, so that a model without depth sees nothing of the fault.
        continuous: the parameter is a real number, so that levels between the whole ones exist.
    """

    name: str
    levels: Levels
    unit: str
    description: str
    category: ClassVar[str]
    depth_alone: bool
    continuous: ClassVar[bool] = True

    def value(self, level: float) -> float:
        """Parameter value of a level in 0..5, linearly interpolated between whole levels; level 0 is the value 0."""
        values = (0.0, *self.levels)
        below = min(int(level), 4)
        share = level - below
        if share in (0, 1):  # exactly the stored value
            return values[below + int(share)]
        return values[below] + share * (values[below + 1] - values[below])
