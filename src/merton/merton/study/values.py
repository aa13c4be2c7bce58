"""The values of a trial by which agents are compared and studies are planned, all 0..1."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from merton.results.records import TrialRecord

Value = Callable[[TrialRecord], float | None]
"""A number in 0..1 for a trial; None for one that has none, such as an infrastructure fault."""


def success(record: TrialRecord) -> float | None:
    """1 if the task was done, else 0; None for an infrastructure fault."""
    return None if record.success is None else float(record.success)


def progress(record: TrialRecord) -> float | None:
    """The share of the way from the start of the scene to success."""
    return record.progress


def decision(record: TrialRecord) -> float | None:
    """The decision score of a distorted trial; a reference trial is what it is compared with, and has none."""
    return None if record.case.is_reference else record.decision


def execution(record: TrialRecord) -> float | None:
    """The execution score / 100."""
    return None if record.execution is None else record.execution / 100.0


VALUES: Mapping[str, Value] = {
    "success": success,
    "progress": progress,
    "decision": decision,
    "execution": execution,
}
"""By name, in the order in which they are shown."""
