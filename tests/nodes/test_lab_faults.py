"""Rows 1, 5, 7, 9, 10, 11 of the fault table on the lab's nodes, with the real ur-rtde and a simulated controller."""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions, RunTrial
from merton_interfaces.msg import CellState, ConfirmationRequest, SafetyState, TrialResult
from merton_interfaces.srv import ConfirmSuccess, ResetCell
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_srvs.srv import Trigger
from test_faults import DOWN, LIFT, LIFT_STEP_S, STEP_S, UNDER_WAY_M, UP, Process, StallingCamera

from lab import CANNOT, DONE, Operator
from merton.config import dumps
from merton.decision.models.base import POLICIES
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.homing import is_home
from merton.models.catalogue import VARIABLE
from merton.perception.camera import d455_intrinsics
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton.world.geometry import Matrix
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cameras.distortion_node import DistortionNode
from merton_nodes.cameras.free_cameras import FreeCameras
from merton_nodes.cell.lab_cell_node import LabCellNode
from merton_nodes.cell.ur_robot_node import UrRobotNode
from merton_nodes.experiment.experiment_node import ExperimentNode
from merton_nodes.experiment.scorer_node import ScorerNode
from merton_nodes.models.vla_node import VlaNode
from merton_nodes.models.vlm_node import VlmNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, trigger, up
from simulated_ur import SimulatedUr, simulated_ur
from wire import dripping, garbage, half_closed, http_server, replying, silent

pytest.importorskip("rtde_control", reason="ur-rtde has no wheel for this Python")
pytestmark = pytest.mark.timeout(180)

CELL = load_cell()


@pytest.fixture
def ur() -> Iterator[SimulatedUr]:
    with simulated_ur() as simulated:
        yield simulated


@pytest.fixture
def arm_process() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*parameters: str) -> Process:
        started.append(Process("mode:=reduced", *parameters))
        return started[-1]

    yield start
    for process in started:
        process.kill()


class Robot:
    """The lab's robot as a node, with a client that commands and watches it."""

    def __init__(self, ros: Ros, probe: Probe, ur: SimulatedUr, heartbeat_timeout_s: float = 2.0) -> None:
        self.ros, self.probe, self.ur = ros, probe, ur
        options = {"hostname": ur.address, "connect_timeout_s": 60.0, "heartbeat_timeout_s": heartbeat_timeout_s}
        self.node = up(ros, UrRobotNode, **options)
        self.safety = probe.listen(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.cell_safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.client = ros.action_client(probe, ExecuteActions, names.EXECUTE)
        ros.until(lambda: self.joints and self.cell_safety)

    def with_arm(self, **parameters: Any) -> ArmNode:
        """arm_node in the lab's mode."""
        arm = up(self.ros, ArmNode, mode="reduced", max_observation_age_s=5.0, patience_s=5.0, **parameters)
        self.ros.until(lambda: arm.arm.joints_rad is not None and self.safety and arm.stop.release.service_is_ready())
        return arm

    @property
    def pose(self) -> Matrix:
        """Of the tool centre point, as the controller's joints have it."""
        return base_from_tcp(np.array(self.joints[-1].position[:6]), CELL)

    @property
    def height_m(self) -> float:
        return float(self.pose[2, 3])

    def goal(self, *deltas: list[float], step_s: float = STEP_S) -> ExecuteActions.Goal:
        return ExecuteActions.Goal(chunk=convert.chunk_message(checked_chunk([*deltas], step_s), 0))

    def execute(self, *deltas: list[float], step_s: float = STEP_S) -> ExecuteActions.Result:
        return self.ros.act(self.probe, ExecuteActions, names.EXECUTE, self.goal(*deltas, step_s=step_s))

    def lifting(self) -> tuple[float, Callable[[], ExecuteActions.Result]]:
        """A lift of 0.19 m under way: the height it began at, and a function that waits for its result."""
        begin_m, results = self.height_m, []

        def lift() -> None:
            with contextlib.suppress(AssertionError):  # an arm_node that was killed never answers
                results.append(self.execute(*LIFT, step_s=LIFT_STEP_S))

        threading.Thread(target=lift, daemon=True).start()
        self.ros.until(lambda: self.height_m > begin_m + UNDER_WAY_M)
        return begin_m, lambda: self.ros.until(lambda: results)[0]

    def at_rest(self) -> None:
        self.ros.until(lambda: len(self.joints) > 20 and self.joints[-1].position == self.joints[-20].position)


# Row 1: a camera stalls ----------------------------------------------------------------------------------------------


def test_row_1_a_camera_that_stalls_halts_the_arm_which_goes_on_without_a_jump(
    ros: Ros, probe: Probe, ur: SimulatedUr
) -> None:
    camera = StallingCamera(probe, "top")
    robot = Robot(ros, probe, ur)
    arm = robot.with_arm(watch_cameras=["top"], camera_timeout_s=1.0)
    ros.until(lambda: arm.cameras.silence() is None)
    begin_m, answer = robot.lifting()
    camera.running = False
    result = answer()
    assert result.error_code == 307
    assert "camera 'top' has sent no frame for 1 s" in result.error_msg
    robot.at_rest()
    halted_m = robot.height_m
    assert halted_m - begin_m < 0.15, "it did not go on to 0.19 m"
    assert robot.execute(UP).error_code == 307, "nor does it start again before the camera is back"
    assert robot.height_m == pytest.approx(halted_m, abs=1e-3)
    camera.running = True
    ros.until(lambda: arm.cameras.silence() is None)
    stood = len(robot.joints) - 1
    assert robot.execute(UP).error_code == 0
    assert robot.height_m == pytest.approx(halted_m + 0.02, abs=0.003)
    path = np.array([message.position[:6] for message in robot.joints[stood:]])
    here, there = path[[0, -1]]
    assert (path > np.minimum(here, there) - 0.01).all(), "no jump"
    assert (path < np.maximum(here, there) + 0.01).all(), "no jump"


# Row 5: into the table -----------------------------------------------------------------------------------------------


def test_row_5_a_dive_ends_above_the_table_latched(ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
    robot = Robot(ros, probe, ur)
    arm = robot.with_arm()
    result = robot.execute(*[DOWN] * 10)
    assert result.error_code == 304
    assert arm.stop.latch.tripped
    assert robot.height_m > 0.0, "predicted, so the real table was never met"
    robot.at_rest()
    held_m = robot.height_m
    assert robot.execute(UP).error_code == 304
    assert robot.height_m == pytest.approx(held_m, abs=1e-3)
    assert trigger(ros, probe, names.RESET_STOP).success
    assert robot.execute(UP).error_code == 0


def test_row_5_a_protective_stop_ends_the_motion_and_latches(ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
    """The controller's reaction to a contact."""
    robot = Robot(ros, probe, ur)
    arm = robot.with_arm()
    begin_m, answer = robot.lifting()
    ur.fault("protective_stop")
    result = answer()
    assert (result.error_code, "protective stop" in result.error_msg) == (305, True)
    assert arm.stop.latch.tripped
    robot.at_rest()
    held_m = robot.height_m
    assert held_m - begin_m < 0.15, "it did not go on to 0.19 m"
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success, "no experiment may release it"
    assert robot.execute(UP).error_code == 305
    assert robot.height_m == pytest.approx(held_m, abs=1e-3)
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: robot.cell_safety[-1].mode == SafetyState.NORMAL)
    assert robot.execute(UP).error_code == 0


# Row 7: the command stream dies --------------------------------------------------------------------------------------


def test_row_7_an_arm_node_that_is_killed_in_mid_motion_takes_the_motion_with_it(
    ros: Ros,
    probe: Probe,
    ur: SimulatedUr,
    arm_process: Callable[..., Process],
) -> None:
    robot = Robot(ros, probe, ur, heartbeat_timeout_s=1.0)
    process = arm_process()
    ros.until(lambda: robot.safety)
    ours, its = (Path(f"/proc/{pid}/maps").read_text() for pid in ("self", process.process.pid))
    assert "/fastrtps_port" in ours
    assert "/fastrtps_port" not in its, "the lock of a queue in shared memory would block us once its owner is killed"
    begin_m, _ = robot.lifting()
    process.kill()
    ros.until(lambda: robot.cell_safety[-1].mode == SafetyState.FAULT)
    assert "no heartbeat for 1 s" in robot.cell_safety[-1].message
    robot.at_rest()
    held_m = robot.height_m
    assert held_m - begin_m < 0.15, "it did not go on to 0.19 m"

    # when it comes back it finds out, and latches
    robot.safety.clear()
    arm_process()
    ros.until(lambda: robot.safety and robot.safety[-1].mode == SafetyState.FAULT)
    assert robot.execute(UP).error_code == 305
    assert robot.height_m == pytest.approx(held_m, abs=1e-3)


# Row 9: the emergency stop -------------------------------------------------------------------------------------------


def test_row_9_the_latch_survives_a_stop_in_mid_motion_a_kill_and_a_restart(
    ros: Ros,
    probe: Probe,
    ur: SimulatedUr,
    arm_process: Callable[..., Process],
    tmp_path: Path,
) -> None:
    robot = Robot(ros, probe, ur)
    first = arm_process(f"latch_file:={tmp_path / 'stop.json'}")
    ros.until(lambda: robot.safety)
    begin_m, answer = robot.lifting()
    assert trigger(ros, probe, names.STOP).success
    result = answer()
    assert (result.error_code, "stopped by request" in result.error_msg) == (305, True)
    robot.at_rest()
    held_m = robot.height_m
    assert held_m - begin_m < 0.15, "it did not go on to 0.19 m"
    first.kill()
    robot.safety.clear()
    arm_process(f"latch_file:={tmp_path / 'stop.json'}")
    ros.until(lambda: robot.safety and robot.safety[-1].mode == SafetyState.EMERGENCY_STOP)
    assert robot.execute(UP).error_code == 305
    assert robot.height_m == pytest.approx(held_m, abs=1e-3)
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: robot.cell_safety[-1].mode == SafetyState.NORMAL)
    assert robot.execute(UP).error_code == 0


def test_row_9_a_stop_while_the_operator_arranges_a_scene_holds(ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
    robot = Robot(ros, probe, ur)
    robot.with_arm()
    assert robot.execute([0, 0, -0.02, 0, 0, 0, 1.0]).error_code == 0  # away from home
    up(ros, LabCellNode)
    away_m = robot.height_m
    requests = probe.listen(ConfirmationRequest, names.AWAITING_ARRANGEMENT, names.LATCHED_QOS)
    reset = probe.create_client(ResetCell, names.CELL_RESET)
    ros.until(reset.service_is_ready)
    future = reset.call_async(ResetCell.Request(task="reach", seed=0))
    ros.until(lambda: requests and requests[-1].trial_id == "home")
    assert trigger(ros, probe, names.STOP).success
    answer = ConfirmSuccess.Request(trial_id="home", verdict=DONE, confirmed_by="Ada")
    assert ros.call(probe, ConfirmSuccess, names.ARRANGED, answer).accepted
    response = ros.result(future)
    assert (response.error_code, "did not get home: stopped by request" in response.error_msg) == (407, True)
    assert robot.height_m == pytest.approx(away_m, abs=1e-3)


def test_row_9_an_experiment_releases_no_fault_that_arm_node_has_no_report_of(ros: Ros, probe: Probe) -> None:
    """As when arm_node hung, the robot's node held the arm for it, and a release was first in arm_node's mailbox."""
    asked: list[int] = []

    def on_release(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        asked.append(1)
        response.success = True
        return response

    probe.create_service(Trigger, names.CELL_RELEASE, on_release)
    cell = probe.create_publisher(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
    arm = up(ros, ArmNode)
    ros.until(arm.stop.release.service_is_ready)
    assert trigger(ros, probe, names.RELEASE_COLLISION).success, "nothing is held: a trial may begin"
    arm.stop.trip(SafetyState(mode=SafetyState.COLLISION_STOP, message="predicted"))
    assert trigger(ros, probe, names.RELEASE_COLLISION).success
    assert not arm.stop.latch.tripped
    assert not asked, "the cell had stopped nothing"
    cell.publish(SafetyState(mode=SafetyState.COLLISION_STOP, message="felt"))
    ros.until(lambda: arm.stop.latch.tripped)
    assert trigger(ros, probe, names.RELEASE_COLLISION).success
    ros.until(lambda: asked)


# The operator and the reset ------------------------------------------------------------------------------------------


def test_a_reset_moves_nothing_before_the_operator_has_answered(ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
    robot = Robot(ros, probe, ur)
    robot.with_arm()
    assert robot.execute([0, 0, -0.03, 0, 0, 0, 0.0]).error_code == 0
    up(ros, LabCellNode)
    heights: list[float] = []
    operator = Operator(probe, arrange=lambda what: heights.append(robot.height_m) or DONE)
    states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)
    before_m = robot.height_m
    response = ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="pick", seed=3))
    assert (response.error_code, response.error_msg) == (0, "")
    assert operator.ids == ["home", "pick.3"]
    assert heights[0] == pytest.approx(before_m, abs=1e-3)
    assert is_home(robot.joints[-1].position[:6], CELL)
    assert robot.joints[-1].position[6] == pytest.approx(CELL.gripper.stroke / 2, abs=0.002), "open"
    assert (response.state.task, response.state.seed, response.state.scene) == ("pick", 3, 1)
    assert not response.state.objects
    state = ros.until(lambda: next((state for state in states if state.at_rest), None))
    assert state.instruction == response.state.instruction
    assert state.header.frame_id == "base_link"


def test_an_operator_who_cannot_or_does_not_answer_costs_no_agent_anything(
    ros: Ros, probe: Probe, ur: SimulatedUr
) -> None:
    robot = Robot(ros, probe, ur)
    robot.with_arm()
    node = up(ros, LabCellNode, arrangement_limit_s=0.5)
    request = ResetCell.Request(task="reach", seed=0)
    response = ros.call(probe, ResetCell, names.CELL_RESET, request)
    assert (response.error_code, response.error_msg) == (407, "no operator answered about reach.0 within 0.5 s")
    node.desk.limit_s = 60.0
    Operator(probe, arrange=lambda what: CANNOT)
    response = ros.call(probe, ResetCell, names.CELL_RESET, request)
    assert (response.error_code, response.error_msg) == (407, "Ada says that this cannot be done: reach.0")
    response = ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="juggle", seed=0))
    assert "unknown task 'juggle'" in response.error_msg


# Rows 10 and 11: a model server, malformed images --------------------------------------------------------------------


class FreeCamera:
    """A camera of the test's own with its own clock; it can be made to send frames that are none."""

    def __init__(self, probe: Probe, name: str) -> None:
        self.probe, self.name, self.malformed, self.sent = probe, name, 0, 0
        self.optics = d455_intrinsics(64, 48)
        create = probe.create_publisher
        self.color, self.depth = (
            create(Image, topic, names.SENSOR_QOS) for topic in (names.color(name), names.depth(name))
        )
        self.info = create(CameraInfo, names.color_info(name), names.SENSOR_QOS)
        probe.create_timer(0.1, self.tick)

    def tick(self) -> None:
        self.sent += 1
        stamp_ns = self.probe.get_clock().now().nanoseconds
        color = convert.color_message(np.full((48, 64, 3), 90, np.uint8), stamp_ns, names.optical_frame(self.name))
        if self.malformed and self.sent % 2:
            self.malformed -= 1
            color.step, color.height = (7, 48) if self.sent % 4 == 1 else (192, 47)
        self.color.publish(color)
        self.info.publish(convert.camera_info_message(self.optics, stamp_ns, names.optical_frame(self.name)))
        self.depth.publish(convert.depth_message(np.ones((48, 64), np.float32), stamp_ns, ""))


class Lab:
    """Every node of the graph `lab` but the aggregator in one process, with an operator who agrees to everything."""

    def __init__(self, ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
        self.ros, self.probe = ros, probe
        self.cameras = [FreeCamera(probe, name) for name in CELL.camera_names]
        self.robot = Robot(ros, probe, ur)
        self.arm = self.robot.with_arm()
        up(ros, LabCellNode)
        self.distortion = up(ros, DistortionNode)
        up(ros, VlmNode, preload=["describe"])
        up(ros, VlaNode, preload=["hold"])
        up(ros, ScorerNode)
        self.operator = Operator(probe)
        self.node = up(ros, ExperimentNode, success="operator", lockstep=False, deadline_s=20.0, reset_limit_s=60.0)
        ros.action_client(probe, RunTrial, names.RUN_TRIAL)

    def trial(self, vla: str) -> TrialResult:
        goal = RunTrial.Goal(vla_id=vla, task="reach", max_steps=1)
        return self.ros.act(self.probe, RunTrial, names.RUN_TRIAL, goal).result


def test_row_10_a_model_server_that_is_down_is_no_failure_of_the_agent_and_moves_nothing(
    ros: Ros, probe: Probe, ur: SimulatedUr
) -> None:
    lab = Lab(ros, probe, ur)
    before = np.array(lab.robot.joints[-1].position[:6])
    result = lab.trial("openvla-libero")
    assert result.outcome == TrialResult.INFRASTRUCTURE
    assert "gave no answer" in result.error_msg
    assert np.isnan(result.execution)
    assert np.abs(np.array(lab.robot.joints[-1].position[:6]) - before).max() < 1e-6, "nothing moved"
    assert lab.operator.ids == ["reach.0"], "the operator was not asked to judge it"
    assert "only a simulated one has an oracle" in lab.trial("oracle").error_msg
    assert lab.trial("hold").outcome == TrialResult.SUCCESS, "and the next trial runs"


@pytest.mark.parametrize(
    "step",
    [replying(503, "busy"), replying(200, b"<html>"), half_closed, garbage, dripping, silent],
    ids=["503", "no JSON", "half closed", "garbage", "slow", "silent"],
)
def test_row_10_a_faulty_model_server_is_no_failure_of_the_agent_and_moves_nothing(
    ros: Ros, probe: Probe, ur: SimulatedUr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: Any
) -> None:
    with http_server(step) as wire:
        entry = {
            "name": "ailing",
            "description": "of this test",
            "adapter": "openvla_rest",
            "cameras": ["top"],
            "convention": "libero",
            "settings": {"url": wire.http, "patience": {"deadline_s": 2.0}},
        }
        (tmp_path / "catalogue.yaml").write_text(dumps({"vla": [entry]}))
        monkeypatch.setenv(VARIABLE, str(tmp_path / "catalogue.yaml"))
        monkeypatch.setattr(POLICIES, "_entries", {})
        monkeypatch.setattr(POLICIES, "_read", False)
        lab = Lab(ros, probe, ur)
        before = np.array(lab.robot.joints[-1].position[:6])
        result = lab.trial("ailing")
        assert result.outcome == TrialResult.INFRASTRUCTURE, result.error_msg
        assert np.isnan(result.execution)
        ros.until(lambda: wire.requests)  # its thread may get to read only after the deadline
        assert np.abs(np.array(lab.robot.joints[-1].position[:6]) - before).max() < 1e-6, "nothing moved"
        assert lab.operator.ids == ["reach.0"], "the operator was not asked to judge it"


def test_row_11_malformed_images_are_dropped_and_counted_and_the_trial_goes_on(
    ros: Ros, probe: Probe, ur: SimulatedUr
) -> None:
    lab = Lab(ros, probe, ur)
    for camera in lab.cameras:
        camera.malformed = 6
    result = lab.trial("hold")
    assert (result.outcome, result.error_code) == (TrialResult.SUCCESS, 0), result.error_msg
    ros.until(lambda: lab.distortion.counters["dropped malformed frames"] >= 3)
    kept = [len(at) for parts in lab.node.ports.views.free_cameras._messages.values() for at in parts.values()]
    assert max(kept) <= 30, "incomplete exposures are dropped"


def test_a_camera_info_of_another_size_is_a_fault_of_the_lab(ros: Ros, probe: Probe, ur: SimulatedUr) -> None:
    """As beside a resized stream: no model sees the picture, and none is scored."""
    lab = Lab(ros, probe, ur)
    for camera in lab.cameras:
        camera.optics = d455_intrinsics(128, 96)
    result = lab.trial("hold")
    assert result.outcome == TrialResult.INFRASTRUCTURE, result.error_msg
    assert "its camera_info is for pictures of 128 x 96 px, and the picture has 64 x 48" in result.error_msg
    assert np.isnan(result.execution)


def test_row_11_ten_thousand_malformed_images_leave_the_memory_flat(ros: Ros, probe: Probe) -> None:
    """A camera at 30 Hz that sends nothing but such for five and a half minutes."""
    probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    distortion = up(ros, DistortionNode)
    ros.until(lambda: distortion.outputs["top"][0].get_subscription_count())
    kept = FreeCameras(CELL.camera_names)
    pixels = np.full((48, 64, 3), 90, np.uint8)

    def feed(first: int, count: int) -> None:
        for number in range(first, first + count):
            image = convert.color_message(pixels, number, names.optical_frame("top"))
            image.step = 7
            distortion.on_image("top", image)
            kept.add("top", "color", image)

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    feed(1, 1000)
    before = resident_bytes()
    feed(1001, 10_000)
    assert resident_bytes() - before < 10e6, "they are 92 MB"
    assert distortion.counters["dropped malformed frames"] == 11_000
    assert distortion.counters["frames"] == 0
