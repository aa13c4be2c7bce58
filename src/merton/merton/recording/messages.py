"""Values that several readers of a recording take from its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from merton.errors import InputError, MertonError
from merton.recording.entry import Entry, text_of
from merton.results.records import Outcome

_OUTCOMES = tuple(Outcome)
"""By the number that merton_interfaces/TrialResult has for each."""


@contextmanager
def reading(entry: Entry) -> Iterator[None]:
    """For a body that uses the fields of the message of an entry; raises InputError as `reading_fields`."""
    with reading_fields(f"{entry.file}: the type {entry.type_name} of {entry.topic}"):
        yield


@contextmanager
def reading_fields(what: str) -> Iterator[None]:
    """For a body that uses the fields of a message; `what` it is, for a sentence.

    Raises:
        InputError: the definition in the file is of another form than the one that the body reads: it lacks a field, or
            has another type of one.
    """
    try:
        yield
    except MertonError:
        raise
    except AttributeError as error:
        lacks = f"has no field {error.name!r}" if error.name else f"is of another form ({text_of(error)})"
        raise InputError(f"{what} {lacks}: another version wrote it") from error
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError) as error:
        raise InputError(f"{what} is not of the form that is read: {text_of(error)}") from error


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


_OF_A_GRAPH = ("cell/state", "trial_results", "trial_evidence", "experiment/chunk/distorted")
"""Topics that Merton's graph alone has, with types of merton_interfaces."""


def namespace_of(topics: Mapping[str, str], recording: Path) -> str:
    """The namespace of Merton's graph in a recording, "" or such as "lab1/"; topics are counted without a first slash.

    Other programs have topics that end alike, such as the joint states of a controller: a reader that needs the state
    of the robot takes the topics of this namespace alone. Topics of a graph are known by their types, too.

    Args:
        topics: the type of each topic.
        recording: for the error.

    Raises:
        InputError: there are several graphs.
    """
    plain = [topic.lstrip("/") for topic, kind in topics.items() if kind.startswith("merton_interfaces/")]
    found = {topic.removesuffix(own) for topic in plain for own in _OF_A_GRAPH if f"/{topic}".endswith(f"/{own}")}
    if len(found) > 1:
        shown = ", ".join(f"/{namespace}".rstrip("/") or "/" for namespace in sorted(found))
        raise InputError(f"{recording} has the topics of {len(found)} graphs, in {shown}: record one of them alone")
    return found.pop() if found else ""


def own_name(topic: str, namespace: str) -> str:
    """The name of a topic in a namespace of `namespace_of`, such as "joint_states"; "" for a topic of another one."""
    plain = topic.lstrip("/")
    return plain.removeprefix(namespace) if plain.startswith(namespace) else ""


def picture_topics(topics: Iterable[str], namespace: str, pattern: re.Pattern[str]) -> dict[str, re.Match[str]]:
    """The topics of a graph's pictures whose name without image_transport's ending matches, with their match.

    Of a picture that was recorded both raw and compressed the compressed topic alone is there.
    """
    found: dict[str, tuple[str, re.Match[str]]] = {}
    for topic in sorted(topics):  # a raw one comes before its compressed one
        name = own_name(topic, namespace)
        if match := pattern.fullmatch(name.removesuffix("/compressed")):
            found[match[0]] = topic, match
    return dict(found.values())
