"""Trials of a run in workers, each with a world of its own, without ROS.

Nothing depends on the number of workers, on their engine or on which of them runs a trial: record and files are the
same, but for `wall_s`. Workers of a cluster share no files with this process: a trial comes to them with all it is
measured against, and goes back as the contents of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from merton.cognition.models.base import MODELS, ModelEntry
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.experiment.local import ports_of
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.run import RunDirectory, trial_files
from merton.experiment.runner import Runner, attempt
from merton.experiment.trial import ReferenceRun, run_trial
from merton.experiment.undistorted import UndistortedRuns
from merton.experiment.world_ports import WorldPorts
from merton.models.rate_limit import RateLimit
from merton.pool import Pool, Shared, batches
from merton.results.records import Reference, TrialRecord
from merton.results.store import ResultStore
from merton.worlds.description import WorldDescription

AHEAD = 8
"""Pieces of work for each worker that are under way, or done and waiting for those before them, at most."""
BATCH = 64
"""Trials whose results are made durable by one transaction, at most: so many as have ended meanwhile."""
_WRITERS = 8
"""Threads that write files: a disk makes many files durable in the time of one."""


@dataclass(frozen=True)
class Setting:
    """All that the trials of a run have in common.

    Attributes:
        run: id in the record.
        corpora: VLM to its reference answers; empty for reference trials.
        entries: of the models in the catalogue of the process that deals the trials.
        workers: that share the rate limit of a model.
    """

    spec: ExperimentSpec
    run: str
    corpora: Mapping[str, tuple[str, ...]]
    entries: tuple[ModelEntry | PolicyEntry, ...]
    workers: int


@dataclass(frozen=True)
class Made:
    """A trial that a worker has run: its record, the contents of its files, and the faults that were got over."""

    record: TrialRecord
    files: Mapping[str, bytes]
    faults: tuple[str, ...]


def complete(
    pool: Pool, run: RunDirectory, store: ResultStore, on_fault: Callable[[str], None] = lambda sentence: None
) -> Iterator[tuple[int, int]]:
    """Run every trial of a run that is not finished, as `runner.run_all` does, after the reference runs that are added.

    Yields (trials run, trials to run) once the result of each is durable, in the order of a run. Only this process
    writes; while it does not ask for the next one, workers go on with at most `AHEAD` pieces of work each.

    Args:
        pool: of `merton.pool.open_pool`.
        store: the run's record; the experiment and its agents are entered first.
        on_fault: called with a sentence about a trial that had to be repeated.

    Raises:
        InputError: as `RunDirectory.register`, or as its `check_models` if there are trials to run.
        InfrastructureError: a trial failed in every attempt, or workers died of it; the results before it are saved.
    """
    run.register(store)
    successes = store.successes(run.id)
    finished = run.finished(successes)
    added = run.spec.reference_runs()
    done, left = 0, run.spec.trial_count + len(added) - len(finished)
    if left:
        run.check_models()
    undistorted = UndistortedRuns(run.spec, run.reference_run)
    setting: Setting | None = None
    with ThreadPoolExecutor(_WRITERS, "files") as writers:
        for group in chain([added], run.spec.rounds(successes)):
            trials = [trial for trial in group if trial.id not in finished]
            corpora = {trial.agent.vlm: undistorted.corpus(trial) for trial in trials}
            if trials and (setting is None or setting.corpora != corpora):
                setting = Setting(run.spec, run.id, corpora, _entries(run.spec), pool.count)
                shared = pool.share(setting)
            jobs = ((shared, trial, *undistorted.measure_for(trial)) for trial in trials)
            for batch in batches(pool, run_trial_here, jobs, AHEAD * pool.count, BATCH):
                _save(batch, run, writers)
                if group is not added:
                    store.record_all(made.record for made in batch)
                    successes.update({made.record.id: made.record.success for made in batch})
                for made in batch:
                    for fault in made.faults:
                        on_fault(fault)
                    done += 1
                    yield done, left
    run.finish()


def _save(batch: Iterable[Made], run: RunDirectory, writers: Executor) -> None:
    for written in [writers.submit(run.save_files, made.record.id, made.files) for made in batch]:
        written.result()


@lru_cache(maxsize=1)
def opened(path: Path) -> tuple[RunDirectory, Runner]:
    """A run and its runner in this process: one cell for all its trials. For functions that a pool carries out."""
    run = RunDirectory(path)
    return run, Runner(run.spec, run.id, _ports_for(run.spec), run.reference_run)


def _ports_for(spec: ExperimentSpec) -> WorldPorts[Any]:
    """The ports of this process in the world of an experiment."""
    described = spec.facts.description
    return _ports(spec.world, "" if described is None else described.model_dump_json())


@lru_cache(maxsize=1)
def _ports(world: str, described: str) -> WorldPorts[Any]:
    """The ports of this process in a world of that description, as JSON; "" for the UR5 cell."""
    ports = ports_of(world, WorldDescription.model_validate_json(described) if described else None)
    ports.pace = Pace()
    return ports


def run_trial_here(shared: Shared, trial: Trial, whose: Reference, reference: ReferenceRun | None) -> Made:
    """Run a trial in this process, which keeps its cell and models. Arguments as of `trial.run_trial`."""
    setting: Setting = shared.get()
    for entry in setting.entries:
        catalogue: Any = MODELS if isinstance(entry, ModelEntry) else POLICIES
        if entry.name not in catalogue:  # that of this machine need not be that of the one that deals the trials
            catalogue.add(entry.name, entry)
    ports, faults = _ports_for(setting.spec), list[str]()
    assert isinstance(ports.pace, Pace)
    ports.pace.workers = setting.workers
    corpus = () if trial.case.is_reference else setting.corpora[trial.agent.vlm]
    spec = setting.spec.for_trial(trial)
    report = attempt(
        trial, lambda: run_trial(ports, spec, setting.run, trial, reference, corpus, whose=whose), faults.append
    )
    return Made(report.record, trial_files(report), tuple(faults))


class Pace:
    """Waits so that a model is asked no more often than the catalogue's `requests_per_minute` allows.

    Attributes:
        workers: processes that share the limit: each waits so many times as long.
    """

    def __init__(self) -> None:
        self.workers = 1
        self._limits: dict[tuple[type, str, int], RateLimit] = {}

    def __call__(self, entry: ModelEntry | PolicyEntry) -> None:
        """Wait until the model may be asked."""
        key = type(entry), entry.name, self.workers
        if key not in self._limits:
            self._limits[key] = RateLimit(entry.requests_per_minute, self.workers)
        self._limits[key].wait()


def _entries(spec: ExperimentSpec) -> tuple[ModelEntry | PolicyEntry, ...]:
    """The entries of all models of an experiment, each once."""
    entries = [entry for agent in spec.agents_and_reference for entry in (MODELS[agent.vlm], POLICIES[agent.vla])]
    return tuple({(type(entry), entry.name): entry for entry in entries}.values())
