"""A fixed part of the picture, for a network that is not told where the camera stands; its light can be levelled.

The grid has the size of `table_view`'s, so that the same network reads either. Of the camera only the angle of view is
used: the picture is brought to the focal length of the training. A camera that was moved is not noticed.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.decision.models.table_view import COLUMNS, ROWS
from merton.world.observation import CameraView, Image, Intrinsics

FOCAL_PX = 212.0
"""That of the camera "top" at 424 x 240, from which the things of a task are then inside the grid."""
CENTER_PX = (79.5, 60.0)
"""Column and row of the grid at which the optical axis is; ours: the things of a task are in the middle of the grid."""
MEAN, SPREAD = 100.0, 24.0
"""Of all numbers of the grid after levelling. Ours: hardly any thing is brighter than 255 then."""


def pixels(lens: Intrinsics, image_px: NDArray[np.floating]) -> NDArray[np.float64]:
    """The pixels (..., 2) (column, row) of the grid at which pixels (..., 2) (u, v) of an image are."""
    centered = np.asarray(image_px, np.float64) - (lens.cx, lens.cy)
    return centered * (FOCAL_PX / lens.fx, FOCAL_PX / lens.fy) + CENTER_PX


def part(view: CameraView) -> Image:
    """The part of the picture, (`ROWS`, `COLUMNS`, 3) uint8 RGB."""
    scale = FOCAL_PX / view.lens.fx, FOCAL_PX / view.lens.fy
    corner = pixels(view.lens, np.zeros(2))
    grid_from_image = np.array([[scale[0], 0.0, corner[0]], [0.0, scale[1], corner[1]]])
    return np.asarray(cv2.warpAffine(view.color, grid_from_image, (COLUMNS, ROWS), flags=cv2.INTER_LINEAR), np.uint8)


def from_picture(view: CameraView) -> Image:
    """As `part`, with mean `MEAN` and standard deviation `SPREAD`."""
    seen = part(view)
    levelled = (seen - seen.mean(dtype=np.float64)) * (SPREAD / max(float(seen.std()), 1.0)) + MEAN
    return np.clip(np.rint(levelled), 0, 255).astype(np.uint8)
