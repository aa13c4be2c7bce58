"""`merton attribute`: in which stage, camera and step an agent loses under distortion."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from merton import __version__
from merton.cli.console import STDOUT, add_row, print_err, print_out, progress
from merton.cli.runs import RUNS
from merton.errors import InputError
from merton.files import locked_folder
from merton.results.text import MISSING, count_of

if TYPE_CHECKING:
    from merton.experiment.parts import Dissection
    from merton.experiment.run import RunDirectory
    from merton.results.records import TrialRecord
    from merton.results.store import ResultStore
    from merton.study.attribution import Findings, Found, Mean

RECORD, NUMBERS, PAGE = "attribution.sqlite", "attribution.json", "attribution.html"
"""Files in the run's folder: the trials in every design, all numbers, and the page."""


def attribute_command(
    where: Annotated[Path, typer.Argument(metavar="RUN|EXPERIMENT", help="A run, or an experiment to be run first.")],
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="stages, cameras or steps; may be repeated.")] = None,
    step_parts: Annotated[int, typer.Option(help="Parts of the steps: single steps, and the rest in the last.")] = 4,
    name: Annotated[str | None, typer.Option(help="Name of the run of an experiment.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")] = RUNS,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; as many as cores by default.")] = None,
) -> None:
    """Say in which stage, camera and step agents lose success and progress under distortion, in the embedded cell.

    Everything that was run is recorded and not run again: after a kill, name the run's folder.
    """
    from merton.experiment.parts import AXES, dissection
    from merton.experiment.run import RunDirectory
    from merton.experiment.workers import cells

    begun = where.is_dir()
    run = RunDirectory(where) if begun else RunDirectory.create(runs, where, name)
    known = [item.id for item in run.spec.agents]
    for id in agent or ():
        if id not in known:
            raise InputError(f"unknown agent {id!r}; choose one of: {', '.join(known)}")
    run.check_experiment(run.path / "experiment.yaml")
    dissections = {item.id: dissection(run.spec, item, by or AXES, step_parts) for item in run.spec.agents}
    try:
        with locked_folder(run.path, "merton attribute"), cells(workers or os.cpu_count() or 1) as pool:
            if not begun:
                run.amend(in_process=True)
            found = _found(pool, run, dissections, agent or ())
    except KeyboardInterrupt:
        print_err(f"Interrupted. Go on with: merton attribute {run.path}")
        raise
    about = {"experiment_sha256": run.experiment_sha256, "seed": run.spec.seed, "merton": __version__}
    designs = {id: {name: part.model_dump() for name, part in item.designs.items()} for id, item in dissections.items()}
    _show(run, found, {**about, "designs": designs})


def _found(pool: Executor, run: RunDirectory, dissections: Mapping[str, Dissection], agents: Sequence[str]) -> Findings:
    """Run all that is not recorded, and share the losses out."""
    from merton.experiment.parts import WHOLE, check_same, lost_trials, run_parts
    from merton.experiment.plan import Trial
    from merton.results.store import ResultStore
    from merton.study.attribution import Findings

    with ResultStore(run.database) as store:
        if run.in_process:
            _complete(pool, run, store)
        records = store.records(run.id)
    if not records:
        raise InputError(f"{run.path} has no results")
    lost = [trial for trial in lost_trials(run.spec, records, agents) if not dissections[trial.agent.id].is_trivial]
    with ResultStore(run.path / RECORD) as store, progress("parts") as move:
        for done, _ in enumerate(run_parts(pool, run, store, dissections, lost), start=1):
            move(done, len(lost))
        again: dict[str, dict[str, TrialRecord]] = {}
        for design in store.experiments():
            for record in store.records(design):
                again.setdefault(record.id, {})[design] = record
    check_same(run, records, [again[trial.id][WHOLE] for trial in lost])
    references = {record.id: record for record in records}
    findings: Findings = Findings((), (), ())
    for item in run.spec.agents:
        if item.id in agents or not agents:
            trials = [
                (references[Trial(item, trial.case.reference).id], again[trial.id])
                for trial in lost
                if trial.agent == item
            ]
            findings += _of_agent(item.id, dissections[item.id], trials)
    return findings


def _of_agent(agent: str, parts: Dissection, trials: Sequence[tuple[TrialRecord, Found]]) -> Findings:
    from merton.experiment.parts import WHOLE
    from merton.study.attribution import Findings, attribute, failure

    if parts.is_trivial:
        return Findings((), (), (f"{agent} sees one part of the images at most, so there is nothing to share out.",))
    if not trials:
        return Findings((), (), (f"{agent} loses neither success nor progress in any distorted trial.",))
    shares = [item for game in parts.games for item in attribute(agent, game.axis, [*game.parts], game.designs, trials)]
    lost = failure(agent, WHOLE, parts.prefixes, trials) if parts.prefixes else None
    return Findings(tuple(shares), (lost,) if lost else (), ())


def _complete(pool: Executor, run: RunDirectory, store: ResultStore) -> None:
    from merton.experiment.workers import run_trials, unfinished

    run.register(store)
    trials = unfinished(run, store.ids(run.id))
    with progress("trials") as move:
        for done, _ in enumerate(run_trials(pool, run, trials, store.record), start=1):
            move(done, len(trials))
    run.amend(finished=True)


def _show(run: RunDirectory, findings: Findings, about: Mapping[str, Any]) -> None:
    """Tables on the terminal, numbers and page in the run's folder."""
    from merton.study.report import write_attribution_page

    for remark in findings.remarks:
        print_out(remark)
    if findings.attributions:
        STDOUT.print(_table(findings))
    for found in findings.failures:
        lost = ", ".join(f"{step} ({count_of(count, 0)})" for step, count in found.lost_at.items())
        print_out(
            f"{found.agent}: of the trials that fail only under distortion ({count_of(found.trials, found.scenes)}), "
            f"clean images no longer help after step (trials): {lost}. They end after {found.simulated_s:.1f} s "
            f"on average."
        )
    run.write_json(NUMBERS, {**about, **asdict(findings)})
    page = write_attribution_page(findings, run.path.name, run.path / PAGE)
    print_out(f"Numbers: {run.path / NUMBERS}. Page: {page}")


def _table(findings: Findings) -> Table:
    """The shares in points of 100; fits in 80 columns."""
    table = Table(box=None, pad_edge=False, title="Loss under distortion, shared out", title_justify="left")
    for name in ("agent", "loss of", "part", "points", "95 %", "% of it", "trials"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("agent", "loss of", "part") else "right")
    for item in findings.attributions:
        size = count_of(item.trials, item.scenes)
        add_row(table, item.agent, item.value, f"all {item.axis}", *_points(item.loss), 100, size)
        for part, share in item.shares.items():
            percent = f"{round(100 * share.value / item.loss.value) + 0}" if item.loss.value else MISSING
            add_row(table, "", "", f"  {part}", *_points(share), percent, "")
    return table


def _points(mean: Mean) -> tuple[str, str]:
    value, low, high = (round(100 * number, 1) + 0.0 for number in (mean.value, *mean.interval))
    return f"{value:.1f}", f"{low:.0f} to {high:.0f}"
