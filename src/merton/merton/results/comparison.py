"""Comparison of two runs, trial by trial."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from merton.results.records import TrialRecord

NAMED = 3
"""Trials that are named of those that one run alone has."""


def compare(first: list[TrialRecord], second: list[TrialRecord]) -> list[str]:
    """The differences between two runs of one experiment, a line each, ordered by trial id; empty if there are none.

    Trials are matched by id, and by experiment too where a record of several has one id twice. `wall_s` never counts,
    nor does the experiment's id: a run may have been given a new name. Two designs are one line, with the trials that
    one alone has.
    """
    several = any(len({item.id for item in records}) < len(records) for records in (first, second))
    ours, theirs = (
        {f"{item.experiment}/{item.id}" if several else item.id: item for item in records}
        for records in (first, second)
    )
    if ours.keys() != theirs.keys():
        only = [*_only(ours.keys() - theirs.keys(), "first"), *_only(theirs.keys() - ours.keys(), "second")]
        return [f"not the same trials: {len(ours.keys() & theirs.keys())} in both; {'; '.join(only)}"]
    return [
        f"{trial}: {difference}"
        for trial in sorted(ours)
        for difference in field_differences(ours[trial], theirs[trial])
    ]


def _only(trials: set[str], where: str) -> list[str]:
    """Such as "2 only in the first (a, b)"; nothing for no trial."""
    named = ", ".join(sorted(trials)[:NAMED]) + (", …" if len(trials) > NAMED else "")
    return [f"{len(trials)} only in the {where} ({named})"] if trials else []


def field_differences(first: TrialRecord, second: TrialRecord) -> list[str]:
    """The fields in which two records of one trial differ, in words; `experiment` and `wall_s` do not count."""
    pairs = [
        (field.name, getattr(first, field.name), getattr(second, field.name))
        for field in fields(TrialRecord)
        if field.name not in ("experiment", "wall_s")
    ]
    pairs.append(("scene", first.case.scene, second.case.scene))  # cases are equal whatever their groups
    return [f"{name} {_shown(ours)} against {_shown(theirs)}" for name, ours, theirs in pairs if ours != theirs]


def _shown(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)
