"""The datasets of a record: the items that a submission must score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from merton.errors import InputError
from merton.leaderboard.submissions.manifest import FORMAT, MATRIX, SUCCESSES, Submission, dataset_sha256
from merton.results.schema import CASES, TRIALS
from merton.results.text import one_line


class Dataset(NamedTuple):
    """The test cases of an experiment, whose trials succeed or fail, or those of an imported matrix of scores."""

    name: str
    items: frozenset[str]
    is_of_trials: bool


def datasets(connection: sa.Connection) -> dict[str, Dataset]:
    """The datasets of a record by their hash; of several with the same items the last by name."""
    return {dataset_sha256(item.items): item for _, item in sorted(dataset_items(connection).items())}


def dataset_items(connection: sa.Connection) -> dict[str, Dataset]:
    """The datasets by name: each experiment's test cases are one, each imported matrix's another."""
    found: dict[tuple[str, bool], set[str]] = {}
    for name, item in connection.execute(sa.select(TRIALS.c.experiment, TRIALS.c.case).distinct()):
        found.setdefault((name, True), set()).add(item)
    for name, item in connection.execute(sa.select(CASES.c.source, CASES.c.id).where(CASES.c.source != "")):
        found.setdefault((name, False), set()).add(item)
    return {name: Dataset(name, frozenset(items), of_trials) for (name, of_trials), items in found.items()}


def check_items(submission: Submission, known: Mapping[str, Dataset]) -> str:
    """The name of the dataset a submission is for.

    Raises:
        InputError: it does not score each of its items, or states no success of trials although its format is 2.
    """
    manifest = submission.manifest
    if manifest.dataset_sha256 not in known:
        choices = "; ".join(f"{one_line(item.name)} {digest}" for digest, item in sorted(known.items())[:3])
        raise InputError(
            f"dataset_sha256 {manifest.dataset_sha256} is of no dataset in this record; it has "
            f"{len(known)}{': ' if known else ''}{choices}"
        )
    name, items, is_of_trials = known[manifest.dataset_sha256]
    if is_of_trials and not submission.table.is_success and manifest.format >= FORMAT:
        choices = " or ".join(",".join(columns) for columns in SUCCESSES)
        raise InputError(
            f"{manifest.scores}, line 1: {one_line(name)} is of trials, so the columns must be {choices}; got "
            f"{','.join(MATRIX)}"
        )
    for item, where in submission.table.places.items():
        if item not in items:
            raise InputError(f"{where}: {one_line(item)!r} is not an item of {one_line(name)}")
    if missing := sorted(items - submission.scores.keys()):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        last = list(submission.table.places.values())[-1]
        raise InputError(f"{last}: the table ends without the score of {missing[0]!r}{more}")
    return name
