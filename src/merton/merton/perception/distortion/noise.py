"""Noise of several distributions. Variances are those of an image scaled to 0..1."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.base import register
from merton.perception.distortion.denoiser import denoise
from merton.perception.distortion.scale import at_reference, enlarged_field, reference_size
from merton.world.observation import Image
from merton.world.opencv import lookup


@register(
    "12",
    "noise",
    levels=(0.001, 0.002, 0.003, 0.005, 0.01),
    unit="variance",
    source="KADID-10k 11",
    stochastic=True,
    kadid=(0.001, 0.002, 0.003, 0.005, 0.01),
)
def white_noise(image: Image, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """Additive white Gaussian noise, independent in every channel."""
    return _with_gaussian(image, variance, rng, scale)


@register(
    "13",
    "noise",
    levels=(0.0001, 0.0005, 0.001, 0.002, 0.003),
    unit="variance",
    source="KADID-10k 12; ours on full-range YCbCr, as cameras and JPEG use it",
    stochastic=True,
    kadid=(0.0001, 0.0005, 0.001, 0.002, 0.003),
)
def color_noise(image: Image, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """Additive white Gaussian noise in luma and both colour differences (YCbCr)."""
    noisy = _with_gaussian(cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb), variance, rng, scale)
    return np.asarray(cv2.cvtColor(noisy, cv2.COLOR_YCrCb2RGB), dtype=np.uint8)


@register(
    "14",
    "noise",
    levels=(0.001, 0.005, 0.01, 0.02, 0.03),
    unit="share of the values",
    source="KADID-10k 13",
    stochastic=True,
    kadid=(0.001, 0.005, 0.01, 0.02, 0.03),
)
def impulse_noise(image: Image, density: float, rng: np.random.Generator, scale: float) -> Image:
    """Salt and pepper: channel values replaced by 0 or 255."""
    shape = (*reference_size(image, scale), 3)
    size = math.prod(shape)
    hits = rng.choice(size, size=rng.binomial(size, density), replace=False, shuffle=False)
    values = rng.integers(0, 2, size=len(hits), dtype=np.uint8) * np.uint8(255)
    if scale == 1:
        noisy = image.copy()
        noisy.reshape(-1)[hits] = values
        return noisy
    left, added = np.full(shape, 255, np.uint8), np.zeros(shape, np.uint8)
    left.reshape(-1)[hits] = 0
    added.reshape(-1)[hits] = values
    kept = cv2.multiply(image, enlarged_field(left, image.shape[:2]), scale=1 / 255)
    return np.asarray(cv2.add(kept, enlarged_field(added, image.shape[:2])), dtype=np.uint8)


@register(
    "15",
    "noise",
    levels=(0.001, 0.005, 0.01, 0.02, 0.05),
    unit="variance",
    source="KADID-10k 14",
    stochastic=True,
    kadid=(0.001, 0.005, 0.01, 0.02, 0.05),
)
def multiplicative_noise(image: Image, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """Speckle: every value times 1 + n, with n white Gaussian noise."""
    gains = (1.0 + np.sqrt(variance) * _quantiles()).astype(np.float32)
    gain = lookup(uniform_draws((*reference_size(image, scale), 3), rng), gains)
    gain = enlarged_field(gain, image.shape[:2])
    return np.asarray(cv2.multiply(image, gain, dtype=cv2.CV_8U), dtype=np.uint8)


@register(
    "16",
    "noise",
    levels=(0.001, 0.002, 0.003, 0.005, 0.01),
    unit="variance",
    source="Ours: the variances of KADID-10k 11",
    stochastic=True,
)
def gaussian_denoise(image: Image, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """White noise, then a Gaussian filter against it: what a simple denoiser leaves.

    Ours: the filter's sigma is 1 px at every level; one that grew with the noise would leave less of it, not more.
    """
    noisy = _with_gaussian(image, variance, rng, scale)
    return np.asarray(cv2.GaussianBlur(noisy, (0, 0), scale, borderType=cv2.BORDER_REFLECT_101), dtype=np.uint8)


@register(
    "17",
    "noise",
    levels=(0.01, 0.03, 0.05, 0.1, 0.15),
    unit="variance",
    source="KADID-10k 15; the network is ours",
    stochastic=True,
    kadid=(0.01, 0.03, 0.05, 0.1, 0.15),
)
def cnn_denoise(image: Image, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """White noise, then a learned denoiser: smooth, with detail lost and invented."""

    def restored(image: Image) -> Image:
        return denoise(_with_gaussian(image, variance, rng, 1.0), math.sqrt(variance))

    return at_reference(image, scale, restored)


def _with_gaussian(image: cv2.typing.MatLike, variance: float, rng: np.random.Generator, scale: float) -> Image:
    """The image plus white Gaussian noise, rounded and clipped.

    The pixels are integers, so rounding the noise alone is exact: round(I + n) = I + round(n).
    """
    values = np.rint(255.0 * np.sqrt(variance) * _quantiles()).astype(np.int16)
    noise = lookup(uniform_draws((*reference_size(image, scale), 3), rng), values)
    return np.asarray(cv2.add(image, enlarged_field(noise, image.shape[:2]), dtype=cv2.CV_8U), dtype=np.uint8)


def normal_values(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """Standard normal values of two or three dimensions, at most 4.3 from 0."""
    return np.asarray(lookup(uniform_draws(shape, rng), _quantiles().astype(np.float32)), dtype=np.float32)


def uniform_draws(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint16]:
    """Uniform 16-bit values.

    Four are cut from each 64-bit draw: the values that numpy's 16-bit draws have, in half of their time.
    """
    size = math.prod(shape)
    whole = rng.integers(0, 2**64 - 1, size=-(-size // 4), dtype=np.uint64, endpoint=True)
    return whole.astype("<u8", copy=False).view("<u2")[:size].reshape(shape)


@lru_cache(maxsize=1)
def _quantiles() -> NDArray[np.float64]:
    """65536 equally likely values of the standard normal, shape (65536,).

    Ours: drawing an index and looking the value up is about ten times as fast as drawing a normal deviate; the price is
    tails that end at 4.3 standard deviations.
    """
    from scipy.special import ndtri  # here: everything that names distortions imports this file

    return ndtri((np.arange(65536) + 0.5) / 65536)
