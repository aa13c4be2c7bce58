"""Images as JPEG."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.recording import images

QUALITY = 80
WIDEST_PX = 640
"""Wider images are made smaller: the page shows them no larger, and a phone receives them by radio."""


def jpeg(pixels: NDArray[np.uint8]) -> bytes:
    """A JPEG file of (height, width, 3) uint8 RGB, at most `WIDEST_PX` wide; raises InputError if it cannot be made."""
    height, width = pixels.shape[:2]
    if width > WIDEST_PX:
        size = (WIDEST_PX, max(1, round(height * WIDEST_PX / width)))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return bytes(images.jpeg(pixels, QUALITY))
