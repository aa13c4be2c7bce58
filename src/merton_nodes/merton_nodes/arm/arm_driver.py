"""The arm as arm_node drives it: where it is, commands for it, and waits until it has got there."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InfrastructureError, MertonError
from merton.execution.gate.collision import HeldObject, held_object
from merton.execution.gate.planner import Segment
from merton.execution.gate.safety import Verdict
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.gripper import HELD_CLEARANCE_M, Gripper
from merton.execution.stillness import Stillness
from merton.world.cell import ARM_JOINTS, CellConfig
from merton.world.geometry import Matrix
from merton_nodes.arm.stop_node import StopNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

ARRIVED_RAD = 0.002
"""How far off its goal a joint may be [rad]. Ours: 2 mm at full reach; the simulated arm stays within 1.1e-4."""
STALLED_S = 4.0
"""An arm that stands still for so long after its motion should have ended will not arrive any more [s]. Ours: longer
than ur-rtde takes to start its program before the first motion."""


class ArmDriver:
    """Sends segments of a motion, one after the other, and waits for the joints; the latch or an interruption ends it.

    Args:
        node: gets the subscription to joint states and the gripper's publisher.
        stop: the stop path, through which every command is sent.
        cell: geometry of the cell.
        patience_s: wall time without new joint states after which the hardware counts as dead [s].

    Attributes:
        joints_rad: (6,) measured, or None before the first message.
        opening_m: of the gripper.
        stamp_ns: of the newest joint states.
        path: tool positions since `begin`.
        interruption: why a motion was halted without a latch, None if it was not.
    """

    def __init__(self, node: StageNode, stop: StopNode, cell: CellConfig, patience_s: float) -> None:
        self.node, self.stop, self.cell, self.patience_s = node, stop, cell, patience_s
        self.gripper = Gripper.from_cell(cell)
        self.joints_rad: NDArray[np.float64] | None = None
        self.opening_m = 0.0
        self.stamp_ns = 0
        self.progress_s = 0.0
        """When joint states last had a later stamp than before [s], on the monotonic clock."""
        self.stillness = Stillness()
        self.clock_stands = False
        """Whether the last message bore the stamp of the one before: an embedded cell at rest."""
        self.path: list[Point] = []
        self.moving = False
        self.trips = stop.trips
        """How often the stop had tripped when the chunk began."""
        self.interruption: Verdict | None = None
        self.gripped: tuple[float, Matrix] | None = None
        """The last gripper command, 0..1, and where the tool was then."""
        self.waiting: list[tuple[Callable[[], bool], Callable[[], bool], Future]] = []
        """What is waited for, when it is given up, and the future that says which of the two it came to."""
        self.gripper_commands = node.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        node.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.RELIABLE_QOS)
        node.every(0.25, self.wake)

    def on_joints(self, message: JointState) -> None:
        """Where the arm is; wakes whoever waits for it to get somewhere."""
        try:
            self.joints_rad, self.opening_m = convert.joints_of(message)
        except MertonError:
            self.node.counters["dropped joint states"] += 1
            return
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        now_s = time.monotonic()
        self.clock_stands = stamp_ns == self.stamp_ns
        if not self.clock_stands:
            self.stamp_ns, self.progress_s = stamp_ns, now_s
            if self.moving:
                x, y, z = self.base_from_tcp[:3, 3].tolist()
                self.path.append(Point(x=x, y=y, z=z))
        self.stillness.update(self.joints_rad, stamp_ns, now_s)
        self.wake()

    @property
    def base_from_tcp(self) -> Matrix:
        """The measured pose (4, 4) of the tool centre point in `base_link`."""
        assert self.joints_rad is not None
        return base_from_tcp(self.joints_rad, self.cell.tool0_from_tcp)

    @property
    def stop_came(self) -> bool:
        """Whether the stop has tripped since `begin`, even if it was released meanwhile: the arm is not on its way."""
        return self.stop.latch.tripped or self.stop.trips != self.trips

    @property
    def over(self) -> bool:
        """Whether nothing more may be sent: the stop has tripped, or the motion was interrupted."""
        return self.stop_came or self.interruption is not None

    def begin(self) -> None:
        """A chunk begins: forget how the last one went."""
        self.path, self.interruption, self.moving, self.trips = [], None, True, self.stop.trips

    def end(self) -> list[Point]:
        """The chunk is done; returns the path."""
        self.moving = False
        return self.path

    def interrupt(self, why: Verdict) -> None:
        """Halt the motion under way, if there is one, without a latch; the first reason counts."""
        if self.moving and not self.over:
            self.interruption = why
            self.stop.halt()
            self.wake()

    def wake(self) -> None:
        """Resolve every wait that is over. Call it from the executor's thread."""
        for condition, given_up, future in self.waiting:
            if not future.done() and ((reached := condition()) or given_up()):
                future.set_result(reached)
        self.waiting = [entry for entry in self.waiting if not entry[-1].done()]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; raises InfrastructureError if joint states make no progress for `patience_s`."""
        begin_s = time.monotonic()

        def dead() -> bool:
            return time.monotonic() - max(begin_s, self.progress_s) > self.patience_s

        future: Future = Future()
        self.waiting.append((condition, dead, future))
        self.wake()
        if not await future:
            raise InfrastructureError(f"{names.JOINT_STATES} made no progress for {self.patience_s:g} s")

    async def catch_up(self, stamp_ns: int) -> None:
        """Wait until the joints have been seen at an observation's stamp, or once if that is 0.

        Raises InfrastructureError if they are not after `patience_s`: they may run on another clock, and never be.
        """
        limit_s, seen_ns = time.monotonic() + self.patience_s, max(stamp_ns, 1)
        await self.until(lambda: self.over or self.stamp_ns >= seen_ns or time.monotonic() > limit_s)
        if self.stamp_ns < seen_ns and not self.over:
            raise InfrastructureError(
                f"no {names.JOINT_STATES} of {stamp_ns / 1e9:.3f} s, the observation's stamp, within "
                f"{self.patience_s:g} s; the last are of {self.stamp_ns / 1e9:.3f} s"
            )

    def has_stood_for(self, duration_s: float) -> bool:
        """Whether the arm has stood still for so long on the cell's clock, which may stand, or for `STALLED_S`."""
        return self.stillness.duration_s >= duration_s or self.stillness.clock_duration_s >= STALLED_S

    async def settled(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition on an arm that should rest soon; raises as `until`, and if it moves for `patience_s`."""
        limit_s = time.monotonic() + self.patience_s
        await self.until(lambda: condition() or time.monotonic() > limit_s)
        if time.monotonic() > limit_s and not condition():
            raise InfrastructureError(f"the arm still moves {self.patience_s:g} s after it should have come to rest")

    async def rest(self, given_up: Callable[[], bool]) -> None:
        """Wait until an arm that was just halted has been seen standing still; raises as `settled`."""
        settle_s, halted_ns = self.cell.simulation.settle_s, self.stamp_ns

        def time_has_passed() -> bool:
            """Whether an embedded cell has heard the halt, and has simulated all that follows from it."""
            return self.clock_stands and self.stamp_ns > halted_ns

        self.stillness.restart()
        await self.settled(lambda: given_up() or self.has_stood_for(settle_s) or time_has_passed())

    async def arrive(self, joints_rad: NDArray[np.float64]) -> None:
        """Wait for an arm that is late until it is at (6,) [rad], or stands still short of it; raises as `settled`.

        Standing still is no error here: the arm may press on an object. What must not be is known to the robot's own
        node, which trips the stop.
        """

        def away_rad() -> float:
            return float(np.abs(self.joints_rad - joints_rad).max())

        self.stillness.restart()  # an arm that has not begun to move yet is late, too
        await self.settled(
            lambda: self.over or away_rad() <= ARRIVED_RAD or self.clock_stands or self.has_stood_for(STALLED_S)
        )
        if not self.over and away_rad() > ARRIVED_RAD:
            self.node.counters["motions that ended short"] += 1
            self.node.get_logger().warning(f"the arm stands {away_rad():.4f} rad short of where it was sent")

    def held(self) -> HeldObject | None:
        """What is between the fingers, as far as they can tell."""
        if self.opening_m > self.gripper.stroke_m - HELD_CLEARANCE_M:
            self.gripped = None  # wide open, whoever did that: nothing is held
        return (
            None
            if self.gripped is None
            else held_object(self.gripper, self.gripped[0], self.opening_m, self.gripped[1])
        )

    async def grip(self, segment: Segment) -> None:
        """The gripper command of a segment, if it has one, and the time it takes; raises as `until`."""
        if segment.gripper is None or self.over:
            return
        end_ns = self.stamp_ns + round(self.gripper.travel_time_s * 1e9)
        command = Float64MultiArray(data=[self.gripper.finger_joint_m(segment.gripper)])
        self.gripped = segment.gripper, self.base_from_tcp
        if self.stop.send(self.gripper_commands, command):
            await self.until(lambda: self.over or self.stamp_ns >= end_ns)

    async def move(self, segment: Segment) -> int:
        """The motion of a segment, if it has one. Returns the last waypoint it passed; raises as `until`."""
        if self.over:
            return segment.first
        if segment.moves:
            begin_ns = self.stamp_ns
            if not self.stop.send(self.stop.commands, trajectory(segment)):
                return segment.first
            end_ns = begin_ns + round((segment.times_s[-1] + self.cell.simulation.settle_s) * 1e9)
            await self.until(lambda: self.over or self.stamp_ns >= end_ns)
            await self.arrive(segment.joints_rad[-1])
            if self.over and len(segment.times_s) != segment.deltas + 1:
                return segment.first  # a planner's own way does not pass the waypoints
            if self.over:
                elapsed_s = (self.stamp_ns - begin_ns) / 1e9
                return segment.first + int(np.searchsorted(segment.times_s, elapsed_s, side="right")) - 1
        return segment.first + segment.deltas


def trajectory(segment: Segment) -> JointTrajectory:
    """The message of a segment's motion."""
    message = JointTrajectory(joint_names=list(ARM_JOINTS))
    for time_s, joints, velocities in zip(segment.times_s, segment.joints_rad, segment.velocities_rad_s, strict=True):
        message.points.append(
            JointTrajectoryPoint(
                positions=joints.tolist(),
                velocities=velocities.tolist(),
                time_from_start=convert.duration_message(time_s),
            )
        )
    return message
