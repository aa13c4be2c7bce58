"""How arm_node carries out a chunk: planned from where the arm is, and sent segment by segment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from merton_interfaces.msg import SafetyState
from rclpy.task import Future
from visualization_msgs.msg import MarkerArray

from merton.errors import ErrorCode, InfrastructureError
from merton.execution.gate.planner import Segment, detour, plan, plan_again, segments
from merton.execution.gate.safety import Limits, Verdict
from merton.world.action import ActionChunk
from merton_nodes.arm.arm_driver import ArmDriver
from merton_nodes.arm.markers import motion_markers, stop_markers
from merton_nodes.arm.moveit_planner import MoveItPlanner, Request
from merton_nodes.ros import names

RELEASED = Verdict(ErrorCode.STOPPED, "stopped during the motion, and released meanwhile")


class ChunkRunner:
    """Leads one chunk at a time through the gate to the arm.

    Args:
        arm: what moves, and the stop path before it.
        limits: of the gate.
        planner: who finds the ways between the poses, None for the gate's own.
        draw: publishes what people are shown, and makes it only if anybody looks.

    Attributes:
        executed: how many deltas of the chunk were carried out; 0 once it ended in a stop.
    """

    def __init__(
        self,
        arm: ArmDriver,
        limits: Limits,
        planner: MoveItPlanner | None,
        draw: Callable[[Callable[[], MarkerArray]], None],
    ) -> None:
        self.arm, self.stop, self.cell, self.limits = arm, arm.stop, arm.cell, limits
        self.planner, self.draw = planner, draw
        self.executed = 0

    def begin(self) -> None:
        """A chunk begins: forget how the last one went."""
        self.executed = 0
        self.arm.begin()

    async def carry_out(self, chunk: ActionChunk, on_segment: Callable[[int, float], None]) -> Verdict:
        """Plan from the measured joints, move segment by segment, and say why it ended; raises as `ArmDriver.move`.

        `on_segment` is called after each, with its number and the clearance that was predicted [m].
        """
        arm = self.arm
        if arm.joints_rad is None:
            raise InfrastructureError(f"no {names.JOINT_STATES} yet")
        opened = arm.gripper.gripper_open(arm.opening_m)
        motion = plan(
            arm.joints_rad, chunk.deltas, chunk.step_s, chunk.frame, self.cell, self.limits, opened, arm.held()
        )
        self.draw(partial(motion_markers, motion, self.cell))
        index = 0
        while not arm.over and index < len(parts := segments(motion)):
            await arm.grip(parts[index])
            if parts[index].gripper is not None and (held := arm.held()) is not None:  # it may reach further
                motion = plan_again(motion, parts[index].first, held, self.cell, self.limits)
            for segment in segments(motion)[index : index + 1]:
                self.executed = await arm.move(await self.on_its_way(segment))
            on_segment(index, motion.verdict.clearance_m)
            index += 1
        if not arm.over:
            self.executed = motion.executed
        verdict = motion.verdict
        if verdict.stops and not arm.over:
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
            await arm.rest(lambda: False)
        elif arm.interruption is not None:
            await arm.rest(lambda: self.stop.latch.tripped)
        if not arm.stop_came:
            return arm.interruption or verdict
        self.executed = 0
        if (stopped := self.stopped()) is not None:
            self.draw(partial(stop_markers, self.stop.state, arm.joints_rad, arm.opening_m, self.cell))
        return stopped or (verdict if verdict.stops else RELEASED)

    async def on_its_way(self, segment: Segment) -> Segment:
        """The segment as it is, or on a way of MoveIt's that has passed the gate; raises InfrastructureError."""
        if self.planner is None or not segment.moves or self.arm.over:
            return segment
        opening_m, held, found = self.arm.opening_m, self.arm.held(), Future()
        executor = self.arm.node.executor
        request = Request(segment.joints_rad[0], segment.joints_rad[-1], opening_m, held)

        def work() -> None:
            try:
                found.set_result(self.planner.plan(request))
            except Exception as error:
                found.set_result(error)
            if executor is not None:
                executor.wake()

        threading.Thread(target=work, name="moveit", daemon=True).start()
        answer = await found
        if isinstance(answer, Exception):
            raise answer
        return detour(segment, answer, self.cell, self.limits, self.arm.gripper.gripper_open(opening_m), held)

    def stopped(self) -> Verdict | None:
        """Why the latch is tripped; None if it is not."""
        if not self.stop.latch.tripped:
            return None
        by_collision = self.stop.state.mode == SafetyState.COLLISION_STOP
        return Verdict(ErrorCode.COLLISION if by_collision else ErrorCode.STOPPED, self.stop.latch.reason)
