"""Rows 1 to 9 of the fault table: faults in the running cell and arm, and the reaction they must have."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import ActionChunk as ActionChunkMessage
from merton_interfaces.msg import SafetyState
from merton_interfaces.srv import PredictActions, ResetCell
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, JointState
from std_msgs.msg import Float64MultiArray, Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray

from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.permit import permit_text
from merton.execution.gate.safety import Limits
from merton.experiment.ports import CellView
from merton.graph.supervisor import ORPHANS_END, find_executable
from merton.world.action import checked_chunk
from merton.world.cell import ARM_JOINTS
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.models.vla_node import VlaNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import marked
from patience import stretched
from ros import Probe, Ros, trigger, up

STEP_S = 0.2
UP = [0.0, 0.0, 0.02, 0, 0, 0, 1.0]
DOWN = [0.0, 0.0, -0.05, 0, 0, 0, 1.0]
LIFT_M = 0.0125
LIFT = [[0.0, 0.0, LIFT_M, 0, 0, 0, 1.0]] * 15
"""Upwards, 0.19 m: long enough to be in the middle of."""
STALL_S = 1.5
"""Duration of a stall: three times the silence of arm/heartbeat after which the cell's clock stands [s]."""
LIFT_STEP_S, UNDER_WAY_M = 0.4, 0.015
"""A lift is slow: it can be halted for seconds before its end, also on a busy machine."""


class Robot:
    """The cell and the arm as nodes, with a client that commands and watches them."""

    def __init__(self, ros: Ros, probe: Probe, cell: MujocoCellNode) -> None:
        self.ros, self.probe, self.node = ros, probe, cell
        self.cell = cell.cell
        self.safety = probe.listen(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.cell_safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.client = ros.action_client(probe, ExecuteActions, names.EXECUTE)
        ros.until(lambda: self.safety and self.joints)

    @property
    def stamp_ns(self) -> int:
        """Now, on the cell's clock."""
        return int(self.cell.time_ns)

    def permitted(self, command: Any) -> Any:
        """The command as arm_node would send it now: with the stamp of its safety state."""
        return marked(command, permit_text(convert.nanoseconds_of(self.safety[-1].header.stamp)))

    @property
    def position(self) -> np.ndarray:
        """Of the tool centre point, from the simulator itself [m]."""
        return np.array(self.cell.base_from_tcp[:3, 3])

    def goal(
        self, *deltas: list[float], trial: str = "", sequence: int = 0, stamp_ns: int = 0, step_s: float = STEP_S
    ) -> ExecuteActions.Goal:
        chunk = convert.chunk_message(checked_chunk([*deltas], step_s), stamp_ns)
        return ExecuteActions.Goal(chunk=chunk, trial=trial, sequence=sequence)

    def execute(self, *deltas: list[float], **about: Any) -> ExecuteActions.Result:
        return self.send(self.goal(*deltas, **about))

    def send(self, goal: ExecuteActions.Goal) -> ExecuteActions.Result:
        return self.ros.act(self.probe, ExecuteActions, names.EXECUTE, goal)

    def start(self, goal: ExecuteActions.Goal) -> tuple[Any, Callable[[], Any]]:
        """Send a goal and leave it under way; its handle, and a function that waits for status and result.

        To an arm_node in another process it must have a trial: its answer may get lost, and it is sent again.
        """
        self.ros.until(self.client.server_is_ready)
        handles: list[Any] = []
        answers: list[Any] = []

        def on_handle(future: Future) -> None:
            handles.append(future.result())
            if handles[0].accepted:
                handles[0].get_result_async().add_done_callback(lambda f: answers.append(f.result()))

        def ask() -> None:
            self.client.send_goal_async(goal).add_done_callback(on_handle)

        for _ in range(3):
            self.ros.executor.create_task(ask)
            with contextlib.suppress(AssertionError):
                self.ros.until(lambda: handles, 20)
                break
        assert handles
        assert handles[0].accepted
        return handles[0], lambda: self.ros.until(lambda: answers)[0]

    def lifting(self, **about: Any) -> tuple[Any, Callable[[], Any]]:
        """A lift under way that has visibly begun."""
        height = self.position[2]
        handle, answer = self.start(self.goal(*LIFT, step_s=LIFT_STEP_S, **about))
        self.ros.until(lambda: self.position[2] > height + UNDER_WAY_M)
        return handle, answer

    def at_rest(self) -> None:
        self.ros.until(lambda: not self.cell.busy)


def robot_of(ros: Ros, probe: Probe, real_time_factor: float, **parameters: Any) -> Robot:
    cell = up(ros, MujocoCellNode, real_time_factor=real_time_factor)
    up(ros, ArmNode, **parameters)
    return Robot(ros, probe, cell)


@pytest.fixture
def robot(ros: Ros, probe: Probe) -> Robot:
    """As fast as it can."""
    return robot_of(ros, probe, 0.0)


@pytest.fixture
def slow(ros: Ros, probe: Probe) -> Robot:
    """At the pace of a real one: motions that take as long as they take can be interrupted."""
    return robot_of(ros, probe, 1.0)


class StallingCamera:
    """A camera of the test's own: 50 frames a second until it stalls."""

    def __init__(self, probe: Probe, name: str) -> None:
        self.publisher = probe.create_publisher(CameraInfo, names.color_info(name), names.SENSOR_QOS)
        self.running = True
        probe.create_timer(0.02, self.tick)

    def tick(self) -> None:
        if self.running:
            self.publisher.publish(CameraInfo())


# Row 1: a camera stalls ----------------------------------------------------------------------------------------------


def test_row_1_a_camera_that_stalls_halts_the_arm_which_goes_on_without_a_jump(ros: Ros, probe: Probe) -> None:
    camera = StallingCamera(probe, "top")
    robot = robot_of(ros, probe, 1.0, watch_cameras=["top"])
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    ros.until(lambda: arm.arm.joints_rad is not None and arm.cameras.silence() is None)
    begin = robot.position[2]
    _, answer = robot.lifting()
    camera.running = False
    result = answer().result
    assert result.error_code == 307
    assert "camera 'top' has sent no frame for 0.2 s" in result.error_msg
    robot.at_rest()
    halted = robot.position[2]
    assert halted - begin < 0.12, "it did not go on to 0.19 m"
    assert 0 < result.executed <= (halted - begin) / LIFT_M + 1
    assert not arm.stop.latch.tripped
    assert robot.execute(UP).error_code == 307, "nothing moves that the camera does not see"
    assert robot.position[2] == pytest.approx(halted, abs=1e-3)

    camera.running = True
    ros.until(lambda: arm.cameras.silence() is None)
    robot.joints.clear()
    assert robot.execute(UP, UP).error_code == 0
    assert robot.position[2] - halted == pytest.approx(0.04, abs=0.003), "from where it was, not from where it was sent"
    speeds = [np.abs(message.velocity[:6]).max() for message in robot.joints]
    assert max(speeds) < 1.0, "no jump"


def test_row_1_no_action_from_an_observation_older_than_the_limit(robot: Robot) -> None:
    seen_ns = robot.stamp_ns
    assert robot.execute(UP, UP, UP, trial="t", sequence=1, stamp_ns=seen_ns).error_code == 0
    here = robot.position
    for about in ({"trial": "t", "sequence": 2}, {"trial": ""}):
        result = robot.execute(UP, stamp_ns=seen_ns, **about)
        assert (result.error_code, result.executed) == (307, 0)
        assert "old, limit 0.5 s" in result.error_msg
    assert np.allclose(robot.position, here, atol=1e-6)
    assert robot.execute(UP, trial="t", sequence=2, stamp_ns=robot.stamp_ns).error_code == 0, (
        "a fresh look, same number"
    )


def test_row_1_an_observation_of_another_clock_blocks_nothing(ros: Ros, probe: Probe) -> None:
    """Joint states go on, and never reach its stamp."""
    cell = up(ros, MujocoCellNode, real_time_factor=1.0)
    up(ros, ArmNode, patience_s=0.5)
    robot = Robot(ros, probe, cell)
    clock = itertools.count(robot.stamp_ns + 1)

    def tick() -> None:
        cell.joints.publish(convert.joint_state_message(next(clock), cell.cell.joints_rad, np.zeros(6), 0.14))

    probe.create_timer(0.02, tick)
    ahead_ns = robot.stamp_ns + 1_500_000_000
    result = robot.execute(UP, trial="t", sequence=1, stamp_ns=ahead_ns)
    assert (result.error_code, result.executed) == (404, 0)
    assert f"{ahead_ns / 1e9:.3f} s, the observation's stamp" in result.error_msg


def test_row_1_an_observation_from_the_future_is_refused_at_once(ros: Ros, probe: Probe) -> None:
    """Before: it occupied the arm for `patience_s`, here longer than this test may wait."""
    cell = up(ros, MujocoCellNode)
    up(ros, ArmNode, patience_s=600.0)
    robot = Robot(ros, probe, cell)
    here = robot.position
    for lead_ns in (5_000_000_000, 1_700_000_000_000_000_000):
        result = robot.execute(UP, trial="t", sequence=1, stamp_ns=robot.stamp_ns + lead_ns)
        assert (result.error_code, result.executed) == (307, 0)
        assert f"{lead_ns / 1e9:.3g} s ahead of the joint states, limit 2 s" in result.error_msg
    assert np.allclose(robot.position, here, atol=1e-6)
    assert robot.execute(UP, trial="t", sequence=1, stamp_ns=robot.stamp_ns).error_code == 0, "the same number"


def test_row_1_a_camera_that_does_not_exist_is_named_at_the_start(ros: Ros) -> None:
    node = ros.add(ArmNode, parameter_overrides=[Parameter("watch_cameras", value=["top", "toe"])])
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE


# Row 2: NaN, inf, 1e300 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_row_2_values_that_are_no_numbers_are_an_invalid_action(robot: Robot, value: float) -> None:
    here = robot.position
    for place in ("translation", "rotation"):
        goal = robot.goal([0, 0, 0, 0, 0, 0, 1.0])
        getattr(goal.chunk.actions[0], place).x = value
        result = robot.send(goal)
        assert (result.error_code, result.executed) == (101, 0)
    goal = robot.goal([0, 0, 0, 0, 0, 0, 1.0])
    goal.chunk.actions[0].gripper = value
    assert robot.send(goal).error_code == 101
    assert np.allclose(robot.position, here, atol=1e-6)
    assert robot.safety[-1].mode == SafetyState.NORMAL


# Row 3: wrong shape, type, key, empty --------------------------------------------------------------------------------


def test_row_3_malformed_input_is_named_and_dropped(robot: Robot, ros: Ros, probe: Probe) -> None:
    here = robot.position
    still = [0, 0, 0, 0, 0, 0, 1.0]

    def answer(change: Callable[[ActionChunkMessage], object]) -> tuple[int, str]:
        goal = robot.goal(still)
        change(goal.chunk)
        result = robot.send(goal)
        return result.error_code, result.error_msg

    code, message = answer(lambda chunk: setattr(chunk.header, "frame_id", "world"))
    assert (code, "'world'" in message, "base_link, tcp" in message) == (101, True, True)
    code, message = answer(lambda chunk: chunk.actions.extend(chunk.actions * 300))
    assert (code, "256" in message, "301" in message) == (101, True, True)
    assert answer(lambda chunk: setattr(chunk, "step", convert.duration_message(0.0)))[0] == 101
    assert answer(lambda chunk: setattr(chunk.actions[0], "gripper", 7.0))[0] == 101
    assert answer(lambda chunk: chunk.actions.clear())[0] in (0, 101), "nothing to do is no accident"

    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    joints = next(node.joints for node in ros.nodes if isinstance(node, MujocoCellNode))
    trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    gripper = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
    ros.until(lambda: joints.get_subscription_count() == 2 and trajectories.get_subscription_count() == 1)
    ros.until(lambda: gripper.get_subscription_count() == 1)
    joints.publish(JointState(name=["elbow_joint"], position=[0.0]))
    joints.publish(JointState(name=list(ARM_JOINTS), position=[math.nan] * 6))
    fingers = [*robot.cell.joints_rad.tolist(), math.nan]
    joints.publish(JointState(name=[*ARM_JOINTS, convert.GRIPPER_JOINT], position=fingers))
    ros.until(lambda: arm.counters["dropped joint states"] == 3)
    nonsense = JointTrajectory(joint_names=list(ARM_JOINTS))
    nonsense.points = trajectory_points([np.full(6, math.nan), np.zeros(3)])
    trajectories.publish(robot.permitted(nonsense))
    for_ever = JointTrajectory(joint_names=list(ARM_JOINTS), points=trajectory_points([np.zeros(6)]))
    for_ever.points[0].time_from_start.sec = 2**31 - 1
    trajectories.publish(robot.permitted(for_ever))
    ros.until(lambda: robot.node.counters["dropped malformed trajectories"] == 2)
    gripper.publish(robot.permitted(Float64MultiArray(data=[])))
    gripper.publish(robot.permitted(Float64MultiArray(data=[math.nan])))
    ros.until(lambda: robot.node.counters["dropped gripper commands"] == 2)
    assert np.allclose(robot.position, here, atol=1e-6)
    assert robot.execute(UP).error_code == 0, "and on it goes"


def trajectory_points(rows: list[np.ndarray]) -> list[JointTrajectoryPoint]:
    """One a second."""
    return [
        JointTrajectoryPoint(positions=row.tolist(), time_from_start=convert.duration_message(float(second)))
        for second, row in enumerate(rows)
    ]


# Row 4: huge deltas --------------------------------------------------------------------------------------------------


def test_row_4_the_joints_keep_within_their_bounds_for_every_request(robot: Robot, ros: Ros, probe: Probe) -> None:
    here = robot.position
    assert robot.execute([0.2, 0, 0, 0, 0, 0, 1.0]).error_code == 301
    assert robot.execute([0, 0, 0, 1.0, 0, 0, 1.0]).error_code == 301
    assert robot.execute([90.0, 0, 0, 0, 0, 0, 1.0]).error_code == 101
    assert np.allclose(robot.position, here, atol=1e-6)
    rng = np.random.default_rng(4)
    robot.joints.clear()
    codes = set()
    for scale in [0.01, 0.02, 0.05, 0.2, 2.0] * 5:
        gripper = np.full(4, rng.choice([0.5, 1.0]))  # it takes more than a second of physics each time it changes
        deltas = np.column_stack([rng.normal(0, scale, (4, 6)), gripper])
        codes.add(code := robot.execute(*deltas.tolist()).error_code)
        if code == 304:
            assert trigger(ros, probe, names.RESET_STOP).success
    assert {301, 101} <= codes
    speeds = np.array([message.velocity[:6] for message in robot.joints])
    # the spline peaks at 1.5 times the mean; 20 % for the servo, which overshoots
    assert np.abs(speeds).max() < 1.2 * 1.5 * Limits().joint_speed_rad_s


# Row 5: into the table or a wall -------------------------------------------------------------------------------------


def test_row_5_into_the_table_it_stops_before_contact_and_latches(robot: Robot, ros: Ros, probe: Probe) -> None:
    markers = probe.listen(MarkerArray, names.ARM_MARKERS, names.RELIABLE_QOS)
    result = robot.execute(*[DOWN] * 10)
    assert result.error_code == 304
    ros.until(lambda: robot.safety[-1].mode == SafetyState.COLLISION_STOP)
    assert robot.safety[-1].link_b == "table"
    assert robot.cell.contact is None, "it was stopped before it touched anything"
    ros.until(lambda: markers and any(marker.ns == "path" for message in markers for marker in message.markers))
    drawn = {marker.ns: marker for message in markers for marker in message.markers}
    assert drawn["path"].color.r > drawn["path"].color.g, "red: it was cut short"
    assert drawn["contact"].action == Marker.ADD
    assert abs(drawn["contact"].pose.position.z - robot.position[2]) < 0.03, "at the finger tips"

    height = robot.position[2]
    assert robot.execute(UP).error_code == 304
    assert robot.position[2] == pytest.approx(height, abs=1e-4)
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: robot.safety[-1].mode == SafetyState.NORMAL)
    assert robot.execute(UP).error_code == 0
    assert robot.position[2] == pytest.approx(height + 0.02, abs=0.002)


def test_row_5_a_measured_contact_latches_as_well(robot: Robot, ros: Ros, probe: Probe) -> None:
    """Sent past the gate, as no program of ours does, into the table."""
    trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    ros.until(lambda: trajectories.get_subscription_count() == 1)
    start = robot.cell.joints_rad
    points = trajectory_points([start, start + np.array([0, 0.9, 0.2, 0, 0, 0])])
    trajectories.publish(robot.permitted(JointTrajectory(joint_names=list(ARM_JOINTS), points=points)))
    ros.until(lambda: robot.safety[-1].mode == SafetyState.COLLISION_STOP)
    assert robot.safety[-1].link_b == "table"
    assert robot.safety[-1].force > 0
    assert robot.execute(UP).error_code == 310
    assert trigger(ros, probe, names.RESET_STOP).success
    assert robot.execute(*[UP] * 3).error_code == 0


# Row 6: out of reach, singular ---------------------------------------------------------------------------------------


def test_row_6_out_of_reach_the_last_reachable_pose_is_held(robot: Robot, ros: Ros) -> None:
    outwards = [0.06, 0, 0.02, 0, 0, 0, 1.0]
    first = robot.execute(*[outwards] * 12)
    assert first.error_code in (201, 202, 302, 303)
    assert first.executed < 12
    held, joints = robot.position, robot.cell.joints_rad
    again = robot.execute(*[outwards] * 12)
    assert again.error_code in (201, 202, 302, 303)
    assert np.linalg.norm(robot.position - held) < 0.06, "less than one more delta"
    assert np.abs(robot.cell.joints_rad - joints).max() < 0.5, "no branch flip"
    assert robot.safety[-1].mode == SafetyState.NORMAL, "and no stop"
    assert robot.execute([-0.03, 0, 0, 0, 0, 0, 1.0]).error_code == 0


def test_row_6_at_the_wrist_singularity_it_holds_and_does_not_flip(robot: Robot) -> None:
    joints = robot.cell.joints_rad
    result = robot.execute(*[[0.0, 0, 0, 0, 0.3, 0, 1.0]] * 12)
    assert (result.error_code, result.executed) == (202, 4)
    assert np.abs(robot.cell.joints_rad - joints).max() < 4 * 0.5, "no joint went round the other way"
    assert robot.safety[-1].mode == SafetyState.NORMAL, "and no stop"


# Row 7: the command stream dies --------------------------------------------------------------------------------------


class Process:
    """arm_node as a process of its own, as the graph starts it."""

    def __init__(self, *parameters: str) -> None:
        program = str(find_executable("merton_nodes", "arm_node"))
        words = [word for parameter in parameters for word in ("-p", parameter)]
        self.process = subprocess.Popen(
            [*ORPHANS_END, program, "--ros-args", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        """As the kernel does it when memory is short."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(stretched(10))


@pytest.fixture
def arm_process() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*parameters: str) -> Process:
        started.append(Process(*parameters))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_row_7_an_arm_node_that_is_killed_in_mid_motion_takes_the_motion_with_it(
    ros: Ros, probe: Probe, arm_process: Callable[..., Process]
) -> None:
    cell = up(ros, MujocoCellNode, real_time_factor=1.0, heartbeat_timeout_s=1.0)
    process = arm_process()
    beats = probe.listen(Header, names.HEARTBEAT, names.RELIABLE_QOS)
    robot = Robot(ros, probe, cell)
    ros.until(lambda: len(beats) > 3)
    begin = robot.position[2]
    robot.lifting(trial="t", sequence=1, stamp_ns=robot.stamp_ns)
    process.kill()
    killed_ns = robot.stamp_ns
    ros.until(lambda: cell.waits_for_heartbeat)
    # at this pace the cell's clock is no faster than the wall's; beats may still lie in its mailbox
    assert (robot.stamp_ns - killed_ns) * 1e-9 < 1.0 + 0.5
    assert robot.position[2] - begin < 0.17, "it did not go on to 0.19 m"

    # when another takes its place the cell holds the arm, and it finds out and latches
    robot.safety.clear()
    arm_process()
    ros.until(lambda: robot.cell_safety[-1].mode == SafetyState.FAULT)
    assert "started again during a motion" in robot.cell_safety[-1].message
    robot.at_rest()
    assert robot.position[2] - begin < 0.17
    refused = ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="reach", seed=0))
    assert (refused.error_code, "reset_stop" in refused.error_msg) == (407, True)
    ros.until(lambda: robot.safety and robot.safety[-1].mode == SafetyState.FAULT)
    ros.until(robot.client.server_is_ready)
    held = robot.position[2]
    assert robot.execute(UP).error_code == 305
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success, "no experiment may release it"
    assert robot.position[2] == pytest.approx(held, abs=1e-3)
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: not cell.cell.stopped)
    assert robot.execute(UP).error_code == 0


def test_row_7_an_arm_node_or_a_cell_that_stalls_in_mid_motion_changes_nothing(
    ros: Ros, probe: Probe, arm_process: Callable[..., Process]
) -> None:
    """As both do when a laptop sleeps, or has other things to do: the cell's clock waits for arm_node."""
    cell = up(ros, MujocoCellNode, real_time_factor=1.0)
    process = arm_process()
    robot = Robot(ros, probe, cell)

    def lifted(interrupt: Callable[[], None]) -> tuple[ExecuteActions.Result, int]:
        """The result of a lift that is interrupted, and its duration on the cell's clock [ns]."""
        assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="reach", seed=0)).error_code == 0
        begin_ns, height_m = robot.stamp_ns, robot.position[2]
        goal = robot.goal(*LIFT[:8], trial=f"t{begin_ns}", sequence=1, stamp_ns=begin_ns, step_s=0.25)
        _, answer = robot.start(goal)
        ros.until(lambda: robot.position[2] > height_m + UNDER_WAY_M)
        interrupt()
        return answer().result, robot.stamp_ns - begin_ns

    def stall_arm_node() -> None:
        os.killpg(process.process.pid, signal.SIGSTOP)
        ros.until(lambda: cell.waits_for_heartbeat)
        standing_ns = robot.stamp_ns
        threading.Event().wait(STALL_S)
        assert robot.stamp_ns == standing_ns
        os.killpg(process.process.pid, signal.SIGCONT)

    def stall_cell() -> None:
        ros.executor.create_task(lambda: threading.Event().wait(STALL_S))

    quiet, duration_ns = lifted(lambda: None)
    assert (quiet.error_code, quiet.executed) == (0, 8)
    for interrupt in (stall_arm_node, stall_cell):
        result, stalled_ns = lifted(interrupt)
        result.final_pose.header.stamp = quiet.final_pose.header.stamp
        assert result == quiet, "the same path, point by point"
        assert stalled_ns == duration_ns
    assert robot.safety[-1].mode == SafetyState.NORMAL


def test_row_7_a_cancelled_chunk_halts_in_mid_motion_and_reports_its_progress(slow: Robot, ros: Ros) -> None:
    begin = slow.position[2]
    handle, answer = slow.lifting()
    ros.executor.create_task(handle.cancel_goal_async)
    done = answer()
    assert (done.status, done.result.error_code, done.result.error_msg) == (5, 0, "cancelled")
    slow.at_rest()
    risen = slow.position[2] - begin
    assert risen < 0.12, "it halted, and did not go on to 0.19 m"
    assert done.result.executed == pytest.approx(risen / LIFT_M, abs=2)
    assert done.result.final_pose.pose.position.z == pytest.approx(slow.position[2], abs=0.005)
    assert slow.safety[-1].mode == SafetyState.NORMAL, "cancelling is no emergency"
    assert slow.execute(UP).error_code == 0
    assert slow.position[2] - begin - risen == pytest.approx(0.02, abs=0.003)


def test_row_7_a_node_that_is_deactivated_in_mid_motion_halts_the_arm(slow: Robot, ros: Ros) -> None:
    begin = slow.position[2]
    _, answer = slow.lifting()
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    arm.trigger_deactivate()
    result = answer().result
    assert (result.error_code, result.error_msg) == (305, "arm_node was deactivated")
    assert slow.position[2] - begin < 0.12, "it did not go on to 0.19 m"
    assert not arm.stop.latch.tripped
    assert arm.trigger_activate().name == "SUCCESS"
    slow.at_rest()
    assert slow.execute(UP).error_code == 0


def test_row_7_a_node_that_is_shut_down_in_mid_motion_halts_the_arm(slow: Robot, ros: Ros) -> None:
    begin = slow.position[2]
    _, answer = slow.lifting()
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    assert arm.trigger_shutdown().name == "SUCCESS"
    assert answer().result.error_code == 305
    assert slow.position[2] - begin < 0.12, "it did not go on to 0.19 m"


def test_row_7_a_node_that_is_ended_in_mid_motion_halts_the_arm_itself(
    ros: Ros, probe: Probe, arm_process: Callable[..., Process]
) -> None:
    cell = up(ros, MujocoCellNode, real_time_factor=1.0, heartbeat_timeout_s=0.0)
    process = arm_process()
    robot = Robot(ros, probe, cell)
    commands = probe.listen(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    ros.until(robot.client.server_is_ready)
    begin = robot.position[2]
    robot.lifting(trial="t", sequence=1, stamp_ns=robot.stamp_ns)
    period_ns = cell.motion.timer_period_ns
    cell.motion.timer_period_ns = 50 * period_ns  # five minutes for the lift: a busy machine takes its time to end it
    process.process.send_signal(signal.SIGTERM)
    ros.until(lambda: not commands[-1].points)
    cell.motion.timer_period_ns = period_ns
    robot.at_rest()
    assert robot.position[2] - begin < 0.17, "it did not go on to 0.19 m"
    assert process.process.wait(stretched(30)) == 0


def test_row_7_without_joint_states_a_motion_is_given_up(ros: Ros, probe: Probe) -> None:
    cell = up(ros, MujocoCellNode, real_time_factor=1.0)
    arm = up(ros, ArmNode, patience_s=1.5)
    robot = Robot(ros, probe, cell)
    ros.until(lambda: arm.arm.joints_rad is not None)
    begin = robot.position[2]
    _, answer = robot.lifting()
    cell.publish_joints = lambda: None
    assert answer().result.error_code == 404
    robot.at_rest()
    assert robot.position[2] - begin < 0.12, "halted, as far as one can tell blindly"


# Row 8: duplicate, late, reordered -----------------------------------------------------------------------------------


def test_row_8_a_repeated_command_is_answered_and_not_carried_out(robot: Robot) -> None:
    first = robot.execute(UP, UP, trial="t", sequence=3, stamp_ns=robot.stamp_ns)
    assert (first.error_code, first.executed) == (0, 2)
    here, now = robot.position, robot.stamp_ns
    again = robot.execute(UP, UP, trial="t", sequence=3, stamp_ns=robot.stamp_ns)
    assert again == first
    late = robot.execute(UP, trial="t", sequence=2, stamp_ns=robot.stamp_ns)
    assert (late.error_code, late.executed) == (308, 0)
    assert "3 is already done" in late.error_msg
    assert np.array_equal(robot.position, here)
    assert robot.stamp_ns == now, "no time has passed: nothing moved"
    assert robot.execute(UP, trial="t", sequence=4, stamp_ns=robot.stamp_ns).error_code == 0
    assert robot.execute(UP, trial="u", sequence=1, stamp_ns=robot.stamp_ns).error_code == 0, (
        "each trial counts for itself"
    )


def test_row_8_a_command_repeated_while_it_is_carried_out_shares_the_answer(slow: Robot) -> None:
    begin = slow.position[2]
    about = {"trial": "t", "sequence": 1, "stamp_ns": slow.stamp_ns}
    _, answer = slow.lifting(**about)
    again, second = slow.start(slow.goal(*LIFT, **about))
    assert again.accepted
    assert answer().result == second().result
    assert slow.position[2] - begin == pytest.approx(15 * LIFT_M, abs=0.003), "lifted once"


def test_row_8_a_lost_answer_is_requested_again(
    robot: Robot, ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = RosPorts(probe, robot.node.cell.config, deadline_s=1.0)
    ros.until(ports.arm.server_is_ready)
    sent: list[Any] = []
    send = ports.arm.send_goal_async

    def lossy(goal: Any) -> Future:
        sent.append(goal)
        real = send(goal)
        return Future() if len(sent) == 1 else real

    monkeypatch.setattr(ports.arm, "send_goal_async", lossy)
    begin = robot.position[2]
    view = CellView(robot.stamp_ns, {}, {}, robot.cell.joints_rad, robot.cell.base_from_tcp, 1.0, False)
    chunk = checked_chunk([UP] * 3, STEP_S)
    executions: list[Any] = []
    worker = threading.Thread(target=lambda: executions.append(ports.execute(chunk, view)), daemon=True)
    worker.start()
    execution = ros.until(lambda: executions)[0]
    assert len(sent) >= 2
    assert (execution.error_code, execution.executed) == (0, 3)
    assert robot.position[2] - begin == pytest.approx(0.06, abs=0.003), "carried out once"


# Row 9: the emergency stop -------------------------------------------------------------------------------------------


def test_row_9_a_stop_in_mid_motion_ends_it_and_holds(slow: Robot, ros: Ros, probe: Probe) -> None:
    begin = slow.position[2]
    _, answer = slow.lifting()
    assert trigger(ros, probe, names.STOP).success
    result = answer().result
    assert result.error_code == 305
    assert "stopped by request" in result.error_msg
    slow.at_rest()
    halted = slow.position[2]
    assert UNDER_WAY_M < halted - begin < 0.12, "it stopped well before the end at 0.19 m"
    ros.until(lambda: slow.safety[-1].mode == SafetyState.EMERGENCY_STOP)
    assert slow.execute(UP).error_code == 305
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success
    assert slow.execute(UP).error_code == 305
    assert slow.position[2] == pytest.approx(halted, abs=1e-3)
    assert trigger(ros, probe, names.RESET_STOP).success
    assert slow.execute(UP).error_code == 0


def test_row_9_a_stop_that_is_released_at_once_ends_the_chunk_as_well(slow: Robot, ros: Ros) -> None:
    """Before arm_node has noticed: the rest of the chunk begins where the arm is not."""
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    begin = slow.position[2]
    _, answer = slow.lifting()

    def stop_and_release() -> None:
        arm.stop.trip(SafetyState(mode=SafetyState.EMERGENCY_STOP, message="stopped by request"))
        assert arm.stop.reset(Trigger.Response()).success

    ros.executor.create_task(stop_and_release)
    result = answer().result
    assert (result.error_code, result.executed) == (305, 0)
    assert "released meanwhile" in result.error_msg
    slow.at_rest()
    assert slow.position[2] - begin < 0.12, "it did not go on to 0.19 m"
    assert slow.execute(UP).error_code == 0


def test_row_9_a_stop_during_a_service_call_holds(
    robot: Robot, ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button is pressed while a model is still computing, and while a scene is being set up."""
    vla = up(ros, VlaNode, preload=["hold"])
    stopped = threading.Event()
    act = vla.pool["hold"].model.act

    def slow_act(*arguments: Any) -> Any:
        assert stopped.wait(stretched(30))
        return act(*arguments)

    monkeypatch.setattr(vla.pool["hold"].model, "act", slow_act)
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    thinking = probe.create_client(PredictActions, names.PREDICT)
    ros.until(thinking.service_is_ready)
    request = PredictActions.Request(model_id="hold", instruction="reach", gripper=1.0)
    request.state = JointState(name=list(ARM_JOINTS), position=robot.cell.joints_rad.tolist())
    request.tcp = convert.pose_stamped(robot.cell.base_from_tcp, robot.stamp_ns)
    decided = thinking.call_async(request)
    # the model is busy from now on; the stop path has an executor of its own
    answer = stop_from_another_executor(ros)
    assert answer.success
    assert arm.stop.latch.tripped
    stopped.set()
    assert ros.result(decided).error_code == 0
    assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="pick", seed=1)).error_code == 0
    assert robot.execute(UP).error_code == 305, "neither the model's answer nor a new scene lifts it"
    assert trigger(ros, probe, names.RESET_STOP).success
    assert robot.execute(UP).error_code == 0


def stop_from_another_executor(ros: Ros) -> Any:
    other = Ros()
    try:
        return trigger(other, other.add(Probe), names.STOP)
    finally:
        other.close()


def test_row_9_a_reset_in_the_middle_of_a_trip_leaves_no_gate_open(robot: Robot, ros: Ros) -> None:
    """The stop command is out, its latch not yet: then the reset that was on its way must not let motions through."""
    stop = next(node for node in ros.nodes if isinstance(node, ArmNode)).stop
    lock = stop.latch.lock

    class ResetFirst:
        def __enter__(self) -> None:
            stop.latch.lock = lock
            assert stop.reset(Trigger.Response()).success
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    stop.latch.lock = ResetFirst()
    stop.trip(SafetyState(mode=SafetyState.COLLISION_STOP, message="touched"))
    assert stop.latch.tripped
    assert not stop.send(stop.commands, JointTrajectory(), stop.state.epoch), (
        "nothing passes while the latch is tripped"
    )
    assert robot.execute(UP).error_code == 304
    assert stop.reset(Trigger.Response()).success
    assert robot.execute(UP).error_code == 0


def test_row_9_the_latch_survives_kill_and_restart(
    ros: Ros, probe: Probe, arm_process: Callable[..., Process], tmp_path: Path
) -> None:
    file = tmp_path / "stop.json"
    cell = up(ros, MujocoCellNode)
    first = arm_process(f"latch_file:={file}")
    robot = Robot(ros, probe, cell)
    here = robot.position
    assert trigger(ros, probe, names.STOP).success
    ros.until(lambda: robot.safety[-1].mode == SafetyState.EMERGENCY_STOP)
    first.kill()
    robot.safety.clear()
    arm_process(f"latch_file:={file}")
    ros.until(lambda: robot.safety and robot.safety[-1].mode == SafetyState.EMERGENCY_STOP)
    assert "stopped by request" in robot.safety[-1].message
    assert robot.execute(UP).error_code == 305
    assert np.allclose(robot.position, here, atol=1e-6)
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success
    assert trigger(ros, probe, names.RESET_STOP).success
    assert robot.execute(UP).error_code == 0
    assert not EmergencyStopLatch(file).tripped, "a reset is kept"
