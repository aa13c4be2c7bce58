"""The optics of a camera, and their check against pictures of a board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from merton.calibration.charuco import Sighting
from merton.errors import InputError
from merton.world.geometry import Array, Matrix, transform
from merton.world.observation import Intrinsics
from merton.world.opencv import undistort_points

_MOST_EXCESS = 2.0
_LEAST_EXCESS_PX = 0.3
"""The given optics are doubted if they leave this many times the error of the fitted ones, and this much at least."""


@dataclass(frozen=True)
class Lens:
    """A pinhole camera behind a lens.

    Attributes:
        intrinsics: size, focal lengths and principal point [px].
        distortion: (k1, k2, p1, p2, k3) as in OpenCV and in a CameraInfo of the model plumb_bob; empty for none.

    Raises:
        InputError: not 0, 4 or 5 finite coefficients.
    """

    intrinsics: Intrinsics
    distortion: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.distortion) not in (0, 4, 5) or not np.isfinite(self.distortion).all():
            raise InputError(
                f"the distortion of a lens is nothing, or 4 or 5 finite coefficients, got {self.distortion!r}"
            )

    @property
    def matrix(self) -> Array:
        """The camera matrix (3, 3) [px]."""
        own = self.intrinsics
        return np.array([[own.fx, 0, own.cx], [0, own.fy, own.cy], [0, 0, 1.0]])

    def undistort(self, points_px: Array) -> Array:
        """The points (n, 2) [px] as a camera of the same intrinsics without distortion would see them."""
        if not any(self.distortion):
            return points_px
        matrix = self.matrix
        distorted = points_px.reshape(-1, 1, 2).astype(np.float64)
        ideal = undistort_points(distorted, matrix, np.array(self.distortion), 40, 1e-10, matrix)
        return np.asarray(ideal, np.float64).reshape(-1, 2)

    def camera_from_board(self, sighting: Sighting) -> tuple[Matrix, float]:
        """The pose (4, 4) of the board in one image, and the error of its corners [px, root mean square].

        Raises InputError if there is none.
        """
        points, corners = self.undistort(sighting.corners_px), sighting.corners_m
        _, turns, places, errors = cv2.solvePnPGeneric(corners, points, self.matrix, None, flags=cv2.SOLVEPNP_IPPE)
        if len(turns) == 0 or not np.isfinite(errors).any():
            raise InputError(f"{sighting.name}: the pose of the board does not follow from these corners: leave it out")
        best = int(np.argmin(np.ravel(errors)))  # a plane has two poses that look alike
        turn, place = cv2.solvePnPRefineLM(corners, points, self.matrix, None, turns[best], places[best])
        projected, _ = cv2.projectPoints(corners, turn, place, self.matrix, None)
        pose = transform(np.ravel(place))
        pose[:3, :3] = cv2.Rodrigues(turn)[0]
        return pose, float(np.sqrt(np.mean(np.sum((projected.reshape(-1, 2) - points) ** 2, axis=1))))


@dataclass(frozen=True)
class LensCheck:
    """A camera's optics, compared with pictures of a board.

    Attributes:
        given_px: error of the corners with the given optics, every board posed freely [px, root mean square].
        fitted_px: the same with the optics that fit best.
        fitted: these optics; from few or similar pictures they may be worse than the given ones.
        focal_deviation_px: standard deviation of the fitted fx and fy [px].
        warning: one sentence if the pictures contradict the given optics, else "".
    """

    given_px: float
    fitted_px: float
    fitted: Lens
    focal_deviation_px: tuple[float, float]
    warning: str


def check_lens(sightings: Sequence[Sighting], lens: Lens) -> LensCheck:
    """Fit the optics (Zhang 2000, by OpenCV) to at least 3 images of a board and compare.

    Raises:
        InputError: fewer than 3 images, or images of another size than the lens is for.
    """
    own = lens.intrinsics
    check_sizes(sightings, own)
    if len(sightings) < 3:
        raise InputError(f"checking a lens takes at least 3 images of the board, got {len(sightings)}")
    coefficients = np.zeros(5)
    coefficients[: len(lens.distortion)] = lens.distortion
    error, matrix, fitted, _, _, spread, _, _ = cv2.calibrateCameraExtended(
        [sighting.corners_m.astype(np.float32) for sighting in sightings],
        [sighting.corners_px.astype(np.float32) for sighting in sightings],
        (own.width, own.height),
        lens.matrix,
        coefficients,
        flags=cv2.CALIB_USE_INTRINSIC_GUESS | (0 if len(lens.distortion) == 5 else cv2.CALIB_FIX_K3),
    )
    fx, fy, cx, cy = (float(matrix[row, column]) for row, column in ((0, 0), (1, 1), (0, 2), (1, 2)))
    best = Lens(
        Intrinsics(own.width, own.height, fx, fy, cx, cy), tuple(float(value) for value in np.ravel(fitted)[:5])
    )
    squares = sum(lens.camera_from_board(each)[1] ** 2 * len(each.corners_px) for each in sightings)
    given = float(np.sqrt(squares / sum(len(each.corners_px) for each in sightings)))
    warning = ""
    if given > max(_LEAST_EXCESS_PX, _MOST_EXCESS * error):
        warning = (
            f"the intrinsics do not fit these images: {given:.2f} px of error, {error:.2f} px with a focal length of "
            f"{fx:.1f} px in place of {own.fx:.1f} px and a distortion of "
            f"({', '.join(f'{value:.3g}' for value in best.distortion)})"
        )
    deviation = float(spread[0, 0]), float(spread[1, 0])
    return LensCheck(given, float(error), best, deviation, warning)


def check_sizes(sightings: Sequence[Sighting], intrinsics: Intrinsics) -> None:
    """Raise InputError naming the first image that is not of the size the intrinsics are for."""
    wanted = intrinsics.width, intrinsics.height
    for sighting in sightings:
        if sighting.size_px != wanted:
            width, height = sighting.size_px
            raise InputError(
                f"{sighting.name} has {width} x {height} pixels, the intrinsics are for {wanted[0]} x {wanted[1]}"
            )
