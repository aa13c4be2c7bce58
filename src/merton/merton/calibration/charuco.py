"""The ChArUco board: a chessboard with markers in its white squares, so that every corner has a number.

Frame of the board: origin at the outer corner of the top left square, x right, y down, z into the board [m].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.calibration.corners import MODULES, register_corners
from merton.errors import InputError
from merton.world.geometry import Array
from merton.world.observation import Image

DICTIONARY = "4X4_50"
"""Markers of the board. Ours: the fewest bits, so the largest modules, for cameras of 424 x 240 pixels."""
SQUARE_M = (0.001, 1.0)
"""Ours: shorter and longer ones are a length in another unit."""
MOST_SQUARES = 100
"""Every other square has one of the dictionary's 50 markers."""
FEWEST_CORNERS = 6
"""An image that shows fewer corners is not used: the pose of the board would hang on a few pixels."""

_SMALL_PX, _ENLARGED = 1000, 2
"""Images narrower than this are enlarged for the detector. Ours: it finds hardly any marker of 2 pixels a module."""
_PX_PER_BLUR, _SHARP_PX = 2.5, 0.4
"""Width of a Gaussian blur's edge in sigmas, and the sigma [px] that even a sharp edge seems to have."""


@dataclass(frozen=True)
class Sighting:
    """The board, found in one image.

    Attributes:
        size_px: (width, height) of the image.
        corners_px: (n, 2) where inner corners of the chessboard are seen; pixel (0, 0) is the centre of the first.
        corners_m: (n, 3) the same corners in the frame of the board.
        span: longer side of the smallest upright rectangle around them, as a share of the image's width.
        edge_px: how many pixels the board's edges take from black to white, in the direction where they take most.
    """

    name: str
    size_px: tuple[int, int]
    corners_px: Array
    corners_m: Array
    span: float
    edge_px: float


@dataclass(frozen=True)
class CharucoBoard:
    """A ChArUco board of `columns` x `rows` squares with edges of `square_m`; markers measure three quarters of it.

    `legacy`: the layout of OpenCV before 4.6, which other makers of boards have kept. With an even number of rows its
    top left square is white and has the first marker; with an odd number both layouts are the same.

    Raises:
        InputError: fewer than 3 squares a side, more than 100 in all, or squares that are not 1 mm to 1 m long.
    """

    columns: int = 7
    rows: int = 5
    square_m: float = 0.036
    legacy: bool = False

    def __post_init__(self) -> None:
        if min(self.columns, self.rows) < 3 or self.columns * self.rows > MOST_SQUARES:
            raise InputError(
                f"a board has at least 3 x 3 and at most {MOST_SQUARES} squares, got {self.columns} x {self.rows}"
            )
        if not SQUARE_M[0] <= self.square_m <= SQUARE_M[1]:  # NaN fails too
            raise InputError(f"the squares of a board are 1 mm to 1 m long, got {1000 * self.square_m:g} mm")

    def __str__(self) -> str:
        return f"{self.columns} x {self.rows} squares of {self.square_m * 1000:g} mm, {DICTIONARY} markers"

    @property
    def size_m(self) -> tuple[float, float]:
        """(width, height) of all squares together [m]."""
        return self.columns * self.square_m, self.rows * self.square_m

    @cached_property
    def pattern(self) -> NDArray[np.uint8]:
        """The board with one pixel a module: (8 rows, 8 columns) uint8, 0 black, 255 white."""
        size = (self.columns * MODULES, self.rows * MODULES)
        return np.asarray(self._charuco.generateImage(size, marginSize=0, borderBits=1), np.uint8)

    @cached_property
    def _charuco(self) -> cv2.aruco.CharucoBoard:
        board = cv2.aruco.CharucoBoard(
            (self.columns, self.rows), self.square_m, self.square_m * (MODULES - 2) / MODULES, _dictionary()
        )
        board.setLegacyPattern(self.legacy)
        return board

    @cached_property
    def _detector(self) -> cv2.aruco.CharucoDetector:
        return cv2.aruco.CharucoDetector(self._charuco)

    def find(self, image: Image, name: str = "image") -> Sighting | None:
        """The board in an image (height, width, 3) uint8 RGB; None if fewer than 6 of its corners are seen."""
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
        larger = _ENLARGED if grey.shape[1] < _SMALL_PX else 1
        enlarged = cv2.resize(grey, None, fx=larger, fy=larger, interpolation=cv2.INTER_CUBIC) if larger > 1 else grey
        corners, numbers, _, _ = self._detector.detectBoard(enlarged)
        if numbers is None or len(numbers) < FEWEST_CORNERS:
            return None
        order = np.argsort(numbers.ravel())
        detected = np.asarray((corners.reshape(-1, 2)[order] + 0.5) / larger - 0.5, np.float32)
        np.clip(detected, 0, np.array(grey.shape[::-1]) - 1, out=detected)
        numbers = numbers.ravel()[order]
        places = np.asarray(self._charuco.getChessboardCorners(), np.float64)[numbers]
        homography, _ = cv2.findHomography(places[:, :2], detected)
        if homography is None:
            return None
        edge_px = self._edge_px(grey, homography)
        blur_px = edge_px / _PX_PER_BLUR - _SHARP_PX
        module_m = self.square_m / MODULES
        corners_px = register_corners(
            grey,
            detected.astype(np.float64),
            np.asarray(homography, np.float64),
            places,
            self.pattern,
            module_m,
            blur_px,
        )
        agrees = np.isfinite(corners_px).all(axis=1)
        if agrees.sum() < FEWEST_CORNERS:
            return None
        corners_px, places = corners_px[agrees], places[agrees]
        extent = np.ptp(corners_px, axis=0)
        height, width = grey.shape
        span = float(extent.max() / width)
        return Sighting(name, (width, height), corners_px, places, span, edge_px)

    def count_markers(self, image: Image) -> int:
        """Number of markers of the dictionary that an image shows, on any board."""
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        numbers = cv2.aruco.ArucoDetector(_dictionary()).detectMarkers(grey)[1]
        return 0 if numbers is None else len(numbers)

    def _edge_px(self, grey: NDArray[np.uint8], homography: NDArray[Any]) -> float:
        """Contrast over the steepest slope, in the direction of four in which edges are least steep [px].

        A perfectly sharp edge gives 2 (slopes are central differences), a Gaussian blur of sigma 2.5 sigma and more.
        """
        width, height = self.size_m
        outline = cv2.perspectiveTransform(np.array([[[0, 0], [width, 0], [width, height], [0, height]]]), homography)
        mask = cv2.fillConvexPoly(np.zeros_like(grey), np.round(outline[0]).astype(np.int32), 1).astype(bool)
        values = grey[mask].astype(np.float64)
        contrast = np.percentile(values, 95) - np.percentile(values, 5)
        slopes: tuple[Array, ...] = tuple(np.gradient(grey.astype(np.float64)))
        down, right = (slope[mask] for slope in slopes)
        diagonal = np.sqrt(0.5)
        directions = (down, right, diagonal * (down + right), diagonal * (down - right))
        steepest = min(float(np.percentile(np.abs(slope), 98)) for slope in directions)
        return float(contrast / max(steepest, 1e-9))


def _dictionary() -> cv2.aruco.Dictionary:
    return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{DICTIONARY}"))
