"""The folder camera."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.camera import FolderCamera, d455_intrinsics


def write(file, color, height=24, width=32):
    image = np.full((height, width, 3), color[::-1], np.uint8)
    file.write_bytes(cv2.imencode(file.suffix, image)[1].tobytes())


def test_plays_in_order_of_names(tmp_path):
    write(tmp_path / "b.png", (200, 10, 30))
    write(tmp_path / "a.PNG", (0, 255, 0))
    write(tmp_path / "c.jpg", (20, 20, 220), height=48, width=64)
    write(tmp_path / ".hidden.png", (1, 1, 1))
    (tmp_path / "notes.txt").write_text("not a picture")
    (tmp_path / "folder.png").mkdir()
    camera = FolderCamera(tmp_path, rate_hz=20)
    frames = list(camera)
    assert len(camera) == len(frames) == 3
    assert [frame.stamp_ns for frame in frames] == [0, 50_000_000, 100_000_000]
    assert tuple(frames[0].color[0, 0]) == (0, 255, 0)
    assert tuple(frames[1].color[5, 5]) == (200, 10, 30)
    assert frames[2].color.shape == (48, 64, 3)
    assert frames[2].color.dtype == np.uint8
    assert frames[2].intrinsics == d455_intrinsics(64, 48)
    assert frames[0].depth_mm is None
    assert camera[-1].stamp_ns == 100_000_000
    with pytest.raises(IndexError):
        camera[3]


def test_gray_and_alpha_become_rgb(tmp_path):
    (tmp_path / "gray.png").write_bytes(cv2.imencode(".png", np.full((20, 30), 77, np.uint8))[1].tobytes())
    (tmp_path / "alpha.png").write_bytes(cv2.imencode(".png", np.full((20, 30, 4), 9, np.uint8))[1].tobytes())
    assert [frame.color.shape for frame in FolderCamera(tmp_path)] == [(20, 30, 3)] * 2


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
@pytest.mark.parametrize("damage", ["empty", "truncated", "garbage"])
def test_unreadable_file_is_named(tmp_path, suffix, damage):
    file = tmp_path / f"broken{suffix}"
    write(file, (1, 2, 3), height=200, width=200)
    data = file.read_bytes()
    file.write_bytes({"empty": b"", "truncated": data[: len(data) // 2], "garbage": b"\x89abc" * 50}[damage])
    with pytest.raises(InputError, match=f"broken\\{suffix}"):
        FolderCamera(tmp_path)[0]


def test_file_that_vanishes_is_named(tmp_path):
    write(tmp_path / "gone.png", (1, 2, 3))
    camera = FolderCamera(tmp_path)
    (tmp_path / "gone.png").unlink()
    with pytest.raises(InputError, match="gone"):
        camera[0]


def test_wrong_folders_and_rates_are_refused(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        FolderCamera(tmp_path / "absent")
    with pytest.raises(InputError, match="no picture"):
        FolderCamera(tmp_path)
    write(tmp_path / "a.png", (0, 0, 0))
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="rate"):
            FolderCamera(tmp_path, rate)


@pytest.mark.parametrize(("width", "height", "focal_px"), [(1280, 720, 640), (640, 480, 384), (424, 240, 212)])
def test_d455_focal_lengths(width, height, focal_px):
    """Golden: the D455's three usual colour streams, design facts section 4."""
    intrinsics = d455_intrinsics(width, height)
    assert (intrinsics.fx, intrinsics.fy) == (focal_px, focal_px)
    assert (intrinsics.cx, intrinsics.cy) == ((width - 1) / 2, (height - 1) / 2)
    if (width, height) != (640, 480):  # that one is cropped at the sides
        assert 2 * np.degrees(np.arctan(width / 2 / intrinsics.fx)) == pytest.approx(90)


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (10.5, 10), (True, 10)])
def test_d455_refuses_impossible_sizes(size):
    with pytest.raises(InputError, match="positive whole number"):
        d455_intrinsics(*size)
