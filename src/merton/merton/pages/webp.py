"""Moving pictures as animated WebP, which every browser plays; OpenCV from 4.12 on writes them."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError

QUALITY = 60
"""Of the pictures of a film, 1..100."""


def is_written_here() -> bool:
    """Whether this OpenCV writes animated WebP."""
    return hasattr(cv2, "imencodeanimation")


def animated(pictures: Sequence[NDArray[np.uint8]], rate_hz: float) -> bytes:
    """An animated WebP that runs for ever; equal pictures give equal bytes.

    Args:
        pictures: at least two, (height, width, 3) uint8 RGB of one size; equal ones in a row are stored once.
        rate_hz: pictures a second, > 0.

    Raises:
        InfrastructureError: OpenCV cannot write it.
    """
    kept: list[NDArray[np.uint8]] = []
    shown_ms: list[int] = []
    for at, picture in enumerate(pictures):
        if at and np.array_equal(picture, pictures[at - 1]):
            shown_ms[-1] += round(1000 / rate_hz)
        else:
            kept.append(np.ascontiguousarray(picture[..., ::-1]))
            shown_ms.append(round(1000 / rate_hz))
    content = encoded(kept, shown_ms, QUALITY)
    if content is None:
        raise InfrastructureError(f"OpenCV {cv2.__version__} cannot write an animated WebP")
    return content


def encoded(pictures: Sequence[NDArray[np.uint8]], shown_ms: Sequence[int], quality: int) -> bytes | None:
    """An animated WebP that runs for ever, of pictures that are each shown so long.

    None if it cannot be written, as with OpenCV before 4.12.

    Args:
        pictures: (height, width, 3) uint8 BGR of one size.
        shown_ms: time of each [ms].
        quality: 1..100.
    """
    if not is_written_here():
        return None
    clip = cv2.Animation()
    clip.frames = pictures
    clip.durations = shown_ms
    clip.loop_count = 0
    made, content = cv2.imencodeanimation(".webp", clip, [cv2.IMWRITE_WEBP_QUALITY, quality])
    return content.tobytes() if made else None
