"""Distortions of no other family: sharpness and contrast."""

from __future__ import annotations

import cv2
import numpy as np

from merton.perception.distortion.base import register
from merton.perception.distortion.luminance import apply_table, tone_table
from merton.world.observation import Image


@register("29", "others", levels=(1, 2, 3, 6, 12), unit="amount", source="KADID-10k 24", kadid=(1, 2, 3, 6, 12))
def sharpness_change(image: Image, amount: float, _: np.random.Generator, scale: float) -> Image:
    """Unsharp masking: the difference from a blurred copy (sigma 3 px) is added `amount` times."""
    blurred = cv2.GaussianBlur(image, (0, 0), 3.0 * scale, borderType=cv2.BORDER_REFLECT_101)
    return np.asarray(cv2.addWeighted(image, 1.0 + amount, blurred, -amount, 0.0), dtype=np.uint8)


@register(
    "30",
    "others",
    levels=(0.15, 0.3, 0.4, 0.6, 0.8),
    unit="loss of contrast",
    source="Ours: the magnitudes of KADID-10k 25 (signed, with the identity), and 0.8",
    kadid=(-0.3, -0.15, 0.0, 0.4, 0.6),
    smooth=True,
)
def contrast_change(image: Image, loss: float, _: np.random.Generator, __: float) -> Image:
    """Tone curve that draws the quarter-tones towards the middle, black and white kept: flat mid-tones."""
    return apply_table(image, tone_table(((0.25, 0.25 + loss / 4), (0.75, 0.75 - loss / 4))))
