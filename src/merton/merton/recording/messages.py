"""What several readers of a recording take from its messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from merton.errors import InputError, MertonError
from merton.recording.entry import Entry, reason_of
from merton.results.records import Outcome

_OUTCOMES = tuple(Outcome)
"""By the number that merton_interfaces/TrialResult has for each."""


@contextmanager
def reading(entry: Entry) -> Iterator[None]:
    """For a body that uses the fields of the message of an entry.

    Raises:
        InputError: the definition in the file is of another form than the one that the body reads: it lacks a field, or
            has another type of one.
    """
    try:
        yield
    except MertonError:
        raise
    except AttributeError as error:
        lacks = f"has no field {error.name!r}" if error.name else f"is of another form ({reason_of(error)})"
        raise InputError(
            f"{entry.file}: the type {entry.type_name} of {entry.topic} {lacks}: another version wrote it"
        ) from error
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError) as error:
        raise InputError(
            f"{entry.file}: a message on {entry.topic}, of the type {entry.type_name}, is not of the form that is read: "
            f"{reason_of(error)}"
        ) from error


def time_ns(stamp: Any) -> int:
    """The nanoseconds of a builtin_interfaces/Time or Duration."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def header_ns(message: Any) -> int:
    """The stamp of a message's header [ns]."""
    return time_ns(message.header.stamp)


def outcome_of(result: Any) -> Outcome:
    """The outcome in a merton_interfaces/TrialResult; raises InputError for a number that means none."""
    if not 0 <= result.outcome < len(_OUTCOMES):
        raise InputError(f"trial {result.trial_id!r} has the outcome {result.outcome}, which is not known")
    return _OUTCOMES[result.outcome]
