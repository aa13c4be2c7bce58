"""What a CameraInfo says of a picture and of its lens, and that a view whose parts do not fit is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.camera import CameraFrame
from merton.world.camera_info import intrinsics_of, largest_shift_px, lens_of, pinhole_of
from merton.world.observation import CameraView, Intrinsics

D455 = (-0.056, 0.067, 0.0001, -0.0002, -0.02)


def info(model: str = "plumb_bob", d: Any = (), width: int = 640, height: int = 480, **more: Any) -> Any:
    k = [384.0, 0, 319.5, 0, 385.0, 239.5, 0, 0, 1]
    roi = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0)
    fields = {"k": k, "roi": roi, "binning_x": 0, "binning_y": 0, **more}
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
