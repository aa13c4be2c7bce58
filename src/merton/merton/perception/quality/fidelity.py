"""Metrics that compare an image with its undistorted reference."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.quality.remembered import remembered
from merton.world.observation import Image

_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
_WINDOW_PX = 11


def psnr(image: Image, reference: Image) -> float:
    """Peak signal-to-noise ratio [dB] over all pixels and channels, peak 255; infinite for equal images."""
    difference = cv2.norm(image, reference, cv2.NORM_L2SQR) / image.size
    return math.inf if difference == 0 else 10.0 * math.log10(255.0**2 / difference)


def ssim(image: Image, reference: Image) -> float:
    """Structural similarity, the mean over the three channels and all whole windows.

    Wang et al. (2004): an 11 x 11 Gaussian window of sigma 1.5, K1 = 0.01, K2 = 0.03, no sample correction.
    """
    return float(np.mean(_finest(image, reference)[0], dtype=np.float64))


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
        whole, structure = _similarity(one, other) if scale else _finest(image, reference)
        last = scale == len(_SCALE_WEIGHTS) - 1
        value *= max(0.0, float(np.mean(whole if last else structure, dtype=np.float64))) ** weight
    return value


@remembered
def _finest(image: Image, reference: Image) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """`_similarity` at full size."""
    return _similarity(image.astype(np.float32), reference.astype(np.float32))


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
