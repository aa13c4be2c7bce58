"""Metrics of one fault each, measured without a reference and named after the fault."""

from __future__ import annotations

import math

import cv2
import numpy as np

from merton.world.observation import Image

_CRETE_LENGTH_PX = 11


def blur_effect(image: Image) -> float:
    """The share of its sharpness that an image keeps when it is blurred once more: 0 (sharp) .. 1 (already blurred).

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
