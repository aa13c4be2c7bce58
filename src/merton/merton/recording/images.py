"""Images as files: those of a recording, and the pictures that a run keeps."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError

JPEG_QUALITY = 92
_PNG_LEVEL = 1  # a rendered depth image of 424x240: 1.9 ms and 24 kB; OpenCV's default 1.0 ms and 36 kB, 3: 2.4 and 21


def jpeg(pixels: NDArray[np.uint8], quality: int = JPEG_QUALITY) -> memoryview:
    """The JPEG file of (height, width, 3) uint8 RGB; raises InputError if it cannot be encoded."""
    return _encoded(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])


def png16(values: NDArray[np.uint16]) -> memoryview:
    """The PNG file of (height, width) uint16, without loss; raises InputError if it cannot be encoded."""
    return _encoded(".png", values, [cv2.IMWRITE_PNG_COMPRESSION, _PNG_LEVEL])


def _encoded(ending: str, image: NDArray, options: list[int]) -> memoryview:
    done, data = cv2.imencode(ending, image, options)
    if not done:
        raise InputError(f"an image of shape {image.shape} cannot be written as {ending}")
    return memoryview(data.tobytes())
