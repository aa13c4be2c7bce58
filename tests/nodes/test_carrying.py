"""The simulator's ports and arm_node carry out a chunk in the same way: one script for both, compared by chunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.srv import ResetCell
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from merton.errors import ErrorCode
from merton.experiment.local import LocalPorts
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import Observation
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cell.mujoco_cell_node import SLICE_S, MujocoCellNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up

UP, DOWN = [0.0, 0.0, 0.04, 0, 0, 0], [0.0, 0.0, -0.05, 0, 0, 0]


@pytest.fixture
def ports() -> Iterator[LocalPorts]:
    ports = LocalPorts()
    yield ports
    ports.close()


def test_both_carry_out_a_script_in_the_same_way(ros: Ros, probe: Probe, ports: LocalPorts) -> None:
    """A grasp, a lift of what is held, fingers wide open, a dive that the gate stops, and a command after it."""
    cell = up(ros, MujocoCellNode, real_time_factor=0.0)
    arm = up(ros, ArmNode)
    assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="pick", seed=0)).error_code == 0
    instruction = ports.reset("pick", 0)
    ros.until(lambda: arm.arm.joints_rad is not None and arm.arm.stamp_ns >= cell.cell.time_ns)

    def carried_out(chunk: ActionChunk) -> tuple[int, int, bool]:
        """The chunk on both: how many deltas, the code, and whether something is held; the same on both."""
        execution = ports.execute(chunk, ports.view())
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(chunk, 0))
        result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
        assert (result.executed, result.error_code, result.error_msg) == (
            execution.executed,
            execution.error_code,
            execution.error_message,
        )
        assert np.allclose(cell.cell.joints_rad, ports.cell.joints_rad, rtol=0, atol=1e-9)
        assert arm.stop.latch.tripped == ports.world.latch.tripped
        held, other = arm.arm.hand.held(), ports.world._hand.held()
        assert (held is None) == (other is None)
        if held is not None and other is not None:
            assert (held.width_m, held.beyond_tcp_m) == pytest.approx((other.width_m, other.beyond_tcp_m), abs=1e-9)
        return execution.executed, execution.error_code, held is not None

    seen = Observation(
        views={},
        joints_rad=ports.cell.joints_rad,
        base_from_tcp=ports.cell.base_from_tcp,
        gripper_open=1.0,
        instruction=instruction,
    )
    grasp = ports.act("oracle", seen, "reference")
    closes = int(np.argmax(grasp.deltas[:, 6] < 0.5)) + 1
    first = checked_chunk(grasp.deltas[:closes], grasp.step_s, frame=grasp.frame)
    assert carried_out(first) == (closes, ErrorCode.OK, True)
    assert carried_out(checked_chunk([[*UP, 0.0]] * 3, 0.2)) == (3, ErrorCode.OK, True)
    assert carried_out(checked_chunk([[*UP, 1.0]], 0.2)) == (1, ErrorCode.OK, False)
    assert carried_out(checked_chunk([[*UP, 0.0], [*DOWN, 0.4]], 0.2))[1:] == (ErrorCode.OK, False)
    dive = carried_out(checked_chunk([[*DOWN, 1.0]] * 12, 0.2))
    assert dive == (0, ErrorCode.COLLISION, False)
    assert carried_out(checked_chunk([[*UP, 1.0]], 0.2)) == (0, ErrorCode.COLLISION, False)


def test_both_go_on_until_a_contact_where_that_is_allowed(ros: Ros, probe: Probe, ports: LocalPorts) -> None:
    """A dive under the stop rule "contact", then one under "gate", which predicts it."""
    cell = up(ros, MujocoCellNode, real_time_factor=0.0)
    arm = up(ros, ArmNode, contact_allowed=True)
    dive = checked_chunk([[*DOWN, 1.0]] * 12, 0.2)
    lowest_m = {}
    for rule, code, says in (("contact", 310, "touched table with"), ("gate", 304, "would bring")):
        assert arm.set_parameters([Parameter("stop_rule", value=rule)])[0].successful
        assert ros.call(probe, Trigger, names.RELEASE_COLLISION, Trigger.Request()).success
        assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="pick", seed=0)).error_code == 0
        ports.reset("pick", 0)
        ros.until(lambda: arm.arm.joints_rad is not None and arm.arm.stamp_ns >= cell.cell.time_ns)
        execution = ports.execute(dive, ports.view((), ()), rule)
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(dive, 0))
        result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
        assert says in execution.error_message
        assert (result.executed, result.error_code) == (execution.executed, execution.error_code) == (0, code)
        assert result.error_msg == execution.error_message
        assert [(p.x, p.y, p.z) for p in result.path] == list(execution.path)
        assert np.allclose(cell.cell.joints_rad, ports.cell.joints_rad, rtol=0, atol=1e-9)
        lowest_m[rule] = cell.cell.base_from_tcp[2, 3]
    assert lowest_m["contact"] < lowest_m["gate"] - 0.02


def test_an_arm_that_may_not_touch_anything_keeps_its_rule(ros: Ros) -> None:
    arm = up(ros, ArmNode)
    for rule, says in (("contact", "in the embedded cell alone"), ("luck", "choose one of: contact, gate")):
        refused = arm.set_parameters([Parameter("stop_rule", value=rule)])[0]
        assert (refused.successful, says in refused.reason) == (False, True), refused.reason
    assert not arm.runner.stop_rule.until_contact
    assert arm.set_parameters([Parameter("stop_rule", value="gate")])[0].successful
    assert "read-only" in arm.set_parameters([Parameter("contact_allowed", value=True)])[0].reason


def test_no_joint_state_is_lost_while_the_cell_runs_ahead_of_a_reader(ros: Ros) -> None:
    """Half a minute of motion, of which the reader takes nothing until it is over."""
    cell = up(ros, MujocoCellNode, real_time_factor=0.0, heartbeat_timeout_s=0.0)
    late, stamps_ns = Node("late", context=ros.context), []
    late.create_subscription(
        JointState,
        names.JOINT_STATES,
        lambda message: stamps_ns.append(convert.nanoseconds_of(message.header.stamp)),
        names.JOINTS_QOS,
    )
    ros.nodes.append(late)
    ros.until(lambda: cell.joints.get_subscription_count() == 1)
    start_ns, home = cell.cell.time_ns, np.array(cell.cell.config.home_joints)

    def begin() -> None:
        cell.cell.command_trajectory([0.0, 30.0], [home, home + 0.1])
        cell.move()

    ros.executor.create_task(begin)
    ros.until(lambda: cell.cell.time_ns > start_ns + 30e9 and cell.motion.is_canceled())
    end_ns = cell.cell.time_ns
    ros.executor.add_node(late)
    ros.until(lambda: end_ns in stamps_ns)
    passed_ns = set(range(start_ns + round(SLICE_S * 1e9), end_ns, round(SLICE_S * 1e9)))
    assert passed_ns <= set(stamps_ns)
