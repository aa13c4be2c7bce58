"""The host's evaluation of a model that applied: its benchmarks run by the harness, every step in the record.

    OUT/<benchmark>/    the evaluation, as `merton curate evaluate` writes it
    OUT/answers.sqlite  the model's answers: after a kill the same call goes on, and none is paid for twice
    OUT/calls.jsonl     every different call that was needed, of all benchmarks and starts; the limits hold for these
    OUT/items.csv       the score of every question, for `merton leaderboard arena`
    OUT/log.jsonl       the steps, as the record holds them

An evaluation that cannot be carried through has no scores and says why; it never ends in a score of 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from merton.cognition.models.base import MODELS, ModelEntry
from merton.errors import InfrastructureError, InputError, MertonError, UnknownNameError
from merton.files import locked_folder, write_file
from merton.hosts import own_addresses
from merton.leaderboard.published.taxonomy import Benchmark, Taxonomy
from merton.leaderboard.submissions.application import ModelApplication, repository_of
from merton.leaderboard.submissions.applications import NOT_EVALUATED, Received, Step, add_step, application, step_in
from merton.leaderboard.submissions.evaluated import COLUMNS, items_of, keep_items
from merton.leaderboard.submissions.evaluation import EVALUATING, REFUSED, SCORED, WITHDRAWN
from merton.leaderboard.submissions.receipts import clock
from merton.models.checkpoints import locate
from merton.progress import OnProgress, unseen
from merton.results.csv_writer import write_csv
from merton.results.database import Database
from merton.results.text import counted
from merton_studies.curation.budget import CALLS, Budget, BudgetExhaustedError, Call
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.harness.answerers import capability
from merton_studies.harness.evaluation import CACHE, Evaluation, evaluate
from merton_studies.harness.models import CataloguedModel
from merton_studies.harness.running import Runner

ITEMS, LOG = "items.csv", "log.jsonl"


@dataclass(frozen=True)
class Limits:
    """Limits of a host's evaluation.

    Attributes:
        max_calls: most calls of the API, of all starts; None for no limit.
        max_cost: most money for them, by the application's `cost_per_1000`; None for no limit.
        deadline: UTC, after which no further question is asked; None for the end of the day on which it is due.
        api_key_env: variable of the host's environment with the API's key; "" where it needs none.
        own_network: whether the API may be in the host's own network, which a stranger's address must not reach.
        settings: further settings of the adapter of APIs, such as patience; for tests.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    deadline: datetime | None = None
    api_key_env: str = ""
    own_network: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


class DeadlineError(BudgetExhaustedError):
    """The next call would be after the deadline. Everything so far is kept."""


class TimedBudget(Budget):
    """A budget that also ends at a moment; a call that was needed before is free at any time.

    Args:
        deadline: UTC.
        now: the clock (UTC).
    """

    def __init__(
        self, max_calls: int | None, max_cost: float | None, file: Path, deadline: datetime, now: Callable[[], datetime]
    ) -> None:
        super().__init__(max_calls, max_cost, file)
        self._deadline, self._now = deadline, now

    def charge(self, call: Call) -> None:
        """As `Budget.charge`; raises DeadlineError for a new call after the deadline."""
        if call.key not in self._keys and self._now() > self._deadline:
            raise DeadlineError(
                f"the deadline of {self._deadline:%Y-%m-%d %H:%M} UTC has passed after {self.calls} calls; every "
                "answer is kept, and the same command with a later --deadline goes on from here"
            )
        super().charge(call)


def entry_for(id: str, content: ModelApplication, limits: Limits) -> ModelEntry:
    """The entry of the catalogue by which an application's model is asked.

    Raises:
        InputError: the API needs a key and the host names no variable, is in the host's own network, or has a limit of
            money without a price; or no entry of the catalogue loads the weights.
        MissingDependencyError: the weights are not on this machine; the text says how to get them.
    """
    if content.weights is not None:
        return _entry_of_weights(content.weights)
    if not limits.own_network and (own := own_addresses(content.api_url or "")):
        raise InputError(
            f"the API of {content.agent_id} is in the host's own network ({', '.join(own)}), so it is not asked; if "
            "you know it to be meant for this, add --own-network"
        )
    if content.api_needs_key and not limits.api_key_env:
        raise InputError(f"the API of {content.agent_id} needs a key: name the variable that holds it by --api-key-env")
    if limits.max_cost is not None and not content.cost_per_1000:
        raise InputError(
            f"--max-cost needs a price, and the application of {content.agent_id} states no cost_per_1000: limit its "
            "calls by --max-calls"
        )
    settings = {"url": content.api_url, "model": content.api_model, "api_key_env": limits.api_key_env}
    return ModelEntry(
        name=id,
        description=content.agent_id,
        adapter="openai_chat",
        settings={**settings, **limits.settings},
        licence=content.licence,
        cost_per_1000=content.cost_per_1000,
    )


def _entry_of_weights(weights: str) -> ModelEntry:
    repository = repository_of(weights)
    found = [entry for entry in map(MODELS.__getitem__, MODELS) if entry.checkpoint == repository]
    if not found:
        raise InputError(
            f"no model of the catalogue loads {repository}: add an entry with this checkpoint to a catalogue of yours "
            "(docs/use/adding_a_model.md), or serve the weights and let the manufacturer apply with the API"
        )
    locate(repository, found[0].revision)
    return found[0]


def host_evaluation(
    database: Database,
    id: str,
    pools: Sequence[Pool],
    out: Path,
    taxonomy: Taxonomy,
    *,
    sandbox: Runner,
    limits: Limits | None = None,
    now: Callable[[], datetime] = clock,
    on_progress: Callable[[str], OnProgress] = lambda _: unseen,
) -> Received:
    """Evaluate the model of an application on benchmarks, and put its scores into the record.

    Args:
        database: the record.
        id: of the application.
        pools: benchmarks; the source of their questions names a benchmark of the taxonomy ("vsi_bench" is VSI-Bench).
        out: folder of the results; one that was begun is finished.
        taxonomy: whose benchmarks and dimensions the boards have.
        sandbox: where the programs run.
        limits: none by default but the due day.
        now: the clock (UTC).
        on_progress: gives the progress of a benchmark, by name.

    Returns:
        The application with its steps; its status is "scored".

    Raises:
        InputError: there is no such application, it is no model, withdrawn or refused; OUT is of another application;
            a benchmark that the taxonomy does not have, or a question whose dimension it does not cover. No step is
            kept of these.
        BudgetExhaustedError, InfrastructureError, MissingDependencyError, InputError: the evaluation ended; its status
            is "not evaluated", with the reason, and every answer is kept. One that was scored before keeps its scores
            and stays "scored", with the reason.
    """
    limits = limits or Limits()
    with database.reading() as connection:
        found = application(connection, id)
    content = found.content
    if not isinstance(content, ModelApplication):
        raise InputError(f"{id} is a benchmark: decide on it by `merton submission status RECORD {id} accepted`")
    if found.status in (WITHDRAWN, REFUSED):
        raise InputError(f"the application {id} is {found.status}, so it is not evaluated")
    work = _Work(database, id, content, out, limits, now)
    named = _named(pools, taxonomy)
    with locked_folder(out, "merton leaderboard evaluate"):
        questions = sum(len(rows) for _, rows in named.values())
        work.check_folder(found)
        work.budget = TimedBudget(limits.max_calls, limits.max_cost, out / CALLS, _deadline(found, limits), now)
        work.step(EVALUATING, f"begun on {', '.join(named)}: {counted(questions, 'question')}")
        try:
            entry = entry_for(id, content, limits)
            scores = {
                name: work.benchmark(name, pool, rows, entry, sandbox, on_progress(name))
                for name, (pool, rows) in named.items()
            }
            return work.scored(scores)
        except MertonError as error:
            if any(step.status == SCORED for step in found.steps):  # its scores are on the boards, and stay there
                work.step(SCORED, f"the scores of before stand; evaluated again, it ended: {error}")
            else:
                work.step(NOT_EVALUATED, str(error))
            raise


def _deadline(found: Received, limits: Limits) -> datetime:
    if limits.deadline is not None:
        return limits.deadline
    return datetime.fromisoformat(found.due).replace(hour=23, minute=59, second=59, tzinfo=timezone.utc)


Place = Mapping[str, tuple[str, str]]
"""Question to its fine dimension and the benchmark's own name of it."""


def _named(pools: Sequence[Pool], taxonomy: Taxonomy) -> dict[str, tuple[Pool, Place]]:
    """Benchmark of the taxonomy to its questions and their dimensions; raises InputError for one that does not fit."""
    known = {_plain(benchmark.name): benchmark for benchmark in taxonomy.benchmarks}
    named: dict[str, tuple[Pool, Place]] = {}
    for pool in pools:
        for source in sorted({question.source for question in pool.questions}):
            if _plain(source) not in known:
                names = [benchmark.name for benchmark in taxonomy.benchmarks]
                raise InputError(f"{pool.folder}: {UnknownNameError('benchmark', source, names)}")
            benchmark = known[_plain(source)]
            if benchmark.name in named:
                raise InputError(f"{pool.folder}: {benchmark.name} is in another folder, too; leave one")
            part = pool.subset(question.id for question in pool.questions if question.source == source)
            named[benchmark.name] = part, {one.id: _place(one, benchmark, pool) for one in part.questions}
    return named


def _plain(name: str) -> str:
    """A name without case, blanks and signs: "vsi_bench" and "VSI-Bench" are one."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _place(question: Question, benchmark: Benchmark, pool: Pool) -> tuple[str, str]:
    known = {_plain(name): name for name in benchmark.dimensions}
    needed = capability(question)
    if _plain(needed) not in known:
        raise InputError(
            f"{pool.folder}: question {question.id!r} is of the dimension {needed!r}, which {benchmark.name} does not "
            f"cover; choose from: {', '.join(benchmark.dimensions)}"
        )
    dimension = known[_plain(needed)]
    own = question.dimension if _plain(question.dimension) != _plain(dimension) else ""
    return dimension, own


@dataclass
class _Work:
    """One start of an evaluation: its steps go to the record and the file."""

    database: Database
    id: str
    content: ModelApplication
    out: Path
    limits: Limits
    now: Callable[[], datetime]
    budget: Budget | None = None

    @property
    def spent(self) -> tuple[int, float]:
        """Calls and cost so far."""
        return (self.budget.calls, self.budget.cost) if self.budget else (0, 0.0)

    def step(self, status: str, note: str) -> Received:
        """Add a step, and write the file of all steps again."""
        found = add_step(self.database, self.id, status, note, *self.spent, now=self.now())
        self._write_log(found)
        return found

    def benchmark(
        self, name: str, pool: Pool, place: Place, entry: ModelEntry, sandbox: Runner, on_progress: OnProgress
    ) -> list[dict[str, Any]]:
        """The rows of a benchmark, without questions that have no score; raises InfrastructureError if none has one."""
        model = CataloguedModel(entry, pool)
        answers = self.out / CACHE
        folder = self.out / "".join(letter if letter.isalnum() else "-" for letter in name.lower())
        found = evaluate(
            pool, [model], folder, sandbox=sandbox, cache=answers, budget=self.budget, on_progress=on_progress
        )
        rows = [
            {"item": row.question.id, "dimension": dimension, "original": own, "score": row.score}
            for row in found.rows
            for dimension, own in [place[row.question.id]]
            if row.score is not None
        ]
        why = _first_reason(found)
        if not rows:
            raise InfrastructureError(f"{name}: not one of {counted(len(found.rows), 'question')} has a score: {why}")
        lacking = len(found.rows) - len(rows)
        noted = f"; {lacking} without a score, the first because: {why}" if lacking else ""
        self.step(EVALUATING, f"{name}: {counted(len(rows), 'score')}{noted}")
        return rows

    def scored(self, scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> Received:
        """Keep all scores and the step in one transaction, then write both files."""
        with self.database.transaction() as connection:
            for name, rows in scores.items():
                keep_items(connection, self.id, name, rows)
            count = sum(map(len, scores.values()))
            note = f"{counted(count, 'score')} on {', '.join(scores)}"
            found = step_in(connection, self.id, SCORED, note, *self.spent, now=self.now())
            items = items_of(connection, self.id, self.content)
        write_csv(self.out / ITEMS, COLUMNS, items)
        self._write_log(found)
        return found

    def check_folder(self, found: Received) -> None:
        """Raise InputError for a folder of another application, whose calls and scores would be mixed with these."""
        file = self.out / LOG
        if file.exists() and not file.read_bytes().startswith(_lines(found.id, found.steps[:1])):
            raise InputError(f"{self.out} holds the evaluation of another application; name another folder by --out")

    def _write_log(self, found: Received) -> None:
        write_file(self.out / LOG, _lines(found.id, found.steps))


def _lines(id: str, steps: Sequence[Step]) -> bytes:
    rows = ({"application": id, **asdict(step)} for step in steps)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _first_reason(found: Evaluation) -> str:
    reasons = ((row.error or row.unasked) for row in found.rows if row.score is None)
    lines = next(reasons, "").splitlines()
    return lines[-1] if lines else ""
