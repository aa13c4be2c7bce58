"""Hand-eye calibration: the pose of a camera on the arm or beside it, from pictures of a board.

One chain describes both cases. The camera is fixed to one end of the arm, its *parent*, and the board to the other:

    parent_from_camera @ camera_from_board = parent_from_other @ other_from_board

For a camera on the arm the parent is `tool0` and the board lies still in `base_link`; for a camera beside the arm the
parent is `base_link` and the board rides on `tool0`. `parent_from_other` comes from the robot and
`camera_from_board` from the image; the other two are unknown, and the same in every image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from merton.calibration.charuco import Sighting
from merton.calibration.lens import Lens, check_sizes
from merton.errors import InputError
from merton.world.geometry import Array, Matrix, inverse, rotation_vector_of, transform

Parent = Literal["tool0", "base_link"]
Indices = NDArray[np.intp]
"""Numbers of images."""

FEWEST_POSES = 3
"""Two turns about different axes, the least that determines both poses."""
GOOD_POSES = 12
LEAST_TURN_RAD = np.radians(1.0)
GOOD_TURN_RAD = np.radians(8.0)
"""Spread of the arm's turns about the second most turned axis, below which the result is undetermined, or uncertain."""
GOOD_SPAN = 0.1
SHARP_EDGE_PX = 4.5
"""A Gaussian blur of about 1.7 pixels; see `Sighting`."""
ARM_SCATTER_M, ARM_SCATTER_RAD = 3e-4, float(np.radians(0.05))
"""How far the tool is from where the robot reports it, along and about each axis: as errors of 0.02 deg in every joint
give. Only its ratio to the scatter of the corners matters, and little."""
LEAST_SCATTER_PX = 0.05
OUTLIER_TIMES = 4.0
LEAST_OUTLIER_PX = 1.0
"""A pose is left out if its corners are off by this many times the median of all poses, and by this much."""
WRONG_BOARD_PX = 3.0
"""A flat board of the given layout is seen to a fraction of a pixel in any pose."""
WRONG_SCALE = 0.01


@dataclass(frozen=True)
class PoseResidual:
    """How well one image agrees with the result.

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


@dataclass(frozen=True)
class Calibration:
    """The pose of a camera, and its uncertainty.

    Attributes:
        parent: the link that the camera is fixed to.
        parent_from_camera: (4, 4) pose of its optical frame.
        other_from_board: (4, 4) pose of the board in `base_link` if the parent is `tool0`, else in `tool0`.
        error_px: of all corners used, root mean square [px].
        position_deviation_m, angle_deviation_rad: standard deviation of the camera's position (length of the vector)
            and orientation, from how far the result moves when one image is left out (jackknife).
        board_scale: size of the board that fits best, as a multiple of the given one.
        poses: residual of every image, in the order given.
    """

    parent: Parent
    parent_from_camera: Matrix
    other_from_board: Matrix
    error_px: float
    position_deviation_m: float
    angle_deviation_rad: float
    board_scale: float
    poses: tuple[PoseResidual, ...]
    warnings: tuple[str, ...]


def calibrate(
    sightings: Sequence[Sighting], base_from_tool0: Sequence[Matrix], lens: Lens, parent: Parent
) -> Calibration:
    """The pose of a camera, from at least 3 images of the board with the arm turned differently in each.

    Ours: OpenCV 5.0.0 lacks hand-eye calibration in Python. The start is the closed form of Shah 2013 ("Solving the
    robot-world/hand-eye calibration problem using the Kronecker product"). The result is the most likely one if corners
    scatter in the image, each on its own, and the arm scatters about its reported pose, which moves all corners of an
    image together: offsets are weighted by the inverse of that covariance. Minimising the plain offsets, as if only the
    image had errors, gives results farther from the truth (docs/calibration.md). Images that contradict the others are
    left out and named.

    Args:
        sightings: the board in each image.
        base_from_tool0: pose (4, 4) of `tool0` in `base_link` at each image.
        lens: the optics of the camera.
        parent: "tool0" for a camera on the arm and a board that lies still, "base_link" for a camera beside the arm and
            a board on its tool.

    Raises:
        InputError: fewer than 3 images, poses that are not one for each image or no rigid transforms, images of another
            size than the lens is for, a board of another layout, or an arm that hardly turned.
    """
    _check(sightings, base_from_tool0, lens)
    problem = _Problem(sightings, base_from_tool0, lens, parent)
    turn = problem.turn_rad()
    if turn < LEAST_TURN_RAD:
        raise InputError(
            f"the arm turned about one axis at most (about a second one by {np.degrees(turn):.1f} deg): "
            "tilt the tool in several directions, by 20 deg and more"
        )
    used = np.arange(len(sightings))
    solution = problem.fit(problem.start(), used, loss="soft_l1")
    errors = problem.errors_px(solution)
    limit = max(LEAST_OUTLIER_PX, OUTLIER_TIMES * float(np.median(errors)))
    if (errors <= limit).sum() >= FEWEST_POSES:
        used = np.flatnonzero(errors <= limit)
    solution = problem.fit(solution, used)
    poses = problem.residuals(solution, used)
    position_deviation, angle_deviation = problem.jackknife(solution, used)
    scale = problem.scale(solution, used)
    parent_from_camera, other_from_board = problem.transforms(solution)
    error = float(np.sqrt(np.mean(problem.errors_px(solution)[used] ** 2)))
    warnings = (*_doubts(sightings, turn), *_contradictions(poses, error, scale))
    return Calibration(
        parent, parent_from_camera, other_from_board, error, position_deviation, angle_deviation, scale, poses, warnings
    )


class _Problem:
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

        return np.asarray(least_squares(offsets, x, loss=loss, x_scale="jac").x)

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


def _check(sightings: Sequence[Sighting], base_from_tool0: Sequence[Matrix], lens: Lens) -> None:
    if len(sightings) != len(base_from_tool0):
        raise InputError(f"there must be one pose for each image, got {len(base_from_tool0)} for {len(sightings)}")
    if len(sightings) < FEWEST_POSES:
        raise InputError(
            f"hand-eye calibration needs at least {FEWEST_POSES} images that show the board, better {GOOD_POSES}, "
            f"got {len(sightings)}"
        )
    for sighting, pose in zip(sightings, base_from_tool0, strict=True):
        shaped = np.shape(pose) == (4, 4) and bool(np.isfinite(pose).all())
        turn = pose[:3, :3] if shaped else np.zeros((3, 3))
        if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-4) or np.linalg.det(turn) < 0:
            raise InputError(f"{sighting.name}: the pose of the arm is no rigid transform of shape (4, 4)")
    check_sizes(sightings, lens.intrinsics)


def _doubts(sightings: Sequence[Sighting], turn_rad: float) -> list[str]:
    """Warnings about the pictures and poses themselves."""
    warnings = []
    if len(sightings) < GOOD_POSES:
        warnings.append(f"only {len(sightings)} images show the board: take {GOOD_POSES} or more")
    if turn_rad < GOOD_TURN_RAD:
        warnings.append(
            f"the axes about which the arm turned are too parallel (about a second one it turned by "
            f"{np.degrees(turn_rad):.1f} deg): tilt the tool in several directions, by 20 deg and more"
        )
    if small := [sighting.name for sighting in sightings if sighting.span < GOOD_SPAN]:
        warnings.append(
            f"the board is seen too small, below {GOOD_SPAN:.0%} of the image's width, in {', '.join(small)}"
        )
    if blurred := [sighting.name for sighting in sightings if sighting.edge_px > SHARP_EDGE_PX]:
        warnings.append(f"blurred: {', '.join(blurred)}")
    return warnings


def _contradictions(poses: Sequence[PoseResidual], error_px: float, scale: float) -> list[str]:
    """Warnings about pictures, poses and board that do not agree."""
    warnings = []
    if left_out := [pose.name for pose in poses if pose.left_out]:
        warnings.append(f"left out, because the arm's pose contradicts the other images: {', '.join(left_out)}")
    if len(left_out) * 3 > len(poses):
        warnings.append("that is more than a third of them: did the board move, or do poses belong to other images?")
    if error_px > WRONG_BOARD_PX:
        warnings.append(
            f"corners are off by {error_px:.1f} px: did the board move, or do poses belong to other images?"
        )
    if abs(scale - 1) > WRONG_SCALE:
        warnings.append(
            f"the squares seem to be {scale:.3f} times as long as given: measure them, printers scale "
            "(or the focal length is wrong)"
        )
    return warnings
