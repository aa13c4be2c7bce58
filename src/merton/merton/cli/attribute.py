"""`merton attribute`: in which stage, camera, step and region of the images an agent loses under distortion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton import __version__
from merton.cli.attribute_episodes import attribute_recorded
from merton.cli.attribution_shown import show
from merton.cli.changing import OneSetOption, experiment_named
from merton.cli.console import from_here, own_command, print_err, progress
from merton.cli.gate_episodes import episodes_named
from merton.cli.runs import exit_for_failed_models
from merton.errors import InputError, UnknownNameError
from merton.experiment.run_names import RUNS
from merton.extras import ready
from merton.files import locked_folder
from merton.pages.words import duration
from merton.results.text import count_of, counted

if TYPE_CHECKING:
    from merton.experiment.parts import Dissection
    from merton.experiment.run import RunDirectory
    from merton.pool import Pool
    from merton.results.records import TrialRecord
    from merton.study.attribution import Findings
    from merton.study.rerun_sample import Pair, Rerun

RECORD = "attribution.sqlite"
"""In the run's folder: the trials in every design."""


def attribute_command(
    where: Annotated[Path, typer.Argument(metavar="RUN|EXPERIMENT", help="A run, or an experiment to be run first.")],
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="stages, cameras, steps or regions; may be repeated.")] = None,
    step_parts: Annotated[int, typer.Option(help="Parts of the steps: single steps, and the rest in the last.")] = 4,
    setting: OneSetOption = None,
    name: Annotated[str | None, typer.Option(help="Name of the run of an experiment.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")] = RUNS,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Say in which stage, camera, step and region of the images agents lose under distortion, in a simulated world.

    Everything that was run is recorded and not run again: after a kill, name the run's folder.
    """
    if (recorded := episodes_named(str(where), runs)) is not None:
        given = {"set": setting, "name": name, "workers": workers}
        asked = [option for option, value in given.items() if value is not None]
        attribute_recorded(recorded, agent or (), by or (), asked)
        return
    from merton.experiment.parts import AXES, dissection
    from merton.pool import open_pool

    run = _run(where, setting, name, runs)
    known = [item.id for item in run.spec.agents]
    for id in agent or ():
        if id not in known:
            raise UnknownNameError("agent", id, known)
    run.check_here()
    count = run.spec.facts.workers(workers)
    dissections = {item.id: dissection(run.spec, item, by or AXES, step_parts) for item in run.spec.agents}
    try:
        with locked_folder(run.path, "merton attribute"), open_pool(count, on_fault=print_err) as pool:
            found = _found(pool, run, dissections, agent or ())
    except KeyboardInterrupt:
        print_err(f"Interrupted. Go on with: {own_command('attribute', from_here(run.path))}")
        raise
    about = {"experiment_sha256": run.experiment_sha256, "seed": run.spec.seed, "merton": __version__}
    designs = {id: {name: part.model_dump() for name, part in item.designs.items()} for id, item in dissections.items()}
    show(run.path, found, {**about, "designs": designs})
    exit_for_failed_models(run)


def _run(where: Path, setting: Sequence[str] | None, name: str | None, runs: Path) -> RunDirectory:
    """The run that an argument names, or a new one of the experiment that it names."""
    from merton.experiment.changes import shipped
    from merton.experiment.dry_run import extras_of
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import find_run

    names_run = any((folder / "experiment.yaml").is_file() for folder in (where, runs / where))
    if where.is_file() or (not names_run and str(where).removesuffix(".yaml") in shipped()):
        made = experiment_named(str(where), "merton attribute", setting)
        ready(str(where), *made.spec.facts.extras, *extras_of(made.spec))
        return RunDirectory.create(runs, made.file, name, True, made.text, made.about)
    if setting:
        raise InputError(f"--set changes an experiment, and {where} is a run: leave it out")
    run = RunDirectory(find_run(where))
    ready(str(where), *run.spec.facts.extras, *extras_of(run.spec))
    return run


def _found(pool: Pool, run: RunDirectory, dissections: Mapping[str, Dissection], agents: Sequence[str]) -> Findings:
    """Run all that is not recorded, and share the losses out."""
    from merton.experiment.workers import complete
    from merton.results.store import ResultStore
    from merton.study.attribution import Findings
    from merton.study.rerun_sample import pairs_of, rerun_weights

    with ResultStore(run.database) as store:
        if run.in_process:
            with progress("trials") as move:
                for done, total in complete(pool, run, store, print_err):
                    move(done, total)
        records = store.records(run.id)
    if not records:
        raise InputError(f"{run.path} has no results")
    pairs = {item.id: pairs_of(records, item.id) for item in run.spec.agents if item.id in agents or not agents}
    looking = [pair for id, known in pairs.items() if not dissections[id].is_trivial for pair in known]
    weights = rerun_weights(looking, run.spec.seed)
    again = _run_again(pool, run, dissections, [pair for pair in looking if pair.after.id in weights], records)
    findings: Findings = Findings((), (), ())
    for agent, known in pairs.items():
        reruns = [_rerun(pair, weights[pair.after.id], again) for pair in known if pair.after.id in weights]
        findings += _of_agent(agent, dissections[agent], known, reruns)
    return findings


def _run_again(
    pool: Pool,
    run: RunDirectory,
    dissections: Mapping[str, Dissection],
    pairs: Sequence[Pair],
    records: Sequence[TrialRecord],
) -> dict[str, dict[str, TrialRecord]]:
    """Id of each trial to the results of all its designs, after those that are not recorded have been run."""
    from merton.experiment.parts import jobs_left, run_jobs
    from merton.experiment.plan import Trial
    from merton.results.store import ResultStore

    specs, known = {item.id: item for item in run.spec.agents}, {record.id: record for record in records}
    trials = [Trial(specs[pair.after.agent], pair.after.case) for pair in pairs]
    again: dict[str, dict[str, TrialRecord]] = {}
    with ResultStore(run.path / RECORD) as store:
        jobs = jobs_left(run, store, dissections, trials)
        costs_s = [job.seconds(run.spec, known[job.trial.id]) for job in jobs]
        if jobs:
            run.check_models()
            changed, designs = sum(pair.changes for pair in pairs), sum(len(job.designs) + job.placebo for job in jobs)
            left_s = sum(costs_s) / pool.count
            print_err(
                f"To be run again: {changed} trials that lose or gain and {len(pairs) - changed} of the others. Left: "
                f"{counted(designs, 'design')}, about {duration(left_s)} in {counted(pool.count, 'worker')}, by the "
                "run's own time a trial."
            )
        with progress("trials, each in all its designs", costs_s) as move:
            move(0, len(jobs))
            for done, _ in enumerate(run_jobs(pool, run, store, jobs, records), start=1):
                move(done, len(jobs))
        for design in store.experiments():
            for record in store.records(design):
                again.setdefault(record.id, {})[design] = record
    return again


def _rerun(pair: Pair, weight: float, again: Mapping[str, Mapping[str, TrialRecord]]) -> Rerun:
    from merton.experiment.placebo import PLACEBO
    from merton.study.rerun_sample import Rerun

    placebo = again[pair.before.id][PLACEBO], again[pair.after.id][PLACEBO]
    return Rerun(pair, again[pair.after.id], weight, placebo)


def _of_agent(agent: str, parts: Dissection, pairs: Sequence[Pair], reruns: Sequence[Rerun]) -> Findings:
    from merton.study.attribution import Findings, attribute, failure

    changed = sum(pair.changes for pair in pairs)
    if not parts.looks:
        but = f"{agent} looks at none of the images, yet {changed} of its distorted trials end otherwise."
        return Findings((), (), (but,) if changed else (), (agent,))
    if parts.is_trivial:
        return Findings((), (), (f"{agent} sees only one part of the images: all of its loss is there.",))
    if not reruns:
        return Findings((), (), (f"{agent} has no distorted trial with a result beside its undistorted one.",))
    shares = [
        item
        for game in parts.games
        for item in attribute(agent, game.axis, list(game.parts), game.designs, pairs, reruns, game.unseen)
    ]
    lost = failure(agent, parts.prefixes, pairs, reruns) if parts.prefixes else None
    return Findings(tuple(shares), (lost,) if lost else (), tuple(_remarks(agent, pairs, reruns)))


def _remarks(agent: str, pairs: Sequence[Pair], reruns: Sequence[Rerun]) -> Iterator[str]:
    """What was run again of an agent, and how much of it is chance."""
    from merton.experiment.parts import WHOLE
    from merton.results.comparison import field_differences
    from merton.study.attribution import changed_by_placebo

    lose, changed = sum(pair.loses for pair in pairs), sum(pair.changes for pair in pairs)
    size = count_of(len(pairs), len({pair.after.case.scene for pair in pairs}))
    others, drawn = len(pairs) - changed, len(reruns) - changed
    stand = f"; {drawn} of the {others} others were run again, too, and stand for all of them" if others else ""
    gains = f"gains in {changed - lose}{stand}"
    yield f"{agent} loses success or progress in {lose} of its distorted trials ({size}) and {gains}."
    otherwise, runs = changed_by_placebo(reruns)
    yield f"Chance: with images that differ by one grey level {otherwise} of {runs} trials of {agent} end otherwise."
    if any(field_differences(rerun.pair.after, rerun.found[WHOLE]) for rerun in reruns):
        yield f"{agent} does not repeat itself: each design is another throw, and the run's own trials are the whole."
