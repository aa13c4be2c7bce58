"""The steps that carry out a chunk, the same in the simulator's process and in arm_node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from merton.execution.gate.collision import HeldObject, held_object
from merton.execution.gate.planner import Segment, plan, plan_again, segments
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.robots.gripper import HELD_CLEARANCE_M, Gripper
from merton.world.action import ActionChunk
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix


class Hand:
    """The measured opening of the gripper, and the object between its fingers.

    Args:
        opening_m: measures the opening between the pads [m].
        base_from_tcp: measures the pose (4, 4) of the tool centre point in `base_link`.
    """

    def __init__(self, gripper: Gripper, opening_m: Callable[[], float], base_from_tcp: Callable[[], Matrix]) -> None:
        self._gripper, self._opening_m, self._base_from_tcp = gripper, opening_m, base_from_tcp
        self._command: tuple[float, Matrix] | None = None

    @property
    def gripper_open(self) -> float:
        """The measured opening, 0 closed .. 1 open."""
        return self._gripper.gripper_open(self._opening_m())

    def commanded(self, gripper_open: float) -> None:
        """Note a command to the gripper, 0 closed .. 1 open, and the pose of the tool now."""
        self._command = gripper_open, self._base_from_tcp()

    def held(self) -> HeldObject | None:
        """The object between the fingers; None, and the last command is forgotten, once they are measured wide open."""
        opening_m = self._opening_m()
        if opening_m > self._gripper.stroke_m - HELD_CLEARANCE_M:
            self._command = None
        if self._command is None:
            return None
        gripper_open, base_from_tcp = self._command
        return held_object(self._gripper, gripper_open, opening_m, base_from_tcp)


@dataclass(frozen=True)
class Grip:
    """Send the segment's command to the gripper, and wait until its fingers have stopped."""

    segment: Segment


@dataclass(frozen=True)
class Move:
    """Follow the segment's trajectory, if it has one, and wait until the arm has arrived."""

    segment: Segment


@dataclass(frozen=True)
class SegmentDone:
    """A segment is done: its number, and the clearance that is predicted for the whole motion [m]."""

    index: int
    clearance_m: float


@dataclass(frozen=True)
class PredictedStop:
    """Trip the stop: the next delta of the chunk would collide."""

    verdict: Verdict


Step = Grip | Move | SegmentDone | PredictedStop


class Carrying:
    """One chunk on its way through the gate: its plan, and the steps that carry it out.

    `joints_rad` (6,) is the arm's position now; `until_contact` as of `plan`. `motion` is the plan; it may end earlier
    once an object is grasped.
    """

    def __init__(
        self,
        chunk: ActionChunk,
        joints_rad: Array,
        hand: Hand,
        cell: CellConfig,
        limits: Limits,
        *,
        until_contact: bool = False,
    ) -> None:
        self._hand, self._cell, self._limits, self._until_contact = hand, cell, limits, until_contact
        opened, held = hand.gripper_open, hand.held()
        self.motion = plan(
            joints_rad,
            chunk.deltas,
            chunk.step_s,
            chunk.frame,
            cell,
            limits,
            opened,
            held,
            until_contact=until_contact,
        )

    def steps(self, is_stopped: Callable[[], bool]) -> Iterator[Step]:
        """The steps; complete each before you take the next. None moves arm or gripper once `is_stopped()` is true."""
        index = 0
        while not is_stopped() and index < len(parts := segments(self.motion)):
            part = parts[index]
            if part.gripper is not None:
                self._hand.commanded(part.gripper)
                yield Grip(part)
                if (held := self._hand.held()) is not None:  # it may reach further than the empty hand
                    self.motion = plan_again(
                        self.motion, part.first, held, self._cell, self._limits, until_contact=self._until_contact
                    )
            for segment in segments(self.motion)[index : index + 1]:
                if not is_stopped():
                    yield Move(segment)
            yield SegmentDone(index, self.motion.verdict.clearance_m)
            index += 1
        if self.motion.verdict.stops and not is_stopped():
            yield PredictedStop(self.motion.verdict)
