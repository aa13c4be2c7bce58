"""Comparison of two runs, trial by trial."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from merton.results.records import TrialRecord


def compare(first: list[TrialRecord], second: list[TrialRecord]) -> list[str]:
    """The differences between two runs of one experiment, a line each, ordered by trial id; empty if there are none.

    Trials are matched by id. `wall_s` never counts, nor does the experiment's id: a run may have been given a new name.
    """
    ours, theirs = {item.id: item for item in first}, {item.id: item for item in second}
    lines = []
    for trial in sorted(ours.keys() | theirs.keys()):
        if trial not in theirs:
            lines.append(f"{trial}: only in the first")
        elif trial not in ours:
            lines.append(f"{trial}: only in the second")
        else:
            lines.extend(f"{trial}: {difference}" for difference in field_differences(ours[trial], theirs[trial]))
    return lines


def field_differences(first: TrialRecord, second: TrialRecord) -> list[str]:
    """The fields in which two records of one trial differ, in words; `experiment` and `wall_s` do not count."""
    pairs = [
        (field.name, getattr(first, field.name), getattr(second, field.name))
        for field in fields(TrialRecord)
        if field.name not in ("experiment", "wall_s")
    ]
    return [f"{name} {_shown(ours)} against {_shown(theirs)}" for name, ours, theirs in pairs if ours != theirs]


def _shown(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)
