"""Execution: carries out chunks of deltas with the arm, or refuses them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import SafetyState
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from visualization_msgs.msg import MarkerArray

from merton.errors import ErrorCode, InvalidActionError, MertonError
from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.ledger import CommandLedger, lead_verdict
from merton.execution.gate.planner import plan
from merton.execution.gate.safety import MODES, Limits, Verdict, limits_of_mode
from merton.execution.gate.stop import StopEvent
from merton_nodes.arm.arm_driver import ArmDriver
from merton_nodes.arm.camera_watch import CameraWatch
from merton_nodes.arm.chunk_runner import ChunkRunner, LiveStopRule
from merton_nodes.arm.image_gate import ImageGate
from merton_nodes.arm.markers import safety_marker
from merton_nodes.arm.moveit_planner import MoveItPlanner
from merton_nodes.arm.stop_node import StopNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.declared_cell import declared_cell
from merton_nodes.ros.runtime import StageNode, run

PLANNERS = ("merton", "moveit")
RESULT_KEPT_S = 10
"""Time for which a result is kept for a client to fetch [s]; every goal's status lists all that are kept."""
DELIVERY_TIME = Duration(seconds=1)
"""Time limit for the acknowledgement of the last stop command, before the node ends."""
CANCELLED = Verdict(message="cancelled")
DEACTIVATED = Verdict(ErrorCode.STOPPED, "arm_node was deactivated")
FAILED = Verdict(ErrorCode.STOPPED, "carrying out the chunk failed")
ENDING = Verdict(ErrorCode.STOPPED, "arm_node ended")


class ArmNode(StageNode):
    """Passes every chunk through the ledger and the gate to the arm, one at a time, and answers with its result."""

    def __init__(self, **options: Any) -> None:
        super().__init__("arm_node", sole_topic=names.ARM_SAFETY, **options)

    def set_up(self) -> None:
        self.cell = declared_cell(self)
        mode = self.parameter("mode", "normal", "robot mode, whose limits hold", choices=MODES)
        self.limits = self.declared_limits(mode)
        # once before anything moves: compiled code is loaded at its first use, and a stop would wait for that
        plan(self.cell.home_joints, np.zeros((1, 7)), 0.1, "base_link", self.cell, self.limits)
        self.planner = self.declared_planner()
        self.stop = self.stop_path(SafetyState.REDUCED if mode == "reduced" else SafetyState.NORMAL)
        meaning = "wall time without progress after which the hardware counts as dead [s]"
        patience_s = self.parameter("patience_s", 20.0, meaning, minimum=0.5, maximum=600.0)
        self.arm = ArmDriver(self, self.stop, self.cell, patience_s)
        self.images = ImageGate(self, self.arm, self.cell.camera_names)
        self.cameras = CameraWatch(self, self.cell.camera_names, self.halt_if_blind)
        self.markers = self.create_publisher(MarkerArray, names.ARM_MARKERS, names.RELIABLE_QOS)
        self.runner = ChunkRunner(self.arm, self.limits, self.planner, self.draw, LiveStopRule(self))
        self.offer_action()

    def declared_limits(self, mode: str) -> Limits:
        """The limits of the mode, each of them a parameter."""
        meanings = dict(re.findall(r"(\w+): (.+)", Limits.__doc__ or ""))
        return Limits(
            **{
                name: self.parameter(f"limits.{name}", value, meanings.get(name, name), minimum=0.0, maximum=100.0)
                for name, value in vars(limits_of_mode(mode)).items()
            }
        )

    def declared_planner(self) -> MoveItPlanner | None:
        """MoveIt in its process, None for the gate's own ways."""
        planner = self.parameter(
            "planner", "merton", "planner of the ways between the poses of a chunk", choices=PLANNERS
        )
        if planner != "moveit":
            return None
        moveit = MoveItPlanner(linkage=self.cell.gripper.linkage)
        self.closing.callback(moveit.close)
        return moveit

    def stop_path(self, running: int) -> StopNode:
        """The stop node, with the latch file if there is one; `running` is the mode it reports while not tripped."""
        latch_file = self.parameter(
            "latch_file", "", "file in which the emergency stop survives a restart; empty: memory only"
        )
        latch = EmergencyStopLatch(Path(latch_file).expanduser() if latch_file else None)
        stop = StopNode(latch, self.on_trip, self.context, running)
        self.closing.callback(stop.end)
        return stop

    def offer_action(self) -> None:
        """Serve `arm/execute`; when the node ends, the arm is halted before anything else."""
        max_age_s = self.parameter(
            "max_observation_age_s",
            0.5,
            "how old the observation behind a chunk may be, on the cell's clock [s]",
            minimum=0.01,
            maximum=600.0,
        )
        self.ledger: CommandLedger[ExecuteActions.Result] = CommandLedger(max_age_s)
        self.under_way: tuple[str, int] | None = None
        """Trial and sequence of the accepted chunk that has no answer yet."""
        self.answered: Future | None = None
        """Resolved with that chunk's answer; None before its first goal is worked on."""
        self.server = ActionServer(
            self,
            ExecuteActions,
            names.EXECUTE,
            self.execute,
            goal_callback=self.on_goal,
            cancel_callback=self.on_cancel,
            result_timeout=RESULT_KEPT_S,
        )
        self.closing.callback(self.server.destroy)
        self.closing.callback(self.halt_if_moving)

    def draw(self, make: Callable[[], MarkerArray]) -> None:
        """Publish markers, if there is a subscriber: making them takes longer than planning a motion."""
        if self.markers.get_subscription_count():
            self.markers.publish(make())

    def halt_if_blind(self) -> None:
        """Halt a motion once a watched camera is silent; no latch: the next chunk starts from where the arm is."""
        if (stale := self.cameras.silence()) is not None:
            self.arm.interrupt(stale)

    def start(self) -> None:
        self.stop.start()

    def unfinished(self) -> str:
        return "it carries out a chunk" if self.under_way is not None else self.stop.state.reason  # no stop is lost

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback: the motion under way halts, without a latch."""
        self.arm.interrupt(DEACTIVATED, StopEvent.DEACTIVATE)
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback: as deactivation, which an active node that is shut down does not go through."""
        if self.configured:
            self.arm.interrupt(DEACTIVATED, StopEvent.DEACTIVATE)
        return super().on_shutdown(state)

    def halt_if_moving(self) -> None:
        """Called first when the node ends, while a command can still be sent."""
        if self.arm.moving and self.context.ok():
            self.stop.halt(ENDING)
            self.stop.commands.wait_for_all_acked(DELIVERY_TIME)  # else the process may end before it is delivered

    def observe(self) -> None:
        """Publish the safety state in words, repeatedly: a viewer may subscribe late."""
        self.markers.publish(MarkerArray(markers=[safety_marker(self.stop.report)]))

    def on_trip(self) -> None:
        """Called by the stop path, from its thread."""
        self.arm.waits.wake()

    def on_goal(self, request: ExecuteActions.Goal) -> GoalResponse:
        """Accept one chunk at a time, and only while active; the one under way may be sent again."""
        again = bool(request.trial) and self.under_way == (request.trial, request.sequence)
        if not self.active or (self.under_way is not None and not again):
            return GoalResponse.REJECT
        if not again:
            self.under_way, self.answered = (request.trial, request.sequence), None
        return GoalResponse.ACCEPT

    def on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        """Halt the motion under way; its goal ends when the arm rests."""
        self.arm.interrupt(CANCELLED)
        return CancelResponse.ACCEPT

    async def execute(self, goal: ServerGoalHandle) -> ExecuteActions.Result:
        """Action: carry out a chunk; the result has the number of deltas carried out, and why it ended."""
        if self.answered is not None:  # under way, and sent again because an answer got lost
            result = await self.answered
        else:
            self.answered = answered = Future()
            try:
                result = await self.answer(goal)
                answered.set_result(result)
            except Exception as error:
                answered.set_exception(error)
                raise
            finally:
                self.under_way = None
        goal.canceled() if goal.is_cancel_requested else goal.succeed()
        return result

    async def answer(self, goal: ServerGoalHandle) -> ExecuteActions.Result:
        """The answer to a chunk: from memory, a refusal, or the result of carrying it out."""
        request = goal.request
        counted = bool(request.trial)
        if counted and (known := self.ledger.answer_for(request.trial, request.sequence)) is not None:
            self.counters["answered from memory"] += 1
            return known
        result = ExecuteActions.Result()

        def on_segment(index: int, clearance_m: float) -> None:
            goal.publish_feedback(ExecuteActions.Feedback(index=index, clearance=clearance_m))

        self.runner.begin()
        try:
            chunk = convert.chunk_of(request.chunk)
            stamp_ns = convert.nanoseconds_of(request.chunk.header.stamp)
            verdict = lead_verdict(stamp_ns, self.arm.stamp_ns)
            decided = counted or bool(stamp_ns)  # with neither it comes from a person beside the arm
            seen = Verdict()
            if verdict.ok:
                await self.arm.wait_for_state_after(stamp_ns)
                seen = await self.images.verdict(request) if decided else seen
            if (stop := self.stop.state).tripped:
                verdict = stop.verdict
            elif verdict.ok and decided:
                verdict = self.ledger.check(request.trial, request.sequence, stamp_ns, self.arm.stamp_ns)
            counted = counted and (verdict.ok or stop.tripped)
            verdict = self.cameras.silence() or seen if verdict.ok else verdict
            if verdict.ok:
                verdict = await self.runner.carry_out(chunk, on_segment)
            result.error_code, result.error_msg = int(verdict.code), verdict.message
            self.counters[f"verdict: {verdict.code.name.lower()}"] += 1
        except InvalidActionError as error:
            result.error_code, result.error_msg = int(ErrorCode.INVALID_ACTION), str(error)
            self.counters["verdict: invalid_action"] += 1
        except Exception as error:  # the arm halts, and the goal ends with a sentence, for any error
            self.stop.halt(FAILED)
            code = ErrorCode.ARM_FAILED if isinstance(error, MertonError) else ErrorCode.UNEXPECTED
            result.error_code, result.error_msg = int(code), self.describe(error)
        result.executed, result.path = self.runner.executed, self.arm.end()
        if self.arm.joints_rad is not None:
            result.final_pose = convert.pose_stamped(self.arm.base_from_tcp, self.arm.stamp_ns)
        if counted:
            self.ledger.record(request.trial, request.sequence, result)
        return result


def main() -> None:
    sys.exit(run(ArmNode, shared_memory=False))
