"""The equations of hand-eye calibration, and their least squares. See `hand_eye` for the chain of transforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from merton.calibration.charuco import Sighting
from merton.calibration.lens import Lens
from merton.errors import InputError
from merton.world.geometry import Array, Matrix, inverse, rotation_vector_of, transform

Parent = Literal["tool0", "base_link"]
Indices = NDArray[np.intp]
"""Numbers of images."""

FEWEST_POSES = 3
"""Two turns about different axes, the least that determines both poses."""
ARM_SCATTER_M, ARM_SCATTER_RAD = 3e-4, float(np.radians(0.05))
"""Scatter of the tool about the pose that the robot reports, along and about each axis: as errors of 0.02 deg in every
joint give. Only its ratio to the scatter of the corners matters, and little."""
LEAST_SCATTER_PX = 0.05
MOST_STEPS = 60
"""Of a fit. Poses that fit the images take some ten; those that do not would wander on for minutes."""
WRONG_BOARD_PX = 3.0
"""A flat board of the given layout is seen to a fraction of a pixel in any pose."""


@dataclass(frozen=True)
class PoseResidual:
    """The errors of one image against the result.

    Attributes:
        error_px: of its corners, root mean square [px].
        position_m, angle_rad: between the pose of the board seen in the image and the pose computed from the result.
        left_out: the image contradicts the others and was not used.
    """

    name: str
    error_px: float
    position_m: float
    angle_rad: float
    left_out: bool


class Problem:
    """All corners of all images, in arrays. The unknown `x` (12,) is turn and place of the camera, then the board."""

    def __init__(
        self, sightings: Sequence[Sighting], base_from_tool0: Sequence[Matrix], lens: Lens, parent: Parent
    ) -> None:
        poses = np.array(base_from_tool0, np.float64)
        self.names = [sighting.name for sighting in sightings]
        self.parent_from_other = poses if parent == "base_link" else np.array([inverse(pose) for pose in poses])
        observed = [lens.camera_from_board(sighting) for sighting in sightings]
        for name, (_, error_px) in zip(self.names, observed, strict=True):
            if error_px > WRONG_BOARD_PX:
                raise InputError(
                    f"{name}: the corners do not lie as on the board that was named ({error_px:.1f} px off): "
                    "is it another board, is it bent, or are these the intrinsics of another camera?"
                )
        self.camera_from_board = np.array([pose for pose, _ in observed])
        self.arm_is_turned_round = parent == "tool0"
        self.scatter_px = max(LEAST_SCATTER_PX, float(np.sqrt(np.mean([error**2 for _, error in observed]) / 2)))
        self.corners_m = np.concatenate([sighting.corners_m for sighting in sightings])
        self.points_px = np.concatenate([lens.undistort(sighting.corners_px) for sighting in sightings])
        self.image = np.repeat(np.arange(len(sightings)), [len(sighting.corners_m) for sighting in sightings])
        own = lens.intrinsics
        self.focal_px, self.centre_px = np.array([own.fx, own.fy]), np.array([own.cx, own.cy])

    def turn_rad(self) -> float:
        """Spread of the arm's orientations about the axis about which it turned second most."""
        turns = Rotation.from_matrix(self.parent_from_other[:, :3, :3])
        vectors = (turns.mean().inv() * turns).as_rotvec()
        return float(np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)[1] / np.sqrt(len(vectors)))

    def start(self) -> Array:
        """The closed form: rotations from the leading singular vectors of a sum of Kronecker products, then places."""
        arm, eye = self.parent_from_other, self.camera_from_board
        products = sum(np.kron(e[:3, :3], a[:3, :3]) for a, e in zip(arm, eye, strict=True))
        left, _, right = np.linalg.svd(products)
        camera, board = (_nearest_rotation(vector.reshape(3, 3, order="F")) for vector in (left[:, 0], right[0]))
        # arm @ board = camera @ eye for the places: linear in both
        rows = np.concatenate([np.hstack((-np.eye(3), a[:3, :3])) for a in arm])
        wanted = np.concatenate([camera @ e[:3, 3] - a[:3, 3] for a, e in zip(arm, eye, strict=True)])
        places = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        turns = [Rotation.from_matrix(matrix).as_rotvec() for matrix in (camera, board)]
        return np.concatenate([turns[0], places[:3], turns[1], places[3:]])

    def transforms(self, x: Array) -> tuple[Matrix, Matrix]:
        """`parent_from_camera` and `other_from_board`."""
        camera, board = (transform(part[3:6], Rotation.from_rotvec(part[:3])) for part in (x[:6], x[6:12]))
        return camera, board

    def predicted(self, x: Array, arm_error: Matrix | None = None) -> Matrix:
        """`camera_from_board` (n, 4, 4) of every image, if the tool is off by `arm_error` in its own frame."""
        camera, board = self.transforms(x)
        arm = self.parent_from_other
        if arm_error is not None:
            arm = inverse(arm_error) @ arm if self.arm_is_turned_round else arm @ arm_error
        return inverse(camera) @ arm @ board

    def offsets_px(self, x: Array, arm_error: Matrix | None = None) -> Array:
        """Predicted minus seen, (corners, 2); `x` may have a thirteenth number, the scale of the board."""
        poses = self.predicted(x, arm_error)[self.image]
        corners = self.corners_m * x[12] if len(x) > 12 else self.corners_m
        points = np.einsum("nij,nj->ni", poses[:, :3, :3], corners) + poses[:, :3, 3]
        depths = np.where(np.abs(points[:, 2:]) < 1e-6, 1e-6, points[:, 2:])
        return points[:, :2] / depths * self.focal_px + self.centre_px - self.points_px

    def errors_px(self, x: Array) -> Array:
        """Root mean square of every image, (n,)."""
        squares = np.sum(self.offsets_px(x) ** 2, axis=1)
        return np.sqrt(np.bincount(self.image, squares) / np.bincount(self.image))

    def fit(self, x: Array, used: Indices, loss: str = "linear") -> Array:
        """The most likely `x` for some images, from one near it."""
        weights = self.weights(x, used)

        def offsets(x: Array) -> Array:
            every = self.offsets_px(x)
            return np.concatenate([weight @ every[self.image == index].ravel() for index, weight in weights.items()])

        return np.asarray(least_squares(offsets, x, loss=loss, x_scale="jac", max_nfev=MOST_STEPS).x)

    def weights(self, x: Array, used: Indices) -> dict[int, Array]:
        """For some images, the matrix (2 m, 2 m) that makes the offsets of their corners independent, of variance 1."""
        here, step = self.offsets_px(x), 1e-5
        moves = []
        for axis, scatter in enumerate([ARM_SCATTER_M] * 3 + [ARM_SCATTER_RAD] * 3):
            move = step * np.eye(6)[axis]
            error = transform(move[:3], Rotation.from_rotvec(move[3:]))
            moves.append((self.offsets_px(x, error) - here) / step * scatter)
        weights = {}
        for index in used:
            moved = np.array(moves)[:, self.image == index].reshape(6, -1).T
            covariance = moved @ moved.T + self.scatter_px**2 * np.eye(len(moved))
            weights[int(index)] = np.linalg.inv(np.linalg.cholesky(covariance))
        return weights

    def scale(self, x: Array, used: Indices) -> float:
        """Size of the board that fits best, as a multiple of the given one."""
        return float(self.fit(np.append(x, 1.0), used)[12])

    def jackknife(self, x: Array, used: Indices) -> tuple[float, float]:
        """Standard deviations of the camera's position [m] and angle [rad]; NaN if leaving one out leaves too few."""
        if len(used) <= FEWEST_POSES:
            return float("nan"), float("nan")
        whole = self.transforms(x)[0]
        without = [self.transforms(self.fit(x, np.delete(used, index)))[0] for index in range(len(used))]
        moved = inverse(whole) @ np.array(without)
        spread = []
        for vectors in (moved[:, :3, 3], np.array([rotation_vector_of(pose) for pose in moved])):
            squares = np.sum((vectors - vectors.mean(axis=0)) ** 2)
            spread.append(float(np.sqrt((len(used) - 1) / len(used) * squares)))
        return spread[0], spread[1]

    def residuals(self, x: Array, used: Indices) -> tuple[PoseResidual, ...]:
        errors, observed = self.errors_px(x), self.camera_from_board
        gaps = [inverse(predicted) @ pose for predicted, pose in zip(self.predicted(x), observed, strict=True)]
        return tuple(
            PoseResidual(
                name,
                float(error),
                float(np.linalg.norm(gap[:3, 3])),
                float(np.linalg.norm(rotation_vector_of(gap))),
                index not in used,
            )
            for index, (name, error, gap) in enumerate(zip(self.names, errors, gaps, strict=True))
        )


def _nearest_rotation(matrix: Array) -> Array:
    """The rotation nearest to a multiple, of either sign, of a matrix (3, 3)."""
    left, _, right = np.linalg.svd(matrix * np.sign(np.linalg.det(matrix)))
    return left @ right
