"""A gate's threshold by policy, task and type: how many admitted trials fail in each, and thresholds of their own.

A promise is one of the mixture that it was calibrated on: of all its policies, tasks and types together. In one of them
alone more may fail. A threshold that is calibrated on the scenes of one policy or task promises something of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.statistics.risk import (
    LEAST_SCENES,
    LEAST_TRIALS,
    Scored,
    average_threshold,
    fewest_scenes,
    guaranteed_threshold,
)
from merton_studies.iqa.gate import Gate, scores
from merton_studies.iqa.gate_promise import Promise, fitted_half
from merton_studies.iqa.gate_table import GateTable

GROUPINGS = ("policy", "task", "type")
CALIBRATED_BY = ("policy", "task")
"""Groupings that a threshold may be calibrated by: a robot knows both before it begins, and no type."""


@dataclass(frozen=True)
class GroupRow:
    """The trials of one group that a threshold of all groups admits, in the scenes it was calibrated on.

    Attributes:
        by, name: the grouping, of `GROUPINGS`, and the policy, task or type.
        kind: "guaranteed" or "average", of the threshold.
        alpha: of its promise.
        trials, scenes: admitted, and their scenes.
        failing: share of them that fail, 0..1.
        interval: 95 % of it, clustered by scene.
    """

    gate: Gate
    by: str
    name: str
    kind: str
    alpha: float
    trials: int
    scenes: int
    failing: float
    interval: Interval


@dataclass(frozen=True)
class GroupPromise:
    """A threshold that is calibrated on one group alone; the gate is fitted on all.

    Attributes:
        by, name: as of `GroupRow`.
        trials, scenes: of the group, in the half of the scenes that calibrates.
        promise: None if these are too few for any.
    """

    gate: Gate
    by: str
    name: str
    trials: int
    scenes: int
    promise: Promise | None


def group_names(table: GateTable, by: str) -> NDArray[np.str_]:
    """(n,) of each trial, by one of `GROUPINGS`, its policy, task or type; "" for a task that no name tells."""
    if by == "policy":
        return table.subject
    if by == "type":
        return table.distortion
    return np.array([_task(trial, subject) for trial, subject in zip(table.trial, table.subject, strict=True)])


def _task(trial: str, subject: str) -> str:
    """The task in a name as of `TrialRecord.id`."""
    parts = trial.removeprefix(f"{subject}.").split(".")
    return parts[0] if trial.startswith(f"{subject}.") and len(parts) == 4 else ""


def admitted_by_group(promise: Promise, table: GateTable, took_place: NDArray[np.bool_], seed: int) -> list[GroupRow]:
    """The groups of each grouping in which a threshold, the guaranteed one if there is one, admits a trial.

    Args:
        promise: of a gate that was fitted and calibrated on the table's halves by `seed`.
        took_place: (n,) whether the event did that is promised to be rare.
    """
    threshold = promise.guaranteed or promise.average
    if threshold is None:
        return []
    trained = fitted_half(table, seed)
    admitted = ~trained & (scores(promise.gate, table, trained, took_place) >= threshold.value)
    kind, rows = "guaranteed" if promise.guaranteed else "average", []
    for by in GROUPINGS:
        names = group_names(table, by)
        for name in np.unique(names[admitted & (names != "")]).tolist():
            own = admitted & (names == name)
            failing, scene = took_place[own].astype(np.float64), table.scene[own]
            interval = mean_interval(failing, scene)
            counts = len(scene), len(np.unique(scene))
            rows.append(GroupRow(promise.gate, by, name, kind, promise.alpha, *counts, float(failing.mean()), interval))
    return rows


def group_promises(
    gate: Gate, table: GateTable, event: str, took_place: NDArray[np.bool_], alpha: float, by: str, seed: int
) -> list[GroupPromise]:
    """A threshold for each group: the gate is fitted on half of the scenes, the threshold calibrated on the group's
    trials in the other half. Each guarantee holds by itself.

    Raises:
        UnknownNameError: `by` is none of `CALIBRATED_BY`.
        InputError: by task, and no name of a trial tells it.
    """
    if by not in CALIBRATED_BY:
        raise UnknownNameError("grouping", by, CALIBRATED_BY)
    names, trained = group_names(table, by), fitted_half(table, seed)
    if not (names != "").any():
        raise InputError("no name of a trial tells its task: they are to be of the form POLICY.TASK.SCENE.TYPE.LEVEL")
    scored = Scored(scores(gate, table, trained, took_place), took_place, table.scene)
    found = []
    for name in np.unique(names[names != ""]).tolist():
        first, second = (scored.part((names == name) & half) for half in (trained, ~trained))
        scenes = len(np.unique(second.scenes))
        promise = None
        if min(len(first.scores), len(second.scores)) >= LEAST_TRIALS and scenes >= least_scenes(alpha):
            thresholds = (rule(first, second, alpha) for rule in (guaranteed_threshold, average_threshold))
            promise = Promise(gate, event, alpha, *thresholds)
        found.append(GroupPromise(gate, by, name, len(second.scores), scenes, promise))
    return found


def least_scenes(alpha: float) -> int:
    """With fewer scenes to calibrate on, no group has a threshold: none could be guaranteed, even without a failure."""
    return max(fewest_scenes(alpha), LEAST_SCENES)


def rows_by(rows: Sequence[GroupRow], gate: str, by: str) -> list[GroupRow]:
    """Those of a gate and a grouping, the largest share of failures first."""
    own = [row for row in rows if row.gate.name == gate and row.by == by]
    return sorted(own, key=lambda row: (-row.failing, row.name))
