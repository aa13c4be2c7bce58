"""Quality metrics against scikit-image, recorded values of torchmetrics, and laws."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from skimage.measure import blur_effect
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from merton.errors import InputError, UnknownNameError
from merton.perception.quality import METRICS, measure
from merton.perception.quality.remembered import remembered
from merton.world.observation import Image

MS_SSIM = 0.8987934


@pytest.fixture
def pair() -> tuple[Image, Image]:
    """(noisy image, reference), 203 x 199: sides that do not halve evenly."""
    rng = np.random.default_rng(3)
    reference = cv2.GaussianBlur(rng.integers(0, 256, (199, 203, 3), dtype=np.uint8), (0, 0), 3)
    reference = np.asarray(cv2.normalize(reference, None, 0, 255, cv2.NORM_MINMAX), np.uint8)  # type: ignore[call-overload]
    noisy = reference.astype(int) + rng.integers(-40, 41, reference.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), reference


@pytest.fixture
def versions(pair: tuple[Image, Image]) -> list[Image]:
    """The reference noisy, blurred, dark and inverted."""
    noisy, reference = pair
    return [noisy, cv2.GaussianBlur(reference, (0, 0), 2), reference // 3, 255 - reference]


def test_psnr_and_ssim_are_those_of_scikit_image(pair: tuple[Image, Image], versions: list[Image]) -> None:
    reference = pair[1]
    settings = {"channel_axis": 2, "gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    for image in versions:
        assert measure("psnr", image, reference) == pytest.approx(peak_signal_noise_ratio(reference, image), rel=1e-9)
        expected = structural_similarity(reference, image, data_range=255, **settings)
        assert measure("ssim", image, reference) == pytest.approx(expected, abs=2e-5)


def test_blur_effect_is_that_of_scikit_image(versions: list[Image]) -> None:
    for image in versions:
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        assert measure("blur_effect", image) == pytest.approx(blur_effect(grey.astype(float)), abs=1e-4)


def test_ms_ssim_is_that_of_torchmetrics(pair: tuple[Image, Image]) -> None:
    """Recorded from torchmetrics 1.9.0 with torch 2.13.0: multiscale_structural_similarity_index_measure, range 255."""
    assert measure("ms_ssim", *pair) == pytest.approx(MS_SSIM, abs=2e-4)


@pytest.mark.parametrize("sigma", [2, 5, 10, 20])
def test_noise_sigma_finds_the_noise_that_was_added(sigma: float) -> None:
    ramp = np.linspace(80, 170, 256)[None, :, None] * np.ones((256, 1, 3))
    noise = np.random.default_rng(1).normal(0, sigma, (256, 256, 1))
    image = np.clip(np.round(ramp + noise), 0, 255).astype(np.uint8)
    assert measure("noise_sigma", image) == pytest.approx(sigma, rel=0.04)


def test_equal_images_have_the_best_value(pair: tuple[Image, Image]) -> None:
    reference = pair[1]
    assert measure("psnr", reference, reference.copy()) == math.inf
    assert measure("ssim", reference, reference.copy()) == pytest.approx(1, abs=1e-6)
    assert measure("ms_ssim", reference, reference.copy()) == pytest.approx(1, abs=1e-6)


def test_ms_ssim_weighs_brightness_at_the_coarsest_scale_alone() -> None:
    """Wang et al. 2003, eq. (7): of two plain greys only the luminance differs, and the last weight is 0.1333."""
    darker, brighter = (np.full((256, 256, 3), grey, np.uint8) for grey in (100, 140))
    c1 = (0.01 * 255) ** 2
    luminance = (2 * 100 * 140 + c1) / (100**2 + 140**2 + c1)
    assert measure("ms_ssim", brighter, darker) == pytest.approx(luminance**0.1333, abs=1e-5)
    assert measure("ssim", brighter, darker) == pytest.approx(luminance, abs=1e-5)


@pytest.mark.parametrize("name", ["psnr", "ssim", "ms_ssim"])
def test_more_of_the_same_is_worse_and_both_ways_are_equal(name: str, pair: tuple[Image, Image]) -> None:
    _, reference = pair
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, reference.shape)
    values = [
        measure(name, np.clip(reference + strength * noise, 0, 255).astype(np.uint8), reference)
        for strength in (3, 10, 30)
    ]
    assert values == sorted(values, reverse=True)
    assert measure(name, *pair) == pytest.approx(measure(name, pair[1], pair[0]), abs=1e-6)


def test_blur_effect_rises_with_blur(pair: tuple[Image, Image]) -> None:
    values = [measure("blur_effect", cv2.GaussianBlur(pair[0], (0, 0), sigma)) for sigma in (0.5, 1, 2, 4)]
    assert values == sorted(values)
    assert measure("blur_effect", np.full((32, 32, 3), 9, np.uint8)) == 1


@pytest.mark.parametrize("name", list(METRICS))
def test_values_lie_in_the_range_of_the_entry(name: str, pair: tuple[Image, Image], versions: list[Image]) -> None:
    low, high = METRICS[name].range
    for image in versions:
        assert low <= measure(name, image, pair[1]) <= high


@pytest.mark.parametrize("name", list(METRICS))
def test_the_smallest_image_works_and_a_smaller_one_is_refused(name: str) -> None:
    side = METRICS[name].smallest_side_px
    image = np.random.default_rng(0).integers(0, 256, (side, side + 3, 3), dtype=np.uint8)
    assert np.isfinite(measure(name, image, 255 - image))
    if side > 1:
        with pytest.raises(InputError, match="at least"):
            measure(name, image[1:], image[1:])


def test_unmeasurable_pairs_are_refused(pair: tuple[Image, Image]) -> None:
    image, reference = pair
    with pytest.raises(UnknownNameError, match="ssim"):
        measure("sism", image, reference)
    with pytest.raises(InputError, match="reference"):
        measure("ssim", image)
    with pytest.raises(InputError, match="same shape"):
        measure("ssim", image, reference[1:])
    for wrong in (None, image[..., 0], image.astype(float)):
        with pytest.raises(InputError, match="uint8"):
            measure("blur_effect", wrong)  # type: ignore[arg-type]


def test_what_is_remembered_of_an_image_is_of_its_pixels() -> None:
    """Computed anew for an image that was changed in place, and never for an equal one."""
    seen = []
    total = remembered(lambda image: seen.append(1) or int(image.sum()))
    image = np.full((2, 2, 3), 7, np.uint8)
    assert (total(image), total(image.copy()), len(seen)) == (84, 84, 1)
    image[0, 0, 0] = 8
    assert (total(image), len(seen)) == (85, 2)
