"""The Robotiq 2F-140: its opening in metres, as 0..1, as a finger joint, and as the register of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf

from merton.errors import InputError
from merton.world.cell import CellConfig

REGISTER_MAX = 255
"""Largest value of a register: each is one byte."""

REGISTER_OPEN, REGISTER_CLOSED = 13, 230
"""Position register (POS of the URCap socket) of a 2F-140 that is open, and of one whose pads meet.

The fingers stop before the encoder's own ends, 0 and 255. Open 13: the manual's example of an opening that is complete
("software limit", 2F-85 and 2F-140 instruction manual, control by Modbus RTU). Closed 230: Robotiq's article on encoder
bytes of adaptive grippers, and reports from users of the 2F-140. A single gripper may differ by a few counts.
"""

SPEED_RANGE_M_S = (0.030, 0.250)
"""Speed of the opening at SPE 0 and 255 (Robotiq, 2F-140 instruction manual, specifications)."""

FORCE_RANGE_N = (10.0, 125.0)
"""Grip force at FOR 0 and 255 (as above)."""

HELD_CLEARANCE_M = 0.004
"""Fingers that rest this far from their commanded opening met an object. Ours: a tenth of the smallest object."""


class Grip(IntEnum):
    """State of the fingers; the numbers are those of the register OBJ of the URCap socket."""

    MOVING = 0
    OBJECT_OUTSIDE = 1
    """Stopped by an object while opening."""
    OBJECT_INSIDE = 2
    """Stopped by an object while closing: it is held."""
    AT_POSITION = 3


@dataclass(frozen=True)
class GripperReading:
    """A measurement of a gripper.

    Attributes:
        opening_m: distance between the pads [m].
        gripper_open: the same as 0 (closed) .. 1 (open).
        grip: state of the fingers.
        fault: 0, or the number of a fault (register FLT).
    """

    opening_m: float
    gripper_open: float
    grip: Grip
    fault: int = 0

    @property
    def holds(self) -> bool:
        """Whether an object is between the fingers."""
        return self.grip is Grip.OBJECT_INSIDE


@dataclass(frozen=True)
class Gripper:
    """Conversions and times of a parallel gripper whose two fingers slide by half the opening each.

    Attributes:
        stroke_m: opening between the pads, fully open [m].
        speed_m_s: fastest change of the opening [m/s].
        settle_s: wait after the fingers have stopped [s]. Ours: the grip has to build up before the arm moves on.
        register_open, register_closed: position register of the open gripper, and of one whose pads meet.
    """

    stroke_m: float = 0.140
    speed_m_s: float = 0.15
    settle_s: float = 0.2
    register_open: int = REGISTER_OPEN
    register_closed: int = REGISTER_CLOSED

    def __post_init__(self) -> None:
        if not (0 < self.stroke_m < inf and 0 < self.speed_m_s < inf and 0 <= self.settle_s < inf):
            raise InputError(
                f"a gripper needs a positive stroke and speed and a settling time of 0 or more, got {self}"
            )
        if not 0 <= self.register_open < self.register_closed <= REGISTER_MAX:
            raise InputError(
                f"the position register of a gripper is smaller open than closed and in 0 .. {REGISTER_MAX}, got "
                f"{self.register_open} open and {self.register_closed} closed"
            )

    @classmethod
    def from_cell(cls, cell: CellConfig) -> Gripper:
        """The gripper of `config/cell.yaml`."""
        own = cell.gripper
        return cls(own.stroke, own.max_speed, own.settle_s, own.register_open, own.register_closed)

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

    def register(self, gripper_open: float) -> int:
        """Position register `register_open` .. `register_closed` from 0 (closed) .. 1 (open)."""
        return round(_mapped(_fraction(gripper_open), (0.0, 1.0), self._ends))

    def gripper_open_of_register(self, register: float) -> float:
        """0 (closed) .. 1 (open) from the position register 0 .. 255: linear between its ends, clipped beyond them."""
        if not 0 <= register <= REGISTER_MAX:
            raise InputError(f"the gripper's register must be in 0 .. {REGISTER_MAX}, got {register!r}")
        return _mapped(register, self._ends, (0.0, 1.0))

    @property
    def _ends(self) -> tuple[float, float]:
        return float(self.register_closed), float(self.register_open)

    def speed_register(self, speed_m_s: float) -> int:
        """SPE 0 .. 255 from a speed of the opening [m/s], clipped to the gripper's range."""
        return _register_of(speed_m_s, SPEED_RANGE_M_S, "speed")

    def force_register(self, force_n: float) -> int:
        """FOR 0 .. 255 from a grip force [N], clipped to the gripper's range."""
        return _register_of(force_n, FORCE_RANGE_N, "force")

    def reading(self, commanded_m: float, measured_m: float, moving: bool) -> GripperReading:
        """The reading of a gripper without object detection, as in the embedded cell.

        Args:
            commanded_m, measured_m: the last command, and the measured opening [m].
            moving: whether the fingers may still be on their way.
        """
        short_m = measured_m - commanded_m
        grip = Grip.AT_POSITION
        if moving:
            grip = Grip.MOVING
        elif abs(short_m) > HELD_CLEARANCE_M:
            grip = Grip.OBJECT_INSIDE if short_m > 0 else Grip.OBJECT_OUTSIDE
        return GripperReading(measured_m, self.gripper_open(measured_m), grip)

    @property
    def travel_time_s(self) -> float:
        """Time to wait after a command [s]: a full stroke at full speed, settling included.

        Ours: always the full stroke, because an object between the pads hides the last command, and so the travel left.
        """
        return self.stroke_m / self.speed_m_s + self.settle_s


def _fraction(gripper_open: float) -> float:
    if not 0 <= gripper_open <= 1:  # NaN fails too
        raise InputError(f"the gripper must be in 0 (closed) .. 1 (open), got {gripper_open!r}")
    return float(gripper_open)


def _register_of(value: float, range_: tuple[float, float], name: str) -> int:
    if not 0 < value < inf:  # NaN fails too
        raise InputError(f"the {name} of the gripper must be positive, got {value!r}")
    return round(_mapped(value, range_, (0.0, REGISTER_MAX)))


def _mapped(value: float, ends: tuple[float, float], onto: tuple[float, float]) -> float:
    """A value between two ends at the same share of the way between two others; clipped to them."""
    share = min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
    return onto[0] + share * (onto[1] - onto[0])
