"""The pictures that an export has: chosen cameras, and a size that the adapter of LeRobot gives a policy again."""

from __future__ import annotations

import numpy as np
import pytest

from merton.decision.models.images import even_size, shrunk
from merton.errors import InputError
from merton.world.cell import load_cell
from merton_studies.release.lerobot.pictures import ALL_PICTURES, PictureChoice

CAMERAS = load_cell().camera_names


def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (240, 424, 3), dtype=np.uint8)


def test_all_pictures_stay_as_they_are_and_leave_no_trace() -> None:
    (same,) = ALL_PICTURES.sized([picture()])
    np.testing.assert_array_equal(same, picture())
    assert ALL_PICTURES.of(CAMERAS) == CAMERAS
    assert ALL_PICTURES.asked() == {}, "an export that was begun by an earlier version goes on"
    assert PictureChoice(("top",), 212).asked() == {"pictures_chosen": {"cameras": ("top",), "width_px": 212}}


def test_cameras_are_in_the_order_of_the_cell() -> None:
    assert PictureChoice(("side", "wrist")).of(("wrist", "top", "side")) == ("wrist", "side")
    with pytest.raises(InputError, match=r"there is no camera 'front'; choose of wrist, top, side"):
        PictureChoice(("top", "front")).of(("wrist", "top", "side"))


@pytest.mark.parametrize("width", [16, 100, 106, 128, 160, 212, 320, 422])
def test_the_policy_gets_the_size_that_was_exported(width: int) -> None:
    """Whatever rounding an even height needs, the adapter's rule recognises the picture's proportions."""
    (small,) = PictureChoice(width_px=width).sized([picture()])
    assert small.shape == (*even_size(picture(), width), 3)
    assert small.dtype == np.uint8
    assert not small.shape[0] % 2
    assert abs(small.shape[0] - 240 * width / 424) <= 1
    np.testing.assert_array_equal(shrunk(picture(), small.shape[:2]), small)


def test_half_the_width_is_the_mean_of_each_two_by_two() -> None:
    (half,) = PictureChoice(width_px=212).sized([picture()])
    means = picture().reshape(120, 2, 212, 2, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(half, means, atol=0.5)


def test_pictures_are_not_enlarged() -> None:
    (same,) = PictureChoice(width_px=640).sized([picture()])
    assert same.shape == (240, 424, 3)


@pytest.mark.parametrize("width", [0, -2, 14, 127])
def test_a_width_that_no_film_has_is_refused(width: int) -> None:
    with pytest.raises(InputError, match=f"an even width of at least 16 pixels, got {width}"):
        PictureChoice(width_px=width)
