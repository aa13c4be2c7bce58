"""Blur: Gaussian, out of focus, motion. Borders are mirrored, so that a blur does not darken them."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.base import register
from merton.world.observation import Image

OPENCV_DIRECT_PX = 11
"""Side of the largest kernel that OpenCV sums directly. Above it, filter2D takes a Fourier transform: for a line, which
has few weights, up to 17 times as long as their sum."""

WIDE_SIGMA_PX = 9.0
"""Sigma from which `gaussian_blur` averages squares of `SQUARE_PX` first, in a third of the time. Ours: the result is
within three grey levels of OpenCV's Gaussian; less than 0.5 % of the values of photographs are more than one away."""

SQUARE_PX = 3
"""Side of the squares. Odd, because OpenCV rounds a mean of four pixels up: an eighth of a grey level too bright."""


@register(
    "01",
    "blur",
    levels=(0.35, 0.5, 1.0, 2.0, 5.0),
    unit="sigma [px]",
    kadid=(0.1, 0.5, 1, 2, 5),
    source="KADID-10k 01; its level 1 of 0.1 px changes no pixel of a uint8 image, ours is 0.35",
)
def gaussian_blur(image: Image, sigma_px: float, _: np.random.Generator, scale: float) -> Image:
    """Gaussian blur."""
    sigma_px *= scale
    if sigma_px < WIDE_SIGMA_PX:
        return _filtered(cv2.GaussianBlur(image, (0, 0), sigma_px, borderType=cv2.BORDER_REFLECT_101))
    return _wide_gaussian_blur(image, sigma_px)


@register("02", "blur", levels=(1, 2, 4, 6, 8), unit="radius [px]", source="KADID-10k 02", kadid=(1, 2, 4, 6, 8))
def lens_blur(image: Image, radius_px: float, _: np.random.Generator, scale: float) -> Image:
    """Out-of-focus blur: the mean over a disk, the shape of an open aperture."""
    radius_px *= scale
    if radius_px < 4:  # OpenCV is as fast with few weights
        return _filtered(cv2.filter2D(image, -1, disk_kernel(radius_px), borderType=cv2.BORDER_REFLECT_101))
    from merton.perception.distortion.compiled import disk_mean  # here: loading numba takes half a second

    samples = disk_samples(radius_px)
    return _filtered(disk_mean(_padded(image, len(samples) // 2), samples))


@register(
    "03",
    "blur",
    levels=(1, 2, 4, 6, 10),
    unit="length [px]",
    source="KADID-10k 03",
    stochastic=True,
    kadid=(1, 2, 4, 6, 10),
)
def motion_blur(image: Image, length_px: float, rng: np.random.Generator, scale: float) -> Image:
    """Motion blur: the mean along a straight line in a random direction."""
    kernel = line_kernel(length_px * scale, rng.uniform(0.0, math.pi))
    if len(kernel) <= OPENCV_DIRECT_PX:
        return _filtered(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REFLECT_101))
    from merton.perception.distortion.compiled import line_mean  # here: loading numba takes half a second

    weights = np.rint(kernel * 2**20).astype(np.int32)  # off by at most 0.01 grey levels in all
    return _filtered(line_mean(_padded(image, len(kernel) // 2), weights))


def disk_kernel(radius_px: float) -> NDArray[np.float32]:
    """A disk that sums to 1, each weight the share of the pixel's area inside it."""
    samples = disk_samples(radius_px).astype(np.float32)
    return samples / samples.sum()


@lru_cache(maxsize=16)
def disk_samples(radius_px: float) -> NDArray[np.int32]:
    """A disk, each weight the number of the pixel's 16 x 16 samples inside it."""
    samples, half = 16, math.ceil(radius_px)
    axis = (np.arange((2 * half + 1) * samples) + 0.5) / samples - half - 0.5
    inside = axis[:, None] ** 2 + axis[None, :] ** 2 <= radius_px**2
    return inside.reshape(2 * half + 1, samples, 2 * half + 1, samples).sum(axis=(1, 3), dtype=np.int32)


def line_kernel(length_px: float, angle_rad: float) -> NDArray[np.float32]:
    """A centred line segment that sums to 1, seen through bilinear interpolation.

    Ours: the segment spans the whole length (MATLAB's spans length - 1), so that a length of 1 px blurs a little
    instead of not at all.
    """
    half = math.ceil(length_px / 2)
    size = 2 * half + 1
    along = (np.arange(64) + 0.5) / 64 * length_px - length_px / 2
    x, y = along * math.cos(angle_rad) + half, along * math.sin(angle_rad) + half
    pixel = np.arange(size)
    weight_x = np.clip(1.0 - np.abs(x[:, None] - pixel), 0.0, None)
    weight_y = np.clip(1.0 - np.abs(y[:, None] - pixel), 0.0, None)
    return (weight_y.T @ weight_x / len(along)).astype(np.float32)


def _wide_gaussian_blur(image: Image, sigma_px: float) -> Image:
    """A Gaussian so wide that the image averaged over small squares holds all that it leaves."""
    height, width = image.shape[:2]
    half = math.ceil(3 * sigma_px)
    bottom, right = half - (height + 2 * half) % -SQUARE_PX, half - (width + 2 * half) % -SQUARE_PX  # whole squares
    padded = cv2.copyMakeBorder(image, half, bottom, half, right, cv2.BORDER_REFLECT_101)
    size = padded.shape[1] // SQUARE_PX, padded.shape[0] // SQUARE_PX
    small = cv2.resize(padded, size, interpolation=cv2.INTER_AREA)
    small_sigma = math.sqrt(sigma_px**2 - (SQUARE_PX**2 - 1) / 12) / SQUARE_PX  # less the variance of a square
    blurred = cv2.resize(
        cv2.GaussianBlur(small, (0, 0), small_sigma), padded.shape[1::-1], interpolation=cv2.INTER_CUBIC
    )
    return np.ascontiguousarray(_filtered(blurred)[half : half + height, half : half + width])


def _padded(image: Image, half: int) -> Image:
    return np.asarray(cv2.copyMakeBorder(image, half, half, half, half, cv2.BORDER_REFLECT_101), dtype=np.uint8)


def _filtered(image: NDArray[np.generic]) -> Image:
    return np.asarray(image, dtype=np.uint8)
