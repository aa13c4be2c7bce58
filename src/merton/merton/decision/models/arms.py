"""Forward kinematics, from published numbers, of the arms that joint-space models were trained on.

The joint angles of such a policy are those of its own arm, whose kinematics give the motion of the hand. The inverse
kinematics of the arms of the cell are in `merton.execution`, which no other stage may import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from merton.errors import UnknownNameError
from merton.world.arms import ARMS, Lengths
from merton.world.geometry import Matrix, transform


@dataclass(frozen=True)
class Arm:
    """A serial arm of revolute joints as a product of exponentials (Lynch and Park, Modern Robotics, eq. 4.14).

    Attributes:
        axes: (n, 3) unit vectors of the joint axes at zero angles, in the arm's base frame (x forward, y left, z up).
        points_m: (n, 3) a point on each axis at zero angles [m].
        base_from_hand: (4, 4) pose of the hand at zero angles.
        rest_rad: (n,) joints in the initial pose of its data sets.
        source: publication of the numbers.
    """

    name: str
    axes: NDArray[np.float64]
    points_m: NDArray[np.float64]
    base_from_hand: Matrix
    rest_rad: tuple[float, ...]
    source: str

    def forward(self, joints_rad: ArrayLike) -> Matrix:
        """Pose of the hand in the arm's base frame, (..., 4, 4), for joint angles (..., n) [rad]."""
        joints = np.asarray(joints_rad, dtype=np.float64)
        flat = joints.reshape(-1, len(self.axes))
        rotation = np.tile(np.eye(3), (len(flat), 1, 1))
        position = np.zeros((len(flat), 3))
        for axis, point, angles in zip(self.axes, self.points_m, flat.T, strict=True):
            turn = Rotation.from_rotvec(angles[:, None] * axis).as_matrix()
            position = position + np.einsum("nij,nj->ni", rotation, point - turn @ point)
            rotation = rotation @ turn
        poses = np.tile(np.eye(4), (len(flat), 1, 1))
        poses[:, :3, :3] = rotation @ self.base_from_hand[:3, :3]
        poses[:, :3, 3] = rotation @ self.base_from_hand[:3, 3] + position
        return poses.reshape(*joints.shape[:-1], 4, 4)


def from_modified_dh(
    name: str,
    rows: Sequence[tuple[float, float, float]],
    hand_m: float,
    rest_rad: tuple[float, ...],
    source: str,
    base_yaw_rad: float = 0.0,
) -> Arm:
    """An arm from Craig's modified Denavit-Hartenberg rows, T = Rx(alpha) Tx(a) Rz(theta) Tz(d) for each joint.

    Args:
        rows: (a [m], d [m], alpha [rad]) of each joint.
        hand_m: distance of the hand from the last joint's frame along its z [m].
        base_yaw_rad: turn of the first frame about z against x forward [rad].
    """
    pose = transform(rotation=Rotation.from_rotvec((0.0, 0.0, base_yaw_rad)))
    axes, points = [], []
    for a, d, alpha in rows:
        pose = pose @ transform((a, 0.0, 0.0), Rotation.from_rotvec((alpha, 0.0, 0.0)))
        axes.append(pose[:3, 2])
        points.append(pose[:3, 3])
        pose = pose @ transform((0.0, 0.0, d))
    return Arm(name, np.array(axes), np.array(points), pose @ transform((0.0, 0.0, hand_m)), rest_rad, source)


PANDA = from_modified_dh(
    "Franka Panda",
    (
        (0.0, 0.333, 0.0),
        (0.0, 0.0, -pi / 2),
        (0.0, 0.316, pi / 2),
        (0.0825, 0.0, pi / 2),
        (-0.0825, 0.384, -pi / 2),
        (0.0, 0.0, pi / 2),
        (0.088, 0.0, pi / 2),
    ),
    0.107,
    (0.0, -pi / 5, 0.0, -4 * pi / 5, 0.0, 3 * pi / 5, 0.0),
    "Franka Control Interface documentation, Denavit-Hartenberg parameters; rest: DROID, robot_env.py",
)
"""To its flange (link 8), as in DROID's own Cartesian data."""

VIPERX_300 = Arm(
    "ViperX 300 6DOF",
    np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]], dtype=np.float64),
    # A point on each axis with the published moments: v = -axis x point.
    np.array(
        [[0, 0, 0], [0, 0, 0.12705], [0.05955, 0, 0.42705], [0, 0, 0.42705], [0.35955, 0, 0.42705], [0, 0, 0.42705]]
    ),
    transform((0.536494, 0.0, 0.42705)),
    (0.0, -0.96, 1.16, 0.0, -0.3, 0.0),
    "Interbotix X-series, mr_descriptions.py, class vx300s (space screws and home pose); rest: ALOHA, constants.py",
)
"""To the point between its fingers."""


def of_lengths(name: str, lengths: Lengths, rest_rad: tuple[float, ...], source: str) -> Arm:
    """An arm of Universal Robots' build, to its flange (`tool0`), in `base_link` (x forward)."""
    rows = (
        (0.0, lengths.d1, 0.0),
        (0.0, 0.0, pi / 2),
        (lengths.a2, 0.0, 0.0),
        (lengths.a3, lengths.d4, 0.0),
        (0.0, lengths.d5, pi / 2),
        (0.0, lengths.d6, -pi / 2),
    )
    return from_modified_dh(name, rows, 0.0, rest_rad, source, base_yaw_rad=pi)


UR5E = of_lengths(
    "UR5e",
    ARMS["UR5e"].lengths,
    (0.0, -pi / 2, pi / 2, -pi / 2, -pi / 2, 0.0),
    "Universal Robots, DH parameters for calculations of kinematics and dynamics; rest: ours, hand down in front",
)

_OTHERS = {arm.name: arm for arm in (PANDA, VIPERX_300, UR5E)}


def arm_names() -> tuple[str, ...]:
    """The arms that a convention may name: every arm that a cell can have, and those of the published data sets."""
    return tuple(dict.fromkeys((*ARMS, *_OTHERS)))


def arm_named(name: str) -> Arm:
    """The arm called `name`; one that a cell can have rests where its trials begin.

    Raises UnknownNameError with the names there are.
    """
    if name in _OTHERS:
        return _OTHERS[name]
    if name not in ARMS:
        raise UnknownNameError("arm", name, arm_names())
    return of_lengths(name, ARMS[name].lengths, ARMS[name].home_joints_rad, "its entry in merton.world.arms")
