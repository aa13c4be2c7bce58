"""The arm as arm_node drives it: where it is, commands for it, and waits until it has got there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.cell import ARM_JOINTS, CellConfig
from merton.errors import InfrastructureError, MertonError
from merton.execution.collision import HeldObject, held_object
from merton.execution.gripper import HELD_CLEARANCE_M, Gripper
from merton.execution.kinematics import base_from_tcp
from merton.execution.planner import Segment
from merton.execution.safety import Verdict
from merton.geometry import Matrix
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.runtime import StageNode
from merton_nodes.stop_node import StopNode

ARRIVED_RAD = 0.002
"""How far off its goal a joint may be [rad]. Ours: 2 mm at full reach; the simulated arm stays within 1.1e-4."""
STILL_RAD = 5e-4
"""How far a joint may stray while the arm counts as standing still [rad]. Ours: above a UR5's encoder noise."""
NEVER_NS = sys.maxsize
"""A stamp that no joint states will have: wait for the condition alone."""
STALLED_S = 1.0
"""An arm that stands still for so long will not arrive any more [s]. Ours."""


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
        self.heard_s = 0.0
        self.still_at_rad = np.full(6, np.nan)
        self.still_since_ns = 0
        self.clock_stands = False
        """Whether the last message bore the stamp of the one before: a simulated cell at rest."""
        self.path: list[Point] = []
        self.moving = False
        self.interruption: Verdict | None = None
        self.gripped: tuple[float, Matrix] | None = None
        """The last gripper command, 0..1, and where the tool was then."""
        self.waiting: list[tuple[Callable[[], bool], Future]] = []
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
        self.clock_stands = stamp_ns == self.stamp_ns
        if not np.abs(self.joints_rad - self.still_at_rad).max() <= STILL_RAD:
            self.still_at_rad, self.still_since_ns = self.joints_rad, stamp_ns
        if not self.clock_stands:
            self.stamp_ns, self.heard_s = stamp_ns, time.monotonic()
            if self.moving:
                x, y, z = self.base_from_tcp[:3, 3].tolist()
                self.path.append(Point(x=x, y=y, z=z))
        self.wake()

    @property
    def base_from_tcp(self) -> Matrix:
        """The measured pose (4, 4) of the tool centre point in `base_link`."""
        assert self.joints_rad is not None
        return base_from_tcp(self.joints_rad, self.cell.tool0_from_tcp)

    @property
    def over(self) -> bool:
        """Whether nothing more may be sent: the stop has tripped, or the motion was interrupted."""
        return self.stop.latch.tripped or self.interruption is not None

    def begin(self) -> None:
        """A chunk begins: forget how the last one went."""
        self.path, self.interruption, self.moving = [], None, True

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
        """Resolve every wait whose condition holds. Call it from the executor's thread."""
        for condition, future in self.waiting:
            if not future.done() and condition():
                future.set_result(None)
        self.waiting = [entry for entry in self.waiting if not entry[1].done()]

    async def catch_up(self, stamp_ns: int) -> None:
        """Wait until the joints have been seen at an observation's stamp, or once if that is 0.

        Raises InfrastructureError if they are not after `patience_s`: they may run on another clock, and never be.
        """
        limit_s = time.monotonic() + self.patience_s
        await self.until(max(stamp_ns, 1), lambda: self.over or time.monotonic() > limit_s)
        if self.stamp_ns < max(stamp_ns, 1) and not self.over:
            raise InfrastructureError(
                f"no {names.JOINT_STATES} of {stamp_ns / 1e9:.3f} s, the observation's stamp, within "
                f"{self.patience_s:g} s; the last are of {self.stamp_ns / 1e9:.3f} s"
            )

    async def until(self, stamp_ns: int, given_up: Callable[[], bool] | None = None) -> None:
        """Wait until the joints have been seen at `stamp_ns` or later, or `given_up`: by default, until all is over.

        Raises InfrastructureError if the joint states make no progress for `patience_s`.
        """
        begin = time.monotonic()
        ended = given_up or (lambda: self.over)

        def dead() -> bool:
            return time.monotonic() - max(begin, self.heard_s) > self.patience_s

        def reached() -> bool:
            return self.stamp_ns >= stamp_ns or ended()

        future: Future = Future()
        self.waiting.append((lambda: reached() or dead(), future))
        self.wake()
        await future
        if not reached():
            raise InfrastructureError(f"{names.JOINT_STATES} made no progress for {self.patience_s:g} s")

    def standing_for(self, duration_s: float) -> bool:
        """Whether the arm has not moved for so long, on the cell's clock, or can't because that clock stands."""
        return self.clock_stands or (self.stamp_ns - self.still_since_ns) / 1e9 >= duration_s

    async def rest(self, given_up: Callable[[], bool]) -> None:
        """Wait until an arm that was just halted has been seen standing still; raises as `until`."""
        settle_s = self.cell.simulation.settle_s
        await self.until(self.stamp_ns + round(settle_s * 1e9), given_up)
        await self.until(NEVER_NS, lambda: self.standing_for(settle_s) or given_up())

    async def arrive(self, joints_rad: NDArray[np.float64]) -> None:
        """Wait for an arm that is late until it is at (6,) [rad], or stands still short of it; raises as `until`.

        Standing still is no error here: the arm may press on an object. What must not be is known to the robot's own
        node, which trips the stop.
        """

        def away_rad() -> float:
            return float(np.abs(self.joints_rad - joints_rad).max())

        await self.until(NEVER_NS, lambda: self.over or away_rad() <= ARRIVED_RAD or self.standing_for(STALLED_S))
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
            await self.until(end_ns)

    async def move(self, segment: Segment) -> int:
        """The motion of a segment, if it has one. Returns the last waypoint it passed; raises as `until`."""
        if self.over:
            return segment.first
        if segment.moves:
            begin_ns = self.stamp_ns
            if not self.stop.send(self.stop.commands, trajectory(segment)):
                return segment.first
            await self.until(begin_ns + round((segment.times_s[-1] + self.cell.simulation.settle_s) * 1e9))
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
