"""Coloured blobs on drawn images: places, sizes, angles and shapes that were put there, and nothing that was not."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from merton.errors import UnknownNameError
from merton.models import blobs as vision
from merton.models.blobs import find_blobs
from merton.world.observation import Image
from merton.world.tasks import COLORS

GREY = (200, 198, 192)


def lit(color: str, value: float = 1.0) -> tuple[int, int, int]:
    """RGB of a surface of this colour, lit from above; `value` scales its brightness."""
    hue, saturation, brightness = vision.LIT[color]
    pixel = np.array([[[hue, min(255, saturation + 5), round(brightness * value)]]], np.uint8)
    r, g, b = cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0].tolist()
    return r, g, b


def table() -> Image:
    return np.full((240, 424, 3), GREY, np.uint8)


def square(image: Image, center: tuple[float, float], side: float, angle_rad: float, rgb: tuple[int, int, int]) -> None:
    corners = cv2.boxPoints((center, (side, side), math.degrees(angle_rad)))
    cv2.fillPoly(image, [np.rint(corners).astype(np.int32)], rgb)


def test_the_vocabulary_is_that_of_the_tasks() -> None:
    assert set(vision.LIT) == set(COLORS)


@pytest.mark.parametrize("color", COLORS)
@pytest.mark.parametrize("angle_deg", [0, 20, 45, 70, 89])
def test_a_square_is_found_where_it_was_drawn(color: str, angle_deg: int) -> None:
    image = table()
    square(image, (150.0, 90.0), 40.0, math.radians(angle_deg), lit(color))
    (blob,) = find_blobs(image, color)
    assert blob.color == color
    assert blob.shape == "cube"
    assert blob.centroid_px == pytest.approx((150, 90), abs=0.7)
    assert blob.area_px == pytest.approx(40 * 40, rel=0.08)
    away = (blob.angle_rad - math.radians(angle_deg) + math.pi / 4) % (math.pi / 2) - math.pi / 4
    assert abs(away) < math.radians(2)
    assert (blob.mask == (image == lit(color)).all(axis=2)).all()
    assert not any(find_blobs(image, other) for other in COLORS if other != color)


@pytest.mark.parametrize("axes", [(5, 5), (12, 12), (30, 18)])
def test_a_disc_is_round_also_in_perspective(axes: tuple[int, int]) -> None:
    image = table()
    cv2.ellipse(image, (200, 120), axes, 25, 0, 360, lit("red"), cv2.FILLED)
    (blob,) = find_blobs(image, "red")
    assert blob.shape == "cylinder"


def test_a_square_stays_a_cube_in_perspective() -> None:
    image = table()
    cv2.fillPoly(image, [np.array([(100, 100), (130, 104), (138, 128), (104, 124)], np.int32)], lit("blue"))
    assert find_blobs(image, "blue")[0].shape == "cube"


def test_only_what_is_lit_from_above_counts() -> None:
    image = table()
    square(image, (100.0, 100.0), 30.0, 0.0, lit("green"))
    alone = find_blobs(image, "green")[0]
    square(image, (100.0, 140.0), 30.0, 0.0, lit("green", 0.5))
    assert [blob.area_px for blob in find_blobs(image, "green")] == [alone.area_px]


def test_largest_first_and_specks_not_at_all() -> None:
    image = table()
    for center, side in (((50.0, 60.0), 12.0), ((120.0, 60.0), 30.0), ((200.0, 60.0), 3.0)):
        square(image, center, side, 0.0, lit("yellow"))
    areas = [blob.area_px for blob in find_blobs(image, "yellow")]
    assert len(areas) == 2
    assert areas == sorted(areas, reverse=True)


def test_patches_that_touch_at_a_corner_only_are_two() -> None:
    image = table()
    image[20:40, 20:40] = image[40:60, 40:60] = lit("red")
    assert [blob.area_px for blob in find_blobs(image, "red")] == [400, 400]


def test_red_lies_on_both_sides_of_the_end_of_the_hue_circle() -> None:
    for rgb in ((230, 24, 34), (230, 34, 24)):
        image = table()
        square(image, (100.0, 100.0), 30.0, 0.0, rgb)
        assert find_blobs(image, "red")


def test_what_a_distortion_takes_is_gone() -> None:
    """No adaptation to brightness, no repair of noise: the darker or noisier, the less is left."""
    image = table()
    square(image, (150.0, 90.0), 40.0, 0.3, lit("green"))
    darker = [np.rint(image * factor).astype(np.uint8) for factor in (1.0, 0.95, 0.7)]
    areas = [sum(blob.area_px for blob in find_blobs(dark, "green")) for dark in darker]
    assert areas[0] == areas[1] > areas[2] == 0
    rng = np.random.default_rng(0)
    areas = []
    for sigma in (0, 10, 15, 40):
        noisy = np.clip(image + rng.normal(0, sigma, image.shape), 0, 255).astype(np.uint8)
        areas.append(max((blob.area_px for blob in find_blobs(noisy, "green")), default=0))
    assert areas[0] > areas[1] > areas[2] > areas[3] == 0


@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (240, 424)])
def test_any_image_will_do(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    for image in (
        np.zeros((*shape, 3), np.uint8),
        np.full((*shape, 3), 255, np.uint8),
        rng.integers(0, 256, (*shape, 3), np.uint8),
        np.broadcast_to(np.array(lit("red"), np.uint8), (*shape, 3)).copy(),
    ):
        for color in COLORS:
            for blob in find_blobs(image, color):
                assert blob.area_px == blob.mask.sum() >= vision.MIN_AREA_PX
                assert 0 <= blob.angle_rad < math.pi / 2


def test_an_unknown_colour() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown colour 'mauve'; choose one of: blue, green, red, yellow"):
        find_blobs(table(), "mauve")
