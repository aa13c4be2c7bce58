"""Commands past the gate: while the stop is latched, and with a permit that is missing or old, nothing moves."""

from __future__ import annotations

import time

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import SafetyState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from merton.execution.gate.permit import permit_in, permit_text
from merton.world.action import checked_chunk
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cell import guarded_commands
from merton_nodes.cell.messages import motion_to
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import marked
from ros import Permits, Probe, Ros, trigger, up


class Stranger:
    """A process that publishes on the topics of arm and gripper, and hears what is said there."""

    def __init__(self, ros: Ros, probe: Probe, cell: MujocoCellNode) -> None:
        self.ros, self.cell = ros, cell
        self.arm = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.gripper = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        self.heard = probe.listen(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.states = probe.listen(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        ros.until(lambda: self.arm.get_subscription_count() == 2 and self.gripper.get_subscription_count() == 1)

    def refused(self, why: str) -> int:
        """How many commands were refused for a reason, on both topics."""
        return sum(n for key, n in self.cell.counters.items() if key.startswith("dropped") and key.endswith(why))

    def moves_nothing(self, text: str, why: str) -> None:
        """Send a motion of 0.15 rad and a command to the gripper with a mark, and see that neither moves anything."""
        cell, before = self.cell.cell, self.refused(why)
        joints, opening, now_ns = cell.joints_rad.copy(), cell.gripper_opening_m, cell.time_ns
        self.arm.publish(marked(motion_to(joints + 0.15, 0.5), text))
        self.gripper.publish(marked(Float64MultiArray(data=[0.01]), text))
        self.ros.until(lambda: self.refused(why) == before + 2)
        assert np.array_equal(cell.joints_rad, joints)
        assert (cell.gripper_opening_m, cell.time_ns) == (opening, now_ns), "no time passes"


def test_past_the_gate_nothing_moves(ros: Ros, probe: Probe) -> None:
    """Before: 0.15 rad, with the stop latched as well as without."""
    cell = up(ros, MujocoCellNode)
    stranger = Stranger(ros, probe, cell)
    stranger.moves_nothing("", "no_permit")  # before a safety state was received
    arm = up(ros, ArmNode)
    ros.until(lambda: cell.guarded.rule.running and arm.arm.joints_rad is not None)
    stranger.moves_nothing("", "no_permit")
    stranger.moves_nothing("base_link", "no_permit")

    lift = checked_chunk([[0.0, 0.0, 0.02, 0, 0, 0, 0.5], [0.0, 0.0, 0.02, 0, 0, 0, 1.0]], 0.2)
    goal = ExecuteActions.Goal(chunk=convert.chunk_message(lift, 0))
    assert ros.act(probe, ExecuteActions, names.EXECUTE, goal).executed == 2, "the gate's own commands move the arm"
    replayed = next(frame for message in stranger.heard if permit_in(frame := message.header.frame_id))
    ros.until(lambda: not cell.cell.busy)
    arm.stop.halt(arm.stop.state.verdict)
    ros.until(lambda: cell.guarded.rule.permit == arm.stop.latch.permit and not cell.cell.busy)
    stranger.moves_nothing(replayed, "stale")

    assert trigger(ros, probe, names.STOP).success
    ros.until(lambda: not cell.guarded.rule.running and not cell.cell.busy)
    stranger.moves_nothing("", "no_permit")
    stranger.moves_nothing(replayed, "stale")
    latched = convert.nanoseconds_of(stranger.states[-1].header.stamp)
    stranger.moves_nothing(permit_text(latched), "stopped")
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: cell.guarded.rule.running)
    stranger.moves_nothing(permit_text(latched), "stale")
    assert ros.act(probe, ExecuteActions, names.EXECUTE, goal).executed == 2
    assert cell.counters["contacts"] == 0


def test_a_command_waits_for_the_safety_state_of_its_permit(ros: Ros, probe: Probe) -> None:
    """The first motion after a start, a halt or a release may overtake the state that allows it."""
    cell = up(ros, MujocoCellNode, heartbeat_timeout_s=0.0)
    permits, stranger = Permits(probe), Stranger(ros, probe, cell)
    for mode in (SafetyState.NORMAL, SafetyState.EMERGENCY_STOP):  # the state before
        permits.say(mode)
        ros.until(lambda: cell.guarded.rule.permit == permits.permit and not cell.cell.busy)
        early, permits.permit = permits.permit + 5, permits.permit + 5
        goal = cell.cell.joints_rad + 0.05
        stranger.arm.publish(permits.given(motion_to(goal, 0.5)))
        ros.until(lambda: cell.guarded.waiting)
        assert not cell.cell.busy
        permits.states.publish(SafetyState(header=convert.header(early, names.BASE_FRAME)))
        ros.until(lambda goal=goal: np.allclose(cell.cell.joints_rad, goal, atol=0.01))
        assert not cell.guarded.waiting

    stranger.arm.publish(marked(motion_to(goal + 0.15, 0.5), permit_text(time.time_ns() * 2)))
    ros.until(lambda: cell.guarded.waiting)
    stranger.arm.publish(JointTrajectory())  # a halt ends the waiting
    ros.until(lambda: not cell.guarded.waiting)
    assert not any(key.startswith("dropped") for key in cell.counters)


def test_a_command_whose_safety_state_never_comes_is_refused(
    ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_commands, "WAIT_S", 0.2)
    cell = up(ros, MujocoCellNode, heartbeat_timeout_s=0.0)
    stranger = Stranger(ros, probe, cell)
    stranger.moves_nothing(permit_text(time.time_ns()), "newer")


def test_refusals_are_counted_and_logged_once_for_each_safety_state(
    ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = up(ros, MujocoCellNode)
    permits, stranger = Permits(probe), Stranger(ros, probe, cell)
    said: list[str] = []
    monkeypatch.setattr(cell.get_logger(), "warning", said.append)
    ros.until(lambda: cell.guarded.rule.running)
    for _ in range(3):
        stranger.moves_nothing("", "no_permit")
    assert len(said) == 1
    assert "no permit: arm_node has not sent it" in said[0]
    permits.say(SafetyState.EMERGENCY_STOP)
    ros.until(lambda: not cell.guarded.rule.running)
    stranger.moves_nothing(permit_text(permits.permit), "stopped")
    assert len(said) == 2
    assert "the stop is latched" in said[1]
    cell._publish_diagnostics()
    assert cell.counters[f"dropped commands on {names.TRAJECTORY}: no_permit"] == 3
