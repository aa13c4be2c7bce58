"""The parts of a site that no snapshot holds: earlier snapshots, submissions, and the runs behind the record."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from merton.errors import InfrastructureError, InputError
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.submissions.applications import ApplicationReceipt, applications
from merton.leaderboard.submissions.manifest import canonical
from merton.leaderboard.submissions.receipts import Attempt, Receipt, attempts, submissions
from merton.results.store import ResultStore
from merton.results.trial_files import json_object

HISTORY = 24
"""Number of earlier snapshots on a site, the latest; each is read whole."""


@dataclass(frozen=True)
class Earlier:
    """A snapshot as far as the page of history shows it.

    Attributes:
        taken_utc: when it was stored, ISO 8601.
        snapshot: without its cases, matches and boards, so that a long history of a large record fits into the memory.
        cases, matches: how many it has.
    """

    taken_utc: str
    snapshot: Snapshot
    cases: int
    matches: int

    @classmethod
    def of(cls, taken_utc: str, snapshot: Snapshot) -> Earlier:
        """The parts of a snapshot that a page of history needs."""
        slim = replace(snapshot, cases=(), matches=(), boards=())
        return cls(taken_utc, slim, len(snapshot.cases), len(snapshot.matches))


@dataclass(frozen=True)
class RecordExtras:
    """The content of a record that no snapshot holds.

    Attributes:
        history: earlier snapshots of the same name, the oldest first, at most `HISTORY`.
        older: the number of those before.
        unreadable: times of the latest that cannot be read: damaged, or of another version of Merton.
        taken_utc: when the snapshot of the site itself was stored; empty if it was not.
        receipts, attempts: submissions and attempts to submit, the latest first.
        applications: of models and benchmarks, the latest first.
    """

    history: tuple[Earlier, ...] = ()
    older: int = 0
    unreadable: tuple[str, ...] = ()
    taken_utc: str = ""
    receipts: tuple[Receipt, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    applications: tuple[ApplicationReceipt, ...] = ()

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """(standing, how many submissions have it), by name."""
        return sorted(Counter(item.standing for item in self.receipts).items())

    @property
    def manufacturers(self) -> list[tuple[str, int, int]]:
        """(manufacturer as it spells itself, attempts, accepted ones), most attempts first."""
        counts = Counter(canonical(item.manufacturer) for item in self.attempts)
        accepted = Counter(canonical(item.manufacturer) for item in self.attempts if item.accepted)
        # the latest spelling, one that was accepted before others
        spelled = [item.manufacturer for item in reversed(self.attempts)]
        spelled += [item.manufacturer for item in reversed(self.receipts)]
        names = {canonical(name): name for name in spelled}
        found = sorted(counts, key=lambda name: (-counts[name], name))
        return [(names[name], counts[name], accepted[name]) for name in found]


def read_extras(store: ResultStore, current: Snapshot) -> RecordExtras:
    """The extras of a site of the snapshot `current`, which is not part of its own history.

    Raises:
        InfrastructureError: the record cannot be read.
    """
    stored = [item for item in snapshots.snapshots(store) if item.name == current.name]
    own = hashlib.sha256(snapshots.to_json(current)).hexdigest()
    taken_utc = stored.pop().taken_utc if stored and stored[-1].sha256 == own else ""
    history, unreadable = [], []
    for item in stored[-HISTORY:]:
        try:
            history.append(Earlier.of(item.taken_utc, snapshots.load(store, item.id)))
        except (InputError, InfrastructureError):
            unreadable.append(item.taken_utc)
    return replace(
        read_submissions(store),
        history=tuple(history),
        older=max(len(stored) - HISTORY, 0),
        unreadable=tuple(unreadable),
        taken_utc=taken_utc,
    )


def read_submissions(store: ResultStore) -> RecordExtras:
    """The submissions, applications and attempts alone; InfrastructureError if the record cannot be read."""
    with store.database.reading() as connection:
        receipts, log = submissions(connection), attempts(connection)
        applied = [one.receipt for one in applications(connection)]
    return RecordExtras(
        receipts=tuple(reversed(receipts)), attempts=tuple(reversed(log)), applications=tuple(reversed(applied))
    )


def run_directories(store: ResultStore, runs: Path | None = None) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The run directories of a record's experiments, and the ids of experiments that have none.

    A record in a run's directory belongs to that run. The runs of a merged record are those below a folder whose
    run.json has the id of one of its experiments, or without an id the name.

    Args:
        runs: the folder; None: `runs` beside the record, or else where one stands.
    """
    experiments = set(store.experiments())
    beside = None if store.database.dialect != "sqlite" else Path(store.database.where).parent
    if beside is not None and (beside / "trials").is_dir():
        return (beside,), ()
    places = [runs] if runs is not None else [place / "runs" for place in (beside, Path()) if place is not None]
    found: dict[str, Path] = {}
    for file in (file for place in places for file in sorted(place.glob("[!.]*/results.sqlite"))):
        about = json_object(file.parent / "run.json") or {}
        name = str(about.get("id", file.parent.name))
        if name in experiments:
            found.setdefault(name, file.parent)
    return tuple(found[name] for name in sorted(found)), tuple(sorted(experiments - found.keys()))
