"""Images as files: those of a recording, and the pictures that a run keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.world.opencv import PNG_FILTER_UP

PNG = b"\x89PNG"
"""The first bytes of a PNG file."""
JPEG_QUALITY = 92
# At 424x240, time and size: colour as rendered 0.9 ms and 27 kB, with noise 2.0 ms and 218 kB (JPEG 0.3 ms and 10 kB,
# 0.4 and 36); with OpenCV's own choice of filters 2.0 ms and 23 kB, with its strategy 4.9 ms and 231 kB for noise.
# Depth as rendered 0.3 ms and 7 kB, with noise 1.6 ms and 90 kB.
_PNG = [cv2.IMWRITE_PNG_COMPRESSION, 1, *PNG_FILTER_UP]
_RUNS = [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE]


def jpeg(pixels: NDArray[np.uint8], quality: int = JPEG_QUALITY) -> memoryview:
    """The JPEG file of (height, width, 3) uint8 RGB; raises InputError if it cannot be encoded."""
    return _encoded(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])


def png16(values: NDArray[np.uint16]) -> memoryview:
    """The PNG file of (height, width) uint16, without loss; raises InputError if it cannot be encoded."""
    return _encoded(".png", values, _PNG)


def png(pixels: NDArray[np.uint8]) -> memoryview:
    """The PNG file of (height, width, 3) uint8 RGB, without loss; raises InputError if it cannot be encoded."""
    return _encoded(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [*_PNG, *_RUNS])


COLOR_FORMATS: Mapping[str, Callable[[NDArray[np.uint8]], memoryview]] = {"png": png, "jpeg": jpeg}
"""Forms in which a recording may keep colour."""


def _encoded(ending: str, image: NDArray, options: list[int]) -> memoryview:
    done, data = cv2.imencode(ending, image, options)
    if not done:
        raise InputError(f"an image of shape {image.shape} cannot be written as {ending}")
    return memoryview(data.tobytes())
