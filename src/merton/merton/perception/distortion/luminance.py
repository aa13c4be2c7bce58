"""Brightness of the whole image, by one lookup table for all channels."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.base import register
from merton.world.observation import Image

SHIFTS = (0.03, 0.06, 0.09, 0.12, 0.15)


@register(
    "18",
    "luminance",
    levels=(0.1, 0.2, 0.4, 0.7, 1.1),
    unit="lift of the mid-tones",
    source="KADID-10k 16",
    kadid=(0.1, 0.2, 0.4, 0.7, 1.1),
    smooth=True,
)
def max_brighten(image: Image, amount: float, _: np.random.Generator, __: float) -> Image:
    """Tone curve that lifts the mid-tones and keeps black and white."""
    return apply_table(image, tone_table(((0.5, 0.5 + amount / 2),)))


@register(
    "19",
    "luminance",
    levels=(0.05, 0.1, 0.2, 0.4, 0.8),
    unit="drop of the mid-tones",
    source="KADID-10k 17",
    kadid=(0.05, 0.1, 0.2, 0.4, 0.8),
    smooth=True,
)
def max_darken(image: Image, amount: float, _: np.random.Generator, __: float) -> Image:
    """Tone curve that lowers the mid-tones and keeps black and white."""
    return apply_table(image, tone_table(((0.5, 0.5 - amount / 2),)))


@register(
    "20",
    "luminance",
    levels=SHIFTS,
    unit="share of full scale added",
    source="Ours: KADID-10k 18 is signed",
    smooth=True,
)
def mean_brighten(image: Image, amount: float, _: np.random.Generator, __: float) -> Image:
    """A constant added to every value."""
    return apply_table(image, _shift_table(amount))


@register(
    "21",
    "luminance",
    levels=SHIFTS,
    unit="share of full scale taken away",
    source="Ours: KADID-10k 18 is signed",
    smooth=True,
)
def mean_darken(image: Image, amount: float, _: np.random.Generator, __: float) -> Image:
    """A constant taken away from every value."""
    return apply_table(image, _shift_table(-amount))


def apply_table(image: Image, table: NDArray[np.uint8]) -> Image:
    """Every value looked up in `table` (256,)."""
    return np.asarray(cv2.LUT(image, table), dtype=np.uint8)


@lru_cache(maxsize=64)
def tone_table(knots: tuple[tuple[float, float], ...]) -> NDArray[np.uint8]:
    """Table (256,) of the smooth curve through (0, 0), the `knots` (input, output in 0..1) and (1, 1), clipped.

    Ours: a shape-preserving cubic (PCHIP), which does not overshoot between the knots as a plain spline does.
    """
    from scipy.interpolate import PchipInterpolator  # here: everything that names distortions imports this file

    inputs, outputs = zip((0.0, 0.0), *knots, (1.0, 1.0), strict=True)
    return _as_table(PchipInterpolator(inputs, outputs)(np.linspace(0.0, 1.0, 256)))


@lru_cache(maxsize=64)
def _shift_table(amount: float) -> NDArray[np.uint8]:
    return _as_table(np.linspace(0.0, 1.0, 256) + amount)


def _as_table(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.rint(255.0 * np.clip(values, 0.0, 1.0)).astype(np.uint8)
