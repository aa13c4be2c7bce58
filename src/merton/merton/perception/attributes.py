"""The five low-level attributes of an image that Embodied-IQA shows per distortion (Appendix G, Fig. 12).

The paper names them and gives no formulas; ours are the common ones, each with its source.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.world.observation import Image


@dataclass(frozen=True)
class Attributes:
    """Five numbers that describe an image.

    Attributes:
        luminance: mean luma, 0 (black) .. 1 (white). Luma is ITU-R BT.601's weighted sum of R, G and B.
        contrast: root mean square contrast, the standard deviation of luma, 0 .. 0.5 (Peli, 1990).
        chrominance: colourfulness M3 of Hasler and Suesstrunk (2003), from 0 (grey) to about 298 (8-bit units).
        blur: variance of the Laplacian of the 8-bit luma, >= 0 (Pech-Pacheco et al., 2000). **Falls** as an image gets
            more blurred: the axis of Fig. 12 runs this way too, with blurs on the left and sharpening on the right.
        spatial_information: SI of ITU-T P.910, the standard deviation of the Sobel gradient of the 8-bit luma, >= 0.
    """

    luminance: float
    contrast: float
    chrominance: float
    blur: float
    spatial_information: float


def attributes(image: Image) -> Attributes:
    """The attributes of a (height, width, 3) uint8 RGB image of at least 3 x 3 pixels; raises InputError otherwise.

    The outermost pixels do not count for blur and spatial information: their neighbourhood is incomplete.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        found = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise InputError(f"an image must be uint8 (height, width, 3) RGB, got {found}")
    if min(image.shape[:2]) < 3:
        raise InputError(f"attributes need at least 3 x 3 pixels, got {image.shape[1]} x {image.shape[0]}")
    rgb = image.astype(np.float32)
    luma = rgb @ np.array([0.299, 0.587, 0.114], np.float32)
    inner = (slice(1, -1), slice(1, -1))
    gradient = np.hypot(cv2.Sobel(luma, cv2.CV_32F, 1, 0)[inner], cv2.Sobel(luma, cv2.CV_32F, 0, 1)[inner])
    laplacian = cv2.Laplacian(luma, cv2.CV_32F)[inner]
    return Attributes(
        luminance=float(luma.mean(dtype=np.float64)) / 255.0,
        contrast=float(luma.std(dtype=np.float64)) / 255.0,
        chrominance=_colourfulness(rgb),
        blur=float(laplacian.var(dtype=np.float64)),
        spatial_information=float(gradient.std(dtype=np.float64)),
    )


def _colourfulness(rgb: NDArray[np.float32]) -> float:
    """sqrt of the variances plus 0.3 sqrt of the squared means of the opponent colours R - G and (R + G)/2 - B."""
    red_green = rgb[..., 0] - rgb[..., 1]
    yellow_blue = (rgb[..., 0] + rgb[..., 1]) / 2 - rgb[..., 2]
    spread = np.hypot(red_green.std(dtype=np.float64), yellow_blue.std(dtype=np.float64))
    offset = np.hypot(red_green.mean(dtype=np.float64), yellow_blue.mean(dtype=np.float64))
    return float(spread + 0.3 * offset)
