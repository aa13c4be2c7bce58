"""`merton attribute`: in which stage, camera, step and region of the images an agent loses under distortion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from merton import __version__
from merton.cli.console import STDOUT, add_row, from_here, own_command, print_err, print_out, progress
from merton.cli.runs import exit_for_failed_models
from merton.errors import InputError, UnknownNameError
from merton.experiment.run_names import RUNS
from merton.files import locked_folder
from merton.pages.words import interval_words, number
from merton.results.text import MISSING, count_of

if TYPE_CHECKING:
    from merton.experiment.parts import Dissection
    from merton.experiment.run import RunDirectory
    from merton.pool import Pool
    from merton.results.records import TrialRecord
    from merton.study.attribution import Findings, Found, Mean

RECORD, NUMBERS, PAGE = "attribution.sqlite", "attribution.json", "attribution.html"
"""Files in the run's folder: the trials in every design, all numbers, and the page."""


def attribute_command(
    where: Annotated[Path, typer.Argument(metavar="RUN|EXPERIMENT", help="A run, or an experiment to be run first.")],
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent; may be repeated.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="stages, cameras, steps or regions; may be repeated.")] = None,
    step_parts: Annotated[int, typer.Option(help="Parts of the steps: single steps, and the rest in the last.")] = 4,
    name: Annotated[str | None, typer.Option(help="Name of the run of an experiment.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")] = RUNS,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Say in which stage, camera, step and region of the images agents lose under distortion, in the embedded cell.

    Everything that was run is recorded and not run again: after a kill, name the run's folder.
    """
    from merton.experiment.parts import AXES, dissection
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import find_run
    from merton.pool import open_pool

    if not where.is_file():
        where = find_run(where)
    begun = where.is_dir()
    run = RunDirectory(where) if begun else RunDirectory.create(runs, where, name, in_process=True)
    known = [item.id for item in run.spec.agents]
    for id in agent or ():
        if id not in known:
            raise UnknownNameError("agent", id, known)
    run.check_experiment(run.path / "experiment.yaml")
    dissections = {item.id: dissection(run.spec, item, by or AXES, step_parts) for item in run.spec.agents}
    try:
        with locked_folder(run.path, "merton attribute"), open_pool(workers, on_fault=print_err) as pool:
            found = _found(pool, run, dissections, agent or ())
    except KeyboardInterrupt:
        print_err(f"Interrupted. Go on with: {own_command('attribute', from_here(run.path))}")
        raise
    about = {"experiment_sha256": run.experiment_sha256, "seed": run.spec.seed, "merton": __version__}
    designs = {id: {name: part.model_dump() for name, part in item.designs.items()} for id, item in dissections.items()}
    _show(run, found, {**about, "designs": designs})
    exit_for_failed_models(run)


def _found(pool: Pool, run: RunDirectory, dissections: Mapping[str, Dissection], agents: Sequence[str]) -> Findings:
    """Run all that is not recorded, and share the losses out."""
    from merton.experiment.parts import lost_trials, run_parts
    from merton.experiment.plan import Trial
    from merton.experiment.workers import complete
    from merton.results.store import ResultStore
    from merton.study.attribution import Findings

    with ResultStore(run.database) as store:
        if run.in_process:
            with progress("trials") as move:
                for done, total in complete(pool, run, store, print_err):
                    move(done, total)
        records = store.records(run.id)
    if not records:
        raise InputError(f"{run.path} has no results")
    losing, unharmed = lost_trials(run.spec, records, agents)
    lost = [trial for trial in losing if not dissections[trial.agent.id].is_trivial]
    with ResultStore(run.path / RECORD) as store, progress("parts") as move:
        for done, _ in enumerate(run_parts(pool, run, store, dissections, lost, records), start=1):
            move(done, len(lost))
        again: dict[str, dict[str, TrialRecord]] = {}
        for design in store.experiments():
            for record in store.records(design):
                again.setdefault(record.id, {})[design] = record
    references = {record.id: record for record in records}
    findings: Findings = Findings((), (), ())
    for item in run.spec.agents:
        if item.id in agents or not agents:
            trials = [
                (references[Trial(item, trial.case.reference).id], again[trial.id])
                for trial in lost
                if trial.agent == item
            ]
            scenes = [trial.case.scene for trial in unharmed if trial.agent == item]
            findings += _of_agent(item.id, dissections[item.id], trials, scenes)
    return findings


def _of_agent(
    agent: str, parts: Dissection, trials: Sequence[tuple[TrialRecord, Found]], unharmed: Sequence[str]
) -> Findings:
    from merton.experiment.parts import WHOLE
    from merton.study.attribution import Findings, attribute, failure

    if parts.is_trivial:
        return Findings((), (), (f"{agent} sees one part of the images at most, so there is nothing to share out.",))
    if not trials:
        return Findings((), (), (f"{agent} loses neither success nor progress in any distorted trial.",))
    shares = [
        item
        for game in parts.games
        for item in attribute(agent, game.axis, list(game.parts), game.designs, trials, unharmed)
    ]
    lost = failure(agent, WHOLE, parts.prefixes, trials) if parts.prefixes else None
    scenes = {*unharmed, *(reference.case.scene for reference, _ in trials)}
    size = count_of(len(trials) + len(unharmed), len(scenes))
    remark = f"{agent} loses success or progress in {len(trials)} of its distorted trials ({size})."
    return Findings(tuple(shares), (lost,) if lost else (), (remark,))


def _show(run: RunDirectory, findings: Findings, about: Mapping[str, Any]) -> None:
    """Tables on the terminal, numbers and page in the run's folder."""
    from merton.study.report import write_attribution_page

    if findings.attributions:
        STDOUT.print(_table(findings))
    for remark in findings.remarks:
        print_out(remark)
    for found in findings.failures:
        lost = ", ".join(f"{step} ({count})" for step, count in found.lost_at.items())
        print_out(
            f"{found.agent}: of the trials that fail only under distortion ({count_of(found.trials, found.scenes)}), "
            f"clean images no longer help after step (trials): {lost}. Distorted they take "
            f"{found.simulated_s:.1f} s of the cell's clock on average."
        )
    run.write_json(NUMBERS, {**about, **asdict(findings)})
    page = write_attribution_page(findings, run.path.name, run.path / PAGE)
    print_out(f"Numbers: {run.path / NUMBERS}. Page: {page}")


def _table(findings: Findings) -> Table:
    """The shares in points of 100; fits in 80 columns."""
    table = Table(box=None, pad_edge=False, title="Points of 100 lost under distortion", title_justify="left")
    for name in ("agent", "loss of", "part", "points", "95 %", "% of it"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("agent", "loss of", "part") else "right")
    for item in findings.attributions:
        add_row(
            table, item.agent, item.value, f"all {item.axis}", *_points(item.loss), 100 if item.loss.value else MISSING
        )
        for part, share in item.shares.items():
            percent = f"{round(100 * share.value / item.loss.value) + 0}" if item.loss.value else MISSING
            add_row(table, "", "", f"  {part}", *_points(share), percent)
    return table


def _points(mean: Mean) -> tuple[str, str]:
    return number(100 * mean.value, 1), interval_words(mean.interval, 0, 100)
