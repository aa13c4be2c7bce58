"""Laws of the five low-level attributes."""

from __future__ import annotations

import itertools

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.attributes import attributes


@pytest.fixture
def texture() -> np.ndarray:
    """A colourful (90, 120, 3) image with edges."""
    coarse = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    return cv2.resize(coarse, (120, 90), interpolation=cv2.INTER_NEAREST)


@pytest.mark.parametrize("value", [0, 77, 255])
def test_an_even_grey_has_nothing_but_luminance(value: int) -> None:
    found = attributes(np.full((20, 30, 3), value, np.uint8))
    assert found.luminance == pytest.approx(value / 255)
    assert found.contrast == pytest.approx(0, abs=1e-6)
    assert found.chrominance == pytest.approx(0, abs=1e-6)
    assert found.blur == pytest.approx(0, abs=1e-6)
    assert found.spatial_information == pytest.approx(0, abs=1e-6)


def test_half_black_half_white_has_the_largest_contrast() -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    image[:, 15:] = 255
    found = attributes(image)
    assert found.contrast == pytest.approx(0.5, abs=1e-6)
    assert found.luminance == pytest.approx(0.5, abs=1e-6)
    # two columns of 28 inner ones have a Sobel gradient of 4 * 255, the others none
    share = 2 / 28
    assert found.spatial_information == pytest.approx(1020 * np.sqrt(share * (1 - share)), rel=1e-5)
    # and a Laplacian of +255 and -255
    assert found.blur == pytest.approx(share * 255**2, rel=1e-5)


def test_colourfulness_of_plain_red_is_the_formula_by_hand() -> None:
    image = np.zeros((16, 16, 3), np.uint8)
    image[..., 0] = 200
    assert attributes(image).chrominance == pytest.approx(0.3 * np.hypot(200, 100), rel=1e-6)


def test_red_and_green_in_halves_are_the_formula_by_hand() -> None:
    image = np.zeros((16, 16, 3), np.uint8)
    image[:8, :, 0] = image[8:, :, 1] = 255
    # R - G is +-255 and spreads by 255; (R + G)/2 - B is 127.5 everywhere
    assert attributes(image).chrominance == pytest.approx(255 + 0.3 * 127.5, rel=1e-6)


def test_blur_lowers_the_measures_of_edges(texture: np.ndarray) -> None:
    found = [attributes(cv2.GaussianBlur(texture, (0, 0), sigma)) for sigma in (0.5, 1, 2, 4)]
    for sharper, blurred in itertools.pairwise(found):
        assert blurred.blur < sharper.blur
        assert blurred.spatial_information < sharper.spatial_information
        assert blurred.contrast < sharper.contrast


def test_attributes_follow_their_cause_alone(texture: np.ndarray) -> None:
    grey = cv2.cvtColor(cv2.cvtColor(texture, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    assert attributes(grey).chrominance == pytest.approx(0, abs=1e-6)
    assert attributes(grey).luminance == pytest.approx(attributes(texture).luminance, abs=2e-3)
    assert attributes(texture // 2 + 100).luminance > attributes(texture // 2).luminance
    mirrored = attributes(np.ascontiguousarray(texture[:, ::-1]))
    assert mirrored.spatial_information == pytest.approx(attributes(texture).spatial_information, rel=1e-6)


@pytest.mark.parametrize(
    "wrong", [None, np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((2, 9, 3), np.uint8)]
)
def test_anything_but_an_image_is_refused(wrong: object) -> None:
    with pytest.raises(InputError):
        attributes(wrong)  # type: ignore[arg-type]
