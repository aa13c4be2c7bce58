"""The inputs and the result of a task's condition of success."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from merton.world.geometry import Array, Matrix

PAD_LINKS = ("gripper_left_pad", "gripper_right_pad")
"""Names of the links between which the gripper holds things."""
RESTING_TOLERANCE_M = 0.008
UPRIGHT_COSINE = math.cos(math.radians(10))


class Remaining(NamedTuple):
    """The difference between a situation and success.

    Attributes:
        way: the sum of all lengths that are still to go [m; rad for a turn; beads], 0 if none is.
        met: every condition holds that is no length.
    """

    way: float
    met: bool = True


@dataclass(frozen=True)
class Situation:
    """The inputs of a judgement; poses (4, 4) are in `base_link`.

    Attributes:
        start: name to pose of every thing of the scene at the start of the trial.
        now: the same now, and the mats.
        beads: centres (n, 3) of the beads [m]; none unless the task has any.
        start_tcp: position (3,) of the tool centre point [m] at the start of the trial.
        tcp: the same now.
        touching: the names of the robot's links that touch a thing.
        scales: name to how many times larger than usual a thing is, of those that are.
    """

    start: Mapping[str, Matrix]
    now: Mapping[str, Matrix]
    beads: Array
    start_tcp: Array
    tcp: Array
    touching: Callable[[str], Set[str]]
    scales: Mapping[str, float] = field(default_factory=dict)

    @property
    def at_start(self) -> Situation:
        """The start of the trial, when nothing touched anything and no bead was poured."""
        now = {**self.now, **self.start}
        return replace(self, now=now, beads=self.beads[:0], tcp=self.start_tcp, touching=lambda name: frozenset())

    def moved(self, name: str) -> Array:
        """Displacement (3,) of a thing from its place at the start [m]."""
        return np.asarray(self.now[name][:3, 3] - self.start[name][:3, 3])

    def off_table(self, name: str) -> float:
        """Absolute change of height since the start, when the thing stood on the table, beyond a tolerance [m]."""
        return excess(abs(self.moved(name)[2]), RESTING_TOLERANCE_M)

    def is_upright(self, name: str) -> bool:
        """Whether a thing leans by less than 10 degrees."""
        return bool(self.now[name][2, 2] > UPRIGHT_COSINE)

    def stands(self, name: str) -> bool:
        """Whether a thing is upright on the table."""
        return self.off_table(name) == 0 and self.is_upright(name)

    def is_held(self, name: str) -> bool:
        """Whether both pads of the gripper touch a thing."""
        return self.touching(name) >= set(PAD_LINKS)

    def is_released(self, name: str) -> bool:
        """Whether no link of the robot touches a thing."""
        return not self.touching(name)


def excess(value: float | np.floating, most: float) -> float:
    """By how much a value is too large; 0 exactly if it is not."""
    return max(0.0, float(value) - most)


def shortfall(value: float | np.floating, least: float) -> float:
    """By how much a value is too small; 0 exactly if it is not."""
    return max(0.0, least - float(value))
