"""The Robotiq 2F-140: one opening, told in metres, as 0..1, as a finger joint, and as the register of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from merton.cell import CellConfig
from merton.errors import InputError

REGISTER_CLOSED = 255
"""Value of the position register (POS of the URCap socket) when closed; 0 is open."""


@dataclass(frozen=True)
class Gripper:
    """Conversions and times of a parallel gripper whose two fingers slide by half the opening each.

    Attributes:
        stroke_m: opening between the pads, fully open [m].
        speed_m_s: fastest change of the opening [m/s].
        settle_s: wait after the fingers have stopped [s]. Ours: the grip has to build up before the arm moves on.
    """

    stroke_m: float = 0.140
    speed_m_s: float = 0.15
    settle_s: float = 0.2

    def __post_init__(self) -> None:
        if not (0 < self.stroke_m < inf and 0 < self.speed_m_s < inf and 0 <= self.settle_s < inf):
            raise InputError(
                f"a gripper needs a positive stroke and speed and a settling time of 0 or more, got {self}"
            )

    @classmethod
    def from_cell(cls, cell: CellConfig) -> Gripper:
        """The gripper `config/cell.yaml` describes."""
        return cls(cell.gripper.stroke, cell.gripper.max_speed, cell.gripper.settle_s)

    def opening_m(self, gripper_open: float) -> float:
        """Opening between the pads [m] from 0 (closed) .. 1 (open)."""
        return _fraction(gripper_open) * self.stroke_m

    def gripper_open(self, opening_m: float) -> float:
        """0 (closed) .. 1 (open) from the opening [m]; a measured opening a little outside the stroke is clipped."""
        if not -inf < opening_m < inf:
            raise InputError(f"the opening of the gripper must be a finite length, got {opening_m!r}")
        return min(1.0, max(0.0, opening_m / self.stroke_m))

    def finger_joint_m(self, gripper_open: float) -> float:
        """Position of each prismatic finger joint [m], 0 closed, from 0 (closed) .. 1 (open)."""
        return self.opening_m(gripper_open) / 2

    def gripper_open_of_joint(self, finger_joint_m: float) -> float:
        """0 (closed) .. 1 (open) from a measured finger joint [m]."""
        return self.gripper_open(2 * finger_joint_m)

    def register(self, gripper_open: float) -> int:
        """Value 0 (open) .. 255 (closed) for the real gripper from 0 (closed) .. 1 (open)."""
        return round(REGISTER_CLOSED * (1 - _fraction(gripper_open)))

    def gripper_open_of_register(self, register: int) -> float:
        """0 (closed) .. 1 (open) from the register: the opening is stroke x (1 - POS / 255)."""
        if not 0 <= register <= REGISTER_CLOSED:
            raise InputError(f"the gripper's register must be in 0 .. {REGISTER_CLOSED}, got {register!r}")
        return 1 - register / REGISTER_CLOSED

    @property
    def travel_time_s(self) -> float:
        """Time to wait after a command [s]: a full stroke at full speed, settling included.

        Ours: always the full stroke, because with an object between the pads the measured opening does not tell where
        the fingers were sent before, and so not how long they need.
        """
        return self.stroke_m / self.speed_m_s + self.settle_s


def _fraction(gripper_open: float) -> float:
    if not 0 <= gripper_open <= 1:  # NaN fails too
        raise InputError(f"the gripper must be in 0 (closed) .. 1 (open), got {gripper_open!r}")
    return float(gripper_open)
