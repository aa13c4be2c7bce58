"""monitor_node: views of messages; malformed messages and busy topics do not reach the page."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import (
    ActionChunk,
    ActionDelta,
    Answer,
    CellState,
    ConfirmationRequest,
    DistortionInfo,
    ExperimentProgress,
    ImageQuality,
    Rating,
    RatingArray,
    SafetyState,
    SceneObject,
    TrialResult,
)
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from ros import Probe, Ros, up

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")

from merton.execution.gate.planner import plan
from merton.execution.kinematics import base_from_tcp
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.arm.markers import motion_markers
from merton_nodes.monitor import monitor_views as views
from merton_nodes.monitor.monitor_node import MonitorNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names


@pytest.fixture
def node(ros: Ros, tmp_path: Path) -> Any:
    """An active node with a connected browser."""
    node = up(ros, MonitorNode, port=0, log=str(tmp_path / "presses.jsonl"))
    with node.hub.listening(lambda: None):
        yield node


def broken_messages() -> list[tuple[Any, Any]]:
    """Views, each with a message of NaN and infinite numbers."""
    nan = math.nan
    delta = ActionDelta(gripper=nan)
    delta.translation.x = delta.rotation.z = math.inf
    thing = SceneObject(name="\x00<b>cube</b>")
    thing.pose.position.x = nan
    return [
        (views.safety, SafetyState(mode=77, clearance=nan, force=math.inf, message="\x1b[31m")),
        (views.answer, Answer(answer="\ud7ff\x00")),
        (views.chunk, ActionChunk(actions=[delta] * 300)),
        (views.chunk, ActionChunk()),
        (views.scene, CellState(objects=[thing])),
        (views.distortion, DistortionInfo(level=nan)),
        (views.quality, ImageQuality(value=nan, worst=math.inf, minimum=nan)),
        (views.quality, ImageQuality()),
        (views.progress, ExperimentProgress(state=99, remaining_s=nan, elapsed_s=math.inf, stage="\x1b[31m")),
        (views.path, MarkerArray()),
        (views.waiting, ConfirmationRequest(limit=math.inf)),
        (views.result, TrialResult(outcome=99, cognition=nan, decision=nan, execution=nan)),
        (views.ratings, RatingArray(ratings=[Rating(id="a", mean=nan), Rating(kind=7)])),
    ]


@pytest.mark.parametrize(("view", "message"), broken_messages(), ids=lambda value: getattr(value, "__name__", ""))
def test_the_view_of_any_message_is_json(view: Any, message: Any) -> None:
    assert len(json.dumps(view(message), allow_nan=False)) < 20_000


def test_a_chunk_is_shown_in_millimetres_and_degrees() -> None:
    message = convert.chunk_message(checked_chunk([[0.01, -0.02, 0.03, 0.0, 0.0, math.pi / 18, 0.5]], 0.2), 0)
    shown = views.chunk(message)
    assert shown["actions"] == [[10.0, -20.0, 30.0, 0.0, 0.0, 10.0, 0.5]]
    assert (shown["step_s"], shown["total"]) == (0.2, 1)


def test_the_quality_of_an_image_is_a_share_of_the_way_to_the_best() -> None:
    """For a metric of which lower is better the bound lies above, and the bar falls as the value rises."""
    blur = ImageQuality(value=0.8, metric="blur_effect", worst=1.0, best=0.0, minimum=0.6)
    shown = views.quality(blur)
    assert (shown["share"], shown["minimum_share"]) == (pytest.approx(0.2), pytest.approx(0.4))
    assert (shown["lower_is_better"], shown["refused"]) == (True, True)
    blur.value = 0.5
    assert (views.quality(blur)["share"], views.quality(blur)["refused"]) == (0.5, False)
    noise = views.quality(ImageQuality(value=4.0, metric="noise_sigma", worst=math.inf, best=0.0))
    assert (noise["share"], noise["refused"]) == (None, False)


def test_the_planned_path_is_the_one_of_the_markers() -> None:
    cell = load_cell()
    motion = plan(cell.home_joints, [[0, 0, 0.02, 0, 0, 0, 1.0]] * 2, 0.2, "base_link", cell)
    assert motion.verdict.ok
    shown = views.path(motion_markers(motion, cell))
    assert shown is not None
    assert not shown["cut_short"]
    np.testing.assert_allclose(shown["points"], motion.base_from_tcp[:, :3, 3], atol=1e-3)


def test_broken_messages_are_counted_and_not_shown(ros: Ros, probe: Probe, node: Any) -> None:
    pictures = probe.create_publisher(Image, names.color("top"), names.SENSOR_QOS)
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    bad_image = Image(width=640, height=480, encoding="rgb8", step=3, data=[0] * 10)
    ros.until(lambda: pictures.publish(bad_image) or node.counters["dropped malformed frames"])
    ros.until(lambda: joints.publish(JointState(name=["elbow_joint"])) or node.counters["dropped joint states"])
    assert node.hub.since(0).frames == []
    good = convert.color_message(np.full((24, 32, 3), 90, np.uint8), 7, "")
    ros.until(lambda: pictures.publish(good) or node.hub.since(0).frames)
    assert [(f.stream, f.stamp_ns) for f in node.hub.since(0).frames] == [("top/before", 7)]


def test_a_busy_topic_is_throttled(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    """Without a browser no message is taken, then the first, and no other before its time, which here never comes."""
    node = up(ros, MonitorNode, port=0, log=str(tmp_path / "presses.jsonl"))
    node.period_s = math.inf
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    cell = load_cell()

    def publish(number: int) -> bool:
        joints_rad = np.asarray(cell.home_joints) + 1e-3 * number
        joints.publish(convert.joint_state_message(0, joints_rad, np.zeros(6), 0.1))
        return True

    received = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: publish(0) and len(received) > 20)
    assert node.hub.get("arm") is None
    with node.hub.listening(lambda: None):
        ros.until(lambda: publish(0) and node.hub.get("arm"))
        shown = node.hub.get("arm")
        received.clear()
        for number in range(1, 201):
            publish(number)
        ros.until(lambda: len(received) >= 200)
        assert node.hub.get("arm") is shown


def test_the_tool_centre_point_is_that_of_the_gripper_in_the_joint_states(
    ros: Ros, probe: Probe, tmp_path: Path
) -> None:
    """With the real gripper's linkage it lies 1.2 mm behind that of sliding fingers."""
    node = up(ros, MonitorNode, port=0, log=str(tmp_path / "presses.jsonl"), rate_hz=60.0)
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    home = np.asarray(load_cell().home_joints)
    with node.hub.listening(lambda: None):
        for linkage in (True, False):
            tcp_m = base_from_tcp(home, load_cell(linkage=linkage))[:3, 3]
            message = convert.joint_state_message(0, home, np.zeros(6), 0.1, linkage=linkage)
            expected_mm = (1e3 * tcp_m).round(1).tolist()
            ros.until(lambda message=message: joints.publish(message) or node.hub.get("arm"))
            ros.until(
                lambda message=message, expected_mm=expected_mm: (
                    joints.publish(message) or node.hub.get("arm")["tcp_mm"] == expected_mm
                )
            )


def test_progress_is_shown_and_its_stages_make_the_timeline(ros: Ros, probe: Probe, node: Any) -> None:
    publisher = probe.create_publisher(ExperimentProgress, names.PROGRESS, names.LATCHED_QOS)
    stops = probe.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
    message = ExperimentProgress(
        state=ExperimentProgress.RUNNING, run_id="demo-1", completed=36, total=528, trial_id="t.37", agent="servo",
        task="pick", distortion="gaussian_blur", level=4, elapsed_s=60.0, remaining_s=math.nan,
    )  # fmt: skip
    for stage in ("perception", "execution"):
        message.stage = stage
        ros.until(lambda: publisher.publish(message) or (node.hub.get("progress") or {}).get("stage") == message.stage)
    shown = node.hub.get("progress")
    assert (shown["state"], shown["completed"], shown["total"], shown["level"]) == ("running", 36, 528, 4)
    assert shown["remaining_s"] is None
    stop = SafetyState(mode=SafetyState.EMERGENCY_STOP, message="pressed by Ada")
    ros.until(lambda: stops.publish(stop) or node.timeline.content()["events"])
    ros.until(lambda: (node.hub.get("timeline") or {}).get("events"))
    timeline = node.hub.get("timeline")
    assert [one["stage"] for one in timeline["stages"]] == ["perception", "execution"]
    assert [(one["kind"], one["text"]) for one in timeline["events"]] == [("stop", "pressed by Ada")]
    message.state = ExperimentProgress.FINISHED
    ros.until(lambda: publisher.publish(message) or not node.hub.get("timeline")["running"])


def test_the_motion_of_the_arm_is_kept_for_the_plots(ros: Ros, probe: Probe, node: Any) -> None:
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    home = np.asarray(load_cell().home_joints)
    moving = convert.joint_state_message(10**9, home, np.full(6, 0.1), 0.1)
    ros.until(lambda: joints.publish(moving) or node.hub.get("motion"))
    assert node.hub.get("motion")[0][:2] == [1.0, round(math.degrees(0.1), 1)]
    without = JointState(header=convert.header(2 * 10**9, ""), name=moving.name, position=moving.position)
    ros.until(lambda: joints.publish(without) or node.hub.get("arm")["stamp_s"] == 2.0)
    assert len(node.hub.get("motion")) == 1, "a driver that tells no speeds still has its arm drawn"


def test_a_recording_is_begun_and_ended_on_the_page(ros: Ros, tmp_path: Path) -> None:
    pytest.importorskip("mcap_ros2.decoder", reason="MCAP is not installed (the extra recording)")
    from merton.recording.reader import RecordingReader
    from merton_nodes.monitor.monitor_recorder import Recorder

    recorder = Recorder(tmp_path / "runs", lambda: False)
    try:
        assert not recorder.record(False).result().accepted
        assert recorder.state()["state"] == "off"
        begun = recorder.record(True).result()
        assert begun.accepted
        file = Path(recorder.state()["file"])
        ros.until(lambda: file.exists() and file.stat().st_size > 1000)  # its own diagnostics at least
        assert recorder.state()["state"] == "on"
        assert "already" in recorder.record(True).result().message
        assert recorder.record(False).result().accepted
        ros.until(lambda: recorder.state()["state"] == "off")
    finally:
        recorder.close()
    reader = RecordingReader(file)
    assert list(reader.entries())
    assert reader.torn == ""
    assert not Recorder(tmp_path, lambda: True).record(True).result().accepted, "the graph records itself"


def test_a_silent_arm_is_shown_as_silent(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a browser: a page that is opened later must not show an outdated arm as current."""
    node = up(ros, MonitorNode, port=0, log=str(tmp_path / "presses.jsonl"))
    ros.until(lambda: node.hub.get("arm_seen") is False)
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    message = convert.joint_state_message(0, np.asarray(load_cell().home_joints), np.zeros(6), 0.1)
    ros.until(lambda: joints.publish(message) or node.hub.get("arm_seen"))
    monkeypatch.setattr("merton_nodes.monitor.monitor_node.ARM_SILENT_S", 0.1)
    ros.until(lambda: node.hub.get("arm_seen") is False)


def test_the_check_of_the_stop_path_waits_for_nothing_else(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    node = up(ros, MonitorNode, port=0, log=str(tmp_path / "presses.jsonl"))
    heartbeat = probe.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
    probe.create_service(Trigger, names.STOP, lambda _, response: response)
    ros.until(lambda: node.controls.stop_client.service_is_ready())
    free = threading.Event()
    ros.executor.create_task(free.wait)  # as if every image took for ever
    try:
        for _ in range(2):
            ros.until(lambda: heartbeat.publish(Header()) or node.hub.get("stop_path"))
            ros.until(lambda: node.hub.get("stop_path") is False)
    finally:
        free.set()


def test_a_wrong_parameter_is_one_sentence(ros: Ros, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from rclpy.parameter import Parameter

    wrong = [Parameter("host", value="0.0.0.0"), Parameter("log", value=str(tmp_path / "log"))]
    node = ros.add(MonitorNode, parameter_overrides=wrong)
    assert node.trigger_configure().name == "FAILURE"
    assert "to serve it on 0.0.0.0 it needs --tokens FILE" in capfd.readouterr().err
