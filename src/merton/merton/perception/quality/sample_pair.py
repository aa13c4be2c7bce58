"""A pair of images on which a metric can be tried without any file."""

from __future__ import annotations

import cv2
import numpy as np

from merton.world.observation import Image


def sample_pair() -> tuple[Image, Image]:
    """(blurred image, reference), 424 x 240 pixels each: coloured shapes before a soft texture, the same every time."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (240, 424, 3), dtype=np.uint8)
    reference = np.asarray(cv2.GaussianBlur(noise, (0, 0), 2) // 2 + 60, np.uint8)
    for _ in range(12):
        centre = int(rng.integers(424)), int(rng.integers(240))
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        cv2.circle(reference, centre, int(rng.integers(8, 40)), colour, -1, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(reference, (0, 0), 1.5), np.uint8), reference
