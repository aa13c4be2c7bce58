"""Execution: carries out chunks of deltas with the arm, or refuses them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import SafetyState
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import MarkerArray

from merton.cell import ARM_JOINTS, load_cell
from merton.errors import InfrastructureError, InvalidActionError, MertonError
from merton.execution.gripper import Gripper
from merton.execution.kinematics import base_from_tcp
from merton.execution.planner import MotionPlan, Segment, plan, segments
from merton.execution.safety import Code, EmergencyStopLatch, Limits
from merton.resources import resource
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.markers import path_markers
from merton_nodes.runtime import StageNode, run
from merton_nodes.stop_node import StopNode

NO_JOINT_STATES = 400


class ArmNode(StageNode):
    """Plans every chunk through the safety gate, sends trajectories, and waits for the joints to get there."""

    def __init__(self, **options: Any) -> None:
        super().__init__("arm_node", **options)

    def set_up(self) -> None:
        """Read limits and cell, offer the action, start the stop path."""
        default = Limits()
        self.limits = Limits(
            **{
                name: self.parameter(f"limits.{name}", value, f"safety limit {name}", minimum=0.0, maximum=100.0)
                for name, value in vars(default).items()
            }
        )
        self.patience_s = self.parameter(
            "patience_s",
            20.0,
            "wall time without progress after which the hardware counts as dead [s]",
            minimum=0.5,
            maximum=600.0,
        )
        latch_file = self.parameter(
            "latch_file", "", "file in which the emergency stop survives a restart; empty: memory only"
        )
        self.cell = load_cell(resource("merton_bringup", "config/cell.yaml"))
        self.gripper = Gripper.from_cell(self.cell)
        self.stop = StopNode(EmergencyStopLatch(Path(latch_file) if latch_file else None), self.on_trip, self.context)
        self.trajectories = self.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.gripper_commands = self.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        self.markers = self.create_publisher(MarkerArray, names.ARM_MARKERS, names.RELIABLE_QOS)
        self.joints: np.ndarray | None = None
        self.opening_m = 0.0
        self.stamp_ns = 0
        self.heard_s = 0.0
        self.busy = False
        self.path: list[Point] = []
        self.waiting: list[tuple[Callable[[], bool], Future]] = []
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.RELIABLE_QOS)
        self.server = ActionServer(
            self, ExecuteActions, names.EXECUTE, self.execute, goal_callback=self.on_goal,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )  # fmt: skip
        self.every(0.25, self.wake_waiting)

    def start(self) -> None:
        """From now on the stop path is listened to."""
        self.stop.start()

    def tear_down(self) -> None:
        """End the stop path and the action server."""
        if hasattr(self, "server"):
            self.server.destroy()
            self.stop.end()

    def on_goal(self, _: ExecuteActions.Goal) -> GoalResponse:
        """One chunk at a time, and only while active."""
        if self.busy or not self.active:
            return GoalResponse.REJECT
        self.busy = True
        return GoalResponse.ACCEPT

    def on_joints(self, message: JointState) -> None:
        """Where the arm is; wakes whoever waits for it to get somewhere."""
        try:
            self.joints, self.opening_m = convert.joints_of(message)
        except MertonError:
            self.counters["dropped joint states"] += 1
            return
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        if stamp_ns != self.stamp_ns:
            self.stamp_ns, self.heard_s = stamp_ns, time.monotonic()
            if self.busy:
                x, y, z = base_from_tcp(self.joints, self.cell.tool0_from_tcp)[:3, 3].tolist()
                self.path.append(Point(x=x, y=y, z=z))
        self.wake_waiting()

    def on_trip(self) -> None:
        """Called by the stop path, from its thread."""
        self.wake_waiting()
        if self.executor is not None:
            self.executor.wake()

    def wake_waiting(self) -> None:
        """Resolve every wait whose condition holds."""
        for condition, future in list(self.waiting):
            if not future.done() and condition():
                future.set_result(None)
        self.waiting = [entry for entry in self.waiting if not entry[1].done()]

    async def until(self, stamp_ns: int, *, stopped_too: bool = False) -> None:
        """Wait until the joints have been seen at `stamp_ns` or later, or, unless `stopped_too`, the stop has tripped.

        Raises InfrastructureError if the joint states make no progress for `patience_s`.
        """
        begin = time.monotonic()

        def dead() -> bool:
            return time.monotonic() - max(begin, self.heard_s) > self.patience_s

        future: Future = Future()

        def over() -> bool:
            return self.stamp_ns >= stamp_ns or (self.stop.latch.tripped and not stopped_too)

        self.waiting.append((lambda: over() or dead(), future))
        self.wake_waiting()
        await future
        if not over():
            raise InfrastructureError(f"{names.JOINT_STATES} made no progress for {self.patience_s:g} s")

    async def execute(self, goal: ServerGoalHandle) -> ExecuteActions.Result:
        """Action: carry out a chunk; the result says how far it got and why it ended."""
        result = ExecuteActions.Result()
        self.path = []
        try:
            chunk = convert.chunk_of(goal.request.chunk)
            await self.until(convert.nanoseconds_of(goal.request.chunk.header.stamp))
            if self.joints is None:
                raise InfrastructureError(f"no {names.JOINT_STATES} yet")
            motion = plan(
                self.joints, chunk.deltas, chunk.step_s, chunk.frame, self.cell, self.limits,
                self.gripper.gripper_open(self.opening_m),
            )  # fmt: skip
            self.markers.publish(path_markers(motion.base_from_tcp[:, :3, 3], motion.verdict.ok, names.BASE_FRAME))
            await self.carry_out(goal, motion)
            result.executed = 0 if self.stop.latch.tripped else motion.executed
            result.error_code, result.error_msg = self.verdict_on(motion)
        except InvalidActionError as error:
            result.error_code, result.error_msg = int(Code.INVALID_ACTION), str(error)
        except InfrastructureError as error:
            result.error_code, result.error_msg = NO_JOINT_STATES, str(error)
        finally:
            self.busy = False
        if result.error_code:
            self.counters[
                f"refused: {Code(result.error_code).name.lower()}" if result.error_code < 400 else "errors"
            ] += 1
        self.counters["chunks"] += 1
        result.path = self.path
        if self.joints is not None:
            pose = base_from_tcp(self.joints, self.cell.tool0_from_tcp)
            result.final_pose = convert.pose_stamped(pose, self.stamp_ns)
        goal.canceled() if goal.is_cancel_requested else goal.succeed()
        return result

    async def carry_out(self, goal: ServerGoalHandle, motion: MotionPlan) -> None:
        """Segment by segment, the gripper before the motion; nothing more after a stop or a cancellation."""
        for index, segment in enumerate(segments(motion)):
            if self.stop.latch.tripped or goal.is_cancel_requested:
                return
            if segment.gripper is not None:
                end_ns = self.stamp_ns + round(self.gripper.travel_time_s * 1e9)
                self.gripper_commands.publish(Float64MultiArray(data=[self.gripper.finger_joint_m(segment.gripper)]))
                await self.until(end_ns)
            if segment.moves and not self.stop.latch.tripped:
                await self.move(segment)
            goal.publish_feedback(ExecuteActions.Feedback(index=index, clearance=motion.verdict.clearance_m))
        if motion.verdict.stops:
            verdict = motion.verdict
            self.stop.trip(
                SafetyState(
                    mode=SafetyState.COLLISION_STOP,
                    link_a=verdict.link_a,
                    link_b=verdict.link_b,
                    clearance=verdict.clearance_m,
                    message=verdict.message,
                )
            )
            # the arm has to be seen standing still before anybody looks where it is
            await self.until(self.stamp_ns + round(self.cell.simulation.settle_s * 1e9), stopped_too=True)

    async def move(self, segment: Segment) -> None:
        """Send one trajectory, wait for its end and for the arm to settle."""
        message = JointTrajectory(joint_names=list(ARM_JOINTS))
        for time_s, joints, velocities in zip(
            segment.times_s, segment.joints_rad, segment.velocities_rad_s, strict=True
        ):
            message.points.append(
                JointTrajectoryPoint(
                    positions=joints.tolist(),
                    velocities=velocities.tolist(),
                    time_from_start=convert.duration_message(time_s),
                )
            )
        end_ns = self.stamp_ns + round((segment.times_s[-1] + self.cell.simulation.settle_s) * 1e9)
        self.trajectories.publish(message)
        await self.until(end_ns)

    def verdict_on(self, motion: MotionPlan) -> tuple[int, str]:
        """Error code and sentence: the stop first, else what the gate said."""
        if self.stop.latch.tripped:
            by_collision = self.stop.mode == SafetyState.COLLISION_STOP
            return int(Code.COLLISION if by_collision else Code.STOPPED), self.stop.latch.reason
        return int(motion.verdict.code), motion.verdict.message


def main() -> None:
    """Entry point."""
    sys.exit(run(ArmNode))
