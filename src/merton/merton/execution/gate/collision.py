"""Distances of the arm, drawn as capsules, and of the object it holds, to itself, table and walls. Frame: `base_link`.

Placements and distances come from Pinocchio and its collision library Coal (the `pin` wheel): one call for all pairs
of a configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InputError, needing
from merton.execution.gate.capsules import capsules_of, self_pairs
from merton.execution.kinematics import BASE_LINK_FROM_BASE, UniversalRobot, kinematics_of
from merton.execution.robots.gripper import Gripper
from merton.world.arms import Capsule
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix, transform

with needing("sim", "the gate"):
    import coal
    import pinocchio
    from pinocchio import SE3

HELD = "held_object"
"""Name of the held object where a link is named."""

LONGEST_HELD_M = 0.10
"""Held objects reach this far beyond the tool centre point at most, as those of the cell do."""

SET_DOWN_M = 0.008
"""A held object is drawn this much too short at its far end, so that it may be set down. Ours: with a stopping margin
of 5 mm it may stand on the table, slide on it, and be pressed 3 mm into it, the uncertainty of its length."""

_LEFT_FINGER, _RIGHT_FINGER = 7, 8
"""Numbers of Pinocchio's joints: 0 is the world, 1 to 6 the arm, then the fingers."""


@dataclass(frozen=True)
class Clearance:
    """The least distance between a part of the arm and an obstacle.

    Attributes:
        distance_m: [m]; negative in penetration.
        link_a: the part of the arm, or `HELD`.
        link_b: "table", the name of a wall, or another part of the arm.
    """

    distance_m: float
    link_a: str
    link_b: str


@dataclass(frozen=True)
class HeldObject:
    """The object between the fingers, as far as the gripper can tell: as deep as it is wide, as high above as below.

    Attributes:
        width_m: between the fingers [m], > 0.
        beyond_tcp_m: how far it reaches beyond the tool centre point, along z of `tool0` [m], > 0.
    """

    width_m: float
    beyond_tcp_m: float

    def __post_init__(self) -> None:
        if not (0 < self.width_m < inf and 0 < self.beyond_tcp_m < inf):
            raise InputError(f"a held object needs a positive width and reach, got {self}")

    @property
    def length_m(self) -> float:
        """Length of the cylinder it is checked as, along z of `tool0`: its last `SET_DOWN_M` are left off [m]."""
        return max(2 * self.beyond_tcp_m - SET_DOWN_M, 1e-3)

    @property
    def radius_m(self) -> float:
        """Radius of that cylinder, around a square of its width: its turn between the fingers is unknown [m]."""
        return float(self.width_m / np.sqrt(2))


def held_object(gripper: Gripper, commanded_open: float, measured_m: float, base_from_tcp: Matrix) -> HeldObject | None:
    """The object in the gripper once its fingers have stopped, or None if they reached the commanded opening.

    Args:
        commanded_open: last command, 0 closed .. 1 open.
        measured_m: opening between the pads [m].
        base_from_tcp: (4, 4) pose of the tool centre point when the fingers closed. The object is assumed to stand on
            the table, and so to reach as far down as the table is, `LONGEST_HELD_M` at most.
    """
    if not gripper.reading(gripper.opening_m(commanded_open), measured_m, moving=False).holds:
        return None
    down, height = -float(base_from_tcp[2, 2]), float(base_from_tcp[2, 3])
    to_table = height / down if down > 1e-6 else inf
    return HeldObject(measured_m, min(max(to_table, SET_DOWN_M), LONGEST_HELD_M))


class Guard:
    """Distances of the arm, and of the object it holds, to table (a half space), walls (boxes) and the arm itself.

    The distance of a held object to table and walls is watched, not that to the arm.
    """

    def __init__(self, cell: CellConfig, held: HeldObject | None = None) -> None:
        capsules = capsules_of(cell)
        self._frames = np.array([capsule.frame for capsule in capsules])
        self._ends = np.array([(capsule.start, capsule.end) for capsule in capsules])
        self._radii = np.array([capsule.radius_m for capsule in capsules])
        self._slide = np.array([capsule.slide for capsule in capsules])
        self._stroke = cell.gripper.stroke
        self._arm = kinematics_of(cell)
        self._model = _pinocchio_model(self._arm)
        self._data = self._model.createData()
        self._around = _Pairs(self._model, self._data)
        self._within = _Pairs(self._model, self._data)
        self._held = _Pairs(self._model, self._data)
        for pairs in (self._around, self._held):
            table = pairs.add("table", 0, transform(), coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0))
            walls = [pairs.add(box.name, 0, transform(box.center), coal.Box(*box.size)) for box in cell.walls]
        for capsule in capsules:
            part = self._around.add_capsule(capsule)
            self._around.watch(part, *([table] if capsule.meets_table else []), *walls)
        if held is not None:
            center = float(cell.tool0_from_tcp[2, 3]) + held.beyond_tcp_m - SET_DOWN_M - held.length_m / 2
            shape = coal.Cylinder(held.radius_m, held.length_m)
            self._held.watch(self._held.add(HELD, 6, transform((0.0, 0.0, center)), shape), table, *walls)
        parts = [self._within.add_capsule(capsule) for capsule in capsules]
        for one, other in self_pairs(capsules):
            self._within.watch(parts[one], parts[other])
        for pairs in (self._around, self._within, self._held):
            pairs.ready()

    @property
    def pairs(self) -> int:
        """Number of pairs of shapes that are watched."""
        return len(self._around) + len(self._within) + len(self._held)

    def capsules(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> tuple[Array, Array]:
        """The capsules of configurations, for drawing.

        Args:
            joints: (n, 6) [rad].
            opening_m: (n,) or scalar opening of the gripper [m]; None means fully open.

        Returns:
            Ends of the axes (n, capsules, 2, 3) [m] in `base_link`, and radii (capsules,) [m].
        """
        frames = self._arm.link_frames(joints)[:, self._frames]
        opening = np.broadcast_to(self._stroke if opening_m is None else np.asarray(opening_m, float), len(frames))
        local = np.broadcast_to(self._ends, (len(frames), *self._ends.shape)).copy()
        local[..., 0] += (self._slide * opening[:, None] / 2)[..., None]
        return np.einsum("ncij,ncej->ncei", frames[..., :3, :3], local) + frames[..., None, :3, 3], self._radii

    def clearances(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> list[Clearance]:
        """The least distance to table and walls of each configuration; arguments as of `capsules`."""
        return [self._around.least(row) for row in self._configurations(joints, opening_m)]

    def self_clearances(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> list[Clearance]:
        """The least distance between parts of the arm that can meet; arguments as of `capsules`."""
        return [self._within.least(row) for row in self._configurations(joints, opening_m)]

    def held_clearances(self, joints: ArrayLike) -> list[Clearance]:
        """The least distance of the held object to table and walls, infinite without one; joints (n, 6) [rad]."""
        return [self._held.least(row) for row in self._configurations(joints, None)]

    def clearance(self, joints: ArrayLike, opening_m: float | None = None) -> Clearance:
        """The least distance to table and walls of one configuration (6,) [rad]; None: gripper fully open."""
        return self.clearances(np.reshape(np.asarray(joints, float), (1, 6)), opening_m)[0]

    def _configurations(self, joints: ArrayLike, opening_m: ArrayLike | None) -> Array:
        """(n, 8): joints [rad] and how far either finger has slid [m]."""
        arm = np.asarray(joints, dtype=np.float64)
        half = np.broadcast_to(self._stroke if opening_m is None else np.asarray(opening_m, float), len(arm)) / 2
        return np.column_stack([arm, half, -half])


class _Pairs:
    """Shapes on the arm and around it, and the pairs of them whose distance is watched."""

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data = model, data
        self._geometry = pinocchio.GeometryModel()
        self._names: list[str] = []
        self._pairs: list[tuple[str, str]] = []
        self._results: Any = None

    def add(self, name: str, joint: int, joint_from_shape: Matrix, shape: Any) -> int:
        """A shape fixed to a joint; returns its number."""
        placement = SE3(joint_from_shape[:3, :3], joint_from_shape[:3, 3])
        self._names.append(name)
        return int(
            self._geometry.addGeometryObject(
                pinocchio.GeometryObject(f"{len(self._names)} {name}", joint, placement, shape)
            )
        )

    def add_capsule(self, capsule: Capsule) -> int:
        """A part of the arm or the gripper; returns its number."""
        start, end = np.array(capsule.start), np.array(capsule.end)
        pose = transform((start + end) / 2)
        pose[:3, :3] = pinocchio.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end - start).toRotationMatrix()
        if capsule.frame == 0:
            pose = BASE_LINK_FROM_BASE @ pose
        joint = {0: capsule.frame, 1: _LEFT_FINGER, -1: _RIGHT_FINGER}[capsule.slide]
        shape = coal.Capsule(capsule.radius_m, float(np.linalg.norm(end - start)))
        return self.add(capsule.link, joint, pose, shape)

    def watch(self, shape: int, *others: int) -> None:
        """Watch the distances between a shape and others."""
        for other in others:
            self._geometry.addCollisionPair(pinocchio.CollisionPair(shape, other))
            self._pairs.append((self._names[shape], self._names[other]))

    def __len__(self) -> int:
        return len(self._pairs)

    def ready(self) -> None:
        """Call this once, after all shapes and pairs."""
        self._results = self._geometry.createData()

    def least(self, configuration: Array) -> Clearance:
        """The least distance of all pairs in one configuration (8,)."""
        if not self._pairs:
            return Clearance(inf, "", "")
        nearest = pinocchio.computeDistances(self._model, self._data, self._geometry, self._results, configuration)
        return Clearance(self._results.distanceResults[nearest].min_distance, *self._pairs[nearest])


@cache
def _pinocchio_model(arm: UniversalRobot) -> Any:
    """Pinocchio's model of an arm and the fingers, from the kinematics that all other code uses."""
    model = pinocchio.Model()
    frames = arm.link_frames(np.zeros((1, 6)))[0]
    parent, parent_frame = 0, np.eye(4)
    for number, frame in enumerate(frames[1:], start=1):
        step = np.linalg.solve(parent_frame, frame)
        parent = model.addJoint(parent, pinocchio.JointModelRZ(), SE3(step[:3, :3], step[:3, 3]), f"joint_{number}")
        parent_frame = frame
    for finger in ("left_finger", "right_finger"):
        model.addJoint(parent, pinocchio.JointModelPX(), SE3.Identity(), finger)
    return model
