"""Many runs in one record: what a run's own file has, taken into one that is shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from merton.results.matrix import add_cases
from merton.results.schema import AGENTS, CASES, EXPERIMENTS, IMPORTS
from merton.results.store import ResultStore, register


@dataclass(frozen=True)
class Merged:
    """What a record had, and how much of it was new to the other."""

    experiments: int
    trials: int
    new_trials: int
    scores: int
    new_scores: int


def merge(
    source: ResultStore, target: ResultStore, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Merged:
    """Take experiments, agents, cases, trials and foreign scores of one record into another, all of them or nothing.

    Doing it again takes what has come since. Submissions and snapshots stay where they were made.

    Args:
        source: is read.
        target: is written.
        on_progress: told how many trials and scores of how many are written.

    Raises:
        InputError: the two say different things of the same experiment, agent, case, trial or score.
        InfrastructureError: a database fails; the target is as before.
    """
    with source.database.reading() as connection:
        experiments, agents, cases = source.about_experiments(), source.agents(), source.cases()
        trials, scores = source.records(), source.scores()
        imports = [dict(row) for row in connection.execute(sa.select(IMPORTS)).mappings()]
    total = len(trials) + len(scores)
    with target.database.transaction() as connection:
        for table, kind, rows in ((EXPERIMENTS, "experiment", experiments), (AGENTS, "agent", agents)):
            for row in rows:
                register(target.database, connection, table, kind, asdict(row))
        for case in (case for case in cases if not case.source):
            register(target.database, connection, CASES, "case", asdict(case))
        add_cases(target, connection, [case for case in cases if case.source])
        target.database.insert_new(connection, IMPORTS, imports)
        new_trials = target.write(connection, trials, lambda done: on_progress(done, total))
        new_scores = 0
        for name in sorted({score.source for score in scores}):
            of_this = [score for score in scores if score.source == name]
            new_scores += target.write_scores(connection, of_this)
        on_progress(total, total)
    return Merged(len({trial.experiment for trial in trials}), len(trials), new_trials, len(scores), new_scores)
