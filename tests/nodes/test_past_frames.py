"""Frames of the past of a simulated cell, and the pixels of its things: from the cell to the view of a trial."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import RunExperiment
from merton_interfaces.msg import CellState, FrameRequest
from merton_interfaces.srv import GetPastState, ResetCell, SegmentThings
from rclpy.node import Node
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from merton.errors import ErrorCode, InfrastructureError, InputError
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.sensor import D455
from merton.world.cell import load_cell
from merton_nodes.cameras.camera_node import CameraNode
from merton_nodes.cell.messages import cell_state, motion_to
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.experiment.experiment_node import ExperimentNode
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Permits, Probe, Ros, up
from runs import EXPERIMENT, small_run

WIDTH, HEIGHT = 64, 48
PAST_NS, REST_NS = 1_000_000_000, 1_500_000_000


def stamp_of(message: Any) -> int:
    return convert.nanoseconds_of(message.header.stamp)


def test_a_cell_tells_what_was_at_any_instant_of_a_motion(ros: Ros, probe: Probe) -> None:
    up(ros, MujocoCellNode, heartbeat_timeout_s=0.0)  # the trajectory is this test's own
    states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: joints)
    start_ns = stamp_of(joints[-1])
    permits = Permits(probe)
    commands = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    ros.until(lambda: commands.get_subscription_count() == 1)
    commands.publish(permits.given(motion_to(convert.joints_of(joints[-1])[0] + 0.1, 0.5)))
    ros.until(lambda: states and states[-1].at_rest and stamp_of(states[-1]) > start_ns)
    rest = states[-1]
    ros.until(lambda: stamp_of(joints[-1]) >= stamp_of(rest))  # another topic: its last message may come later
    passed = {stamp_of(message): message for message in joints}
    assert len(passed) > 0.5 / 0.02

    def past(stamp_ns: int) -> CellState:
        request = GetPastState.Request(stamp=convert.time_message(stamp_ns))
        answer = ros.call(probe, GetPastState, names.CELL_PAST_STATE, request)
        assert answer.error_code == 0
        return answer.state

    for wanted_ns in (start_ns - 1, start_ns, start_ns + 1, start_ns + 123_456_789, stamp_of(rest), 10**18):
        state = past(wanted_ns)
        not_later = [stamp_ns for stamp_ns in passed if stamp_ns <= wanted_ns]
        assert state.joints == passed[max(not_later, default=start_ns)]
        assert state.header.stamp == state.joints.header.stamp
        assert (state.task, state.seed, state.scene) == (rest.task, rest.seed, rest.scene)
    assert past(10**18).qpos == rest.qpos
    assert np.isnan(past(10**18).progress), "not judged"

    assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="pick", seed=4)).error_code == 0
    again = past(start_ns)
    assert (again.task, again.seed, again.scene) == ("pick", 4, rest.scene + 1)
    assert stamp_of(again) > stamp_of(rest), "nothing of the scene before is left"


@pytest.fixture(scope="module")
def motion() -> tuple[CellState, CellState]:
    """Two states of a motion: one under way, and the rest after it."""
    cell = SimulatedCell()
    cell.reset("pick", 0)
    cell.command_trajectory([0.0, 0.4], np.stack([cell.joints_rad, cell.joints_rad + 0.2]))
    states = []
    for stamp_ns, duration_s in ((PAST_NS, 0.2), (REST_NS, 1.0)):
        cell.advance(duration_s)
        joints = convert.joint_state_message(stamp_ns, cell.joints_rad, cell.joint_velocities, cell.gripper_opening_m)
        assert cell.scene is not None
        at_rest = not cell.busy
        states.append(cell_state(cell.scene, 1, joints, at_rest=at_rest, qpos=cell.qpos.tolist()))
    return states[0], states[1]


def request_of(past: CellState, *cameras: str) -> FrameRequest:
    return FrameRequest(header=convert.header(REST_NS, ""), color=cameras, past=past)


def test_a_camera_shows_a_past_state_until_the_next_motion(
    ros: Ros, probe: Probe, motion: tuple[CellState, CellState]
) -> None:
    """Its frame is that of one process, motion and exposure included; a viewer gets what the models get."""
    past, rest = motion
    node = up(ros, CameraNode, width=WIDTH, height=HEIGHT, sensor="d455")
    source: Any = node.source
    heard = probe.listen(Image, names.color("top"), names.SENSOR_QOS)
    ros.until(lambda: source.viewed[0] == {"top"})
    source.on_request(request_of(past, "top"))
    assert node.counters["frames rendered"] == 0, "the arm does not rest yet"
    source.on_state(rest)
    ros.until(lambda: heard)
    source.on_state(rest)  # repeated
    source.on_request(request_of(past, "top"))  # its answer was lost
    ros.until(lambda: len(heard) == 3)
    assert node.counters["frames rendered"] == 1
    assert {stamp_of(image) for image in heard} == {PAST_NS}

    cameras = SceneCameras(WIDTH, HEIGHT)
    cameras.imitate(D455)
    speeds = np.array(past.joints.velocity[:6])
    seen = cameras.render("pick", 0, np.array(past.qpos), "top", PAST_NS, joint_velocities=speeds)
    assert np.array_equal(convert.color_array(heard[0]), seen.color)
    cameras.keep_exposure("top")
    speeds = np.array(rest.joints.velocity[:6])
    later = cameras.render("pick", 0, np.array(rest.qpos), "top", REST_NS, joint_velocities=speeds)
    things = cameras.things("pick", 0, np.array(past.qpos), "wrist")
    cameras.close()

    def segmented(camera: str) -> SegmentThings.Response:
        """In the thread that has made the renderer."""
        return source.on_segment(SegmentThings.Request(camera=camera, state=past), SegmentThings.Response())

    answer = segmented("wrist")
    assert np.array_equal(convert.mask_array(answer.things), things)
    assert things.any()
    assert answer.things.header == convert.header(PAST_NS, names.optical_frame("wrist"))
    refused = segmented("tail")
    assert refused.error_code == ErrorCode.INFRASTRUCTURE
    assert refused.error_msg.startswith("unknown camera 'tail'")

    source.on_request(request_of(CellState(), "top"))
    ros.until(lambda: len(heard) == 4)
    assert stamp_of(heard[3]) == REST_NS
    assert np.array_equal(convert.color_array(heard[3]), later.color), "and its exposure follows that of the past"


def test_a_request_for_the_past_counts_once_for_the_exposure(ros: Ros, motion: tuple[CellState, CellState]) -> None:
    """One that comes after the rest counts as well; a repeated one, or one of the scene before, does not."""
    past, rest = motion
    node = up(ros, CameraNode, width=WIDTH, height=HEIGHT, sensor="d455")
    source: Any = node.source
    later = cell_state_at(rest, REST_NS + 20_000_000)
    source.on_state(rest)
    source.on_state(later)
    source.on_request(request_of(past, "top"))
    assert node.counters["frames rendered"] == 1, "the arm moves on"
    source.on_state(cell_state_at(rest, REST_NS + 40_000_000))
    source.on_request(request_of(past, "top"))
    assert node.counters["frames rendered"] == 1, "repeated"
    other = cell_state_at(rest, REST_NS + 60_000_000)
    other.scene += 1
    source.on_state(other)
    late = request_of(past, "top")
    late.header.stamp = convert.time_message(REST_NS + 1)
    source.on_request(late)
    assert node.counters["frames rendered"] == 1, "of the scene before"


def cell_state_at(state: CellState, stamp_ns: int) -> CellState:
    """The state in motion at another instant."""
    moved = deepcopy(state)
    moved.header.stamp, moved.at_rest = convert.time_message(stamp_ns), False
    return moved


def test_a_mask_is_mono8() -> None:
    inside = np.random.default_rng(0).random((HEIGHT, WIDTH)) < 0.5
    message = convert.mask_message(inside, 7, "frame")
    assert np.array_equal(convert.mask_array(message), inside)
    with pytest.raises(InputError, match="mask encoding 'rgb8' is not supported; use mono8"):
        convert.mask_array(convert.color_message(np.zeros((2, 2, 3), np.uint8), 7, ""))


def test_a_cell_that_is_not_rendered_has_neither(ros: Ros) -> None:
    ports = RosPorts(ros.add(Node, "experiment_node"), load_cell(), 1.0)
    ports.set_latency(0.0)
    with pytest.raises(InfrastructureError, match=r"no images of the past, so a latency of 0\.3 s is refused"):
        ports.set_latency(0.3)
    with pytest.raises(InfrastructureError, match="do not say which pixels show which thing"):
        ports.things("top")


@pytest.mark.parametrize("field", ["sensor: d455", "latency_s: 0.3", "distort: {regions: [things]}"])
def test_an_experiment_for_a_rendered_cell_alone_is_refused_before_its_first_trial(
    field: str, ros: Ros, probe: Probe, tmp_path: Path
) -> None:
    run = small_run(tmp_path, "run", EXPERIMENT.replace("sensor: d455", field))
    up(ros, ExperimentNode)
    goal = RunExperiment.Goal(run_directory=str(run.path))
    result = ros.act(probe, RunExperiment, names.RUN_EXPERIMENT, goal)
    assert result.error_code == ErrorCode.BAD_GOAL
    assert result.error_msg == f"in this cell {run.spec.only_rendered}"
    assert result.error_msg.endswith("is refused")
    assert not (run.path / "trials").exists()
