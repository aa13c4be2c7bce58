"""What a CameraInfo says of a picture and of its lens, and that a view whose parts do not fit is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.camera import CameraFrame
from merton.world.camera_info import intrinsics_of, is_rectified, largest_shift_px, lens_of, pinhole_of
from merton.world.observation import CameraView, Intrinsics

D455 = (-0.056, 0.067, 0.0001, -0.0002, -0.02)


def info(model: str = "plumb_bob", d: Any = (), width: int = 640, height: int = 480, **more: Any) -> Any:
    k = [384.0, 0, 319.5, 0, 385.0, 239.5, 0, 0, 1]
    p = [380.0, 0, 320.5, 0, 0, 381.0, 238.5, 0, 0, 0, 1, 0]
    roi = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0)
    fields = {"k": k, "p": p, "roi": roi, "binning_x": 0, "binning_y": 0, **more}
    return SimpleNamespace(width=width, height=height, distortion_model=model, d=list(d), **fields)


@pytest.mark.parametrize(
    ("model", "given", "read"),
    [
        ("plumb_bob", (), ("plumb_bob", ())),
        ("plumb_bob", [0.0] * 5, ("plumb_bob", ())),
        ("plumb_bob", D455, ("plumb_bob", D455)),
        ("plumb_bob", (0.1, 0.2, 0, 0), ("plumb_bob", (0.1, 0.2, 0, 0, 0))),
        ("plumb_bob", (*D455, 0, 0, 0), ("plumb_bob", D455)),
        ("rational_polynomial", (*D455, 0, 0, 0), ("plumb_bob", D455)),
        ("rational_polynomial", (*D455, 0.1, 0, 0), ("rational_polynomial", (*D455, 0.1, 0, 0))),
        ("rational_polynomial", (*D455, 0.1, 0, 0, 0.5), ("rational_polynomial", (*D455, 0.1, 0, 0, 0.5, 0, 0, 0))),
        ("equidistant", (0.1, 0, 0, 0), ("equidistant", (0.1, 0, 0, 0))),
        ("equidistant", (0.1, 0.2, 0, 0, 0), ("equidistant", (0.1, 0.2, 0, 0))),
        ("equidistant", (0, 0, 0, 0), ("equidistant", (0, 0, 0, 0))),
        ("", (), ("plumb_bob", ())),
        ("", [0.0] * 5, ("plumb_bob", ())),
    ],
)
def test_the_lens_keeps_its_model_and_loses_zeros_at_the_end(model: str, given: Any, read: Any) -> None:
    assert lens_of(info(model, given)) == read


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        ("plumb_bob", (*D455, 0.1), "plumb_bob has 5 coefficients, got 6"),
        ("equidistant", D455, "equidistant has 4 coefficients, got 5"),
        ("rational_polynomial", [0.1] * 15, "has 14 coefficients, got 15"),
        ("thin_prism", (0.1,), "'thin_prism' is not known; use one of: plumb_bob, rational_polynomial, equidistant"),
        ("", (0.1,), "'' is not known"),
        ("plumb_bob", (math.nan,), "finite"),
    ],
)
def test_a_lens_that_is_not_known_is_refused_by_its_name(model: str, given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        lens_of(info(model, given))


def test_binning_and_region_are_applied_as_in_image_geometry() -> None:
    """PinholeCameraModel: the corner of the region is subtracted, then everything divided by the binning."""
    roi = SimpleNamespace(x_offset=100, y_offset=40, width=320, height=240)
    found = intrinsics_of(info(roi=roi, binning_x=2, binning_y=2))
    assert found == Intrinsics(160, 120, 192.0, 192.5, (319.5 - 100) / 2, (239.5 - 40) / 2)


def test_a_camera_that_was_never_calibrated_is_no_camera() -> None:
    with pytest.raises(InputError, match="is it calibrated"):
        intrinsics_of(info(k=[0.0] * 9))
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="focal lengths"):
            Intrinsics(4, 3, wrong, 5.0, 1.5, 1.0)


@pytest.mark.parametrize(
    ("k", "says"),
    [
        ([76.8, 0, 63.5, 0, 76.8, 47.5, 0, 0, 1],
         r"principal point lies at \(63.5, 47.5\) of 64 x 48 px: K seems to be that of a picture of another size"),
        ([38.4, 0, 31.5, 0, 38.4, 47.5, 0, 0, 1], r"\(31.5, 47.5\) of 64 x 48"),
        ([19.2, 0, 15.5, 0, 19.2, 11.5, 0, 0, 1], r"\(15.5, 11.5\) of 64 x 48"),
        ([38.4, 0, 31.5, 0, 380.0, 23.5, 0, 0, 1], "focal lengths are 38.4 and 380 px in a picture of 64 x 48 px"),
    ],
)  # fmt: skip
def test_a_matrix_of_another_picture_is_refused(k: list[float], says: str) -> None:
    """64 x 48 px: the middle is at (31.5, 23.5); K of twice and of half the size, of one side, and one stretched."""
    with pytest.raises(InputError, match=says):
        intrinsics_of(info(width=64, height=48, k=k))
    with pytest.raises(InputError, match=says.replace("K seems", "P seems")):
        intrinsics_of(info(width=64, height=48, p=[*k[:3], 0, *k[3:6], 0, *k[6:], 0]), rectified=True)


def test_a_region_may_leave_the_principal_point_out() -> None:
    roi = SimpleNamespace(x_offset=400, y_offset=300, width=64, height=48)
    assert intrinsics_of(info(roi=roi)) == Intrinsics(64, 48, 384.0, 385.0, -80.5, -60.5)


def test_a_rectified_picture_is_described_by_p_and_has_no_lens() -> None:
    """sensor_msgs/CameraInfo: P is the matrix of the rectified image, K and D are those of the raw one."""
    told = info(d=(-0.3, 0.1, 0, 0, 0))
    assert pinhole_of(told, rectified=True) == Intrinsics(640, 480, 380.0, 381.0, 320.5, 238.5)
    assert lens_of(told, rectified=True) == ("plumb_bob", ())
    topics = (
        "/zed/left/image_rect_color",
        "/a/image_rect",
        "/image_rect/compressed",
        "/a/image_raw",
        "/image_rect/raw",
    )
    assert list(map(is_rectified, topics)) == [True, True, True, False, False]


@pytest.mark.parametrize("k1", [-50.0, -100.0, -5000.0, -0.3])
def test_a_lens_that_no_pinhole_camera_explains_moves_pixels_without_limit(k1: float) -> None:
    """A corner is 1.04 focal lengths out, and r + k1 r^3 for k1 < 0 reaches 2 / 3 sqrt(-1 / (3 k1)), 0.70 for -0.3.

    OpenCV gives such a pixel back as it is, or one that does not lead to it again.
    """
    assert largest_shift_px(intrinsics_of(info()), "plumb_bob", (k1, 0.0, 0.0, 0.0, 0.0)) == math.inf
    with pytest.raises(InputError, match="moves pixels without limit from where a pinhole camera sees them"):
        pinhole_of(info(d=(k1, 0, 0, 0, 0)))


def test_the_shift_of_a_barrel_lens_is_that_of_its_formula() -> None:
    """An ideal corner at radius r is seen at r - 0.05 r^3; the seen corner of 200 x 200 px at f = 400 is known."""
    lens = Intrinsics(201, 201, 400.0, 400.0, 100.0, 100.0)
    seen = math.hypot(100, 100) / 400
    ideal = min(np.roots([-0.05, 0, 1, -seen]).real, key=lambda root: abs(root - seen))
    found = largest_shift_px(lens, "plumb_bob", (-0.05, 0.0, 0.0, 0.0, 0.0))
    assert found == pytest.approx(400 * (ideal - seen), rel=1e-6)


def test_a_picture_is_taken_for_a_pinhole_cameras_where_its_lens_hardly_shows() -> None:
    for model, d in (("plumb_bob", D455), ("plumb_bob", ()), ("rational_polynomial", (*D455, 0.001, 0, 0))):
        assert pinhole_of(info(model, d)).fx == 384.0
        assert largest_shift_px(pinhole_of(info(model, d)), model, tuple(d)) < 0.01 * 640
    for model, d in (("equidistant", (0.0,) * 4), ("plumb_bob", (-0.3, 0.1, 0, 0, 0))):
        with pytest.raises(InputError, match=rf"the lens \({model}\) moves pixels by up to \d+ px .* rectified"):
            pinhole_of(info(model, d))


def test_the_shift_of_a_fisheye_lens_is_that_of_its_formula() -> None:
    """r = f theta against r = f tan(theta), at the corner of the picture."""
    lens = Intrinsics(201, 201, 400.0, 400.0, 100.0, 100.0)
    theta = math.hypot(100, 100) / 400
    expected = 400 * (math.tan(theta) - theta)
    assert largest_shift_px(lens, "equidistant", (0.0,) * 4) == pytest.approx(expected, rel=1e-6)
    assert largest_shift_px(Intrinsics(640, 480, 150.0, 150.0, 320.0, 240.0), "equidistant", (0.0,) * 4) == math.inf


@pytest.mark.parametrize("size", [(1280, 960), (320, 240), (480, 640)])
def test_a_view_and_a_frame_refuse_the_intrinsics_of_another_picture(size: tuple[int, int]) -> None:
    color, other = np.zeros((480, 640, 3), np.uint8), Intrinsics(*size, 384.0, 384.0, 319.5, 239.5)
    with pytest.raises(InputError, match=r"camera 'top': its camera_info is for .* and the picture has 640 x 480"):
        CameraView("top", color, None, other, np.eye(4))
    with pytest.raises(InputError, match="its camera_info is for"):
        CameraFrame(color, None, other, 0)
