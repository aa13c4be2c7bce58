"""Metrics of image quality, with or without a reference image: one registry.

`psnr`, `ssim`, `ms_ssim`, `blur_effect` and `noise_sigma` need OpenCV alone; `vif` is torchmetrics' and needs the extra
`quality`. The two without a reference each measure one fault and are named after it. General scores such as NIQE or
Q-Align come with trained models, which Merton does not ship.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton.registry import Registry
from merton.world.observation import Image

Measure = Callable[[Image, Image], float]
"""(image, reference) to value; a metric without a reference ignores the second."""


@dataclass(frozen=True)
class Metric:
    """One way to measure quality.

    Attributes:
        name: such as "ssim".
        better: whether a "higher" or a "lower" value means a better image.
        range: smallest and largest possible value.
        needs_reference: whether it compares with an undistorted image.
        smallest_side_px: images with a shorter side cannot be measured.
        description: one line, with the source.
        build: returns the function that measures; raises MissingDependencyError if something must be installed.
    """

    name: str
    better: Literal["higher", "lower"]
    range: tuple[float, float]
    needs_reference: bool
    smallest_side_px: int
    description: str
    build: Callable[[], Measure]


METRICS: Registry[Metric] = Registry("quality metric")
"""Name to entry."""


def measure(name: str, image: Image, reference: Image | None = None) -> float:
    """The value of a metric.

    Args:
        name: one of `METRICS`.
        image: (height, width, 3) uint8 RGB.
        reference: the undistorted image, same shape; only for metrics that need it, else left out or ignored.

    Raises:
        UnknownNameError: no such metric.
        InputError: not an image, no reference, a reference of another shape, or an image too small for this metric.
        MissingDependencyError: the metric needs a package that is not installed.
    """
    metric = METRICS[name]
    if metric.needs_reference and reference is None:
        raise InputError(f"{name} compares with a reference image, and none was given")
    other = image if reference is None or not metric.needs_reference else reference
    for candidate in (image, other):
        if not isinstance(candidate, np.ndarray) or candidate.dtype != np.uint8 or candidate.shape[2:] != (3,):
            raise InputError(f"{name} takes uint8 (height, width, 3) RGB images, got {_kind(candidate)}")
    if image.shape != other.shape:
        raise InputError(f"image {image.shape} and reference {other.shape} must have the same shape")
    if min(image.shape[:2]) < metric.smallest_side_px:
        side = metric.smallest_side_px
        raise InputError(f"{name} needs at least {side} x {side} pixels, got {image.shape[1]} x {image.shape[0]}")
    return metric.build()(image, other)


def psnr(image: Image, reference: Image) -> float:
    """Peak signal-to-noise ratio [dB] over all pixels and channels, peak 255; infinite for equal images."""
    difference = cv2.norm(image, reference, cv2.NORM_L2SQR) / image.size
    return math.inf if difference == 0 else 10.0 * math.log10(255.0**2 / difference)


def ssim(image: Image, reference: Image) -> float:
    """Structural similarity, the mean over the three channels and all whole windows.

    Wang et al. (2004): an 11 x 11 Gaussian window of sigma 1.5, K1 = 0.01, K2 = 0.03, no sample correction.
    """
    return float(np.mean(_similarity(image.astype(np.float32), reference.astype(np.float32))[0], dtype=np.float64))


def ms_ssim(image: Image, reference: Image) -> float:
    """Multi-scale structural similarity: Wang et al. (2003), five scales, each half as large as the one before.

    As in torchmetrics, images are halved by averaging 2 x 2 pixels (an odd last row or column is dropped) and a
    negative mean counts as 0.
    """
    value = 1.0
    one, other = image.astype(np.float32), reference.astype(np.float32)
    for scale, weight in enumerate(_SCALE_WEIGHTS):
        if scale:
            one, other = _halved(one), _halved(other)
        whole, structure = _similarity(one, other)
        last = scale == len(_SCALE_WEIGHTS) - 1
        value *= max(0.0, float(np.mean(whole if last else structure, dtype=np.float64))) ** weight
    return value


def blur_effect(image: Image) -> float:
    """How little sharpness an image loses when it is blurred once more: 0 (sharp) .. 1 (already blurred).

    Crete et al. (2007) compare the differences of neighbours before and after a running mean of 11 pixels, and take the
    worse of the two directions. Differences are Sobel's, as in scikit-image. An image without any edge counts as 1.
    """
    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    worst = 0.0
    for grey in (luma, np.ascontiguousarray(luma.T)):
        blurred = cv2.blur(grey, (1, _CRETE_LENGTH_PX), borderType=cv2.BORDER_REFLECT)
        inner = (slice(2, -1), slice(2, -1))
        sharp = np.abs(cv2.Sobel(grey, cv2.CV_32F, 0, 1))[inner]
        lost = np.maximum(0.0, sharp - np.abs(cv2.Sobel(blurred, cv2.CV_32F, 0, 1))[inner])
        total = float(sharp.sum(dtype=np.float64))
        worst = max(worst, 1.0 - float(lost.sum(dtype=np.float64)) / total if total else 1.0)
    return worst


def noise_sigma(image: Image) -> float:
    """Estimated standard deviation of white noise in the luma, in 8-bit units; fine texture counts as noise.

    Immerkaer (1996): a mask that takes out constants, slopes and edges leaves the noise, whose mean magnitude tells
    sigma.
    """
    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    mask = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    residue = np.abs(cv2.filter2D(luma, cv2.CV_32F, mask)[1:-1, 1:-1])
    return float(residue.mean(dtype=np.float64)) * math.sqrt(math.pi / 2.0) / 6.0


_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
_WINDOW_PX = 11
_CRETE_LENGTH_PX = 11


def _similarity(
    one: NDArray[np.float32], other: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """SSIM and its contrast-structure factor at every whole window, (height - 10, width - 10, 3), values 0..255."""
    # around mid-grey the squares are small, which is what single precision needs
    one, other = one - np.float32(127.5), other - np.float32(127.5)
    mean_one, mean_other = _windowed(one), _windowed(other)
    variances = _windowed(one * one + other * other) - mean_one * mean_one - mean_other * mean_other
    covariance = _windowed(one * other) - mean_one * mean_other
    c1, c2 = np.float32((0.01 * 255) ** 2), np.float32((0.03 * 255) ** 2)
    structure = (2 * covariance + c2) / (variances + c2)
    mean_one, mean_other = mean_one + np.float32(127.5), mean_other + np.float32(127.5)
    return structure * (2 * mean_one * mean_other + c1) / (mean_one**2 + mean_other**2 + c1), structure


def _windowed(values: NDArray[np.float32]) -> NDArray[np.float32]:
    border = _WINDOW_PX // 2
    blurred = cv2.GaussianBlur(values, (_WINDOW_PX, _WINDOW_PX), 1.5)
    return np.asarray(blurred[border:-border, border:-border])


def _halved(values: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = values.shape[0] // 2, values.shape[1] // 2
    return np.asarray(cv2.resize(values[: 2 * height, : 2 * width], (width, height), interpolation=cv2.INTER_AREA))


@lru_cache(maxsize=1)
def _build_vif() -> Measure:
    torch = require("torch", "quality", "vif")
    metrics = require("torchmetrics.functional.image", "quality", "vif")

    def vif(image: Image, reference: Image) -> float:
        distorted, undistorted = (
            torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])).float()
            for pixels in (image, reference)
        )
        return float(metrics.visual_information_fidelity(distorted, undistorted))

    return vif


def _kind(value: object) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


for _metric in (
    Metric("psnr", "higher", (0.0, math.inf), True, 1, "peak signal-to-noise ratio in dB", lambda: psnr),
    Metric("ssim", "higher", (-1.0, 1.0), True, 11, "structural similarity, Wang et al. 2004", lambda: ssim),
    Metric("ms_ssim", "higher", (0.0, 1.0), True, 176, "SSIM over five scales, Wang et al. 2003", lambda: ms_ssim),
    Metric(
        "vif", "higher", (0.0, math.inf), True, 41,
        "visual information fidelity in the pixel domain, Sheikh and Bovik 2006, by torchmetrics; needs .[quality]",
        _build_vif,
    ),
    Metric(
        "blur_effect", "lower", (0.0, 1.0), False, 16, "perceived blur alone, Crete et al. 2007",
        lambda: lambda image, _: blur_effect(image),
    ),
    Metric(
        "noise_sigma", "lower", (0.0, math.inf), False, 3, "estimated white noise alone, Immerkaer 1996",
        lambda: lambda image, _: noise_sigma(image),
    ),
):  # fmt: skip
    METRICS.add(_metric.name, _metric)
