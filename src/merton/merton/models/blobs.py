"""Coloured blobs in an image: plain colour segmentation, the eyes of `describe`.

The image is not repaired first (no denoising, equalisation or adaptive threshold), so that a distortion of the pixels
is a distortion of the blobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import UnknownNameError
from merton.world.observation import Image

LIT = {"red": (0, 218, 216), "yellow": (24, 230, 250), "green": (66, 183, 141), "blue": (112, 213, 201)}
"""Colour to hue, least saturation and least value of surfaces lit from above.

Ours: measured on undistorted wrist and top images of 30 scenes; hues are within 2, the sides of objects have about half
the value. OpenCV's units: hue 0 .. 179 in steps of 2 degrees, saturation and value 0 .. 255.
"""
HUE_TOLERANCE = 4
MARGIN = 0.85
"""Share of the least saturation and value that still counts as the colour."""

MIN_AREA_PX = 40
"""Smaller patches are ignored; from home a cube covers about 90 px of "top" and 450 px of "wrist"."""

ROUNDNESS = 0.965
"""Least share of a round patch inside the ellipse with the patch's second moments.

It is 1 for an ellipse and 0.93 for a parallelogram, under any perspective.
"""


@dataclass(frozen=True, eq=False)
class Blob:
    """A connected patch of one colour.

    Attributes:
        color: one of `merton.world.tasks.COLORS`.
        centroid_px: (u, v) mean of its pixels.
        area_px: number of pixels.
        angle_rad: direction of one side of the smallest enclosing rectangle, clockwise from the image's u axis, in
            [0, pi / 2).
        shape: "cylinder" if it is round (as a mat is from above), else "cube".
        mask: (height, width).
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
        color: one of `merton.world.tasks.COLORS`.

    Raises:
        UnknownNameError: no such colour.
    """
    mask = color_mask(image, color).astype(np.uint8)
    _, labels, statistics, centroids = cv2.connectedComponentsWithStats(mask, connectivity=4)  # joined along edges
    blobs = []
    areas = statistics[:, cv2.CC_STAT_AREA]
    areas[0] = 0  # the pixels of other colours
    for label in np.flatnonzero(areas >= MIN_AREA_PX):
        patch = np.asarray(labels == label)
        points = np.argwhere(patch)[:, ::-1]
        u, v = centroids[label].tolist()
        shape = "cylinder" if _roundness(points) >= ROUNDNESS else "cube"
        blobs.append(Blob(color, (u, v), int(areas[label]), smallest_rectangle_angle(points), shape, patch))
    return sorted(blobs, key=lambda blob: (-blob.area_px, blob.centroid_px))


def color_mask(image: Image, color: str) -> NDArray[np.bool_]:
    """True (height, width) where an image has a colour; raises UnknownNameError for one that is not in `LIT`."""
    if color not in LIT:
        raise UnknownNameError("colour", color, LIT)
    wanted_hue, least_saturation, least_value = LIT[color]
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV))
    away = np.abs((hue.astype(np.int16) - wanted_hue + 90) % 180 - 90)
    return np.asarray(
        (away <= HUE_TOLERANCE) & (saturation >= MARGIN * least_saturation) & (value >= MARGIN * least_value)
    )


def smallest_rectangle_angle(points: ArrayLike) -> float:
    """Angle [rad], in [0, pi / 2), from the first axis to a side of the smallest rectangle around points (n, 2)."""
    _, _, angle_deg = cv2.minAreaRect(np.asarray(points, dtype=np.float32))
    return math.radians(angle_deg) % (math.pi / 2)


def _roundness(points: NDArray[np.int64]) -> float:
    """Share of points (n, 2) inside the ellipse that has their second moments (whose boundary is at Mahalanobis 2)."""
    offsets = points - points.mean(axis=0)
    covariance = offsets.T @ offsets / len(points)
    if np.linalg.det(covariance) < 1e-9:  # a line
        return 0.0
    distances = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(covariance), offsets)
    return float(np.mean(distances <= 4.0))
