"""Carrying out a chunk in arm_node: planned from the measured joints, and sent segment by segment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from merton_interfaces.msg import SafetyState
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from rclpy.task import Future
from visualization_msgs.msg import MarkerArray

from merton.errors import InfrastructureError, InputError, MertonError, UnknownNameError
from merton.execution.gate.carrying import Carrying, Grip, Move, PredictedStop, SegmentDone
from merton.execution.gate.planner import MotionPlan, Segment, detour
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.trajectory import JointSpline
from merton.world.action import ActionChunk
from merton_nodes.arm.arm_driver import ArmDriver
from merton_nodes.arm.markers import motion_markers, stop_markers
from merton_nodes.arm.moveit_planner import MoveItPlanner, Request
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

STOP_RULES = ("gate", "contact")


class LiveStopRule:
    """The parameter `stop_rule` of arm_node, which an experiment may set while the node runs.

    Attributes:
        until_contact: motions may lead into table and walls; the simulated cell stops the arm at the contact.
    """

    def __init__(self, node: StageNode) -> None:
        self.allowed = node.parameter(
            "contact_allowed",
            False,
            "the stop rule 'contact' is allowed: the cell is simulated, and stops at a contact",
        )
        rule = node.parameter(
            "stop_rule",
            "gate",
            "what stops the arm before table and walls: gate, a predicted collision; contact, a contact of the cell",
            choices=STOP_RULES,
            read_only=False,
        )
        self.until_contact = self.checked(rule)
        node.add_on_set_parameters_callback(self.on_parameters)
        node.closing.callback(node.remove_on_set_parameters_callback, self.on_parameters)

    def checked(self, rule: str) -> bool:
        """Whether motions go on until a contact; raises InputError for a rule that is unknown or not allowed."""
        if rule not in STOP_RULES:
            raise UnknownNameError("stop rule", rule, STOP_RULES)
        if rule == "contact" and not self.allowed:
            raise InputError(
                "contact with table and walls is allowed in the embedded cell alone; use the stop rule gate"
            )
        return rule == "contact"

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Callback of the node: take or refuse a new rule; it holds from the next chunk on."""
        for parameter in parameters:
            if parameter.name == "stop_rule":
                try:
                    self.until_contact = self.checked(parameter.value)
                except MertonError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)


class ChunkRunner:
    """Passes one chunk at a time through the gate to the arm.

    Args:
        arm: the arm, with its stop path.
        limits: of the gate.
        planner: planner of the ways between the poses, None for the gate's own.
        draw: publishes markers, and makes them only if there is a subscriber.
        stop_rule: what ends a motion before table and walls.

    Attributes:
        executed: number of deltas of the chunk that were carried out; 0 once it ended in a stop.
    """

    def __init__(
        self,
        arm: ArmDriver,
        limits: Limits,
        planner: MoveItPlanner | None,
        draw: Callable[[Callable[[], MarkerArray]], None],
        stop_rule: LiveStopRule,
    ) -> None:
        self.arm, self.stop, self.cell, self.limits = arm, arm.stop, arm.cell, limits
        self.planner, self.draw, self.stop_rule = planner, draw, stop_rule
        self.executed = 0

    def begin(self) -> None:
        self.executed = 0
        self.arm.begin()

    async def carry_out(self, chunk: ActionChunk, on_segment: Callable[[int, float], None]) -> Verdict:
        """Plan from the measured joints, carry out every step, and return the verdict; raises as `ArmDriver.move`.

        `on_segment` is called after each segment, with its number and the clearance that was predicted [m].
        """
        arm = self.arm
        if arm.joints_rad is None:
            raise InfrastructureError(f"no {names.JOINT_STATES} yet")
        until_contact = self.stop_rule.until_contact
        carrying = Carrying(chunk, arm.joints_rad, arm.hand, self.cell, self.limits, until_contact=until_contact)
        self.draw(partial(motion_markers, carrying.motion, self.cell))
        for step in carrying.steps(arm.is_stopped):
            match step:
                case Grip(segment) if segment.gripper is not None:
                    await arm.grip(segment.gripper)
                    self.executed = segment.first
                case Move(segment):
                    self.executed = await arm.move(await self.detoured(segment))
                case SegmentDone(index, clearance_m):
                    on_segment(index, clearance_m)
                case PredictedStop(verdict):
                    await self.trip(verdict)
        return await self.outcome(carrying.motion)

    async def trip(self, verdict: Verdict) -> None:
        """Trip the stop because of a predicted collision, and wait until the arm stands still: its pose is reported."""
        report = SafetyState(mode=SafetyState.COLLISION_STOP, clearance=verdict.clearance_m, message=verdict.message)
        report.link_a, report.link_b = verdict.link_a, verdict.link_b
        self.stop.trip(report)
        await self.arm.wait_until_still(lambda: False)

    async def outcome(self, motion: MotionPlan) -> Verdict:
        """The verdict that ended the chunk, once the arm stands still; brings `executed` up to date."""
        arm = self.arm
        if not arm.is_stopped():
            self.executed = motion.executed
            return motion.verdict
        if not self.stop.state.has_tripped(arm.since):  # halted
            await arm.wait_until_still(lambda: self.stop.state.tripped)
        stop = self.stop.state
        if not stop.has_tripped(arm.since):
            return stop.verdict
        if self.stop_rule.until_contact:  # the cell has stopped the arm by itself, and lets it settle: part of the path
            await arm.wait_until_settled(lambda: arm.clock_stands)
        self.executed = 0
        if stop.tripped:
            assert arm.joints_rad is not None
            self.draw(partial(stop_markers, self.stop.report, arm.joints_rad, arm.opening_m, self.cell))
        elif motion.verdict.stops:
            return motion.verdict
        return stop.verdict

    async def detoured(self, segment: Segment) -> Segment:
        """The segment as it is, or on a way of MoveIt's that has passed the gate; raises InfrastructureError."""
        if self.planner is None or not segment.moves:
            return segment
        planner, opening_m, held, found = self.planner, self.arm.opening_m, self.arm.hand.held(), Future()
        executor = self.arm.node.executor
        request = Request(segment.joints_rad[0], segment.joints_rad[-1], opening_m, held)
        opened = self.arm.gripper.gripper_open(opening_m)

        def through_the_gate(way: JointSpline) -> Segment:
            return detour(segment, way, self.cell, self.limits, opened, held)

        def work() -> None:
            try:
                found.set_result(planner.plan(request, through_the_gate))
            except Exception as error:
                found.set_result(error)
            if executor is not None:
                executor.wake()

        threading.Thread(target=work, name="moveit", daemon=True).start()
        answer = await found
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Segment)
        return answer
