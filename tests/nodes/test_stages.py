"""Each node over real ROS 2, alone in a domain of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import ActionDelta, CellState, DistortionInfo, Rating, RatingArray, TrialResult
from merton_interfaces.srv import RecordTrial, ResetCell, ScoreTrial
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from merton.errors import InvalidActionError
from merton.experiment.scoring import Evidence, score
from merton.perception.distortion.stream import DistortionSetting
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.simulation.scene import make_scene
from merton.world.action import checked_chunk
from merton.world.cell import ARM_JOINTS
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cameras.camera_node import CameraNode
from merton_nodes.cameras.distortion_node import DistortionNode
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.experiment.aggregator_node import AggregatorNode
from merton_nodes.experiment.scorer_node import ScorerNode
from merton_nodes.models.vla_node import VlaNode
from merton_nodes.recording.recorder_node import RecorderNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names, trial_messages
from ros import Permits, Probe, up

STAMP_NS = 5_000_000_000


def picture() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (48, 64, 3), np.uint8)


def set_distortion(ros: Any, probe: Node, **values: Any) -> Any:
    request = SetParametersAtomically.Request(
        parameters=[Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    )
    return ros.call(probe, SetParametersAtomically, "distortion_node/set_parameters_atomically", request).result


def test_an_unconfigured_node_publishes_diagnostics_and_ends(ros: Any) -> None:
    waiting = (ArmNode, CameraNode, DistortionNode, MujocoCellNode, RecorderNode, ScorerNode, VlaNode)
    for make in waiting:
        ros.add(make)._publish_diagnostics()


def test_distortion_follows_its_parameters_and_publishes_them(ros: Any, probe: Probe) -> None:
    up(ros, DistortionNode, cameras=["top"])
    images = probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    infos = probe.listen(DistortionInfo, names.distortion_info("top"), names.SENSOR_QOS)
    camera = probe.create_publisher(Image, names.color("top"), names.SENSOR_QOS)
    ros.until(lambda: camera.get_subscription_count() == 1)
    message = convert.color_message(picture(), STAMP_NS, "frame")

    def sent() -> bool:
        camera.publish(message)
        return bool(images and infos)

    ros.until(sent)
    assert np.array_equal(convert.color_array(images[-1]), picture())
    assert (infos[-1].name, infos[-1].level) == ("reference", 0.0)

    assert set_distortion(ros, probe, name="white_noise", level=5.0, seed=7).successful
    images.clear()

    def noisy() -> bool:
        camera.publish(message)
        return bool(images and infos and infos[-1].level == 5.0)

    ros.until(noisy)
    first = convert.color_array(images[-1])
    assert (infos[-1].name, infos[-1].seed) == ("white_noise", 7)
    assert convert.nanoseconds_of(infos[-1].header.stamp) == STAMP_NS
    assert np.abs(first.astype(int) - picture()).mean() > 5
    assert set_distortion(ros, probe, seed=8).successful
    ros.until(lambda: camera.publish(message) or infos[-1].seed == 8)
    ros.until(lambda: not np.array_equal(convert.color_array(images[-1]), first))
    assert set_distortion(ros, probe, seed=7).successful
    ros.until(lambda: camera.publish(message) or infos[-1].seed == 7)
    ros.until(lambda: np.array_equal(convert.color_array(images[-1]), first))


@pytest.mark.parametrize(
    ("values", "says"),
    [({"name": "fog", "level": 1.0}, "choose one of"), ({"level": 6.0}, "range|6"), ({"seed": -1}, "seed")],
)
def test_distortion_refuses_unknown_settings(ros: Any, probe: Probe, values: dict, says: str) -> None:
    import re

    node = up(ros, DistortionNode, cameras=["top"])
    result = set_distortion(ros, probe, **values)
    assert not result.successful
    assert re.search(says, result.reason)
    assert node.setting == DistortionSetting()


def test_distortion_drops_and_counts_malformed_frames(ros: Any, probe: Probe) -> None:
    node = up(ros, DistortionNode, cameras=["top"])
    images = probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    camera = probe.create_publisher(Image, names.color("top"), names.SENSOR_QOS)
    ros.until(lambda: camera.get_subscription_count() == 1)
    short = convert.color_message(picture(), STAMP_NS, "frame")
    short.height += 1
    strange = convert.color_message(picture(), STAMP_NS + 1, "frame")
    strange.encoding = "yuv422"
    for bad in (short, strange):
        before = node.counters["dropped malformed frames"]
        ros.until(
            lambda bad=bad, before=before: camera.publish(bad) or node.counters["dropped malformed frames"] > before
        )
    assert not images
    ros.until(lambda: camera.publish(convert.color_message(picture(), STAMP_NS + 2, "frame")) or images)


def test_distortion_shows_every_new_image_with_any_stamp_and_encoding(ros: Any, probe: Probe) -> None:
    probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    node = up(ros, DistortionNode, cameras=["top"], name="contrast_change", level=5.0)
    ros.until(lambda: node.outputs["top"][0].get_subscription_count())

    def shown(message: Image) -> np.ndarray:
        node.on_image("top", message)
        return convert.color_array(node.sent["top"][2][0])

    def message(pixels: np.ndarray, encoding: str) -> Image:
        return Image(
            height=48,
            width=64,
            encoding=encoding,
            step=pixels.nbytes // 48,
            data=np.ascontiguousarray(pixels).tobytes(),
        )

    expected = node.setting.apply("top", picture())
    alpha = np.full((48, 64, 1), 7, np.uint8)
    for encoding, pixels in (
        ("rgb8", picture()),
        ("bgr8", picture()[:, :, ::-1]),
        ("rgba8", np.concatenate([picture(), alpha], axis=2)),
        ("bgra8", np.concatenate([picture()[:, :, ::-1], alpha], axis=2)),
    ):
        assert np.array_equal(shown(message(pixels, encoding)), expected), encoding
    assert not np.array_equal(shown(message(picture()[::-1], "rgb8")), expected), "no stamp, another picture"
    sent = node.sent["top"]
    shown(message(picture()[::-1], "rgb8"))
    assert node.sent["top"] is sent, "seen before: not distorted again"
    node.observe()
    assert "over 6 frames" in node.details["latency"]
    grey = shown(message(picture()[:, :, 0], "mono8"))
    assert (grey == grey[:, :, :1]).all()
    assert node.counters["dropped malformed frames"] == 0
    shown(message(picture()[:, :, :2], "16UC1"))
    assert node.counters["dropped malformed frames"] == 1
    assert "16UC1" in node.details["last malformed frame"]


def test_distortion_follows_a_schedule(ros: Any, probe: Probe) -> None:
    node = up(ros, DistortionNode, cameras=["top"], schedule=["jpeg 4 0.2", "white_noise 2 0.2"])
    infos = probe.listen(DistortionInfo, names.distortion_info("top"), names.SENSOR_QOS)
    camera = probe.create_publisher(Image, names.color("top"), names.SENSOR_QOS)
    message = convert.color_message(picture(), STAMP_NS, "frame")

    def seen(name: str, level: float) -> bool:
        camera.publish(message)
        return any((info.name, info.level) == (name, level) for info in infos)

    ros.until(lambda: seen("jpeg", 4.0))
    ros.until(lambda: seen("white_noise", 2.0))
    infos.clear()
    ros.until(lambda: seen("jpeg", 4.0))
    assert not set_distortion(ros, probe, seed=3).successful, "the schedule has the say"
    assert set_distortion(ros, probe, use_sim_time=False).successful, "over nothing else"
    assert node.schedule is not None


def test_camera_publishes_the_images_of_a_folder(ros: Any, probe: Probe, tmp_path: Path) -> None:
    import cv2

    cv2.imwrite(str(tmp_path / "a.png"), picture()[:, :, ::-1])
    images = probe.listen(Image, names.color("top"), names.SENSOR_QOS)
    up(ros, CameraNode, source="folder", folder=str(tmp_path), cameras=["top"], rate_hz=50.0)
    ros.until(lambda: images)
    assert np.array_equal(convert.color_array(images[0]), picture())


def test_a_camera_without_a_source_is_not_configured(ros: Any) -> None:
    node = ros.add(CameraNode, parameter_overrides=[Parameter("source", value="crystal ball")])
    assert node.trigger_configure().name == "FAILURE"


def test_scorer_scores_every_stage_of_a_trial(ros: Any, probe: Probe) -> None:
    up(ros, ScorerNode)
    text = "red cube left of the blue cylinder close to the robot"
    still, moved = checked_chunk([[0, 0, 0, 0, 0, 0, 1.0]], 0.2), checked_chunk([[0.05, 0, 0, 0, 0, 0, 0.0]], 0.2)
    a, b = np.eye(4), np.eye(4)
    b[0, 3] = 0.12
    evidence = Evidence((text, text), (text, "lift the green cube"), (still, moved), a, b)

    def scored(evidence: Evidence, outcome: int) -> ScoreTrial.Response:
        request = ScoreTrial.Request(evidence=trial_messages.evidence_message(evidence, 0), outcome=outcome)
        return ros.call(probe, ScoreTrial, names.SCORE, request)

    for outcome, expected in ((TrialResult.SUCCESS, 100), (TrialResult.FAILURE, 88), (TrialResult.EMERGENCY_STOP, 0)):
        response = scored(evidence, outcome)
        assert (response.cognition, response.bleu, response.rouge) == pytest.approx((1.0, 1.0, 1.0))
        assert (response.position, response.rotation, response.state) == pytest.approx((0.9, 1.0, 0.0))
        assert response.execution == pytest.approx(expected)
        assert response.distance == pytest.approx(0.12)
        assert trial_messages.scores_of(response) == score(evidence, trial_messages.outcome_of(outcome))
    assert scored(evidence, 9).error_code == 500
    other_frame = replace(evidence, first_chunks=(still, replace(moved, frame="tcp")))
    assert scored(other_frame, TrialResult.SUCCESS).error_code == 500
    for answers in ((text, None), (None, None), ("", ""), ("", None), (text, ""), (text, "Sorry.")):
        said = replace(evidence, answers=answers)
        response = scored(said, TrialResult.SUCCESS)
        assert trial_messages.scores_of(response) == score(said, Outcome.SUCCESS), "as in one process"
        assert np.isnan(response.cognition) == (answers != (text, "")), "an empty text beside an answer has one"
    little = Evidence((text, text), (), None, None, b)
    response = scored(little, TrialResult.FAILURE)
    assert all(np.isnan([response.cider, response.decision, response.state, response.execution, response.distance]))
    assert trial_messages.scores_of(response) == score(little, Outcome.FAILURE)


def test_aggregator_acknowledges_only_durable_results(ros: Any, probe: Probe, tmp_path: Path) -> None:
    up(ros, AggregatorNode)
    ratings = probe.listen(RatingArray, names.RATINGS, names.LATCHED_QOS)
    case = TestCase("pick", 0, "jpeg", 3)
    record = TrialRecord(
        "e",
        "a",
        case,
        Outcome.FAILURE,
        0.5,
        0.6,
        70.0,
        0.3,
        progress=0.9,
        path_m=0.2,
        angle_rad=0.1,
        reference=Reference.ORACLE,
        reference_success=True,
        cut_short=False,
        steps=2,
        simulated_s=1.5,
        wall_s=0.1,
    )
    request = RecordTrial.Request(run_directory=str(tmp_path), result=trial_messages.result_message(record))
    assert ros.call(probe, RecordTrial, names.RECORD, request).stored
    with ResultStore(tmp_path / "results.sqlite", read_only=True) as store:
        assert store.records("e") == [record]
    assert not ros.call(probe, RecordTrial, names.RECORD, request).stored, "the second time it is there already"
    request.result.execution = 71.0
    assert ros.call(probe, RecordTrial, names.RECORD, request).error_code == 502
    request.run_directory = str(tmp_path / "absent")
    assert ros.call(probe, RecordTrial, names.RECORD, request).error_code == 502
    ros.until(lambda: ratings)
    kinds = {(rating.kind, rating.id) for rating in ratings[-1].ratings}
    assert kinds == {(Rating.AGENT, "a"), (Rating.TEST_CASE, "pick.0.jpeg.3")}


def test_cell_and_its_clock_move_only_on_command(ros: Any, probe: Probe) -> None:
    cell = up(ros, MujocoCellNode, heartbeat_timeout_s=0.0)  # the trajectories are this test's own
    states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    request = ResetCell.Request(task="pick", seed=4, id="first")
    response = ros.call(probe, ResetCell, names.CELL_RESET, request)
    assert response.error_code == 0
    assert ros.call(probe, ResetCell, names.CELL_RESET, request).state.scene == response.state.scene, "carried out once"
    assert response.state.instruction == make_scene("pick", 4).command.instruction
    before = convert.nanoseconds_of(response.state.header.stamp)
    count = len(states)
    ros.until(lambda: len(states) >= count + 3)
    assert convert.nanoseconds_of(states[-1].header.stamp) == before, "nothing moves, no time passes"
    assert ros.call(probe, ResetCell, names.CELL_RESET, ResetCell.Request(task="dance", seed=0)).error_code == 407

    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    permits = Permits(probe)
    commands = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    ros.until(lambda: commands.get_subscription_count() == 1)
    start = convert.joints_of(joints[-1])[0]
    goal = start + 0.1
    points = [
        JointTrajectoryPoint(positions=q.tolist(), velocities=[0.0] * 6, time_from_start=convert.duration_message(t))
        for q, t in ((start, 0.0), (goal, 1.0))
    ]
    commands.publish(permits.given(JointTrajectory(joint_names=list(ARM_JOINTS), points=points)))
    ros.until(lambda: np.allclose(convert.joints_of(joints[-1])[0], goal, atol=0.01) and states[-1].at_rest)
    now = convert.nanoseconds_of(states[-1].header.stamp)
    assert 1.0 <= (now - before) * 1e-9 <= 1.5
    points[1].velocities = []
    commands.publish(permits.given(JointTrajectory(joint_names=list(ARM_JOINTS), points=points)))
    ros.until(lambda: cell.counters["dropped malformed trajectories"] == 1)
    commands.publish(permits.given(JointTrajectory(joint_names=["elbow"], points=points)))
    ros.until(lambda: cell.counters["dropped trajectories with other joints"] == 1)


def test_arm_carries_out_a_chunk(ros: Any, probe: Probe) -> None:
    cell, arm = up(ros, MujocoCellNode), up(ros, ArmNode)
    beats = probe.listen(Header, names.HEARTBEAT, names.RELIABLE_QOS)
    markers = probe.listen(MarkerArray, names.ARM_MARKERS, names.RELIABLE_QOS)
    ros.until(lambda: arm.arm.joints_rad is not None and len(beats) > 3)
    start = cell.cell.base_from_tcp[:3, 3].copy()
    chunk = checked_chunk([[0.0, 0.05, 0.0, 0, 0, 0, 1.0], [0.0, 0.0, 0.04, 0, 0, 0, 1.0]], 0.2)
    goal = ExecuteActions.Goal(chunk=convert.chunk_message(chunk, 0))
    result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
    assert (result.error_code, result.executed) == (0, 2)
    assert np.allclose(cell.cell.base_from_tcp[:3, 3] - start, [0, 0.05, 0.04], atol=0.002)
    reached = result.final_pose.pose.position
    assert [reached.x, reached.y, reached.z] == pytest.approx(list(cell.cell.base_from_tcp[:3, 3]), abs=0.003)
    assert arm.counters["verdict: ok"] == 1
    ros.until(lambda: any(marker.ns == "path" for message in markers for marker in message.markers))
    drawn = {marker.ns: marker for message in markers for marker in message.markers}
    assert drawn["path"].color.g > drawn["path"].color.r, "green: nothing was refused"
    assert drawn["contact"].action == Marker.DELETE
    assert drawn["capsules"].id > 30
    ros.until(lambda: any(marker.text == "normal" for message in markers for marker in message.markers))


def test_an_arm_without_joint_states_reports_it(ros: Any, probe: Probe) -> None:
    up(ros, ArmNode, patience_s=0.5)
    chunk = checked_chunk([[0, 0, 0, 0, 0, 0, 1.0]], 0.2)
    goal = ExecuteActions.Goal(chunk=convert.chunk_message(chunk, 1_000_000_000))
    result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
    assert result.error_code == 404
    assert "joint_states" in result.error_msg


def test_a_chunk_equals_the_one_read_from_its_message() -> None:
    rng = np.random.default_rng(3)
    deltas = np.column_stack([rng.normal(size=(5, 6)), rng.uniform(size=5)])
    original = checked_chunk(deltas, 0.2, frame="tcp", model="m", done=True)
    again = convert.chunk_of(convert.chunk_message(original, 1))
    assert np.array_equal(again.deltas, deltas)
    assert (again.step_s, again.frame, again.model, again.done) == (0.2, "tcp", "m", True)
    assert isinstance(convert.chunk_message(original, 1).actions[0], ActionDelta)


def test_a_chunk_has_one_frame_that_of_its_header() -> None:
    deltas = [[0.0, 0.0, -0.02, 0.0, 0.0, 0.0, 1.0]] * 2
    message = convert.chunk_message(checked_chunk(deltas, 0.2), 1)
    message.actions[1].header = Header(frame_id="tcp")
    with pytest.raises(InvalidActionError, match="action 1 is in frame 'tcp', its chunk in 'base_link'"):
        convert.chunk_of(message)
    for action in message.actions:
        action.header = Header()
    assert convert.chunk_of(message).frame == "base_link", "as a person types it"
