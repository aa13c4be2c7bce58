"""Checks of trials and names before they reach a database."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

from merton.errors import InputError
from merton.results.records import Outcome, Reference, TrialRecord
from merton.results.schema import SCORE_RANGES

LONGEST_ERROR = 10_000
"""Characters of an error's text in a record; `merton.results.rows` finds a record with a very long text damaged."""
MAX_NAME = 200
"""Characters of a name that comes from outside: the id of an agent, a case or a source."""
LONGEST_VERSIONS = 10_000
"""Characters of the versions of a world's packages, all together."""

_Member = TypeVar("_Member", Outcome, Reference)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def checked_name(kind: str, name: str, longest: int = MAX_NAME) -> str:
    """The name, unchanged; raises InputError unless it is 1 to `longest` printable characters.

    Control and direction characters are not printable, so no name can turn a line of a board around.
    """
    if not name or not name.isprintable():
        raise InputError(f"the {kind} must be printable text, got {name[:80]!r}")
    if len(name) > longest:
        raise InputError(f"the {kind} may have {longest} characters, got {len(name)}: {name[:40]!r}...")
    return name


def require_names(kind: str, about: Mapping[str, Any]) -> None:
    """Raise InputError unless the texts of a row can be stored as `checked_name` says; those of versions are longer."""
    for name, value in about.items():
        if isinstance(value, str) and value:
            longest = LONGEST_VERSIONS if name == "world_versions" else MAX_NAME
            checked_name(f"{name} of {kind} {about['id']!r}"[:120], value, longest)
    checked_name(f"id of the {kind}", about["id"])


def checked_sha256(kind: str, digest: str) -> str:
    """The digest, unchanged; raises InputError unless it is 64 lower-case hexadecimal digits."""
    if not _SHA256.fullmatch(digest):
        raise InputError(f"the {kind} must be a SHA-256 of 64 lower-case hexadecimal digits, got {digest[:80]!r}")
    return digest


def checked_score(name: str, score: float, maximum: float = 1.0) -> float:
    """The score as a plain float; raises InputError unless it is finite and in 0..maximum."""
    try:
        is_valid = 0.0 <= score <= maximum and math.isfinite(score)
    except TypeError:
        is_valid = False
    if not is_valid:
        valid = f"in 0 .. {maximum:g}" if math.isfinite(maximum) else "finite and not negative"
        raise InputError(f"{name} must be {valid}, got {score!r}")
    return float(score) + 0.0  # minus zero is zero: the same record, the same bytes


def checked_trial(record: TrialRecord) -> TrialRecord:
    """The record with plain Python numbers, as it will be read back; raises InputError if it must not be stored."""
    changes: dict[str, Any] = {"outcome": _member(record, Outcome, "outcome")}
    if record.reference is not None:
        changes["reference"] = _member(record, Reference, "reference")
    lengths = ("distance_m", "path_m", "simulated_s", "wall_s")
    numbers = {**SCORE_RANGES, **dict.fromkeys(lengths, math.inf)}
    for name, maximum in numbers.items():
        if (value := getattr(record, name)) is not None:
            changes[name] = checked_score(f"{name} of trial {record.id!r}", value, maximum)
    for name in ("steps", "error_code"):
        changes[name] = _integer(record, name, getattr(record, name), 2**31 - 1)
    changes["case"] = replace(
        record.case,
        seed=_integer(record, "seed", record.case.seed, 2**63 - 1),
        level=_integer(record, "level", record.case.level, 5),
    )
    # An error text may quote raw bytes of a broken server; losing a result over that would be worse than a "?".
    told = record.error_message[: LONGEST_ERROR + 1]
    told = told if len(told) <= LONGEST_ERROR else f"{told[: LONGEST_ERROR - 1]}…"
    changes["error_message"] = told.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    for name, text in (("experiment", record.experiment), ("agent", record.agent), ("case", record.case.id)):
        if not text or not text.isprintable():
            raise InputError(f"the {name} of trial {record.id!r} must be printable text, got {text!r}")
    _check_scored(record, changes["outcome"])
    return replace(record, **changes)


def _check_scored(record: TrialRecord, outcome: Outcome) -> None:
    """Raise InputError for a score that the outcome rules out."""
    if outcome is Outcome.INFRASTRUCTURE:
        for name in ("execution", "progress"):
            if getattr(record, name) is not None:
                raise InputError(
                    f"trial {record.id!r} ended in an infrastructure fault, so it cannot have the score {name}"
                )
    elif record.progress is not None and (record.progress == 1.0) != outcome.success:
        raise InputError(
            f"progress of trial {record.id!r} is {record.progress!r} and its outcome {outcome.value!r}; progress is "
            "1 exactly for a success"
        )


def _member(record: TrialRecord, kind: type[_Member], name: str) -> _Member:
    value = getattr(record, name)
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(member.value for member in kind)
        raise InputError(f"unknown {name} {value!r} of trial {record.id!r}; choose one of: {choices}") from None


def _integer(record: TrialRecord, name: str, value: int, maximum: int) -> int:
    if not isinstance(value, Integral) or not 0 <= value <= maximum:
        raise InputError(f"{name} of trial {record.id!r} must be a whole number in 0 .. {maximum}, got {value!r}")
    return int(value)
