"""The table from straight above: an image brought onto a grid of places in `base_link`, by the camera's calibration.

A network that reads the grid reads images of any size and from any camera that sees the table.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.world.observation import CameraView, Image

CELL_M = 0.005
"""Distance of neighbouring pixels on the table; one of the camera "top" at 424 x 240 sees about as much."""
FAR_X_M, LEFT_Y_M = 0.77, 0.40
"""x of the first row, y of the first column."""
ROWS, COLUMNS = 100, 160
HEIGHT_M = 0.0225
"""Height above the table of the plane that is mapped. Ours: half of a cube."""


def places(pixels: NDArray[np.floating]) -> NDArray[np.float64]:
    """The x, y [m] (..., 2) in `base_link` of pixels (..., 2) (column, row) of the grid."""
    pixels = np.asarray(pixels, np.float64)
    return np.stack([FAR_X_M - CELL_M * pixels[..., 1], LEFT_Y_M - CELL_M * pixels[..., 0]], -1)


def pixels(places_m: NDArray[np.floating]) -> NDArray[np.float64]:
    """The inverse of `places`."""
    places_m = np.asarray(places_m, np.float64)
    return np.stack([(LEFT_Y_M - places_m[..., 1]) / CELL_M, (FAR_X_M - places_m[..., 0]) / CELL_M], -1)


def from_above(view: CameraView) -> Image:
    """The table as the grid sees it, (`ROWS`, `COLUMNS`, 3) uint8 RGB; black where the camera does not look."""
    image_from_grid = _image_from_plane(view) @ _plane_from_grid()
    inverse = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    return np.asarray(cv2.warpPerspective(view.color, image_from_grid, (COLUMNS, ROWS), flags=inverse), np.uint8)


def _image_from_plane(view: CameraView) -> NDArray[np.float64]:
    """Homography (3, 3) from (x, y, 1) [m] in the plane to homogeneous pixels of the view."""
    lens, camera_from_base = view.lens, np.linalg.inv(view.pose)
    matrix = np.array([[lens.fx, 0.0, lens.cx], [0.0, lens.fy, lens.cy], [0.0, 0.0, 1.0]])
    rotation, translation = camera_from_base[:3, :3], camera_from_base[:3, 3]
    return matrix @ np.column_stack([rotation[:, 0], rotation[:, 1], HEIGHT_M * rotation[:, 2] + translation])


def _plane_from_grid() -> NDArray[np.float64]:
    """Homography (3, 3) from (column, row, 1) to (x, y, 1) [m]."""
    return np.array([[0.0, -CELL_M, FAR_X_M], [-CELL_M, 0.0, LEFT_Y_M], [0.0, 0.0, 1.0]])
