"""The meaning of each policy family's output, and its conversion to Merton's deltas; nothing else converts.

Merton's delta is translation [m], rotation vector [rad] and gripper (0 closed, 1 open) of the tool centre point in
`base_link` (x forward, y left, z up). A model's output refers to its own robot, whose base frame has the same axes; its
motion is used, not its position. For a family trained on joints, forward kinematics of its own arm give the motion of
the hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from merton.decision.models.arms import PANDA, UR5E, VIPERX_300, Arm
from merton.errors import InputError, InvalidActionError
from merton.registry import Registry
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import Matrix
from merton.world.observation import Observation

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """The statistics that normalise a data set's actions, one number a column.

    Attributes:
        low, high: the 1st and the 99th percentile, for families that map them to -1 .. 1; or None.
        mean, deviation: for families that standardise; or None.
        mask: the normalised columns; the gripper usually is not one.
    """

    low: Rows | None
    high: Rows | None
    mean: Rows | None
    deviation: Rows | None
    mask: NDArray[np.bool_]

    @staticmethod
    def of(action: dict[str, Any]) -> Statistics:
        """From the "action" part of a data set's statistics, as OpenVLA, CogACT and Octo store them.

        Raises:
            InputError: neither q01 and q99 nor mean and std, or lists of different length.
        """
        columns = {key: np.asarray(action[key], np.float64) for key in ("q01", "q99", "mean", "std") if key in action}
        sizes = {values.shape for values in columns.values()}
        if len(sizes) != 1 or not ({"q01", "q99"} <= set(columns) or {"mean", "std"} <= set(columns)):
            raise InputError("statistics of actions need q01 and q99, or mean and std, all of one length")
        mask = np.asarray(action.get("mask", np.ones(sizes.pop(), bool)), bool)
        return Statistics(columns.get("q01"), columns.get("q99"), columns.get("mean"), columns.get("std"), mask)

    @staticmethod
    def read(path: Path, key: str) -> Statistics:
        """Those of data set `key` in a dataset_statistics.json; raises InputError that names the data sets in it."""
        try:
            everything = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"cannot read statistics from {path}: {error}") from None
        if not isinstance(everything, dict):
            raise InputError(f"{path} is no JSON object of statistics by data set")
        if key not in everything:
            raise InputError(f"{path} has no statistics of {key!r}; choose one of: {', '.join(sorted(everything))}")
        return Statistics.of(everything[key]["action"])

    def from_quantiles(self, normalised: ArrayLike) -> Rows:
        """Undo the map of both percentiles to -1 .. 1 (OpenVLA, section 3.2): 0.5 (x + 1)(high - low) + low."""
        values = np.asarray(normalised, np.float64)
        if self.low is None or self.high is None:
            raise InputError("these statistics have no q01 and q99")
        return np.where(self.mask, 0.5 * (values + 1.0) * (self.high - self.low) + self.low, values)

    def from_mean_deviation(self, normalised: ArrayLike) -> Rows:
        """Undo standardisation (Octo, section 3): x deviation + mean."""
        values = np.asarray(normalised, np.float64)
        if self.mean is None or self.deviation is None:
            raise InputError("these statistics have no mean and std")
        return np.where(self.mask, values * self.deviation + self.mean, values)


@dataclass(frozen=True)
class Convention:
    """The meaning of one family's output.

    Attributes:
        name: name in catalogue entries.
        meaning: columns, units and frame, in one line.
        columns: valid lengths of a row.
        step_s: time between two rows, from the rate of the family's data [s].
        source: publication.
        deltas: function of rows (n, columns), n >= 1, and the state that was sent; gives Merton's (n, 7).
        arm: the arm that its joints belong to, or None.
        rest: the state to send if the cell has another arm: joints and gripper at rest, in the family's own numbers;
            empty for families that need no state.
        normalised: "quantiles", "deviations" or "": normalisation of the raw output of the weights.
    """

    name: str
    meaning: str
    columns: tuple[int, ...]
    step_s: float
    source: str
    deltas: Callable[[Rows, Rows], Rows]
    arm: Arm | None = None
    rest: tuple[float, ...] = ()
    normalised: str = ""

    def joints_of(self, observation: Observation) -> Rows:
        """Joints [rad] and gripper (0 open .. 1 closed) of the cell if `arm` is a UR too, (7,); else `rest`."""
        if self.arm is UR5E:
            return np.append(observation.joints_rad, 1.0 - observation.gripper_open)
        return np.array(self.rest)

    def chunk(
        self,
        raw: ArrayLike,
        *,
        state: ArrayLike | None = None,
        statistics: Statistics | None = None,
        model: str = "",
        latency_s: float = 0.0,
    ) -> ActionChunk:
        """A model's output as Merton's chunk.

        Args:
            raw: (n, columns) or (columns,).
            state: the state that was sent, in the family's own numbers; `rest` if None.
            statistics: those that un-normalise the output; None if it is un-normalised already.

        Raises:
            InvalidActionError: not numbers, wrong shape, NaN or infinity, before clipping.
            InputError: a state of the wrong size, or statistics without a normalisation.
        """
        try:
            rows = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidActionError(f"the output of {model or self.name} is not numeric: {error}") from None
        rows = rows[None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] not in self.columns:
            wanted = " or ".join(str(count) for count in self.columns)
            raise InvalidActionError(f"{model or self.name} must give rows of {wanted} numbers, got {np.shape(raw)}")
        if not np.isfinite(rows).all():
            row = int(np.argwhere(~np.isfinite(rows))[0, 0])
            raise InvalidActionError(f"row {row} of the output of {model or self.name} is not finite")
        if statistics is not None:
            undo = {"quantiles": statistics.from_quantiles, "deviations": statistics.from_mean_deviation}
            if self.normalised not in undo:
                raise InputError(f"convention {self.name!r} knows no normalisation, so it takes no statistics")
            rows = undo[self.normalised](rows)
        sent = np.asarray(self.rest if state is None else state, dtype=np.float64)
        if sent.shape != np.shape(self.rest):
            raise InputError(f"convention {self.name!r} needs a state of {len(self.rest)} numbers, got {sent.shape}")
        deltas = self.deltas(rows, sent)
        deltas[:, 6] = np.clip(deltas[:, 6], 0.0, 1.0)
        return checked_chunk(deltas, self.step_s, model=model, latency_s=latency_s)


CONVENTIONS: Registry[Convention] = Registry("convention")


def rotation_vectors(roll_pitch_yaw_rad: ArrayLike) -> Rows:
    """Rotation vectors (n, 3) of turns about the fixed axes x, then y, then z by (n, 3) angles [rad].

    Composed, not copied: the two agree only to first order, and differ by 0.05 rad for three angles of 0.25.
    """
    return np.asarray(Rotation.from_euler("xyz", np.atleast_2d(roll_pitch_yaw_rad)).as_rotvec())


def pose_deltas(poses: Matrix, gripper_open: Rows) -> Rows:
    """Deltas (n, 7) between successive poses (n + 1, 4, 4), in their frame; gripper values (n,)."""
    before, after = poses[:-1], poses[1:]
    turns = after[:, :3, :3] @ before[:, :3, :3].transpose(0, 2, 1)
    moves = after[:, :3, 3] - before[:, :3, 3]
    return np.column_stack((moves, Rotation.from_matrix(turns).as_rotvec(), gripper_open))


def _bridge(rows: Rows, _: Rows) -> Rows:
    return np.column_stack((rows[:, :3], rotation_vectors(rows[:, 3:6]), rows[:, 6]))


def _cogact(rows: Rows, state: Rows) -> Rows:
    deltas = _bridge(rows, state)
    deltas[:, 6] = deltas[:, 6] > 0.5
    return deltas


_LIBERO_SCALE = np.array([0.05] * 3 + [0.5] * 3)


def _libero(rows: Rows, _: Rows) -> Rows:
    # The controller clips to its input range, and takes the last three as a rotation vector, not as angles.
    return np.column_stack((np.clip(rows[:, :6], -1.0, 1.0) * _LIBERO_SCALE, rows[:, 6]))


def _libero_env(rows: Rows, state: Rows) -> Rows:
    deltas = _libero(rows, state)
    deltas[:, 6] = (1.0 - rows[:, 6]) / 2.0
    return deltas


def _rt1x(rows: Rows, _: Rows) -> Rows:
    moves = np.clip(rows[:, :3] / 1.75, -1.0, 1.0) * 0.05
    turns = np.clip(rows[:, 3:6] / 1.4, -1.0, 1.0) * 0.25
    return np.column_stack((moves, rotation_vectors(turns), (1.0 - rows[:, 6]) / 2.0))


def moving_arm(arms: Sequence[Rows]) -> int:
    """Index of the arm with "the larger movement range" (Embodied-IQA, section 3.4), given the deltas (n, 7) of each.

    Ours: the range is the diagonal of the box around the hand's path, its start included; of equal ones the first.
    """
    points = [np.vstack((np.zeros(3), deltas[:, :3].cumsum(axis=0))) for deltas in arms]
    return int(np.argmax([np.linalg.norm(np.ptp(of_arm, axis=0)) for of_arm in points]))


def _aloha(rows: Rows, state: Rows) -> Rows:
    arms = []
    for first in (0, 7):
        joints = np.vstack((state[first : first + 6], rows[:, first : first + 6]))
        arms.append(pose_deltas(VIPERX_300.forward(joints), rows[:, first + 6]))
    return arms[moving_arm(arms)]


def _pi0_base(rows: Rows, state: Rows) -> Rows:
    joints = np.vstack((state[:6], rows[:, :6]))
    return pose_deltas(UR5E.forward(joints), 1.0 - rows[:, 6])


_DROID_STEP_RAD = 0.2


def _droid(rows: Rows, state: Rows) -> Rows:
    moved = np.cumsum(np.clip(rows[:, :7], -1.0, 1.0) * _DROID_STEP_RAD, axis=0)
    joints = np.vstack((state[:7], state[:7] + moved))
    return pose_deltas(PANDA.forward(joints), 1.0 - rows[:, 7])


for _convention in (
    Convention(
        "bridge",
        "delta x y z [m], roll pitch yaw about fixed axes [rad], gripper 0 closed 1 open; 5 Hz",
        (7,),
        0.2,
        "OpenVLA; BridgeData V2 as in SimplerEnv, openvla_model.py",
        _bridge,
        normalised="quantiles",
    ),
    Convention(
        "libero",
        "delta in controller units, ±1 is ±0.05 m and ±0.5 rad of a rotation vector, gripper 0 closed 1 open; 20 Hz",
        (7,),
        0.05,
        "OpenVLA, run_libero_eval.py; robosuite, OSC_POSE",
        _libero,
        normalised="quantiles",
    ),
    Convention(
        "libero_env",
        "as libero, the gripper -1 open +1 closed: what LIBERO's environment takes, as openpi's servers give it; 20 Hz",
        (7,),
        0.05,
        "openpi, examples/libero/main.py; robosuite, OSC_POSE",
        _libero_env,
    ),
    Convention(
        "cogact",
        "as bridge, the gripper open above 0.5 and closed below; 16 steps of 5 Hz",
        (7,),
        0.2,
        "CogACT, sim_cogact/cogact_policy.py",
        _cogact,
        normalised="quantiles",
    ),
    Convention(
        "octo",
        "as bridge, standardised by mean and deviation; 4 steps of 5 Hz",
        (7,),
        0.2,
        "Octo; SimplerEnv, octo_model.py",
        _bridge,
        normalised="deviations",
    ),
    Convention(
        "rt1x",
        "world vector ±1.75 is ±0.05 m, rotation ±1.4 is ±0.25 rad roll pitch yaw, gripper -1 open +1 closed; 3 Hz",
        (7,),
        1.0 / 3.0,
        "Open X-Embodiment, RT-1-X; Bridge scaling of SimplerEnv, rt1_model.py",
        _rt1x,
    ),
    Convention(
        "aloha",
        "left then right arm: six absolute joint angles [rad], gripper 0 closed 1 open; the arm that moves more; 50 Hz",
        (14,),
        0.02,
        "openpi, aloha_policy.py",
        _aloha,
        VIPERX_300,
        (*VIPERX_300.rest_rad, 1.0) * 2,
    ),
    Convention(
        "pi0_base",
        "six absolute joint angles of a UR5e [rad], gripper 0 open 1 closed, the rest padding; 20 Hz",
        (7, 32),
        0.05,
        "openpi, docs/norm_stats.md (asset ur5e) and examples/ur5",
        _pi0_base,
        UR5E,
        (*UR5E.rest_rad, 0.0),
    ),
    Convention(
        "droid",
        "seven joint velocities of a Panda, ±1 is ±0.2 rad a step, gripper 0 open 1 closed; 15 Hz",
        (8,),
        1.0 / 15.0,
        "DROID, robot_ik_solver.py; openpi, examples/droid",
        _droid,
        PANDA,
        (*PANDA.rest_rad, 0.0),
    ),
):
    CONVENTIONS.add(_convention.name, _convention)
