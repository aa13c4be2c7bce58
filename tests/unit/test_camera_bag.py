"""Recorded images come back as they were: MCAP files written by the package rosbags, read by BagCamera."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.camera import d455_intrinsics
from merton.perception.camera.bag import BagCamera, color_of, depth_of
from merton.world.observation import Intrinsics

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (requirements/dev.txt)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (requirements/recording.txt)")
from rosbags.typesys import Stores, get_typestore  # noqa: E402

STORE = get_typestore(Stores.ROS2_JAZZY)
T = STORE.types
WIDTH, HEIGHT, COUNT, PERIOD_NS = 48, 32, 4, 33_333_333
START_NS = 1_700_000_000_000_000_000
LENS = (-0.056, 0.067, 0.0001, -0.0002, -0.02)


def color(number: int, camera: str) -> np.ndarray:
    return np.random.default_rng([number, len(camera)]).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)


def depth(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 65535, (HEIGHT, WIDTH), np.uint16)


def header(stamp_ns: int) -> Any:
    stamp = T["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    return T["std_msgs/msg/Header"](stamp, "frame")


def image(pixels: np.ndarray, encoding: str, stamp_ns: int, padding: int = 0) -> Any:
    rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(HEIGHT, -1)
    rows = np.pad(rows, ((0, 0), (0, padding)))
    return T["sensor_msgs/msg/Image"](header(stamp_ns), HEIGHT, WIDTH, encoding, 0, rows.shape[1], rows.reshape(-1))


def compressed(data: bytes, form: str, stamp_ns: int) -> Any:
    return T["sensor_msgs/msg/CompressedImage"](header(stamp_ns), form, np.frombuffer(data, np.uint8))


def info(stamp_ns: int) -> Any:
    k = np.array([40.5, 0, 23.25, 0, 41.5, 15.75, 0, 0, 1])
    roi = T["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    return T["sensor_msgs/msg/CameraInfo"](
        header(stamp_ns), HEIGHT, WIDTH, "plumb_bob", np.array(LENS), k, np.eye(3).ravel(), np.zeros(12), 0, 0, roi
    )


def write(folder: Path, messages: list[tuple[str, Any]]) -> Path:
    """A bag of messages under their topics, in that order."""
    writer = rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
    with writer:
        connections: dict[str, Any] = {}
        for index, (topic, message) in enumerate(messages):
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], START_NS + index, STORE.serialize_cdr(message, kind))
    return folder


def raw(camera: str, under: str = "/") -> list[tuple[str, Any]]:
    """A recording of a camera as it published; one camera_info came before its image, the first image without depth."""
    messages = []
    for number in range(COUNT):
        stamp_ns = START_NS + number * PERIOD_NS
        top = f"{under}camera/{camera}"
        messages += [
            (f"{top}/color/camera_info", info(stamp_ns)),
            (f"{top}/color/image_raw", image(color(number, camera), "rgb8", stamp_ns, padding=4)),
        ]
        if number:
            messages.append((f"{top}/aligned_depth_to_color/image_raw", image(depth(number), "16UC1", stamp_ns)))
    return messages


def test_raw_images_optics_and_depth_come_back_exactly(tmp_path: Path) -> None:
    camera = BagCamera(write(tmp_path / "bag", raw("top")))
    assert camera.cameras == ["top"]
    for _ in range(2):  # as often as one likes
        frames = list(camera)
        assert [name for name, _ in frames] == ["top"] * (COUNT - 1), "the one without depth is left out"
        for number, (_, frame) in enumerate(frames, start=1):
            assert frame.stamp_ns == START_NS + number * PERIOD_NS
            assert np.array_equal(frame.color, color(number, "top"))
            assert frame.depth_mm is not None
            assert np.array_equal(frame.depth_mm, depth(number))
            assert frame.intrinsics == Intrinsics(WIDTH, HEIGHT, 40.5, 41.5, 23.25, 15.75)
            assert frame.distortion == LENS


def test_compressed_images_under_a_namespace(tmp_path: Path) -> None:
    pixels = color(1, "side")
    png = cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes()
    deep = cv2.imencode(".png", depth(1))[1].tobytes()
    top = "/lab/camera/side"
    bag = write(
        tmp_path / "bag",
        [
            (f"{top}/color/image_raw/compressed", compressed(png, "rgb8; png compressed bgr8", START_NS)),
            (
                f"{top}/aligned_depth_to_color/image_raw/compressedDepth",
                compressed(bytes(12) + deep, "16UC1; compressedDepth png", START_NS),
            ),
        ],
    )
    ((name, frame),) = list(BagCamera(next(bag.glob("*.mcap")), ["side"]))
    assert name == "side"
    assert np.array_equal(frame.color, pixels)
    assert frame.depth_mm is not None
    assert np.array_equal(frame.depth_mm, depth(1))
    assert frame.intrinsics == d455_intrinsics(WIDTH, HEIGHT), "without camera_info"
    assert np.array_equal(depth_of(compressed(deep, "16UC1; png", 0)), depth(1)), "or without the 12 bytes"


def test_only_the_cameras_that_are_asked_for(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", [*raw("top"), *raw("wrist")])
    assert BagCamera(bag).cameras == ["top", "wrist"]
    assert {name for name, _ in BagCamera(bag, ["wrist"])} == {"wrist"}
    with pytest.raises(InputError, match="no images of side; cameras in it: top, wrist"):
        BagCamera(bag, ["top", "side"])


def test_a_recording_that_was_cut_off_plays_up_to_there(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", raw("top"))
    file = next(bag.glob("*.mcap"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 60])
    assert len(list(BagCamera(file))) == COUNT - 1


def test_the_parts_of_a_long_recording_are_played_in_order(tmp_path: Path) -> None:
    (tmp_path / "night").mkdir()
    messages = raw("top")[3:]
    for number in (9, 10):
        part = write(
            tmp_path / f"part{number}",
            messages[: len(messages) // 2] if number == 9 else messages[len(messages) // 2 :],
        )
        next(part.glob("*.mcap")).rename(tmp_path / "night" / f"night_{number}.mcap")
    camera = BagCamera(tmp_path / "night")
    assert [file.name for file in camera.files] == ["night_9.mcap", "night_10.mcap"]
    stamps = [frame.stamp_ns for _, frame in camera]
    assert len(stamps) > 1
    assert stamps == sorted(stamps)


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recording"):
        BagCamera(tmp_path / "absent.mcap")
    with pytest.raises(InputError, match=r"end in \.mcap"):
        BagCamera(tmp_path)
    (tmp_path / "text.mcap").write_text("not a recording")
    with pytest.raises(InputError, match=r"text\.mcap is no recording"):
        BagCamera(tmp_path / "text.mcap")
    info_only = [("/camera/top/color/camera_info", info(START_NS))]
    with pytest.raises(InputError, match="no images of any camera; cameras in it: none"):
        BagCamera(write(tmp_path / "empty", info_only))


def test_malformed_images_are_refused() -> None:
    short = image(color(0, "top"), "rgb8", 0)
    short.height += 1
    strange = image(color(0, "top"), "yuv422", 0)
    for bad, says in (
        (short, "cannot have"),
        (strange, "choose|use one of"),
        (compressed(b"abc", "jpeg", 0), "not an intact image"),
    ):
        with pytest.raises(InputError, match=says):
            color_of(bad)
    with pytest.raises(InputError, match="16UC1"):
        depth_of(image(depth(0), "32FC1", 0))
    with pytest.raises(InputError, match="no PNG of 16 bits"):
        depth_of(compressed(bytes(20), "16UC1; compressedDepth png", 0))
    swapped = image(color(0, "top"), "bgr8", 0)
    assert np.array_equal(color_of(swapped), color(0, "top")[:, :, ::-1])
