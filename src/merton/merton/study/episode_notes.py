"""The sentences on a run of episodes that another program carried out: what is no pair, what had no end, what was lost.

Read from run.json and the record alone, so a copied folder of such a run says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merton.errors import ErrorCode
from merton.results import trial_files
from merton.results.records import NO_PAIR, TrialRecord
from merton.results.text import counted, printable

NAMED = 8
"""Trials that a sentence names; the others are counted."""


def episode_notes(facts: Mapping[str, Any], records: Iterable[TrialRecord]) -> list[str]:
    """What is to be known before the numbers of a run of episodes are read; nothing of another run.

    Args:
        facts: its run.json; nothing in it has been checked.
        records: its trials, with those that are no pair (`ErrorCode.NOT_PAIRED`), which are no score.
    """
    return (
        [*_of_trials(sorted(records, key=lambda item: item.id)), *_of_counts(facts)]
        if trial_files.is_of_episodes(facts)
        else []
    )


@dataclass(frozen=True)
class Told:
    """The successes that the program told, of an agent in a task under one condition; broken pairs included."""

    agent: str
    task: str
    condition: str
    episodes: int
    successes: int


def told(facts: Mapping[str, Any]) -> list[Told]:
    """The program's own counts, as run.json has them; those that are not counts are passed over."""
    found = facts.get("successes")
    rows = []
    for item in found if isinstance(found, list) and trial_files.is_of_episodes(facts) else ():
        if isinstance(item, Mapping):
            names = [str(item.get(key, "")) for key in ("agent", "task", "condition")]
            counts = [item.get(key) for key in ("episodes", "successes")]
            if all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
                rows.append(Told(*names, *counts))  # type: ignore[arg-type]
    return rows


def _of_trials(records: Sequence[TrialRecord]) -> Iterator[str]:
    broken: dict[str, list[str]] = {}
    for record in records:
        if record.error_code == ErrorCode.NOT_PAIRED:
            broken.setdefault(record.error_message.removeprefix(NO_PAIR), []).append(record.id)
    distorted = sum(not record.case.is_reference for record in records)
    for why, ids in broken.items():
        verb = "is no pair" if len(ids) == 1 else "are no pairs"
        yield (
            f"{len(ids)} of {counted(distorted, 'distorted episode')} {verb} and in no number here: "
            f"{printable(why, 200)}. {'It is' if len(ids) == 1 else 'They are'} {_named(ids)}."
        )
    unended = [record.id for record in records if record.error_code == ErrorCode.NO_END]
    if unended:
        counts = "counts as a failure" if len(unended) == 1 else "count as failures"
        yield f"{counted(len(unended), 'episode')} ended without word of success and {counts}: {_named(unended)}."


def _of_counts(facts: Mapping[str, Any]) -> Iterator[str]:
    unscored = facts.get("without_decision")
    for why, count in sorted(unscored.items()) if isinstance(unscored, Mapping) else ():
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            verb = "has" if count == 1 else "have"
            yield f"{counted(count, 'episode')} {verb} no decision score: {printable(str(why), 200)}."
    if lost := _number(facts, "lost"):
        which, given = ("1 episode was", "its condition was") if lost == 1 else (f"{lost} episodes were", "each was")
        yield f"{which} lost to the infrastructure, which is no score; {given} given again if the program went on."
    if beyond := _number(facts, "beyond"):
        yield f"{counted(beyond, 'episode')} came after the design of its scene was done: passed on, and in no record."
    found = facts.get("scenes_that_differ_between_agents")
    scenes = [str(scene) for scene in found] if isinstance(found, list) else []
    if scenes:
        yield (
            f"In {counted(len(scenes), 'scene')} the agents did not all begin with the same first picture, so there "
            f"they are compared in different scenes: {_named(sorted(scenes))}."
        )


def _number(facts: Mapping[str, Any], key: str) -> int:
    """A count of run.json's `episodes`; 0 where it says none."""
    counts = facts.get("episodes")
    found = counts.get(key) if isinstance(counts, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def _named(ids: Sequence[str]) -> str:
    more = [f"and {len(ids) - NAMED} more"] if len(ids) > NAMED else []
    return ", ".join([*(printable(id, 120) for id in ids[:NAMED]), *more])
