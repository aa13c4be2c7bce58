"""`merton gate`: is a candidate worse than a baseline? As few scenes as tell, and an exit code for CI."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.changing import CamerasOption, DistortionsOption, LevelsOption, OneSetOption, experiment_named
from merton.cli.console import from_here, print_err, print_out
from merton.cli.gate_episodes import episodes_named, gate_recorded
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.extras import ready
from merton.files import locked_folder
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.experiment.changes import Experiment
    from merton.experiment.plan import ExperimentSpec
    from merton.experiment.run import RunDirectory
    from merton.statistics.sequential import Conclusion, ConfidenceSequence
    from merton.study.gate import Judgement, Pair

WORSE, NOT_RESOLVED, NOT_COMPLETED = 1, 3, 4
"""Exit codes beside 0 and a user's mistake's 2."""
LINE_PERIOD_S = 20.0
"""Between two lines of progress [s]."""
LEAST_S = 1.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def gate_command(
    candidate: Annotated[str, typer.Argument(help="An agent of the experiment, a VLA of the catalogue, or VLM+VLA.")],
    against: Annotated[str, typer.Option("--against", help="The baseline, named in the same way.")],
    experiment: Annotated[
        str, typer.Option(help="What scenes are drawn from: a file, or a shipped experiment.")
    ] = "gate",
    delta: Annotated[
        float, typer.Option(min=0.0, max=99.0, help="The largest loss you accept, in percentage points.")
    ] = 5.0,
    budget: Annotated[str, typer.Option(help="The longest time, such as 90s, 10m or 1h.")] = "10m",
    scenes: Annotated[int | None, typer.Option(min=1, help="At most so many scenes.")] = None,
    metric: Annotated[str, typer.Option("--metric", help="success or progress.")] = "success",
    seed: Annotated[int | None, typer.Option(min=0, help="Other scenes than those of the experiment's seed.")] = None,
    levels: LevelsOption = None,
    distortions: DistortionsOption = None,
    cameras: CamerasOption = None,
    setting: OneSetOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest comparison of these two.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the run; with --resume, the run to go on with.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")] = Path("runs"),
) -> None:
    """Compare two agents scene by scene until it is sure whether the first is worse than the second by more than delta.

    Exit code 0: it is not; 1: it is; 3: not resolved within the budget; 4: could not be completed.
    """
    options = {"levels": levels, "distortions": distortions, "cameras": cameras}
    if (recorded := episodes_named(name, runs)) is not None:
        given = {**options, "seed": seed, "set": setting, "workers": workers}
        _refuse_for_episodes(recorded, resume, metric, [option for option, value in given.items() if value is not None])
        _exit(gate_recorded(recorded, candidate, against, delta / 100.0, scenes))
        return
    source = experiment_named(experiment, "merton gate", setting, seed=seed, **options)
    _ready(source.spec, candidate, against)
    from merton.experiment.failed_models import failed_models
    from merton.statistics.sequential import Conclusion
    from merton.study import gate_files

    budget_s = _seconds(budget)
    if metric not in ("success", "progress"):
        raise UnknownNameError("metric", metric, ("success", "progress"))
    run = _run_directory(source, candidate, against, resume, name, runs)
    print_err(f"{candidate} against {against}, at most {budget}: {run.path}")
    try:
        with locked_folder(run.path, "merton gate"):
            run.amend(verdict=None)
            judgement = _compared(run, metric, delta / 100.0, budget_s, scenes or 10**9, workers)
            if failed := failed_models(run.spec, [record for pair in judgement.pairs for record in pair]):
                print_err("merton: " + "\n".join([*failed, "So nothing was compared: mend it and start a new run."]))
                raise typer.Exit(NOT_COMPLETED)
            gate_files.write(run.path, judgement, candidate, against)
            run.amend(verdict=judgement.whole.verdict.value)
    except InfrastructureError as error:
        print_err(f"merton: {error}\nThe comparison is not complete. {_continuation(run)}")
        raise typer.Exit(NOT_COMPLETED) from None
    except KeyboardInterrupt:
        print_err(f"Interrupted. {_continuation(run)}")
        raise
    for line in gate_files.summary(judgement, candidate, against):
        print_out(line)
    beside = ", ".join((gate_files.MARKDOWN, gate_files.JUNIT, *gate_files.PICTURES))
    print_out(f"Page: {run.path / gate_files.PAGE}. Beside it: {beside}")
    if judgement.whole.verdict is Conclusion.UNRESOLVED:
        print_out(_way_on(run, judgement, scenes))
    _exit(judgement.whole.verdict)


def _exit(verdict: Conclusion) -> None:
    """Ends with the exit code of a verdict; returns if the candidate passed."""
    codes = {"worse": WORSE, "not resolved": NOT_RESOLVED}
    if code := codes.get(verdict.value):
        raise typer.Exit(code)


def _refuse_for_episodes(run: Path, resume: bool, metric: str, options: list[str]) -> None:
    """Raise InputError for options that a run of episodes has no use for: nothing is run."""
    if not resume:
        raise InputError(
            f"{run} is a run of episodes, which another program carries out: add --resume, to judge what is recorded"
        )
    if metric != "success":
        raise InputError(f"{run} is a run of episodes, of which success alone is known: leave --metric out")
    if options:
        listed = ", ".join(f"--{option}" for option in options)
        raise InputError(f"{run} is a run of episodes, of which nothing is run here: leave {listed} out")


def _ready(spec: ExperimentSpec, *agents: str) -> None:
    """Ask for what the cell and the agents need; raises MissingDependencyError."""
    from merton.experiment.dry_run import extras_of_models
    from merton.experiment.paired import CANDIDATE, agent_named

    named = [agent_named(spec, name, CANDIDATE) for name in agents]
    names = [model for agent in named for model in (agent.vlm, agent.vla)]
    ready(" against ".join(agents), *spec.facts.extras, *extras_of_models(names))


def _run_directory(
    source: Experiment, candidate: str, baseline: str, resume: bool, name: str | None, runs: Path
) -> RunDirectory:
    """The run of this comparison, new or to be resumed."""
    from merton.experiment.paired import paired_experiment
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import GATE, latest_run

    text = paired_experiment(source.spec, candidate, baseline)
    if not resume:
        return RunDirectory.create(runs, source.file, name, text=text, about={"kind": GATE, **source.about})
    try:
        run = RunDirectory(runs / name) if name else latest_run(runs, source.file, text)
        is_other = (run.path / "experiment.yaml").read_bytes() != text.encode()
    except InputError:
        is_other = True
    if is_other:
        which = f"the run {runs / name} is not" if name else f"there is no run below {runs}"
        raise InputError(
            f"{which} of {candidate} against {baseline} on {source.file} with this seed and these settings: leave "
            "--resume out"
        )
    run.check_experiment(source.file, text)
    return run


def _compared(
    run: RunDirectory, metric: str, delta: float, budget_s: float, scenes: int, workers: int | None
) -> Judgement:
    """Run scenes until the verdict is sure, or time or scenes are used up."""
    from merton.experiment.paired import run_pairs
    from merton.processes import usable_cores
    from merton.results.store import ResultStore
    from merton.statistics.sequential import Conclusion, ConfidenceSequence
    from merton.study.gate import difference, judge
    from merton.study.values import VALUES

    value, clock = VALUES[metric], _Clock(budget_s)
    pairs: list[Pair] = []
    sequence = ConfidenceSequence(delta)
    with ResultStore(run.database) as store:
        run.register(store)
        done = {record.id: record for record in store.records(run.id)}
        with closing(run_pairs(run, done, run.spec.facts.workers(workers) or usable_cores(), print_err)) as drawn:
            for pair in drawn:
                store.record_all(pair)
                pairs.append(pair)
                sequence.add(difference(pair, value))
                clock.show(sequence)
                if sequence.verdict is not Conclusion.UNRESOLVED or len(pairs) >= scenes:
                    break
                if clock.is_over and pair[0].id not in done:  # results of earlier processes take no time
                    break
    return judge(pairs, metric, value, delta, run.spec.tasks)


class _Clock:
    """The time of a comparison, and its lines of progress."""

    def __init__(self, budget_s: float) -> None:
        self._end_s = time.monotonic() + budget_s
        self._next_s = time.monotonic() + LINE_PERIOD_S / 4

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end_s

    def show(self, sequence: ConfidenceSequence) -> None:
        """Print where the comparison stands, if the last line is old enough."""
        from merton.pages.words import interval_words
        from merton.study.gate_files import points

        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LINE_PERIOD_S
        left_s = max(0, round(self._end_s - now_s))
        print_err(
            f"{counted(len(sequence.differences), 'scene')}: {points(sequence.mean)} points "
            f"{interval_words(sequence.interval, 1, 100, sign=True)}, "
            f"at most {left_s // 60}:{left_s % 60:02d} left"
        )


def _way_on(run: RunDirectory, judgement: Judgement, scenes: int | None) -> str:
    """All that would lead to a verdict, in sentences."""
    from merton.experiment.paired import scenes_there

    there, done = scenes_there(run.spec), len(judgement.pairs)
    if there is not None and done >= there:
        return (
            f"All {counted(there, 'scene')} that the world {run.spec.world} has of these tasks are used up: take more "
            "of its tasks, or a larger --delta."
        )
    few = "" if there is None else f" The world {run.spec.world} has {there} of these tasks."
    larger = ", with more --scenes" if scenes and done >= scenes else ""
    return f"{_needed(judgement)}{few} {_continuation(run)}{larger}"


def _needed(judgement: Judgement) -> str:
    """The number of scenes that would resolve the difference that was found, in a sentence."""
    from merton.study.gate import FORESEEN, scenes_for

    enough = scenes_for(judgement)
    if enough is None:
        return f"Even {FORESEEN} times as many scenes like these {len(judgement.pairs)} would not resolve it."
    return f"If the difference stays as it is, about {enough} scenes resolve it."


def _seconds(budget: str) -> float:
    """A duration in seconds; raises InputError for a text that is none."""
    found = _DURATION.fullmatch(budget)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if seconds < LEAST_S:
        raise InputError(f"--budget is a time such as 90s, 10m or 1h, got {budget!r}")
    return seconds


def _continuation(run: RunDirectory) -> str:
    """The sentence that says how to go on; the options that are not repeated may change."""
    return f"Go on with the same command and --resume --runs {from_here(run.path.parent)} --name {run.path.name}"
