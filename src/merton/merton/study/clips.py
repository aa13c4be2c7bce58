"""Short moving pictures of a trial: its views in the order of its steps, undistorted and distorted side by side."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.pages import webp

WIDTH_PX = 360
"""Of one of the two views."""
STEP_MS = 900
"""Each pair is shown so long. Ours: long enough to compare two views."""
STEPS = 12
"""The most pairs of a clip."""
QUALITY = 60
"""Of the WebP pictures, 1..100."""


def side_by_side(pairs: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """An animated WebP that runs for ever, from pairs of JPEG pictures; equal pictures give equal bytes.

    None for fewer than two pairs, if a picture cannot be decoded, or with OpenCV before 4.12, which writes none.
    """
    frames = [_frame(left, right) for left, right in pairs[:STEPS]]
    shown = [frame for frame in frames if frame is not None]
    if len(shown) < 2 or len(shown) < len(frames):
        return None
    return webp.encoded(shown, [STEP_MS] * len(shown), QUALITY)


def size_px(content: bytes) -> tuple[int, int] | None:
    """Width and height of a JPEG picture; None if it cannot be decoded."""
    view = _decoded(content)
    return None if view is None else (view.shape[1], view.shape[0])


def _decoded(content: bytes) -> NDArray[np.uint8] | None:
    """A picture, BGR; None if it cannot be decoded."""
    try:
        return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)  # type: ignore[return-value]
    except cv2.error:  # larger than OpenCV decodes
        return None


def _frame(left: bytes, right: bytes) -> NDArray[np.uint8] | None:
    """Both pictures at `WIDTH_PX` with a white line between them, BGR; None if one cannot be decoded."""
    views = []
    for content in (left, right):
        view = _decoded(content)
        if view is None:
            return None
        views.append(view)
    height = round(WIDTH_PX * views[0].shape[0] / views[0].shape[1])
    one, other = (cv2.resize(view, (WIDTH_PX, height), interpolation=cv2.INTER_AREA) for view in views)
    return np.hstack([one, np.full((height, 6, 3), 255, np.uint8), other]).astype(np.uint8)
