"""What the arm may do: limits, the distance to table, walls and itself, a stop that stays until somebody lifts it.

All of it supplements the safety controller of the robot and never replaces it. Frame: `base_link`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import IntEnum
from math import inf, nan
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.cell import CellConfig
from merton.errors import InfrastructureError, InputError
from merton.execution.capsules import capsules_of, segment_to_box, segment_to_segment, self_pairs
from merton.execution.kinematics import BASE_LINK_FROM_BASE, UR5

Array = NDArray[np.float64]


class Code(IntEnum):
    """Why a motion is refused. The number is the `error_code` of messages and records."""

    OK = 0
    INVALID_ACTION = 101
    UNREACHABLE = 201
    BRANCH_FLIP = 202
    STEP_LIMIT = 301
    SPEED_LIMIT = 302
    WORKSPACE = 303
    COLLISION = 304
    STOPPED = 305
    SELF_COLLISION = 306


@dataclass(frozen=True)
class Verdict:
    """The gate's answer to a chunk of deltas.

    Attributes:
        code: `Code.OK`, or why the motion ends before the chunk does.
        message: one sentence, empty if OK.
        index: the delta concerned, -1 if OK or if the chunk as a whole is meant.
        link_a, link_b: the pair of bodies that would collide, else empty.
        clearance_m: distance of the colliding pair, else the least to table and walls along the allowed motion [m].
    """

    code: Code = Code.OK
    message: str = ""
    index: int = -1
    link_a: str = ""
    link_b: str = ""
    clearance_m: float = nan

    @property
    def ok(self) -> bool:
        """True if nothing was refused."""
        return self.code is Code.OK

    @property
    def stops(self) -> bool:
        """True if the emergency stop has to latch: a predicted collision with table or wall (paper, section 3.5)."""
        return self.code is Code.COLLISION


@dataclass(frozen=True)
class Limits:
    """How far and how fast one delta may move the arm. Ours: a step a camera at 5 Hz can follow, half of a UR5's speed.

    Attributes:
        step_translation_m: translation of one delta [m].
        step_rotation_rad: rotation of one delta [rad].
        tcp_speed_m_s: mean speed of the tool centre point over one delta [m/s].
        joint_speed_rad_s: mean speed of any joint over one delta [rad/s]; the spline peaks at 1.5 times that, and a UR5
            can do pi.
        joint_step_rad: a joint that turns further in one delta has changed the branch of the inverse kinematics [rad].
        stopping_margin_m: distance to table, walls and itself that is never given up on purpose [m].
        absurd_factor: a delta this many times over a step limit is no action at all, and nothing moves.
    """

    step_translation_m: float = 0.08
    step_rotation_rad: float = 0.35
    tcp_speed_m_s: float = 0.6
    joint_speed_rad_s: float = 2.0
    joint_step_rad: float = 1.0
    stopping_margin_m: float = 0.005
    absurd_factor: float = 10.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < inf:
                raise InputError(f"limit {name} must be a positive number, got {value!r}")


@dataclass(frozen=True)
class Clearance:
    """The least distance between a part of the arm and what it must not touch.

    Attributes:
        distance_m: [m]; negative in penetration, of which the depth is only a lower bound.
        link_a: the part of the arm.
        link_b: "table", the name of a wall, or another part of the arm.
    """

    distance_m: float
    link_a: str
    link_b: str


class Guard:
    """Distances of the arm, drawn as capsules, to itself, the table (a half space) and the walls (boxes) of a cell."""

    def __init__(self, cell: CellConfig) -> None:
        capsules = capsules_of(cell)
        self._links = [capsule.link for capsule in capsules]
        self._frames = np.array([capsule.frame for capsule in capsules])
        self._ends = np.array([(capsule.start, capsule.end) for capsule in capsules])
        self._radii = np.array([capsule.radius_m for capsule in capsules])
        self._meets_table = np.array([capsule.meets_table for capsule in capsules])
        self._slide = np.array([capsule.slide for capsule in capsules])
        self._pairs = self_pairs(capsules)
        self._box_centers = np.array([box.center for box in cell.walls]).reshape(-1, 3)
        self._box_halves = np.array([box.size for box in cell.walls]).reshape(-1, 3) / 2
        self._obstacles = ["table", *(box.name for box in cell.walls)]
        self._stroke = cell.gripper.stroke

    def capsules(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> tuple[Array, Array]:
        """Where the capsules are, for checks and for drawing them.

        Args:
            joints: (n, 6) [rad].
            opening_m: (n,) or scalar opening of the gripper [m]; None means fully open.

        Returns:
            Ends of the axes (n, capsules, 2, 3) [m] in `base_link`, and radii (capsules,) [m].
        """
        frames = BASE_LINK_FROM_BASE @ UR5.link_frames(joints)[:, self._frames]
        opening = np.broadcast_to(self._stroke if opening_m is None else np.asarray(opening_m, float), len(frames))
        local = np.broadcast_to(self._ends, (len(frames), *self._ends.shape)).copy()
        local[..., 0] += (self._slide * opening[:, None] / 2)[..., None]
        return np.einsum("ncij,ncej->ncei", frames[..., :3, :3], local) + frames[..., None, :3, 3], self._radii

    def clearances(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> list[Clearance]:
        """The least distance to table and walls of each configuration; arguments as of `capsules`."""
        ends, radii = self.capsules(joints, opening_m)
        table = np.where(self._meets_table, ends[..., 2].min(axis=2), inf)[..., None]
        walls = segment_to_box(ends[..., 0, None, :], ends[..., 1, None, :], self._box_centers, self._box_halves)
        distances = np.concatenate([table, walls], axis=2) - radii[:, None]
        pairs = [(link, obstacle) for link in self._links for obstacle in self._obstacles]
        return _least(distances.reshape(len(ends), -1), pairs)

    def self_clearances(self, joints: ArrayLike, opening_m: ArrayLike | None = None) -> list[Clearance]:
        """The least distance between parts of the arm that can meet; arguments as of `capsules`."""
        ends, radii = self.capsules(joints, opening_m)
        one, other = ends[:, self._pairs[:, 0]], ends[:, self._pairs[:, 1]]
        gaps = segment_to_segment(one[..., 0, :], one[..., 1, :], other[..., 0, :], other[..., 1, :])
        pairs = [(self._links[first], self._links[second]) for first, second in self._pairs]
        return _least(gaps - radii[self._pairs].sum(axis=1), pairs)

    def clearance(self, joints: ArrayLike, opening_m: float | None = None) -> Clearance:
        """The least distance to table and walls of one configuration (6,) [rad], gripper fully open unless told."""
        return self.clearances(np.reshape(np.asarray(joints, float), (1, 6)), opening_m)[0]


def _least(distances: Array, pairs: list[tuple[str, str]]) -> list[Clearance]:
    """Per row the least of the distances (n, pairs) with its pair."""
    columns = distances.argmin(axis=1)
    return [Clearance(float(row[column]), *pairs[column]) for row, column in zip(distances, columns, strict=True)]


class EmergencyStopLatch:
    """A stop that only `reset` lifts; with a file, not even a restart of the process does.

    Args:
        path: JSON file for the state, or None to keep it in memory only. A file that cannot be understood counts as
            tripped: after a crash the safe side is to stand still.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._reason: str | None = None
        if self._path is not None:
            self._reason = _read_reason(self._path)

    @property
    def tripped(self) -> bool:
        """True until `reset`."""
        return self._reason is not None

    @property
    def reason(self) -> str:
        """Why it tripped, empty if it has not."""
        return self._reason or ""

    def trip(self, reason: str) -> None:
        """Latch; the first reason stays. Raises InfrastructureError, latched nevertheless, if it cannot be written."""
        if self._reason is None:
            self._reason = reason
            self._save()

    def reset(self) -> None:
        """Lift the stop; raises InfrastructureError, and stays tripped, if that cannot be written."""
        before, self._reason = self._reason, None
        try:
            self._save()
        except InfrastructureError:
            self._reason = before
            raise

    def _save(self) -> None:
        if self._path is None:
            return
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"tripped": self.tripped, "reason": self.reason}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except OSError as error:
            raise InfrastructureError(
                f"cannot write the emergency stop's state to {self._path}: {error.strerror}"
            ) from None


def _read_reason(path: Path) -> str | None:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return str(state["reason"]) if state["tripped"] is not False else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return f"the emergency stop's state in {path} cannot be read"
