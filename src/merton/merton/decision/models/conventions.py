"""The meaning of each policy family's output, and its conversion to Merton's deltas; nothing else converts.

Most are entries of config/catalogue/convention.yaml or of a lab's own files (`convention_entry`); one whose rule no
entry can say is written here in Python.

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

from merton.decision.models.arms import VIPERX_300, Arm, arm_named
from merton.decision.models.convention_entry import Angle, ConventionEntry, Gripper, Joints, Length, PoseDelta
from merton.errors import InputError, InvalidActionError
from merton.models.catalogue import Catalogue
from merton.registry import Registry
from merton.world.action import ActionChunk, checked_chunk
from merton.world.arms import ARMS
from merton.world.geometry import Matrix, transform
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
        frame: of the deltas: "base_link" or "tcp".
        entry: the entry that it was made of; None for one that is written in Python.
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
    frame: str = "base_link"
    entry: ConventionEntry | None = None

    def joints_of(self, observation: Observation) -> Rows:
        """Joints and gripper of the cell in the family's own numbers, if a cell can have `arm`; else `rest`.

        A cell's arm beside the one of `arm` is taken for it, joint by joint; `LeRobot.check` and others say so.
        """
        if self.arm is None or self.arm.name not in ARMS or self.entry is None or self.entry.joints is None:
            return np.array(self.rest)
        joints = np.asarray(observation.joints, np.float64) / _state_unit_rad(self.entry.joints)
        return np.append(joints, self.entry.gripper.opened(observation.opened))

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
        return checked_chunk(deltas, self.step_s, frame=self.frame, model=model, latency_s=latency_s)


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


def _scaled(values: Rows, unit: Length | Angle) -> Rows:
    size = unit.m if isinstance(unit, Length) else unit.rad
    shares = values / unit.raw
    return (np.clip(shares, -1.0, 1.0) if unit.clip else shares) * size


def _opened(values: Rows, gripper: Gripper) -> Rows:
    """0 (closed) .. 1 (open); beyond these where the numbers are."""
    if gripper.open_beyond is not None:
        return ((values - gripper.open_beyond) * (gripper.open - gripper.closed) > 0).astype(np.float64)
    return (values - gripper.closed) / (gripper.open - gripper.closed)


def _by_pose(pose: PoseDelta, gripper: Gripper) -> Callable[[Rows, Rows], Rows]:
    def deltas(rows: Rows, _: Rows) -> Rows:
        turns = _scaled(rows[:, 3:6], pose.rotation)
        turns = rotation_vectors(turns) if pose.rotation.form == "roll_pitch_yaw" else turns
        return np.column_stack((_scaled(rows[:, :3], pose.translation), turns, _opened(rows[:, 6], gripper)))

    return deltas


def _state_unit_rad(joints: Joints) -> float:
    """The size of one unit of the joints in the state [rad]."""
    return joints.unit.rad / joints.unit.raw if joints.are == "absolute" else 1.0


def _by_joints(joints: Joints, gripper: Gripper, arm: Arm) -> Callable[[Rows, Rows], Rows]:
    count = len(arm.axes)
    hand_from_tool = transform((0.0, 0.0, joints.tool_m))

    def deltas(rows: Rows, state: Rows) -> Rows:
        first, moved = state[:count] * _state_unit_rad(joints), _scaled(rows[:, :count], joints.unit)
        goals = moved if joints.are == "absolute" else first + np.cumsum(moved, axis=0)
        poses = arm.forward(np.vstack((first, goals))) @ hand_from_tool
        return pose_deltas(poses, _opened(rows[:, count], gripper))

    return deltas


def convention_of(entry: ConventionEntry) -> Convention:
    """The convention that an entry describes."""
    common: dict[str, Any] = {
        "name": entry.name, "meaning": entry.described(), "step_s": 1.0 / entry.rate_hz, "source": entry.source,
        "normalised": entry.normalised, "entry": entry,
    }  # fmt: skip
    if entry.joints is None:
        assert entry.pose is not None
        columns = (7,) if not entry.padded_to else (7, entry.padded_to)
        return Convention(columns=columns, deltas=_by_pose(entry.pose, entry.gripper), frame=entry.pose.frame, **common)
    arm = arm_named(entry.joints.arm)
    own = len(arm.axes) + 1
    rest = np.append(np.array(arm.rest_rad) / _state_unit_rad(entry.joints), entry.gripper.open)
    return Convention(
        columns=(own,) if not entry.padded_to else (own, entry.padded_to),
        deltas=_by_joints(entry.joints, entry.gripper, arm),
        arm=arm,
        rest=tuple(rest.tolist()),
        **common,
    )


class Conventions(Registry[Convention]):
    """The conventions by name: those of the catalogue's files, read on first use, and those written in Python."""

    def __init__(self) -> None:
        super().__init__("convention")
        self._declared: Catalogue[ConventionEntry] | None = None

    def read(self) -> None:
        """Read the files anew; raises InputError as `Catalogue.read`, and if an entry has the name of a Python one."""
        declared = Catalogue("convention", ConventionEntry)
        made = {name: convention_of(entry) for name, entry in declared.items()}
        in_python = {name: one for name, one in self._entries.items() if one.entry is None}
        for name in in_python.keys() & made.keys():
            raise InputError(f"{declared.file_of(name)}: convention {name!r} is Merton's own, in Python: rename yours")
        self._declared, self._entries = declared, {**made, **in_python}

    def file_of(self, name: str) -> Path | None:
        """The lab's file that a convention is from, absolute; None of Merton's own."""
        self._read_once()
        assert self._declared is not None
        return self._declared.file_of(name)

    def _read_once(self) -> None:
        if self._declared is None:
            self.read()


CONVENTIONS = Conventions()
CONVENTIONS.add(
    "aloha",
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
)
