"""Poses a person would teach to calibrate a camera of the cell, as the robot reports them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from merton.calibration import CharucoBoard, Lens
from merton.execution.kinematics import ROBOTS
from merton.world.cell import load_cell
from merton.world.geometry import Matrix, inverse, transform

UR5 = ROBOTS["UR5"]

JOINT_NOISE_RAD = np.radians(0.02)
"""Standard deviation of a joint's true angle from the reported one."""


@dataclass(frozen=True)
class Rig:
    """A camera and a board in the cell, where they truly are, and an arm that moves one of them.

    Attributes:
        camera: name in config/cell.yaml.
        parent: what it is fixed to.
        parent_from_camera: the truth, some millimetres and degrees from config/cell.yaml.
        other_from_board: the truth.
        joints_rad: (n, 6) what the robot says.
        true_joints_rad: (n, 6) where its joints are.
        camera_from_board: (n, 4, 4) the truth at these poses, with the joints' own errors.
    """

    camera: str
    parent: str
    parent_from_camera: Matrix
    other_from_board: Matrix
    joints_rad: NDArray[np.float64]
    true_joints_rad: NDArray[np.float64]
    camera_from_board: Matrix

    @property
    def base_from_tool0(self) -> Matrix:
        """(n, 4, 4) as the robot's joints say."""
        return UR5.forward(self.joints_rad)

    @property
    def base_from_board(self) -> Matrix:
        """(n, 4, 4) the truth."""
        if self.parent == "tool0":
            return np.tile(self.other_from_board, (len(self.joints_rad), 1, 1))
        return UR5.forward(self.true_joints_rad) @ self.other_from_board


def rig(
    camera: str,
    lens: Lens,
    rng: np.random.Generator,
    *,
    poses: int = 15,
    noise_rad: float = JOINT_NOISE_RAD,
    board: CharucoBoard | None = None,
    tilt_rad: float = 0.6,
    distance_m: tuple[float, float] = (0.35, 0.55),
) -> Rig:
    """Poses in reach of the arm in which the camera sees the whole board, tilted this and that way."""
    cell, board = load_cell(), board or CharucoBoard()
    nominal = cell.camera(camera)
    off = transform(rng.normal(0, 0.008, 3), Rotation.from_rotvec(rng.normal(0, np.radians(2.0), 3)))
    parent_from_camera = nominal.parent_from_camera @ off
    on_arm = nominal.parent == "tool0"
    middle = transform((*(np.array(board.size_m) / 2), 0.0))
    if on_arm:  # lies on the table, the printed side up
        lies = transform((0.5, 0.03, 0.002), Rotation.from_euler("xz", [np.pi, 0.2]))
        other_from_board = lies @ inverse(middle)
    else:  # held by one edge between the fingers, its plane along the tool
        held = transform((0.004, 0.002, 0.31), Rotation.from_euler("XZ", [np.pi / 2, 0.05]))
        other_from_board = held @ inverse(middle)
    joints, true_joints, views = [], [], []
    while len(joints) < poses:
        aside = rng.uniform(-0.12, 0.12, 2)
        turn = Rotation.from_rotvec(np.append(rng.uniform(-tilt_rad, tilt_rad, 2), 0.0))
        turn = turn * Rotation.from_euler("z", rng.uniform(-np.pi, np.pi))
        view = transform((*aside, rng.uniform(*distance_m)), turn) @ inverse(middle)
        if not _inside(view, board, lens):
            continue
        if on_arm:
            base_from_tool0 = other_from_board @ inverse(view) @ inverse(parent_from_camera)
        else:
            base_from_tool0 = parent_from_camera @ view @ inverse(other_from_board)
        found = UR5.solve(base_from_tool0, cell.home_joints)
        if not found.success or base_from_tool0[2, 3] < 0.1:
            continue
        joints.append(found.joints)
        true_joints.append(found.joints + rng.normal(0, noise_rad, 6))
        true = UR5.forward(true_joints[-1])
        if on_arm:
            views.append(inverse(true @ parent_from_camera) @ other_from_board)
        else:
            views.append(inverse(parent_from_camera) @ true @ other_from_board)
    parent = "tool0" if on_arm else "base_link"
    return Rig(
        camera, parent, parent_from_camera, other_from_board, np.array(joints), np.array(true_joints), np.array(views)
    )


def _inside(camera_from_board: Matrix, board: CharucoBoard, lens: Lens) -> bool:
    """Whether the whole board is in the image, with a margin."""
    own, (width, height) = lens.intrinsics, board.size_m
    corners = np.array([[0, 0, 0], [width, 0, 0], [width, height, 0], [0, height, 0]])
    seen = [own.project(camera_from_board[:3, :3] @ corner + camera_from_board[:3, 3]) for corner in corners]
    margin = 0.03 * own.width
    return all(margin < u < own.width - margin and margin < v < own.height - margin for u, v in seen)
