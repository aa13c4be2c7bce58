"""lab_cell_node and the way home, with a scripted stand-in for arm_node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.srv import ResetCell
from rclpy.action import ActionServer, CancelResponse
from rclpy.task import Future
from sensor_msgs.msg import JointState

from lab import Operator
from merton.world.cell import load_cell
from merton_nodes.cell import lab_cell_node
from merton_nodes.cell.lab_cell_node import LabCellNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up

pytestmark = pytest.mark.timeout(120)
HOME = np.array(load_cell().home_joints)
SECOND = 1_000_000_000


class Bench:
    """Joint states by hand, arm/execute, an operator who agrees; a reset is under way."""

    def __init__(self, ros: Ros, probe: Probe) -> None:
        self.joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.stamps: list[int] = []
        self.cancelled, self.hangs = Future(), False
        self.server = ActionServer(probe, ExecuteActions, names.EXECUTE, self.execute, cancel_callback=self.on_cancel)
        self.node = up(ros, LabCellNode)
        self.operator = Operator(probe)
        self.reset = probe.create_client(ResetCell, names.CELL_RESET)
        ros.until(self.reset.service_is_ready)
        ros.until(self.node.arm.server_is_ready)
        ros.until(lambda: self.joints.get_subscription_count() == 1)
        self.publish(HOME + 0.1, SECOND)
        ros.until(lambda: self.node.joints_rad is not None)

    def publish(self, joints_rad: np.ndarray, stamp_ns: int) -> None:
        self.joints.publish(convert.joint_state_message(stamp_ns, joints_rad, np.zeros(6), 0.14))

    def on_cancel(self, _: Any) -> CancelResponse:
        self.cancelled.set_result(None)
        return CancelResponse.ACCEPT

    async def execute(self, goal: Any) -> ExecuteActions.Result:
        self.stamps.append(convert.nanoseconds_of(goal.request.chunk.header.stamp))
        if self.hangs:
            await self.cancelled
        goal.canceled() if goal.is_cancel_requested else goal.succeed()
        result = ExecuteActions.Result()
        result.final_pose = convert.pose_stamped(np.eye(4), 2 * SECOND)
        return result


@pytest.fixture
def bench(ros: Ros, probe: Probe) -> Any:
    made = Bench(ros, probe)
    yield made
    made.server.destroy()


def test_home_is_judged_by_joints_seen_after_the_motion(ros: Ros, bench: Bench) -> None:
    future = bench.reset.call_async(ResetCell.Request(task="reach", seed=0))
    ros.until(lambda: bench.stamps)
    assert bench.stamps == [SECOND], "so that arm_node catches up with what the way home was planned from"
    bench.publish(HOME + 0.1, SECOND + SECOND // 2)
    ros.until(lambda: bench.node.stamp_ns > SECOND)
    assert not future.done()
    bench.publish(HOME, 2 * SECOND)
    response = ros.result(future)
    assert (response.error_code, response.error_msg) == (0, "")
    assert bench.operator.ids == ["home", "reach.0"]


def test_a_motion_that_did_not_happen_is_not_taken_for_a_bent_arm(ros: Ros, bench: Bench) -> None:
    future = bench.reset.call_async(ResetCell.Request(task="reach", seed=0))
    ros.until(lambda: bench.stamps)
    bench.publish(HOME + 0.1, 2 * SECOND)
    response = ros.result(future)
    assert "did not get home" in response.error_msg
    assert bench.operator.ids == ["home"]


def test_a_way_home_that_takes_too_long_is_cancelled(ros: Ros, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_cell_node, "TIMEOUT_S", 0.5)
    bench.hangs = True
    response = ros.result(bench.reset.call_async(ResetCell.Request(task="reach", seed=0)))
    assert "for the arm to go home" in response.error_msg
    ros.until(bench.cancelled.done)
