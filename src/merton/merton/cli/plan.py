"""`merton plan`: what an experiment can tell, how long it takes and how large it gets, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import own_command, print_out, record_named
from merton.errors import InputError
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.study.variance import Components

TRIAL_KB = 82.0
"""Files of a trial of the quickstart [kB]."""


def plan_command(
    experiment: Annotated[Path, typer.Argument(help="The experiment, such as config/experiments/quickstart.yaml.")],
    record: Annotated[
        Path | None,
        typer.Option(
            "--from",
            callback=lambda name: name and Path(record_named(str(name))),
            help="A run like it: its variances, seconds and bytes a trial count.",
        ),
    ] = None,
    points: Annotated[
        float, typer.Option(min=0.1, max=100.0, help="The difference to resolve, in points of 100.")
    ] = 10,
    power: Annotated[float, typer.Option(min=0.1, max=0.999, help="Chance to see a difference that is there.")] = 0.8,
) -> None:
    """Say which differences between two agents an experiment resolves, and what more would cost."""
    from merton.config import load
    from merton.experiment.dry_run import SECONDS_A_TRIAL, added_text, duration
    from merton.experiment.plan import ExperimentSpec
    from merton.results.records import STAIRCASE
    from merton.study.power import ASSUMED, ExperimentSize, forecast

    spec = load(experiment, ExperimentSpec)
    if spec.levels == STAIRCASE:
        raise InputError(
            f"{experiment}: levels: staircase drives every agent to the same success, so differences of means tell "
            "nothing; docs/use/experiments.md says how exact thresholds are, merton run --dry-run how long it takes"
        )
    design = ExperimentSize.of(spec.cases(), len(spec.agents))
    parts, trial_s, trial_kb = (ASSUMED, SECONDS_A_TRIAL, TRIAL_KB) if record is None else _measured(record)

    def cost(trials: int) -> str:
        return f"{trials} trials, {duration(trials * trial_s)}, {trials * trial_kb / 1000:.0f} MB"

    views = counted(design.views, "distorted trial")
    others = f", {design.other_scenes} more undistorted" if design.other_scenes else ""
    print_out(f"{design.agents} agents, {design.scenes} scenes of {views}{others}:")
    print_out(f"  {cost(design.trials)} ({trial_s:.2f} s and {trial_kb:.0f} kB a trial)")
    if added := len(spec.reference_runs()):
        print_out(f"  {added_text(added)}")
    print_out(f"Two agents paired by scene, {100 * power:.0f} % power, 5 % two-sided:")
    for name, variances in parts.items():
        found = forecast(design, variances, points / 100.0, power)
        now = "no difference" if found.resolvable is None else f"{100 * found.resolvable:.1f} points"
        enough = "more than 100000 scenes"
        if found.needed is not None:
            enough = f"{found.needed} scenes ({cost(design.trials_with(found.needed))})"
        print_out(f"  {name}: these {design.scenes} scenes resolve {now}; {points:g} points need {enough}")
    source = "assumed, of five learned policies; --from RUN takes them from a run" if record is None else f"of {record}"
    print_out(f"Variances between and within scenes: {source}.")
    print_out(f"Run it in simulation on all cores: {own_command('run', str(experiment), '--in-process')}")


def _measured(run: Path) -> tuple[dict[str, Components], float, float]:
    """The variance components by value, and the seconds and kilobytes of a trial, of a run."""
    from merton.results.store import open_record
    from merton.study.values import VALUES
    from merton.study.variance import components

    with open_record(run, read_only=True) as store:
        records = store.records()
    found = {name: components(records, value) for name, value in VALUES.items()}
    parts = {name: own for name, own in found.items() if own is not None}
    if not parts or len({record.agent for record in records}) < 2:
        raise InputError(
            f"{run} has not two agents on two distorted scenes, so it tells no variances; leave --from out"
        )
    size_kb = sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1000 if run.is_dir() else 0.0
    seconds = sum(record.wall_s for record in records) / len(records)
    return parts, seconds, size_kb / len(records) or TRIAL_KB
