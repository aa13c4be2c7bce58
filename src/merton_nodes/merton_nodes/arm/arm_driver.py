"""The driver of the arm in arm_node: measured joints, commands, and waits until the arm has arrived."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Point
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InfrastructureError, MertonError
from merton.execution.gate.carrying import Hand
from merton.execution.gate.planner import Segment
from merton.execution.gate.safety import Verdict
from merton.execution.gate.stop import StopEvent
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.deviation import SLOWEST_SCALING
from merton.execution.robots.gripper import Gripper
from merton.execution.stillness import Stillness
from merton.world.cell import ARM_JOINTS, CellConfig
from merton.world.geometry import Array, Matrix
from merton_nodes.arm.stop_node import StopNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode
from merton_nodes.ros.waits import Waits

ARRIVED_RAD = 0.002
"""Largest distance of a joint from its goal [rad]. Ours: 2 mm at full reach; the simulated arm stays within 1.1e-4."""
STALLED_S = 4.0
"""Time at a standstill after which a motion that should have ended is over [s]; of the cell's clock, which stands while
a simulated cell is not served. Ours: longer than ur-rtde takes to start its program before the first motion."""


class ArmDriver:
    """Sends segments of a motion, one after the other, and waits for the joints; a stop or a halt ends the motion.

    Args:
        node: gets the subscription to joint states and the gripper's publisher.
        stop: the stop path, through which every command is sent.
        cell: geometry of the cell.
        patience_s: wall time without new joint states after which the hardware counts as dead [s].

    Attributes:
        joints_rad: (6,) measured, or None before the first message.
        opening_m: of the gripper.
        stamp_ns: of the newest joint states.
        hand: the gripper and the object it holds.
        path: tool positions after the state that the chunk is planned from.
        moving: whether a chunk is being carried out.
        since: the generation of the stop in which that chunk began.
    """

    def __init__(self, node: StageNode, stop: StopNode, cell: CellConfig, patience_s: float) -> None:
        self.node, self.stop, self.cell, self.patience_s = node, stop, cell, patience_s
        self.gripper = Gripper.from_cell(cell)
        self.hand = Hand(self.gripper, lambda: self.opening_m, lambda: self.base_from_tcp)
        self.joints_rad: Array | None = None
        self.opening_m = 0.0
        self.stamp_ns = 0
        self.progress_s = 0.0
        """Time at which joint states last had a new stamp [s], on the monotonic clock."""
        self.stillness = Stillness()
        self.clock_stands = False
        """Whether the last message bore the stamp of the one before: an embedded cell at rest."""
        self.path: list[Point] = []
        self.moving = False
        self.since = stop.state.epoch
        self.waits = Waits(node)
        self.gripper_commands = node.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        node.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.JOINTS_QOS)

    def on_joints(self, message: JointState) -> None:
        """Store the measured state of the arm; may end waits."""
        try:
            self.joints_rad, self.opening_m = convert.joints_of(message)
        except MertonError:
            self.node.counters["dropped joint states"] += 1
            return
        stamp_ns, now_s = convert.nanoseconds_of(message.header.stamp), time.monotonic()
        self.clock_stands = stamp_ns == self.stamp_ns
        if not self.clock_stands:
            self.stamp_ns, self.progress_s = stamp_ns, now_s
            if self.moving:
                x, y, z = self.base_from_tcp[:3, 3].tolist()
                self.path.append(Point(x=x, y=y, z=z))
        self.stillness.update(self.joints_rad, stamp_ns, now_s)
        self.waits.check()

    @property
    def base_from_tcp(self) -> Matrix:
        """The measured pose (4, 4) of the tool centre point in `base_link`."""
        assert self.joints_rad is not None
        return base_from_tcp(self.joints_rad, self.cell)

    def is_stopped(self) -> bool:
        """Whether the stop tripped, or the motion was halted, since `begin`: the motion is over."""
        return self.stop.state.is_stopped(self.since)

    def begin(self) -> None:
        """Begin a chunk, with an empty path."""
        self.path, self.moving, self.since = [], True, self.stop.state.epoch

    def end(self) -> list[Point]:
        """End the chunk; returns its path."""
        self.moving = False
        return self.path

    def interrupt(self, why: Verdict, event: StopEvent = StopEvent.HALT) -> None:
        """Halt the motion under way, if there is one, without a latch; the first reason counts."""
        if self.moving and not self.is_stopped():
            self.stop.halt(why, event)
            self.waits.check()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; raises InfrastructureError if joint states make no progress for `patience_s`."""
        if not await self.waits.until(condition, self.patience_s, lambda: self.progress_s):
            raise InfrastructureError(f"{names.JOINT_STATES} made no progress for {self.patience_s:g} s")

    async def wait_for_state_after(self, stamp_ns: int) -> None:
        """Wait for joint states of an observation's stamp or later, or for any if that is 0; a stop ends it.

        The path begins after them, so that it is the same whether they came before the chunk or after it. Raises
        InfrastructureError if none arrive within `patience_s`: their clock may be another one.
        """
        needed_ns = max(stamp_ns, 1)
        if not await self.waits.until(lambda: self.is_stopped() or self.stamp_ns >= needed_ns, self.patience_s):
            raise InfrastructureError(
                f"no {names.JOINT_STATES} of {stamp_ns / 1e9:.3f} s, the observation's stamp, within "
                f"{self.patience_s:g} s; the last are of {self.stamp_ns / 1e9:.3f} s"
            )
        self.path.clear()

    def has_stood_for(self, duration_s: float) -> bool:
        """Whether the arm has stood still for this long on the cell's clock, which may stand, or for `STALLED_S`."""
        return self.stillness.duration_s >= duration_s or self.stillness.clock_duration_s >= STALLED_S

    async def wait_until_settled(self, condition: Callable[[], bool], slow_s: float = 0.0) -> None:
        """Wait for a condition on an arm that should rest within `slow_s`; InfrastructureError `patience_s` later."""
        self.stillness.restart()
        if not await self.waits.until(condition, self.patience_s + slow_s):
            raise InfrastructureError(f"the arm still moves {self.patience_s:g} s after it should have come to rest")

    async def wait_until_still(self, given_up: Callable[[], bool]) -> None:
        """Wait until an arm that was just halted is measured standing still; raises as `wait_until_settled`."""
        settle_s, halted_ns = self.cell.simulation.settle_s, self.stamp_ns

        def time_has_passed() -> bool:
            """Whether an embedded cell has received the halt, and has simulated all that follows from it."""
            return self.clock_stands and self.stamp_ns > halted_ns

        await self.wait_until_settled(lambda: given_up() or self.has_stood_for(settle_s) or time_has_passed())

    async def wait_until_at(self, joints_rad: Array, duration_s: float = 0.0) -> None:
        """Wait until an arm that is late is at (6,) [rad], or stands still short of it; raises as `wait_until_settled`.

        A pendant's speed slider may stretch a motion of `duration_s` up to 1 / `SLOWEST_SCALING` times.

        Standing still is no error here: the arm may not have begun to move yet, or may press on an object. Errors of
        the motion are known to the robot's own node, which trips the stop.
        """

        def away_rad() -> float:
            assert self.joints_rad is not None
            return float(np.abs(self.joints_rad - joints_rad).max())

        await self.wait_until_settled(
            lambda: (
                self.is_stopped()
                or away_rad() <= ARRIVED_RAD
                or self.clock_stands
                or self.stillness.duration_s >= STALLED_S
            ),
            duration_s / SLOWEST_SCALING,
        )
        if not self.is_stopped() and away_rad() > ARRIVED_RAD:
            self.node.counters["motions that ended short"] += 1
            self.node.get_logger().warning(f"the arm stands {away_rad():.4f} rad short of where it was sent")

    async def grip(self, gripper_open: float) -> None:
        """Send the gripper to 0 closed .. 1 open, and wait for its travel time; raises as `wait_until`."""
        end_ns = self.stamp_ns + round(self.gripper.travel_time_s * 1e9)
        command = Float64MultiArray(data=[self.gripper.finger_joint_m(gripper_open)])
        if self.stop.send(self.gripper_commands, command, self.since):
            await self.wait_until(lambda: self.is_stopped() or self.stamp_ns >= end_ns)

    async def move(self, segment: Segment) -> int:
        """Carry out the motion of a segment, if it has one. Returns the last waypoint passed.

        Raises InfrastructureError as `wait_until` and `wait_until_at`.
        """
        last = segment.first + segment.deltas
        if not segment.moves:
            return last if not self.is_stopped() else segment.first
        begin_ns = self.stamp_ns
        if not self.stop.send(self.stop.commands, trajectory(segment), self.since):
            return segment.first
        end_ns = begin_ns + round((segment.times_s[-1] + self.cell.simulation.settle_s) * 1e9)
        await self.wait_until(lambda: self.is_stopped() or self.stamp_ns >= end_ns)
        await self.wait_until_at(segment.joints_rad[-1], float(segment.times_s[-1]))
        if not self.is_stopped():
            return last
        if len(segment.times_s) != segment.deltas + 1:
            return segment.first  # a planner's own way does not pass the waypoints
        elapsed_s = (self.stamp_ns - begin_ns) / 1e9
        return segment.first + int(np.searchsorted(segment.times_s, elapsed_s, side="right")) - 1


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
