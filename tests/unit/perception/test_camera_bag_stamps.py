"""Which messages of a recorded camera are of one exposure, where its clock jumps back or says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (the extra recording)")

from camera_bags import COUNT, DEPTH_TOPIC, HEIGHT, INFO_NAME, PERIOD_NS, START_NS, WIDTH, image, info, write
from merton.errors import InputError
from merton.perception.camera.bag import BagCamera


def three(number: int, stamp_ns: int, order: tuple[int, ...] = (0, 1, 2)) -> list[tuple[str, Any]]:
    """Colour, depth and camera_info of one exposure, of which the first two have its number in every pixel."""
    parts = [
        ("/camera/top/color/image_raw", image(np.full((HEIGHT, WIDTH, 3), number, np.uint8), "rgb8", stamp_ns)),
        (DEPTH_TOPIC, image(np.full((HEIGHT, WIDTH), 1000 + number, np.uint16), "16UC1", stamp_ns)),
        (f"/camera/top/{INFO_NAME}", info(stamp_ns)),
    ]
    return [parts[index] for index in order]


def numbers(camera: BagCamera) -> list[tuple[int, int, int]]:
    """Number of colour and of depth, and stamp of each frame."""
    return [(int(f.color[0, 0, 0]), int(f.depth_mm[0, 0]) - 1000, f.stamp_ns) for _, f in camera]  # type: ignore[index]


@pytest.mark.parametrize("often_info", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize(
    "starts_ns", [(START_NS, START_NS - 10**9 - PERIOD_NS * 4), (100 * 10**9, 0), (START_NS, 0, 0)]
)
def test_every_frame_is_played_where_the_clock_jumps_back(
    starts_ns: tuple[int, ...], order: tuple[int, ...], often_info: bool, tmp_path: Path
) -> None:
    """As of a simulation that was reset, or of a bag that was recorded while it was played in a loop."""
    stamps = [start_ns + index * PERIOD_NS for start_ns in starts_ns for index in range(40 if start_ns else 60)]
    messages = [message for number, stamp_ns in enumerate(stamps) for message in three(number, stamp_ns, order)]
    if not often_info:  # once, as of a publisher that is latched
        others = [message for message in messages if INFO_NAME not in message[0]]
        messages = [(f"/camera/top/{INFO_NAME}", info(START_NS)), *others]
    found = numbers(BagCamera(write(tmp_path / "bag", messages)))
    assert found == [(number, number, stamp_ns) for number, stamp_ns in enumerate(stamps)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_depth_is_not_found_without_stamps(order: tuple[int, ...], tmp_path: Path) -> None:
    messages = [message for number in range(COUNT) for message in three(number, 0, order)]
    with pytest.raises(InputError, match="have no stamps but 0, and by stamps the depth of a colour image is found"):
        list(BagCamera(write(tmp_path / "bag", messages)))
    alone = [message for message in messages if message[0] != DEPTH_TOPIC]
    colors = [int(frame.color[0, 0, 0]) for _, frame in BagCamera(write(tmp_path / "alone", alone))]
    assert colors == list(range(COUNT)), "the order is enough without depth"


def test_colour_images_without_depth_are_counted(tmp_path: Path) -> None:
    messages = [m for n in range(COUNT) for m in three(n, START_NS + n * PERIOD_NS) if n != 2 or m[0] != DEPTH_TOPIC]
    camera = BagCamera(write(tmp_path / "bag", messages))
    assert [number for number, _, _ in numbers(camera)] == [0, 1, 3]
    assert camera.without_depth == {"top": 1}
