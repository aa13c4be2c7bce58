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

import numpy as np

from merton.calibration.charuco import Sighting
from merton.calibration.lens import Lens, check_sizes
from merton.calibration.mistakes import likely_mistake, most_error_px
from merton.calibration.problem import FEWEST_POSES, Parent, PoseResidual, Problem
from merton.errors import InputError
from merton.world.geometry import Matrix

GOOD_POSES = 12
LEAST_TURN_RAD = np.radians(1.0)
GOOD_TURN_RAD = np.radians(8.0)
"""Spread of the arm's turns about the second most turned axis, below which the result is undetermined, or uncertain."""
GOOD_SPAN = 0.1
SHARP_EDGE_PX = 4.5
"""A Gaussian blur of about 1.7 pixels; see `Sighting`."""
OUTLIER_TIMES = 4.0
LEAST_OUTLIER_PX = 1.0
"""A pose is left out if its corners are off by this many times the median of all poses, and by this much."""
WRONG_SCALE = 0.01


@dataclass(frozen=True)
class Calibration:
    """The pose of a camera, and its uncertainty.

    Attributes:
        parent: the link that the camera is fixed to.
        parent_from_camera: (4, 4) pose of its optical frame.
        other_from_board: (4, 4) pose of the board in `base_link` if the parent is `tool0`, else in `tool0`.
        error_px: of all corners used, root mean square [px].
        position_deviation_m, angle_deviation_rad: standard deviation of the camera's position (length of the vector)
            and orientation, from how far the result moves when one image is left out (jackknife). NaN if only 3 images
            were used: 2 determine nothing.
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
    image had errors, gives results farther from the truth (docs/lab/calibration.md). Images that contradict the others
    are     left out and named.

    Args:
        sightings: the board in each image.
        base_from_tool0: pose (4, 4) of `tool0` in `base_link` at each image.
        lens: the optics of the camera.
        parent: "tool0" for a camera on the arm and a board that lies still, "base_link" for a camera beside the arm and
            a board on its tool.

    Raises:
        InputError: fewer than 3 images, poses that are not one for each image or no rigid transforms, images of another
            size than the lens is for, a board of another layout, an arm that hardly turned, or poses that do not fit
            the images; the text names the likely mistake.
    """
    _check(sightings, base_from_tool0, lens)
    problem = Problem(sightings, base_from_tool0, lens, parent)
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
    error, most = float(np.median(errors)), most_error_px(lens)
    if error <= most:
        solution = problem.fit(solution, used)
        error = float(np.sqrt(np.mean(problem.errors_px(solution)[used] ** 2)))
    if error > most:
        raise InputError(
            f"the poses do not fit the pictures: corners are off by {error:.1f} px, at most {most:.1f} px are "
            f"accepted; {likely_mistake(sightings, base_from_tool0, lens, parent)}"
        )
    poses = problem.residuals(solution, used)
    position_deviation, angle_deviation = problem.jackknife(solution, used)
    scale = problem.scale(solution, used)
    parent_from_camera, other_from_board = problem.transforms(solution)
    warnings = (*_doubts(sightings, turn), *_contradictions(poses, scale))
    return Calibration(
        parent, parent_from_camera, other_from_board, error, position_deviation, angle_deviation, scale, poses, warnings
    )


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


def _contradictions(poses: Sequence[PoseResidual], scale: float) -> list[str]:
    """Warnings about pictures, poses and board that do not agree."""
    warnings = []
    if left_out := [pose.name for pose in poses if pose.left_out]:
        warnings.append(f"left out, because the arm's pose contradicts the other images: {', '.join(left_out)}")
    if len(left_out) * 3 > len(poses):
        warnings.append("that is more than a third of them: did the board move, or do poses belong to other images?")
    if abs(scale - 1) > WRONG_SCALE:
        warnings.append(
            f"the squares seem to be {scale:.3f} times as long as given: measure them, printers scale "
            "(or the focal length is wrong)"
        )
    return warnings
