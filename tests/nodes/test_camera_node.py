"""camera_node over real ROS 2: the real librealsense on recordings of software cameras, and recorded runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo, Image

from merton.perception.camera import d455_intrinsics
from merton.recording.writer import Channel, RecordingWriter
from merton_nodes.cameras.camera_node import CameraNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, up
from software_realsense import CENTRE_PX, FOCAL_PX, HEIGHT, LENS, RATE_HZ, WIDTH, color_image, record

pytestmark = pytest.mark.timeout(300)
FRAMES = 20


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("realsense") / "d455.db3", FRAMES)


class Stream:
    """All messages of one camera."""

    def __init__(self, probe: Probe, camera: str) -> None:
        self.color: list[Image] = probe.listen(Image, names.color(camera), names.SENSOR_QOS)
        self.info: list[CameraInfo] = probe.listen(CameraInfo, names.color_info(camera), names.SENSOR_QOS)
        self.depth: list[Image] = probe.listen(Image, names.depth(camera), names.SENSOR_QOS)

    def all(self, count: int) -> bool:
        return min(len(self.color), len(self.info), len(self.depth)) >= count


def realsense(ros: Any, recording: Path, cameras: list[str], **more: Any) -> CameraNode:
    devices = ", ".join(f"{camera}={recording}" for camera in cameras)
    return up(
        ros,
        CameraNode,
        source="realsense",
        cameras=cameras,
        devices=devices,
        width=WIDTH,
        height=HEIGHT,
        rate_hz=float(RATE_HZ),
        **more,
    )


def test_a_recording_goes_through_librealsense_onto_the_graph(ros: Any, probe: Probe, recording: Path) -> None:
    streams = {camera: Stream(probe, camera) for camera in ("wrist", "top")}
    node = realsense(ros, recording, ["wrist", "top"])
    ros.until(lambda: all(one.all(FRAMES) for one in streams.values()))
    now_ns = node.get_clock().now().nanoseconds
    for camera, one in streams.items():
        depths = {convert.nanoseconds_of(message.header.stamp): message for message in one.depth}
        infos = {convert.nanoseconds_of(message.header.stamp): message for message in one.info}
        colors = list(one.color)
        stamps = [convert.nanoseconds_of(message.header.stamp) for message in colors]
        assert stamps == sorted(set(stamps))
        assert now_ns - 60e9 < stamps[0] <= stamps[-1] <= node.get_clock().now().nanoseconds
        compared = 0
        for stamp, message in zip(stamps, colors, strict=True):
            pixels = convert.color_array(message)
            number = int(pixels[0, 0, 0])
            assert np.array_equal(pixels, color_image(number)), "not a byte is lost"
            assert message.header.frame_id == f"camera_{camera}_color_optical_frame"
            if stamp not in depths or stamp not in infos:
                continue  # best effort
            compared += 1
            deep = depths[stamp]
            assert (deep.encoding, deep.header.frame_id) == ("16UC1", message.header.frame_id)
            millimetres = np.frombuffer(deep.data, np.uint16)
            assert set(np.unique(millimetres)) <= {0, 1000 + number}, "the depth of this very frame"
            assert (millimetres == 0).mean() < 0.2, "a lens leaves out the margin"
        assert compared >= FRAMES / 2
        # golden: what the software camera was made with
        info = one.info[0]
        assert (info.width, info.height, info.distortion_model) == (WIDTH, HEIGHT, "plumb_bob")
        assert (info.k[0], info.k[4]) == FOCAL_PX
        assert (info.k[2], info.k[5]) == CENTRE_PX
        assert list(info.d) == [float(np.float32(value)) for value in LENS]


def test_a_stall_is_reported_and_recovered_while_the_other_camera_goes_on(
    ros: Any, probe: Probe, recording: Path
) -> None:
    streams = {camera: Stream(probe, camera) for camera in ("wrist", "top")}
    diagnostics = probe.listen(DiagnosticArray, "/diagnostics", 10)
    node = realsense(ros, recording, ["wrist", "top"], stall_s=0.3)
    ros.until(lambda: all(one.all(3) for one in streams.values()))
    wrist = node.source.cameras["wrist"]

    def is_reported(words: str) -> bool:
        statuses = [status for message in diagnostics for status in message.status]
        return any(
            status.level == DiagnosticStatus.WARN
            and "errors" in status.message
            and any(value.key == "wrist" and words in value.value for value in status.values)
            for status in statuses
        )

    os.kill(wrist.driver_pid, signal.SIGSTOP)
    ros.until(lambda: is_reported("no frame for"))
    count = len(streams["top"].color)
    ros.until(lambda: wrist.reconnections >= 1)
    assert len(streams["top"].color) > count
    before = len(streams["wrist"].color)
    ros.until(lambda: len(streams["wrist"].color) > before + 3)
    stamps = [convert.nanoseconds_of(message.header.stamp) for message in streams["wrist"].color]
    assert stamps == sorted(set(stamps)), "time does not go back"
    diagnostics.clear()
    ros.until(lambda: is_reported("Hz, delay"))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"source": "realsense", "devices": "top=42"}, "no RealSense camera has the serial number '42'; connected: "),
        ({"source": "realsense", "devices": ""}, "must name each of the cameras top once"),
        ({"source": "bag", "bag": "/nowhere.mcap"}, "there is no recording '/nowhere.mcap'"),
        ({"source": "lidar"}, "choose one of: bag, cell, folder, realsense"),
    ],
)
def test_a_missing_source_keeps_the_node_down(ros: Any, capfd: Any, parameters: dict[str, str], says: str) -> None:
    overrides = [Parameter(key, value=value) for key, value in {"cameras": ["top"], **parameters}.items()]
    node = ros.add(CameraNode, parameter_overrides=overrides)
    assert node.trigger_configure().name == "FAILURE"
    assert says in capfd.readouterr().err


def written(file: Path, *messages: tuple[str, Any]) -> Path:
    """A recording of messages under their topics."""
    writer = RecordingWriter(file)
    for topic, message in messages:
        kind = f"sensor_msgs/msg/{type(message).__name__}"
        writer.put(Channel(f"/{topic}", kind), bytes(serialize_message(message)), 1)
    writer.close()
    return file


def picture(stamp_ns: int, value: int = 7) -> Image:
    return convert.color_message(np.full((48, 64, 3), value, np.uint8), stamp_ns, "")


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        ((names.color_info("top"), convert.camera_info_message(d455_intrinsics(128, 96), 0, "")),
         "its camera_info is for pictures of 128 x 96 px, and the picture has 64 x 48"),
        ((names.depth("top"), convert.millimetre_message(np.ones((48, 64), np.uint16), 90_000_000, "")),
         "the stamps of depth and colour are never nearer than 90 ms, and 17 ms is the most"),
    ],
)  # fmt: skip
def test_a_recording_without_a_frame_keeps_the_node_down(
    ros: Any, capfd: Any, tmp_path: Path, beside: tuple[str, Any], says: str
) -> None:
    file = written(tmp_path / "cut.mcap", (names.color("top"), picture(0)), beside)
    node = ros.add(
        CameraNode, parameter_overrides=[Parameter("source", value="bag"), Parameter("bag", value=str(file))]
    )
    assert node.trigger_configure().name == "FAILURE"
    assert says in capfd.readouterr().err


def test_a_bag_of_one_camera_of_another_name_is_played_with_its_lens(ros: Any, probe: Probe, tmp_path: Path) -> None:
    info = convert.camera_info_message(d455_intrinsics(64, 48), 0, "", (0.1, 0.2, 0.3, 0.4), "equidistant")
    file = written(
        tmp_path / "one.mcap",
        ("robot1/D455_1/color/image_raw", picture(0)),
        ("robot1/D455_1/color/camera_info", info),
    )
    for parameters, camera in (({}, "D455_1"), ({"bag_topics": "top=/robot1/D455_1/color/image_raw"}, "top")):
        stream = Stream(probe, camera)
        node = up(ros, CameraNode, source="bag", bag=str(file), **parameters)
        assert list(node.outputs) == [camera]
        ros.until(lambda stream=stream: stream.color and stream.info)
        assert (convert.color_array(stream.color[0]) == 7).all()
        assert stream.info[0].distortion_model == "equidistant"
        assert list(stream.info[0].d) == [0.1, 0.2, 0.3, 0.4]
        node.closing.close()


def test_a_player_says_what_the_recording_lacks(ros: Any, probe: Probe, capfd: Any, tmp_path: Path) -> None:
    """A colour image without depth is left out, and without camera_info the geometry is that of a D455."""
    depth = convert.millimetre_message(np.ones((48, 64), np.uint16), 0, "")
    images = [(names.color("top"), picture(stamp_ns)) for stamp_ns in (0, 33_000_000, 66_000_000)]
    node = up(
        ros, CameraNode, source="bag", bag=str(written(tmp_path / "a.mcap", *images, (names.depth("top"), depth)))
    )
    ros.until(lambda: node.counters["times played"] > 1)
    assert node.counters["frames left out top"] == 2
    told = capfd.readouterr().err
    assert told.count("2 colour images of top are left out: no depth is within 17 ms") == 1
    assert "the recording has no camera_info of top: the focal length and principal point of a D455 are taken" in told
    node.closing.close()


def test_a_recorded_run_is_played_again(ros: Any, probe: Probe, recording: Path, tmp_path: Path) -> None:
    """One source for the other: a RealSense is recorded, and its recording is played on the same topics."""
    recorder = pytest.importorskip("merton_nodes.recording.recorder_node")
    file = tmp_path / "run.mcap"
    writing = up(ros, recorder.RecorderNode, path=str(file))
    node = realsense(ros, recording, ["top"])
    live = Stream(probe, "top")
    ros.until(lambda: live.all(FRAMES))
    node.closing.close()
    ros.until(lambda: writing.writer.written[f"/{names.color_info('top')}"] > FRAMES / 2)
    writing.closing.close()
    original = {int(np.frombuffer(message.data, np.uint16).max()): message for message in live.depth}
    recorded = [convert.nanoseconds_of(message.header.stamp) for message in live.color]
    live.color.clear()
    live.info.clear()
    live.depth.clear()

    player = up(ros, CameraNode, source="bag", bag=str(file), cameras=["top"])
    ros.until(lambda: live.all(5) and player.counters["times played"])
    again = {int(np.frombuffer(message.data, np.uint16).max()): message for message in live.depth}
    both = original.keys() & again.keys()  # best effort: recorder and probe need not have received the same
    assert len(both) >= 3
    for number in both:
        assert bytes(again[number].data) == bytes(original[number].data), "not a byte is lost"
    assert (live.info[0].k[0], live.info[0].k[4]) == FOCAL_PX
    assert list(live.info[0].d) == [float(np.float32(value)) for value in LENS]
    stamps = [convert.nanoseconds_of(message.header.stamp) for message in live.color]
    assert stamps == sorted(set(stamps))
    gaps_ns = {later - earlier for later in recorded for earlier in recorded}
    assert np.mean([gap in gaps_ns for gap in np.diff(stamps).tolist()]) > 0.5, "at the pace of the recording"
    number = int(np.frombuffer(live.depth[0].data, np.uint16).max()) - 1000
    error = np.abs(convert.color_array(live.color[0]).astype(int) - color_image(number)).mean()
    assert live.depth[0].header.stamp == live.color[0].header.stamp
    assert error < 12, "a JPEG of noise"
