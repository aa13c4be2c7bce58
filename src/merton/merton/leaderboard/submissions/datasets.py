"""The datasets of a record: the items that a submission must score."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from merton.errors import InputError
from merton.leaderboard.submissions.manifest import Submission, dataset_sha256
from merton.results.schema import CASES, TRIALS
from merton.results.text import one_line


def datasets(connection: sa.Connection) -> dict[str, tuple[str, frozenset[str]]]:
    """The datasets of a record: hash to (name, items); of several with the same items the last by name."""
    return {dataset_sha256(items): (name, items) for name, items in sorted(dataset_items(connection).items())}


def dataset_items(connection: sa.Connection) -> dict[str, frozenset[str]]:
    """The items of every dataset by its name: each experiment's test cases are one, each imported matrix's another."""
    found: dict[str, set[str]] = {}
    for name, item in connection.execute(sa.select(TRIALS.c.experiment, TRIALS.c.case).distinct()):
        found.setdefault(name, set()).add(item)
    for name, item in connection.execute(sa.select(CASES.c.source, CASES.c.id).where(CASES.c.source != "")):
        found.setdefault(name, set()).add(item)
    return {name: frozenset(items) for name, items in found.items()}


def check_items(submission: Submission, known: Mapping[str, tuple[str, frozenset[str]]]) -> str:
    """The name of the dataset a submission is for; raises InputError unless it scores each of its items."""
    manifest = submission.manifest
    if manifest.dataset_sha256 not in known:
        choices = "; ".join(f"{one_line(name)} {digest}" for digest, (name, _) in sorted(known.items())[:3])
        raise InputError(
            f"dataset_sha256 {manifest.dataset_sha256} is of no dataset in this record; it has "
            f"{len(known)}{': ' if known else ''}{choices}"
        )
    name, items = known[manifest.dataset_sha256]
    for item, where in submission.places.items():
        if item not in items:
            raise InputError(f"{where}: {one_line(item)!r} is not an item of {one_line(name)}")
    if missing := sorted(items - submission.scores.keys()):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        last = list(submission.places.values())[-1]
        raise InputError(f"{last}: the table ends without the score of {missing[0]!r}{more}")
    return name
