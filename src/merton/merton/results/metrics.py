"""Metrics: the one place that maps a trial to the score of a match, 0..1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from merton.errors import InputError, UnknownNameError
from merton.results.records import FLOOR_AGENT, Outcome, TrialRecord

METRICS = {
    "success": "1 if it did the task and 0 if it did not",
    "progress": "its progress, the share of the way to success",
    "above_floor": "the part of its execution score, divided by 100, that lies above the mean of doing nothing in the "
    "same task, as a share of what is left above it",
    "execution": "its execution score, the paper's, divided by 100",
}
"""Metric to the score of a trial by it, in words."""

DEFAULT_METRIC = "success"
"""Of reports and boards. It is a fact of every trial, also of one that a person judged, and of every record."""


def checked_metric(metric: str) -> str:
    """The metric, unchanged; raises UnknownNameError with the known ones."""
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    return metric


def match_scores(trials: Iterable[TrialRecord], metric: str = DEFAULT_METRIC) -> list[tuple[str, str, float]]:
    """(agent, case, score of the agent in 0..1) of every trial that has a score by the metric, in the order given.

    Left out are infrastructure faults, failures without a reference run (execution, above_floor), and by above_floor
    the tasks that doing nothing solves.

    Raises:
        UnknownNameError: no such metric.
        InputError: `above_floor`, and a task has no distorted trial of the agent that does nothing; `progress`, and
            that of a failure is not known: the successes alone would make every agent look perfect.
    """
    trials = list(trials)
    floors = _floors(trials) if checked_metric(metric) == "above_floor" else {}
    if metric == "progress" and (unknown := sum(_has_unknown_progress(trial) for trial in trials)):
        raise InputError(
            f"the progress of {unknown} failures is not known: a person or another program judged them, or they are of "
            "a record before schema version 3; choose one of: success, above_floor, execution"
        )
    scored = ((trial, _score(trial, metric, floors)) for trial in trials)
    return [(trial.agent, trial.case.id, score) for trial, score in scored if score is not None]


def _has_unknown_progress(trial: TrialRecord) -> bool:
    return trial.outcome is Outcome.FAILURE and trial.progress is None


def _score(trial: TrialRecord, metric: str, floors: Mapping[str, float]) -> float | None:
    """The score of a trial, 0..1; `floors` is by task."""
    if trial.outcome is Outcome.INFRASTRUCTURE:
        return None
    if metric == "success":
        return float(bool(trial.success))
    if metric == "progress":
        return trial.progress
    share = None if trial.execution is None else trial.execution / 100.0
    if metric == "execution" or share is None:
        return share
    floor = floors[trial.case.task]
    return None if floor >= 1.0 else max(0.0, (share - floor) / (1.0 - floor))


def _floors(trials: Sequence[TrialRecord]) -> dict[str, float]:
    """Task to the mean share of the execution score that doing nothing earns under distortion."""
    nothing: dict[str, list[float]] = {}
    for trial in trials:
        share = _score(trial, "execution", {})
        if trial.agent == FLOOR_AGENT and not trial.case.is_reference and share is not None:
            nothing.setdefault(trial.case.task, []).append(share)
    floors = {task: math.fsum(shares) / len(shares) for task, shares in nothing.items()}
    if missing := sorted({trial.case.task for trial in trials} - floors.keys()):
        raise InputError(
            f"above_floor needs distorted trials of {FLOOR_AGENT!r}, which does nothing, in every task; there are none "
            f"of {', '.join(missing)}; run them, or choose one of: success, progress, execution"
        )
    return floors
