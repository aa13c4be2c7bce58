"""A submission made from a record, without a manifest written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

import merton
from merton.config import loads
from merton.errors import InputError, UnknownNameError
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.datasets import dataset_items
from merton.leaderboard.submissions.manifest import (
    FORMAT,
    MANIFESTS,
    MATRIX,
    SUCCESSES,
    Manifest,
    dataset_sha256,
    manifest_bytes,
    scores_bytes,
)
from merton.results.metrics import match_scores
from merton.results.records import TrialRecord
from merton.results.schema import AGENTS, EXPERIMENTS
from merton.results.store import ResultStore
from merton.results.text import one_line

SCORES_FILE = "scores.csv"
STATED = ("success", "execution")
"""Metrics of trials that a submission states."""

EXAMPLE_SUCCESSES = {"example.0.reference.0": 1.0, "example.0.gaussian_blur.3": 1.0, "example.0.gaussian_blur.5": 0.0}
EXAMPLE_EXECUTIONS = {**EXAMPLE_SUCCESSES, "example.0.gaussian_blur.5": 0.875}
"""Item to success, and to execution / 100, as in `example_submission`."""


@dataclass(frozen=True)
class Stated:
    """An agent's scores in a dataset as a submission states them, 0..1, by item.

    Attributes:
        scores: successes of trials, or the scores of an imported matrix.
        executions: execution scores / 100 of trials.
    """

    scores: dict[str, float] = field(default_factory=dict)
    executions: dict[str, float] = field(default_factory=dict)


def make_submission(
    store: ResultStore,
    agent: str,
    manufacturer: str,
    version: str | None = None,
    weights_sha256: str | None = None,
    dataset: str | None = None,
    contact: str | None = None,
) -> bytes:
    """A submission, a .zip, of one agent's scores in a record; the same record and arguments give the same bytes.

    Args:
        store: the record.
        agent: its id there.
        version, weights_sha256: of the agent; may be left out if the record knows them. Weights may be "none".
        dataset: an experiment or an imported matrix; may be left out if the agent took part in one alone.

    Raises:
        InputError: no such agent or dataset, an item without a score, or a value that `Manifest` refuses.
    """
    with store.database.reading() as connection:
        name, stated = _scores_of(store, connection, agent, dataset)
        _, items, is_of_trials = dataset_items(connection)[name]
        registered = connection.execute(sa.select(AGENTS).where(AGENTS.c.id == agent)).mappings().one()
        harness_version = connection.scalar(sa.select(EXPERIMENTS.c.merton_version).where(EXPERIMENTS.c.id == name))
    if missing := sorted(items - stated.scores.keys()):
        raise InputError(
            f"{agent!r} has no score for {len(missing)} of the {len(items)} items of {name}, such as {missing[0]!r}; "
            "a submission needs all of them"
        )
    fields: dict[str, Any] = {
        "version": version or registered["version"],
        "weights_sha256": weights_sha256 or registered["weights_sha256"],
    }
    if unknown := [field for field, value in fields.items() if value is None]:
        raise InputError(
            f"the record does not know the {unknown[0]} of {one_line(agent)!r}; give it (weights may be 'none')"
        )
    return _packed(
        Manifest.model_construct(
            format=FORMAT,
            version=fields["version"],
            weights_sha256=fields["weights_sha256"],
            manufacturer=manufacturer,
            agent=agent,
            contact=contact,
            harness_version=harness_version or merton.__version__,
            dataset_sha256=dataset_sha256(items),
            scores=SCORES_FILE,
        ),
        stated,
        SUCCESSES[0] if is_of_trials else MATRIX,
    )


def example_submission() -> bytes:
    """A submission, a .zip, of invented scores of three items; no board takes it, since it has no such dataset."""
    return _packed(
        Manifest.model_construct(
            format=FORMAT,
            version="1.0",
            weights_sha256="none",
            manufacturer="My Lab",
            agent="my_agent",
            contact="lab@example.org",
            harness_version=merton.__version__,
            dataset_sha256=dataset_sha256(EXAMPLE_SUCCESSES),
            scores=SCORES_FILE,
        ),
        Stated(EXAMPLE_SUCCESSES, EXAMPLE_EXECUTIONS),
    )


def _packed(manifest: Manifest, stated: Stated, columns: Sequence[str] = SUCCESSES[0]) -> bytes:
    """The archive of a manifest and scores; InputError if a host would refuse the manifest.

    Executions are in it if every item has one: a failure that no undistorted run is there to measure against has none.
    """
    written = manifest_bytes(manifest)
    loads(written.decode(), Manifest, "the manifest")
    executions = stated.executions if stated.executions.keys() == stated.scores.keys() else None
    return archive.pack({MANIFESTS[-1]: written, SCORES_FILE: scores_bytes(stated.scores, executions, columns)})


def _scores_of(store: ResultStore, connection: sa.Connection, agent: str, dataset: str | None) -> tuple[str, Stated]:
    """The dataset, by name or the only one of the agent, and the agent's scores in it."""
    scores = _scores_by_dataset(store, agent)
    if not scores:
        raise UnknownNameError("agent", agent, connection.scalars(sa.select(AGENTS.c.id)).all())
    if dataset is None and len(scores) > 1:
        raise InputError(f"{agent!r} took part in several datasets; choose one of: {', '.join(sorted(scores))}")
    name = dataset or next(iter(scores))
    if name not in scores:
        raise UnknownNameError(f"dataset of {agent!r}", name, scores)
    return name, scores[name]


def _scores_by_dataset(store: ResultStore, agent: str) -> dict[str, Stated]:
    """Experiment or import to the agent's scores there, as a submission states them."""
    trials: dict[str, list[TrialRecord]] = {}
    for trial in store.records():
        if trial.agent == agent:
            trials.setdefault(trial.experiment, []).append(trial)
    found = {
        name: Stated(*({item: score for _, item, score in match_scores(own, metric)} for metric in STATED))
        for name, own in trials.items()
    }
    for foreign in store.scores():
        if foreign.agent == agent:
            found.setdefault(foreign.source, Stated()).scores[foreign.case] = foreign.score
    return found
