"""Metrics that compare the information of an image, and the pattern of its edges, with those of its reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.quality.remembered import remembered
from merton.world.observation import Image

Floats = NDArray[np.float64]

_NOISE_VARIANCE = 2.0
"""Variance of the noise in the eye, in squared 8-bit units: Sheikh and Bovik (2006), as in their release."""
_SMALLEST = 1e-10
_GRADIENT_CONSTANT = 170.0
"""c of Xue et al. (2014), equation 4, for 8-bit values."""
_PREWITT = np.array([[1, 0, -1]] * 3, np.float32) / 3


def vif(image: Image, reference: Image) -> float:
    """Visual information fidelity in the pixel domain, the mean over the three channels: 1 for equal images.

    Sheikh and Bovik (2006): the information about the scene that reaches the eye through the distorted image, divided
    by that through the reference, over four scales with Gaussian windows of 17, 9, 5 and 3 pixels. Contrast that is
    raised without noise gives more than 1. A channel without any structure in the reference has no information to lose:
    it counts as 1 if the image has the same, else as 0.
    """
    channels = zip(cv2.split(image), _sent(reference), strict=True)
    return float(np.mean([_vif_of_channel(one, scales) for one, scales in channels]))


def gmsd(image: Image, reference: Image) -> float:
    """Gradient magnitude similarity deviation of the lumas: 0 for equal images, larger is worse.

    Xue et al. (2014): the standard deviation over all places of how alike the magnitudes of Prewitt's gradients are,
    after 2 x 2 pixels were averaged.
    """
    one, other = (_gradients(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)) for pixels in (image, reference))
    similarity = (2 * one * other + _GRADIENT_CONSTANT) / (one * one + other * other + _GRADIENT_CONSTANT)
    return float(np.std(similarity, dtype=np.float64, ddof=1))


@dataclass(frozen=True)
class _Scale:
    """A channel of a reference at a scale.

    Attributes:
        values, mean, variance: the channel, and of its windows.
        flat: windows without variance.
        information: about the scene that it sends.
    """

    values: Floats
    mean: Floats
    variance: Floats
    flat: NDArray[np.bool_]
    information: float


@remembered
def _sent(reference: Image) -> list[list[_Scale]]:
    """The scales of each channel."""
    channels = []
    for channel in cv2.split(reference):
        values, scales = channel.astype(np.float64), []
        for scale in range(4):
            width = _width_px(scale)
            if scale:
                values = _halved(values, width)
            mean = _windowed(values, width)
            variance = np.maximum(_windowed(values * values, width) - mean * mean, 0)
            flat = variance < _SMALLEST
            known = np.where(flat, 0, variance)
            scales.append(_Scale(values, mean, variance, flat, _information(known / _NOISE_VARIANCE)))
        channels.append(scales)
    return channels


def _vif_of_channel(channel: NDArray[Any], scales: list[_Scale]) -> float:
    received = sent = 0.0
    one = channel.astype(np.float64)
    for scale, other in enumerate(scales):
        width = _width_px(scale)
        if scale:
            one = _halved(one, width)
        mean = _windowed(one, width)
        variance = np.maximum(_windowed(one * one, width) - mean * mean, 0)
        covariance = _windowed(one * other.values, width) - mean * other.mean
        gain = np.maximum(covariance / (other.variance + _SMALLEST), 0)
        gain[other.flat | (variance < _SMALLEST)] = 0
        noise = np.maximum(np.where(gain > 0, variance - gain * covariance, variance), _SMALLEST)
        received += _information(gain * gain * other.variance / (noise + _NOISE_VARIANCE))
        sent += other.information
    if sent == 0:
        return float(np.array_equal(one, scales[-1].values))
    return received / sent


def _width_px(scale: int) -> int:
    """Of the window at a scale."""
    return int(2 ** (4 - scale) + 1)


def _halved(values: Floats, width_px: int) -> Floats:
    return np.ascontiguousarray(_windowed(values, width_px)[::2, ::2])


def _information(ratio: NDArray[np.float64]) -> float:
    return float(np.sum(np.log1p(ratio)))


def _windowed(values: NDArray[np.float64], width_px: int) -> NDArray[np.float64]:
    """The Gaussian mean of every whole window of this width, whose sigma is a fifth of it."""
    border = width_px // 2
    blurred = cv2.GaussianBlur(values, (width_px, width_px), width_px / 5)
    return np.asarray(blurred[border:-border, border:-border])


def _gradients(luma: NDArray[Any]) -> NDArray[np.float32]:
    """Magnitudes of Prewitt's gradients of a luma whose 2 x 2 pixels are averaged; outside of it all is 0."""
    height, width = luma.shape
    even = cv2.copyMakeBorder(luma, 0, height % 2, 0, width % 2, cv2.BORDER_CONSTANT, value=0).astype(np.float32)
    halved = cv2.resize(even, (even.shape[1] // 2, even.shape[0] // 2), interpolation=cv2.INTER_AREA)
    across, down = (
        cv2.filter2D(halved, cv2.CV_32F, kernel, borderType=cv2.BORDER_CONSTANT) for kernel in (_PREWITT, _PREWITT.T)
    )
    return np.asarray(np.sqrt(across * across + down * down), np.float32)  # cv2.magnitude depends on the alignment
