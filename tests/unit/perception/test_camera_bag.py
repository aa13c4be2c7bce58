"""Recorded images come back as they were: MCAP files written by the package rosbags, read by BagCamera."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.camera import d455_intrinsics
from merton.perception.camera.bag import BagCamera
from merton.perception.camera.bag_topics import topics_of
from merton.perception.camera.decoding import color_of, depth_m_of, depth_mm_of, file_of
from merton.perception.images import decode_image
from merton.world.observation import Intrinsics

pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (the extra recording)")
from camera_bags import (
    COUNT,
    DEPTH_TOPIC,
    HEIGHT,
    INFO_NAME,
    LENS,
    PERIOD_NS,
    START_NS,
    WIDTH,
    color,
    compressed,
    depth,
    header,
    image,
    info,
    raw,
    write,
)


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
    assert np.array_equal(depth_mm_of(compressed(deep, "16UC1; png", 0)), depth(1)), "or without the 12 bytes"


def with_depth(topic: str, message: Any, later_ns: int = 0) -> list[tuple[str, Any]]:
    """A colour image, and depth of a stamp beside its."""
    message.header = header(START_NS + later_ns)
    return [("/camera/top/color/image_raw", image(color(0, "top"), "rgb8", START_NS)), (topic, message)]


def test_depth_in_metres_comes_back_from_the_inverse_depth_of_compressed_depth(tmp_path: Path) -> None:
    """image_transport_plugins writes A / z + B after a header of format, A and B; here of three distances by hand."""
    a, b = 10100.0, -1009.0
    values = np.zeros((HEIGHT, WIDTH), np.uint16)
    values[0, :3] = 19191, 11308, 7929
    png = cv2.imencode(".png", values)[1].tobytes()
    message = compressed(struct.pack("<iff", 0, a, b) + png, "32FC1; compressedDepth png", 0)
    ((_, frame),) = list(BagCamera(write(tmp_path / "bag", with_depth(f"{DEPTH_TOPIC}/compressedDepth", message))))
    assert frame.depth_mm is not None
    assert frame.depth_mm[0, :4].tolist() == [500, 820, 1130, 0]


@pytest.mark.parametrize(
    ("form", "content", "says"),
    [
        ("16UC1; compressedDepth rvl", bytes(40), "'16UC1; compressedDepth rvl' is not supported"),
        ("32FC1; compressedDepth rvl", bytes(40), "'32FC1; compressedDepth rvl' is not supported"),
        ("8UC1; png compressed ", cv2.imencode(".png", depth(0))[1].tobytes(), "use 16UC1 or mono16"),
        ("32FC1; compressedDepth png", cv2.imencode(".png", depth(0))[1].tobytes(), "lacks the header"),
        ("16UC1; compressedDepth RVL", bytes(40), "'16UC1; compressedDepth RVL' is not supported"),
        ("32FC1", cv2.imencode(".png", depth(0))[1].tobytes(), "'32FC1' lacks the header"),
        ("32FC1; compressedDepth png", struct.pack("<iff", 0, 0, 0) + cv2.imencode(".png", depth(0))[1].tobytes(),
         "A must be positive"),
    ],
)  # fmt: skip
def test_depth_of_a_form_that_is_not_read_is_refused_by_its_name(form: str, content: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        depth_mm_of(compressed(content, form, 0))


def test_tiff_keeps_metres_as_they_are() -> None:
    metres = np.linspace(0.2, 3.0, HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH)
    message = compressed(cv2.imencode(".tiff", metres)[1].tobytes(), "32FC1; tiff compressed ", 0)
    assert np.array_equal(depth_m_of(message), metres)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("encoding", ["16UC1", "mono16", "32FC1"])
def test_depth_of_either_byte_order(encoding: str, big: bool) -> None:
    kind = np.dtype(np.float32 if encoding == "32FC1" else np.uint16).newbyteorder(">" if big else "<")
    scale = 0.001 if encoding == "32FC1" else 1
    message = image((depth(0) * scale).astype(kind), encoding, 0)
    message.is_bigendian = int(big)
    assert np.array_equal(depth_mm_of(message), depth(0))
    assert np.allclose(depth_m_of(message), depth(0) * 0.001, rtol=1e-6)


def test_what_is_no_distance_is_unknown() -> None:
    metres = np.full((HEIGHT, WIDTH), 1.5, np.float32)
    metres[0, :5] = np.nan, np.inf, -np.inf, -1.0, 70.0
    message = image(metres, "32FC1", 0)
    assert depth_mm_of(message)[0, :6].tolist() == [0, 0, 0, 0, 0, 1500]
    assert depth_m_of(message)[0, :6].tolist() == [0, 0, 0, 0, 70, 1.5]


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "mono8"])
def test_every_encoding_of_a_live_camera_is_read_from_a_bag(encoding: str, tmp_path: Path) -> None:
    pixels = color(0, "top")
    if encoding == "mono8":
        stored, pixels = pixels[:, :, 0], np.repeat(pixels[:, :, :1], 3, axis=2)
    else:
        stored = pixels if encoding.startswith("rgb") else pixels[:, :, ::-1]
        if encoding.endswith("a8"):
            stored = np.dstack([stored, np.full((HEIGHT, WIDTH), 7, np.uint8)])
    message = image(stored, encoding, START_NS, padding=3)
    ((_, frame),) = list(BagCamera(write(tmp_path / "bag", [("/camera/top/color/image_raw", message)])))
    assert np.array_equal(frame.color, pixels)


@pytest.mark.parametrize(("ending", "coded"), [(".png", "rgba8; png compressed bgra8"), (".webp", "bgra8; webp")])
def test_a_cameras_fourth_channel_is_left_out_of_compressed_images_too(ending: str, coded: str) -> None:
    """As of the raw image of the same camera: a driver that leaves the opacity at 0 does not send white pictures."""
    pixels = color(0, "top")
    stored = np.dstack([pixels, np.zeros((HEIGHT, WIDTH), np.uint8)])
    raw_image = image(stored, "rgba8", START_NS)
    file = cv2.imencode(ending, np.dstack([pixels[:, :, ::-1], stored[:, :, 3]]), [cv2.IMWRITE_WEBP_QUALITY, 101])[1]
    if ending == ".webp":  # which does not keep colours that nothing shows
        stored[:, :, 3] = 1
        file = cv2.imencode(ending, stored[:, :, [2, 1, 0, 3]], [cv2.IMWRITE_WEBP_QUALITY, 101])[1]
    message = compressed(file.tobytes(), coded, START_NS)
    assert np.array_equal(color_of(message), pixels)
    assert np.array_equal(color_of(message), color_of(raw_image))
    assert np.array_equal(decode_image(file_of(message)), pixels)
    unnamed = compressed(file.tobytes(), "png", START_NS)
    assert file_of(unnamed) == file.tobytes()


def test_a_fault_is_reported_under_the_topic_that_has_it(tmp_path: Path) -> None:
    messages = [
        ("/camera/top/color/image_raw", image(color(0, "top"), "yuv422", START_NS)),
        (DEPTH_TOPIC, image(depth(0), "16UC1", START_NS)),
    ]
    with pytest.raises(InputError, match="/color/image_raw: image encoding 'yuv422'"):
        list(BagCamera(write(tmp_path / "bag", messages)))


@pytest.mark.parametrize("later_ms", [-3, 1, 12])
def test_depth_stamped_beside_colour_is_of_the_same_frame(later_ms: int, tmp_path: Path) -> None:
    messages: list[tuple[str, Any]] = []
    for number in range(COUNT):
        stamp_ns = START_NS + number * PERIOD_NS
        messages += [
            ("/camera/top/color/image_raw", image(color(number, "top"), "rgb8", stamp_ns)),
            (DEPTH_TOPIC, image(depth(number), "16UC1", stamp_ns + later_ms * 1_000_000)),
        ]
    frames = [frame for _, frame in BagCamera(write(tmp_path / "bag", messages))]
    assert len(frames) == COUNT
    for number, frame in enumerate(frames):
        assert frame.stamp_ns == START_NS + number * PERIOD_NS
        assert np.array_equal(frame.color, color(number, "top"))
        assert np.array_equal(frame.depth_mm, depth(number))  # type: ignore[arg-type]


def test_depth_that_is_never_near_is_named_with_its_distance(tmp_path: Path) -> None:
    messages = with_depth(DEPTH_TOPIC, image(depth(0), "16UC1", 0), later_ns=40_000_000)
    camera = BagCamera(write(tmp_path / "bag", messages))
    with pytest.raises(InputError, match="never nearer than 40 ms, and 17 ms is the most"):
        camera.check()
    silent = [*raw("wrist"), ("/camera/wrist/color/image_raw/compressed", compressed(b"", "jpeg", START_NS))]
    assert list(BagCamera(write(tmp_path / "raw", silent))), "a raw image comes before a compressed one"


def test_a_camera_info_that_comes_once_is_that_of_all_images(tmp_path: Path) -> None:
    messages = [message for message in raw("top") if "camera_info" not in message[0]]
    late = info(0)
    frames = [frame for _, frame in BagCamera(write(tmp_path / "bag", [(f"/camera/top/{INFO_NAME}", late), *messages]))]
    assert len(frames) == COUNT - 1
    assert {frame.intrinsics.fx for frame in frames} == {40.5}


def test_a_camera_info_of_another_size_is_a_fault_of_the_bag(tmp_path: Path) -> None:
    double = info(START_NS)
    double.width, double.height, double.k = 2 * WIDTH, 2 * HEIGHT, double.k * 2
    messages = [(f"/camera/top/{INFO_NAME}", double), ("/camera/top/color/image_raw", raw("top")[1][1])]
    with pytest.raises(InputError, match="color/image_raw: its camera_info is for pictures of 96 x 64 px"):
        list(BagCamera(write(tmp_path / "bag", messages)))
    double.binning_x = double.binning_y = 2  # then it is right: the picture has every second pixel
    ((_, frame),) = list(BagCamera(write(tmp_path / "binned", messages)))
    assert (frame.intrinsics.width, frame.intrinsics.fx, frame.intrinsics.cx) == (WIDTH, 40.5, 23.25)
    shallow = with_depth(DEPTH_TOPIC, image(depth(0), "16UC1", 0))
    shallow[1][1].height = 16
    shallow[1][1].data = shallow[1][1].data[: shallow[1][1].step * 16]
    with pytest.raises(InputError, match="is not aligned to colour"):
        list(BagCamera(write(tmp_path / "shallow", shallow)))


def test_cameras_under_the_names_of_realsense_with_a_namespace(tmp_path: Path) -> None:
    def under(place: str) -> tuple[str, Any]:
        return f"{place}/color/image_raw", image(color(0, "top"), "rgb8", START_NS)

    bag = write(tmp_path / "bag", [under("/robot1/D455_1"), under("/robot1/D455_2"), under("/cam")])
    assert BagCamera(bag).cameras == ["D455_1", "D455_2", "cam"]
    twice = write(tmp_path / "twice", [under("/a/D455"), under("/b/D455"), under("/camera/top"), under("/x/top")])
    assert BagCamera(twice).cameras == ["a/D455", "b/D455", "top", "x/top"]


def test_a_topic_of_another_name_is_given_to_a_camera(tmp_path: Path) -> None:
    told = info(START_NS)  # P is that of the rectified picture
    told.p = np.array([38.5, 0, 24.25, 0, 0, 39.5, 14.75, 0, 0, 0, 1, 0])
    messages = [
        ("/zed/left/camera_info", told),
        ("/zed/left/image_rect_color", image(color(0, "top"), "bgr8", START_NS)),
        ("/zed/depth/depth_registered", image(depth(0).astype(np.float32) * np.float32(0.001), "32FC1", START_NS)),
    ]
    bag = write(tmp_path / "bag", messages)
    with pytest.raises(InputError, match="image topics in it: /zed/depth/depth_registered, /zed/left/image_rect_color"):
        BagCamera(bag)
    named = topics_of("top=/zed/left/image_rect_color, top.depth=zed/depth/depth_registered")
    camera = BagCamera(bag, ["top"], named)
    ((name, frame),) = list(camera)
    assert (name, frame.intrinsics) == ("top", Intrinsics(WIDTH, HEIGHT, 38.5, 39.5, 24.25, 14.75))
    assert frame.distortion == ()
    assert np.array_equal(frame.depth_mm, depth(0))  # type: ignore[arg-type]
    bare = write(tmp_path / "bare", messages[1:])
    with pytest.raises(InputError, match="has no /zed/left/camera_info, which would describe the pictures of 'top' on"):
        BagCamera(bare, None, named)
    for wrong in ("top", "top=", "top=/a, top=/b", "=x"):
        with pytest.raises(InputError, match="once for each camera"):
            topics_of(wrong)
    with pytest.raises(InputError, match="no images on '/zed/left/camera_info'"):
        BagCamera(bag, None, {"top": "/zed/left/camera_info"})
    with pytest.raises(InputError, match=r"top.depth names depth"):
        BagCamera(bag, None, {"top.depth": "/zed/depth/depth_registered"})


def test_a_camera_that_is_named_and_found_is_one_camera(tmp_path: Path) -> None:
    """Where a raw and a compressed image are recorded; depth and camera_info are those of the found camera."""
    jpeg = compressed(cv2.imencode(".png", color(1, "top")[:, :, ::-1])[1].tobytes(), "rgb8; png compressed bgr8", 0)
    jpeg.header = header(START_NS + PERIOD_NS)
    bag = write(tmp_path / "bag", [*raw("top"), ("/camera/top/color/image_raw/compressed", jpeg)])
    for topic in ("/camera/top/color/image_raw", "/camera/top/color/image_raw/compressed"):
        camera = BagCamera(bag, None, {"mine": topic})
        assert camera.cameras == ["mine"]
        (_, frame), *_ = camera
        assert np.array_equal(frame.color, color(1, "top"))
        assert np.array_equal(frame.depth_mm, depth(1))  # type: ignore[arg-type]


def test_depth_of_another_frame_is_not_taken_for_aligned(tmp_path: Path) -> None:
    """As of a camera whose depth has the size of its colour; a frame that is not told is taken for the right one."""
    for frame, is_refused in (("camera_depth_optical_frame", True), ("frame", False), ("", False)):
        messages = with_depth(DEPTH_TOPIC, image(depth(0), "16UC1", 0))
        messages[1][1].header.frame_id = frame
        camera = BagCamera(write(tmp_path / f"bag_{frame}", messages))
        if is_refused:
            with pytest.raises(
                InputError, match="depth is in the frame 'camera_depth_optical_frame', colour in 'frame'"
            ):
                list(camera)
        else:
            assert len(list(camera)) == 1


def test_cameras_without_camera_info_are_named(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", [*raw("top"), *(each for each in raw("side") if "camera_info" not in each[0])])
    assert BagCamera(bag).without_info == ["side"]
    assert BagCamera(bag, ["top"]).without_info == []


def test_the_command_that_plays_names_the_image_topics(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", [("/zed/left/image_rect_color", image(color(0, "top"), "bgr8", START_NS))])
    told = CliRunner().invoke(app, ["recording", "play", str(bag)])
    assert told.exit_code != 0
    assert "image topics in it: /zed/left/image_rect_color" in " ".join(f"{told.output} {told.exception}".split())
    wrong = CliRunner().invoke(app, ["recording", "play", str(bag), "--topic", "top=/zed/right"])
    assert "no images on '/zed/right'" in " ".join(f"{wrong.output} {wrong.exception}".split())


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
    assert [file.path.name for file in camera.reader.files] == ["night_9.mcap", "night_10.mcap"]
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
    with pytest.raises(InputError, match="'32FC2' is not supported; use 16UC1"):
        depth_mm_of(image(depth(0), "32FC2", 0))
    with pytest.raises(InputError, match="no PNG of 16 bits"):
        depth_mm_of(compressed(bytes(20), "16UC1; compressedDepth png", 0))
    swapped = image(color(0, "top"), "bgr8", 0)
    assert np.array_equal(color_of(swapped), color(0, "top")[:, :, ::-1])
