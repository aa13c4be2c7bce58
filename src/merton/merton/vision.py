"""Coloured blobs in an image: plain colour segmentation, shared by `describe` and `servo`.

Nothing here repairs an image: no denoising, no equalisation, no adaptive threshold. What a distortion does to the
pixels, it does to the blobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import UnknownNameError
from merton.observation import Image

# Ours: measured on undistorted wrist and top images of 30 scenes, where the lit tops of objects have hues within 2 of
# these, a saturation of at least 183 and a brightness of at least 141; their sides are darker than 121. OpenCV's
# units: hue 0..179 in steps of 2 degrees, saturation and value 0..255.
HUES = {"red": 0, "yellow": 24, "green": 66, "blue": 112}
HUE_TOLERANCE = 6
MIN_SATURATION = 130
MIN_VALUE = 110

MIN_AREA_PX = 30
"""Smaller patches are not taken for objects; the top of a cube covers about 80 px for "top", 350 px for "wrist" at home."""

SQUARENESS = 0.88
"""Share of its smallest enclosing rectangle a cube's top fills at least; an ellipse fills pi / 4 = 0.785."""


@dataclass(frozen=True, eq=False)
class Blob:
    """A connected patch of one colour.

    Attributes:
        color: one of `merton.tasks.COLORS`.
        centroid_px: (u, v) mean of its pixels.
        area_px: number of pixels.
        angle_rad: direction of one side of the smallest enclosing rectangle, clockwise from the image's u axis, in
            [0, pi / 2).
        shape: "cube" if it fills that rectangle well, else "cylinder" (which from above looks like a mat).
        mask: (height, width) bool, True on its pixels.
    """

    color: str
    centroid_px: tuple[float, float]
    area_px: int
    angle_rad: float
    shape: str
    mask: NDArray[np.bool_]


def find_blobs(image: Image, color: str) -> list[Blob]:
    """The patches of one colour that are lit from above, largest first.

    Args:
        image: (height, width, 3) uint8 RGB.
        color: one of `merton.tasks.COLORS`.

    Raises:
        UnknownNameError: no such colour.
    """
    labels, statistics, centroids = _patches(color_mask(image, color))
    blobs = []
    for label in range(1, len(statistics)):
        area = int(statistics[label, cv2.CC_STAT_AREA])
        if area < MIN_AREA_PX:
            continue
        mask = labels == label
        rows, columns = np.nonzero(mask)
        angle_rad, sides = enclosing_rectangle(np.column_stack((columns, rows)))
        # A pixel is as wide as the distance to the next: the rectangle around centres is one pixel too small.
        shape = "cube" if area >= SQUARENESS * (sides[0] + 1) * (sides[1] + 1) else "cylinder"
        u, v = centroids[label]
        blobs.append(Blob(color, (float(u), float(v)), area, angle_rad, shape, mask))
    return sorted(blobs, key=lambda blob: (-blob.area_px, blob.centroid_px))


def color_mask(image: Image, color: str) -> NDArray[np.bool_]:
    """Where (height, width) an image has a colour; raises UnknownNameError for one that is not in `HUES`."""
    if color not in HUES:
        raise UnknownNameError("colour", color, HUES)
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV))
    away = np.abs((hue.astype(np.int16) - HUES[color] + 90) % 180 - 90)
    return np.asarray((away <= HUE_TOLERANCE) & (saturation >= MIN_SATURATION) & (value >= MIN_VALUE))


def enclosing_rectangle(points: ArrayLike) -> tuple[float, tuple[float, float]]:
    """The smallest rectangle around points (n, 2): angle of one side to the first axis [rad], in [0, pi / 2), and sides."""
    _, sides, angle_deg = cv2.minAreaRect(np.asarray(points, dtype=np.float32))
    return math.radians(angle_deg) % (math.pi / 2), (float(sides[0]), float(sides[1]))


def _patches(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Labels (height, width) of patches whose pixels touch along edges, their statistics and centroids; 0 is the rest."""
    _, labels, statistics, centroids = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    return np.asarray(labels), np.asarray(statistics), np.asarray(centroids)
