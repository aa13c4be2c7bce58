"""Images of a calibration board as a camera with a known lens would take them, without a simulator."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.calibration.charuco import MODULES, CharucoBoard
from merton.world.geometry import Matrix, inverse
from merton.world.observation import Image, Intrinsics
from merton.world.opencv import undistort_points

PAPER_MODULES = 6
"""White paper around the board, in modules."""
TEXELS = 8
"""Pixels of the drawn board per module."""
GROUND = 110
"""Grey value around the sheet."""
FINE = 2
"""Rays per pixel and axis."""


class BoardRenderer:
    """A white sheet with the board on grey ground; the optics are exact, edges are smoothed by several rays a pixel.

    Args:
        board: what is drawn.
        intrinsics: the camera, at least a few hundred pixels wide.
        distortion: (k1, k2, p1, p2, k3) of OpenCV's model, or none.
    """

    def __init__(self, board: CharucoBoard, intrinsics: Intrinsics, distortion: tuple[float, ...] = ()) -> None:
        self.board, self.size = board, (intrinsics.width, intrinsics.height)
        pattern = np.pad(board.pattern, PAPER_MODULES, constant_values=255)
        self.sheet = np.kron(pattern, np.ones((TEXELS, TEXELS), np.uint8))
        # centres of the parts of pixels, pixel (0, 0) having its centre at (0, 0)
        across = (np.arange(intrinsics.width * FINE) + 0.5) / FINE - 0.5
        down = (np.arange(intrinsics.height * FINE) + 0.5) / FINE - 0.5
        pixels = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 1, 2)
        camera = np.array([[intrinsics.fx, 0, intrinsics.cx], [0, intrinsics.fy, intrinsics.cy], [0, 0, 1]])
        if distortion:
            rays = undistort_points(pixels, camera, np.array(distortion), 40, 1e-10)
        else:
            rays = (pixels - camera[:2, 2]) / (camera[0, 0], camera[1, 1])
        self.rays: NDArray[np.float64] = rays.reshape(intrinsics.height * FINE, intrinsics.width * FINE, 2)
        self.camera, self.distortion = camera, np.array(distortion or (0.0,) * 5)

    def render(self, camera_from_board: Matrix) -> Image:
        """The camera's image of the board at `camera_from_board`: (height, width, 3) uint8 RGB."""
        board_from_camera, module_m = inverse(camera_from_board), self.board.square_m / MODULES
        window = self._window(camera_from_board, module_m)
        turned = self.rays[window] @ board_from_camera[:3, :2].T + board_from_camera[:3, 2]
        scale = -board_from_camera[2, 3] / turned[..., 2]
        maps = []
        for axis in (0, 1):
            place = (board_from_camera[axis, 3] + scale * turned[..., axis]) / module_m
            maps.append(((place + PAPER_MODULES) * TEXELS - 0.5).astype(np.float32))
        fine = np.full(self.rays.shape[:2], GROUND, np.uint8)
        fine[window] = cv2.remap(
            self.sheet, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=GROUND
        )
        grey = cv2.resize(fine, self.size, interpolation=cv2.INTER_AREA)
        return np.repeat(grey[:, :, None], 3, axis=2)

    def _window(self, camera_from_board: Matrix, module_m: float) -> tuple[slice, slice]:
        """The rays that may meet the sheet, rows and columns."""
        edge, (width, height) = PAPER_MODULES * module_m, self.board.size_m
        sheet = np.array(
            [[x, y, 0] for x in (-edge, width / 2, width + edge) for y in (-edge, height / 2, height + edge)]
        )
        turn = cv2.Rodrigues(camera_from_board[:3, :3])[0]
        seen, _ = cv2.projectPoints(sheet, turn, camera_from_board[:3, 3], self.camera, self.distortion)
        low = np.maximum((seen.min(axis=(0, 1)) - 10).astype(int), 0) * FINE
        high = np.maximum((seen.max(axis=(0, 1)) + 10).astype(int), 1) * FINE
        return slice(low[1], high[1]), slice(low[0], high[0])
