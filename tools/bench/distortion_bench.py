"""Distortions in the bench: every type at every level, and beside peers, on a photograph at 1280x720.

Processor time of one thread. The photograph is scikit-learn's "china.jpg" (640x427), mirrored at its borders up to the
size instead of scaled up: it keeps the detail and the colours of a camera's picture, on which codecs and palettes spend
their time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from timing import cpu_seconds

from merton.perception.distortion import DISTORTIONS, distort
from merton.world.observation import Image

HEIGHT, WIDTH = 720, 1280


def photograph() -> Image:
    """(720, 1280, 3) uint8 RGB; raises ImportError without scikit-learn (make develop)."""
    from sklearn.datasets import load_sample_image

    small = load_sample_image("china.jpg")
    below, right = HEIGHT - small.shape[0], WIDTH - small.shape[1]
    return np.asarray(cv2.copyMakeBorder(small, 0, below, 0, right, cv2.BORDER_REFLECT), np.uint8)


def distortions() -> dict[str, dict[str, float]]:
    """Milliseconds of processor time per 1280x720 photograph, one thread, by level."""
    cv2.setNumThreads(1)
    rng, image = np.random.default_rng(0), photograph()
    return {
        name: {
            f"level_{level}_ms": 1e3 * cpu_seconds(lambda n=name, k=level: distort(image, n, k, rng), 5)
            for level in range(1, 6)
        }
        for name in DISTORTIONS
    }


def peers() -> dict[str, dict[str, float]]:
    """Milliseconds of processor time at level 3 beside libraries that have the type; how many times faster Merton is.

    One photograph of 1280x720, one thread, parameters as equal as the libraries allow. Pillow's quantiser is its median
    cut, which makes a palette for the image as ours does. albumentations' lines of motion are one pixel wide.
    """
    cv2.setNumThreads(1)
    rng, image = np.random.default_rng(0), photograph()
    result = {}
    for name, others in _rivals(image).items():
        ours = cpu_seconds(lambda n=name: distort(image, n, 3, rng))
        result[name] = {"merton_ms": 1e3 * ours}
        for rival, work in others.items():
            theirs = cpu_seconds(work, 5)
            result[name] |= {f"{rival}_ms": 1e3 * theirs, f"times_faster_than_{rival}": theirs / ours}
    return result


def _rivals(image: Image) -> dict[str, dict[str, Callable[[], Any]]]:
    """The work of each peer, by type and library."""
    import albumentations
    import PIL.Image
    from imagecorruptions import corrupt

    rivals: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, corruption in (
        ("white_noise", "gaussian_noise"),
        ("multiplicative_noise", "speckle_noise"),
        ("impulse_noise", "impulse_noise"),
        ("gaussian_blur", "gaussian_blur"),
        ("lens_blur", "defocus_blur"),
        ("motion_blur", "motion_blur"),
        ("mean_brighten", "brightness"),
        ("contrast_change", "contrast"),
        ("hsv_saturation", "saturate"),
        ("resolution_limit", "pixelate"),
        ("jpeg", "jpeg_compression"),
    ):
        work = {"imagecorruptions": lambda c=corruption: corrupt(image, corruption_name=c, severity=3)}
        rivals[name] = work
    a = albumentations
    averaged = {"downscale": cv2.INTER_AREA, "upscale": cv2.INTER_LINEAR}
    for name, transform in (
        ("white_noise", a.GaussNoise(std_range=(0.055, 0.055), p=1)),
        ("multiplicative_noise", a.MultiplicativeNoise((0.9, 1.1), per_channel=True, elementwise=True, p=1)),
        ("impulse_noise", a.SaltAndPepper(amount=(0.01, 0.01), p=1)),
        ("gaussian_blur", a.GaussianBlur(sigma_limit=(1.0, 1.0), blur_limit=0, p=1)),
        ("lens_blur", a.Defocus(radius=(4, 4), alias_blur=(0.1, 0.1), p=1)),
        ("motion_blur", a.MotionBlur(blur_limit=(7, 7), p=1)),
        ("mean_brighten", a.RandomBrightnessContrast((0.09, 0.09), (0.0, 0.0), p=1)),
        ("hsv_saturation", a.HueSaturationValue(p=1)),
        ("sharpness_change", a.UnsharpMask(blur_limit=(19, 19), sigma_limit=(3.0, 3.0), alpha=(1.0, 1.0), p=1)),
        ("resolution_limit", a.Downscale(scale_range=(1 / 3, 1 / 3), interpolation_pair=averaged, p=1)),
        ("block_exchange", a.RandomGridShuffle(grid=(45, 80), p=1)),
        ("jpeg", a.ImageCompression(quality_range=(24, 24), compression_type="jpeg", p=1)),
        ("webp", a.ImageCompression(quality_range=(10, 10), compression_type="webp", p=1)),
    ):
        rivals.setdefault(name, {})["albumentations"] = lambda t=transform: t(image=image)
    pillow = PIL.Image.fromarray(image)
    colors = int(DISTORTIONS["color_quantization"].value(3))
    cut = PIL.Image.Quantize.MEDIANCUT
    dither = PIL.Image.Dither.NONE
    rivals["color_quantization"] = {
        "pillow": lambda: np.asarray(pillow.quantize(colors, method=cut, dither=dither).convert("RGB"))
    }
    return rivals
