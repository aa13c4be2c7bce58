"""Many runs in one record: the content of a run's record is copied into a shared one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from merton.errors import InputError
from merton.progress import OnProgress, unseen
from merton.results.matrix import add_cases
from merton.results.schema import AGENTS, CASES, EXPERIMENTS, IMPORTS, TRIALS
from merton.results.store import ResultStore, register


@dataclass(frozen=True)
class Merged:
    """The size of the source, and how much of it was new to the target."""

    experiments: int
    trials: int
    new_trials: int
    scores: int
    new_scores: int


def merge(source: ResultStore, target: ResultStore, on_progress: OnProgress = unseen) -> Merged:
    """Copy experiments, agents, cases, trials and foreign scores of one record into another, all of them or nothing.

    A repetition copies the additions since. Submissions and snapshots stay where they were made.

    Args:
        on_progress: called with the number of trials and scores written, and their total.

    Raises:
        InputError: the two differ in the same experiment, agent, case, trial or score, or a case has trials in two
            worlds.
        InfrastructureError: a database fails; the target is as before.
    """
    with source.database.reading() as connection:
        experiments, agents, cases = source.experiment_records(), source.agents(), source.cases()
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
            of_source = [score for score in scores if score.source == name]
            new_scores += target.write_scores(connection, of_source)
        _refuse_another_world(connection)
        on_progress(total, total)
    return Merged(len({trial.experiment for trial in trials}), len(trials), new_trials, len(scores), new_scores)


def _refuse_another_world(connection: sa.Connection) -> None:
    """Raise InputError if a case has trials in two worlds, so that its name is that of two scenes."""
    world = sa.func.coalesce(EXPERIMENTS.c.world, "")
    both = sa.select(TRIALS.c.case, sa.func.min(world), sa.func.max(world)).join_from(TRIALS, EXPERIMENTS)
    named = sa.select(sa.exists(sa.select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.world.is_not(None))))
    if not connection.scalar(named):  # most records: no need to look at every trial
        return
    of_two = both.group_by(TRIALS.c.case).having(sa.func.min(world) != sa.func.max(world)).order_by(TRIALS.c.case)
    if found := connection.execute(of_two.limit(1)).first():
        case, one, other = found
        raise InputError(
            f"the case {case!r} is one of {other} and one of {one or 'another world'}: their scenes differ, so keep "
            "the two in records of their own"
        )
