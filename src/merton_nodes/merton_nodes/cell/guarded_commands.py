"""The commands to arm and gripper, passed on to the node that owns them if the stop allows it."""

from __future__ import annotations

import time
from collections.abc import Callable

from merton_interfaces.msg import SafetyState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from merton.execution.gate.permit import WAIT_S, CommandRule, Decision, permit_in
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import Command, mark_of
from merton_nodes.ros.runtime import StageNode

RUNNING = (SafetyState.NORMAL, SafetyState.REDUCED)


class GuardedCommands:
    """Subscribes to the commands and to `arm/safety_state`, and applies `merton.execution.gate.permit`.

    A command whose safety state has not arrived yet waits for it, at most `WAIT_S`; a halt or a newer command of its
    topic replaces it. Refused commands are counted, and the first after each safety state is logged.

    Args:
        node: gets the subscriptions.
        on_trajectory: called with every trajectory that may move the arm, and with every empty one: it halts the arm.
        on_gripper: called with every command that may move the gripper.
    """

    def __init__(
        self,
        node: StageNode,
        on_trajectory: Callable[[JointTrajectory], None],
        on_gripper: Callable[[Float64MultiArray], None],
    ) -> None:
        self.node = node
        self.pass_on: dict[type, Callable] = {JointTrajectory: on_trajectory, Float64MultiArray: on_gripper}
        self.rule = CommandRule()
        self.waiting: dict[type, tuple[Command, float]] = {}
        """The command of each topic that waits for its safety state, and since when on the monotonic clock [s]."""
        self.logged = False
        self.expiry = node.create_timer_s(WAIT_S, self.ask_again, autostart=False)
        node.create_subscription(SafetyState, names.ARM_SAFETY, self.on_safety, names.LATCHED_QOS)
        node.create_subscription(JointTrajectory, names.TRAJECTORY, self.on_command, names.RELIABLE_QOS)
        node.create_subscription(Float64MultiArray, names.GRIPPER, self.on_command, names.RELIABLE_QOS)

    def on_safety(self, state: SafetyState) -> None:
        """The newest safety state; commands that waited for it are passed on."""
        permit = convert.nanoseconds_of(state.header.stamp)
        self.rule, self.logged = CommandRule(permit, state.mode in RUNNING), False
        self.ask_again()

    def on_command(self, command: Command) -> None:
        """Pass on, keep or refuse a command."""
        if isinstance(command, JointTrajectory) and not command.points:  # a halt is never refused
            self.waiting.clear()
            self.pass_on[JointTrajectory](command)
        else:
            self.decide(command, time.monotonic())

    def decide(self, command: Command, since_s: float) -> None:
        """Decide on a command that came at `since_s` on the monotonic clock [s]."""
        decision = self.rule.decide(permit_in(mark_of(command)))
        if decision is Decision.NEWER and time.monotonic() - since_s < WAIT_S:
            self.waiting[type(command)] = command, since_s
            self.expiry.reset()
        elif decision is Decision.MOVE:
            self.waiting.pop(type(command), None)
            self.pass_on[type(command)](command)
        else:
            self.refuse(command, decision)

    def ask_again(self) -> None:
        """Decide again on the commands that wait."""
        self.expiry.cancel()
        waiting, self.waiting = self.waiting, {}
        for command, since_s in waiting.values():
            self.decide(command, since_s)

    def refuse(self, command: Command, why: Decision) -> None:
        """Count a command that moves nothing, and say so once."""
        topic = names.TRAJECTORY if isinstance(command, JointTrajectory) else names.GRIPPER
        self.node.counters[f"dropped commands on {topic}: {why.name.lower()}"] += 1
        if not self.logged:
            self.node.get_logger().warning(f"a command on {topic} moves nothing: {why.value}")
            self.logged = True
