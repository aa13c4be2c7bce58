"""recorder_node over real ROS 2: all messages are in the file and counted, and no publisher waits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from merton_interfaces.msg import Answer, SafetyState
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image, JointState

from merton.graph.supervisor import find_executable
from merton.recording.reader import RecordingReader
from merton_nodes.recording import recorded_topics
from merton_nodes.recording.recorder_node import RecorderNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from patience import stretched
from ros import Probe, Ros, up

COLOR, DEPTH = f"/{names.color('top')}/compressed", f"/{names.depth('top')}/compressed"


def frame(number: int) -> tuple[Image, Image]:
    """A smooth picture, which survives JPEG, and a depth image with every value there is."""
    ramp = np.linspace(0, 255 - number, 96, dtype=np.uint8)
    pixels = np.stack([np.tile(ramp, (64, 1)), np.tile(ramp[::-1], (64, 1)), np.full((64, 96), 40 + number)], axis=2)
    depth = np.random.default_rng(number).integers(0, 65536, (64, 96)).astype("<u2")
    message = Image(height=64, width=96, encoding="16UC1", step=192, header=convert.header(number, "frame"))
    message.data = depth.tobytes()
    return convert.color_message(pixels.astype(np.uint8), number, "frame"), message


@pytest.mark.parametrize("form", ["jpeg", "png"])
def test_everything_is_in_the_file_once_and_as_it_was(ros: Ros, probe: Probe, tmp_path: Path, form: str) -> None:
    safety = probe.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
    safety.publish(SafetyState(mode=SafetyState.REDUCED, message="before the recorder came"))
    answers = probe.create_publisher(Answer, names.answers("reference"), names.KEPT_QOS)
    for text in ("said", "before it came"):
        answers.publish(Answer(answer=text))
    path = tmp_path / "run" / "recording.mcap"
    node = up(ros, RecorderNode, path=str(path), color=form)
    diagnostics = probe.listen(DiagnosticArray, "/diagnostics", 10)
    color = probe.create_publisher(Image, names.color("top"), names.SENSOR_QOS)
    depth = probe.create_publisher(Image, names.depth("top"), names.SENSOR_QOS)
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: all(p.get_subscription_count() == 1 for p in (color, depth, joints)))
    ros.until(lambda: node.writer.written["/arm/safety_state"] == 1)
    ros.until(lambda: node.writer.written["/experiment/answer/reference"] == 2)
    frames = [frame(number) for number in range(3)]
    for number, (picture, depths) in enumerate(frames):
        for _ in range(2):  # as a camera that looks at a still scene
            color.publish(picture)
            depth.publish(depths)
        ros.until(lambda number=number: node.writer.written[COLOR] == node.writer.written[DEPTH] == number + 1)
    sent = [
        JointState(header=convert.header(1_700_000_000_000_000_000 + n, ""), position=[float(n)]) for n in range(400)
    ]
    for message in sent:
        joints.publish(message)
    ros.until(lambda: node.writer.written["/joint_states"] == 400)
    ros.until(lambda: node.counters["repeated images"] == 6)

    def said() -> dict[str, str]:
        mine = [s for m in diagnostics for s in m.status if s.name == "/recorder_node"]
        return {value.key: value.value for value in mine[-1].values} if mine else {}

    ros.until(lambda: said().get("written /joint_states") == "400")
    advertised = {
        topic: str(probe.get_publishers_info_by_topic(topic)[0].topic_type_hash)
        for topic in ("/joint_states", "/arm/safety_state")
    }
    node.closing.close()
    assert not [key for key in node.counters if key.startswith("dropped")]

    from mcap.reader import make_reader
    from rosbags.rosbag2 import Reader

    written = {topic: count for topic, count in node.writer.written.items() if count}
    with Reader(path) as bag:
        assert {connection.topic: connection.msgcount for connection in bag.connections} == written
        (latched,) = [c for c in bag.connections if c.topic == "/arm/safety_state"]
        assert latched.ext.offered_qos_profiles[0].durability.name == "TRANSIENT_LOCAL"  # type: ignore[union-attr]
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
        assert summary is not None
        assert summary.statistics is not None
        counts = summary.statistics.channel_message_counts
        channels = {channel.topic: channel for channel in summary.channels.values()}
        assert {topic: counts[channel.id] for topic, channel in channels.items()} == written
        for topic, type_hash in advertised.items():
            assert channels[topic].metadata["topic_type_hash"] == type_hash
        assert all(summary.schemas[channel.schema_id].data for channel in channels.values())

    found: dict[str, list[Any]] = {}
    for entry in RecordingReader(path).entries():
        found.setdefault(entry.topic, []).append(entry.decode())
    assert [m.position[0] for m in found["/joint_states"]] == [m.position[0] for m in sent]
    assert [m.header.stamp.nanosec for m in found["/joint_states"]] == list(range(400))
    assert found["/arm/safety_state"][0].message == "before the recorder came"
    for number, (picture, depths) in enumerate(frames):
        decoded = cv2.imdecode(np.frombuffer(found[COLOR][number].data, np.uint8), cv2.IMREAD_COLOR)
        original = convert.color_array(picture).astype(int)
        away = np.abs(decoded[:, :, ::-1].astype(int) - original)
        assert found[COLOR][number].format == f"rgb8; {form} compressed bgr8"
        assert away.mean() < 2 if form == "jpeg" else not away.any(), "of quality 92 or without loss, and RGB not BGR"
        lossless = cv2.imdecode(np.frombuffer(found[DEPTH][number].data, np.uint8), cv2.IMREAD_UNCHANGED)
        assert (lossless == np.frombuffer(depths.data, "<u2").reshape(64, 96)).all()


def test_a_recorder_that_hangs_blocks_no_publisher_and_counts_its_losses(
    ros: Ros, probe: Probe, tmp_path: Path
) -> None:
    diagnostics = probe.listen(DiagnosticArray, "/diagnostics", 10)
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    command = [str(find_executable("merton_nodes", "recorder_node")), "--ros-args"]
    process = subprocess.Popen(
        [*command, "-p", f"path:={tmp_path / 'recording.mcap'}"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    missed = "dropped on the way: /joint_states"
    published = 0

    def said(key: str) -> int:
        mine = [s for m in diagnostics for s in m.status if s.name == "/recorder_node"]
        return int({v.key: v.value for v in mine[-1].values}.get(key, 0)) if mine else 0

    def counted() -> int:
        return said("written /joint_states") + said(missed)

    def publish(number: int = 1) -> None:
        nonlocal published
        for _ in range(number):
            joints.publish(JointState(header=convert.header(published, ""), position=[0.0] * 7))
            published += 1

    def publish_until_counted() -> bool:
        """A gap shows at the next message only: a recorder that was taken for dead needs one after its return."""
        publish()
        return counted() > 1500

    try:
        ros.until(lambda: joints.get_subscription_count() == 1)
        publish()
        ros.until(lambda: counted() == 1)
        os.kill(process.pid, signal.SIGSTOP)
        began = time.monotonic()
        publish(1500)
        took_s = time.monotonic() - began
        os.kill(process.pid, signal.SIGCONT)
        ros.until(publish_until_counted)
        ros.until(lambda: counted() == published)
        assert said(missed) > 0, "two queues of about 500, the sender's and the one between, cannot hold 1500"
        assert took_s < stretched(10), "1500 messages without a reader must not wait"
    finally:
        os.kill(process.pid, signal.SIGCONT)
        os.kill(process.pid, signal.SIGINT)
        process.wait(stretched(20))
    reader = RecordingReader(tmp_path / "recording.mcap")
    topics = [entry.topic for entry in reader.entries()]
    assert (topics.count("/joint_states"), reader.torn) == (said("written /joint_states"), "")


def test_without_a_file_to_write_it_does_not_come_up(ros: Ros, tmp_path: Path) -> None:
    (tmp_path / "there.mcap").touch()
    for path in ("", str(tmp_path / "there.mcap"), "/proc/nowhere/x.mcap"):
        node = ros.add(RecorderNode, parameter_overrides=[Parameter("path", value=path)])
        assert node.trigger_configure().name == "FAILURE"


def test_every_published_topic_is_recorded() -> None:
    package = Path(recorded_topics.__file__).parents[1]
    sources = "".join(file.read_text(encoding="utf-8") for file in package.rglob("*.py"))
    published = {getattr(names, name) for name in re.findall(r"create_publisher\(\s*\w+,\s*names\.([A-Z_]+)", sources)}
    published |= {names.AWAITING_ARRANGEMENT, names.AWAITING_CONFIRMATION}  # through OperatorDesk
    published -= {names.GAZEBO_ARM, names.GAZEBO_TRIGGER}  # to the simulator: the commands behind them are recorded
    assert len(published) > 10
    assert published <= {topic for topic, _, _ in recorded_topics.recorded_topics(["top"])}
