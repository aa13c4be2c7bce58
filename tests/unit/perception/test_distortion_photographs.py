"""The distortions on real photographs: those that scikit-image and scikit-learn bring along."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import pytest
from installed import skip_file_without

from merton.perception.dataset.sample import photographs as sample_photographs
from merton.perception.distortion import DISTORTIONS, distort
from merton.perception.distortion.denoiser import denoise
from merton.perception.quality import measure
from merton.world.observation import Image

pytest.importorskip("skimage", reason="the photographs come with scikit-image")
skip_file_without("sklearn", "two photographs come with scikit-learn")

LONGER_SIDE_PX = 256


@lru_cache(maxsize=1)
def photographs() -> tuple[Image, ...]:
    """The nine photographs of the built-in sample as RGB, made smaller so that all 30 x 5 stay cheap."""
    pictures = []
    for file, _ in sample_photographs():
        pixels = cv2.cvtColor(cv2.imread(str(file)), cv2.COLOR_BGR2RGB)
        scale = LONGER_SIDE_PX / max(pixels.shape[:2])
        pictures.append(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))
    assert len(pictures) == 9
    return tuple(pictures)


@pytest.mark.parametrize("name", DISTORTIONS)
def test_likeness_falls_with_the_level(name):
    """Mean SSIM falls from level to level for every type, without an exception; 1 is not yet ruin, 5 no identity.

    The values are those written for the levels, whatever the width of the photograph.
    """
    likeness = []
    for level in range(1, 6):
        pairs = [
            (distort(image, name, level, np.random.default_rng(0), reference_width_px=image.shape[1]), image)
            for image in photographs()
        ]
        likeness.append(float(np.mean([measure("ssim", distorted, image) for distorted, image in pairs])))
    assert (np.diff(likeness) < 0).all(), likeness
    assert likeness[0] > 0.7, likeness
    assert likeness[-1] < 0.9, likeness


@pytest.mark.parametrize(("variance", "sigma_px"), [(0.01, 0.9), (0.05, 1.4), (0.15, 2.0)])
def test_the_denoiser_does_better_than_a_blur(variance, sigma_px):
    """On every photograph at least 5 dB less noise, 0.5 dB less than a Gaussian filter of a fitting width leaves."""
    for image in photographs():
        deviation = variance**0.5
        noise = 255 * deviation * np.random.default_rng(1).normal(size=image.shape)
        noisy = np.clip(np.rint(image + noise), 0, 255).astype(np.uint8)
        restored = measure("psnr", denoise(noisy, deviation), image)
        assert restored > measure("psnr", noisy, image) + 5
        assert restored > measure("psnr", cv2.GaussianBlur(noisy, (0, 0), sigma_px), image) + 0.5
