"""`merton plan`: what an experiment can tell, how long it takes and how large it gets, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merton.cli.changing import (
    AgentsOption,
    CamerasOption,
    DistortionsOption,
    ExperimentArgument,
    LevelsOption,
    OneSetOption,
    ScenesOption,
    SeedOption,
    experiment_named,
    words_of,
)
from merton.cli.console import own_command, print_out, record_named
from merton.errors import InputError
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.study.power import ExperimentSize, Quantity
    from merton.study.variance import PairedComponents

TRIAL_KB = 82.0
"""Files of a trial of the quickstart [kB]."""


@dataclass(frozen=True)
class Source:
    """The numbers that a plan rests on.

    Attributes:
        parts: by value.
        factors: the least and the largest multiple of these variances that another experiment may have.
        trial_s, trial_kb: of a trial [s], [kB].
        notes: sentences about them.
    """

    parts: Mapping[str, PairedComponents]
    factors: tuple[float, float]
    trial_s: float
    trial_kb: float
    notes: tuple[str, ...] = ()


def plan_command(
    experiment: ExperimentArgument = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--from",
            callback=lambda name: name and Path(record_named(str(name))),
            help="A run like it: its variances, seconds and bytes a trial count.",
        ),
    ] = None,
    points: Annotated[
        float, typer.Option(min=0.1, max=100.0, help="The difference or drop to resolve, in points of 100.")
    ] = 10,
    power: Annotated[float, typer.Option(min=0.1, max=0.999, help="Chance to see a difference that is there.")] = 0.8,
    setting: OneSetOption = None,
    seed: SeedOption = None,
    scenes: ScenesOption = None,
    levels: LevelsOption = None,
    distortions: DistortionsOption = None,
    agents: AgentsOption = None,
    cameras: CamerasOption = None,
) -> None:
    """Say which drops and differences of two agents an experiment resolves, and what more would cost."""
    from merton.experiment.dry_run import SECONDS_A_TRIAL, added_text, duration, scenes_text
    from merton.experiment.paired import scenes_there
    from merton.results.records import STAIRCASE
    from merton.study.power import ASSUMED, ASSUMED_RANGE, ExperimentSize, Quantity

    options: dict[str, Any] = {"seed": seed, "scenes": scenes, "levels": levels}
    options |= {"distortions": distortions, "agents": agents, "cameras": cameras}
    spec = experiment_named(experiment, "merton plan", setting, **options).spec
    if spec.levels == STAIRCASE:
        raise InputError(
            f"{experiment}: levels: staircase drives every agent to the same success, so differences of means tell "
            "nothing; docs/reference/experiments_measured.md says how exact thresholds are, merton run --dry-run "
            "how long it takes"
        )
    design = ExperimentSize.of(spec.cases(), len(spec.agents))
    source = Source(ASSUMED, ASSUMED_RANGE, SECONDS_A_TRIAL, TRIAL_KB) if record is None else _measured(record)

    is_timed = record is not None or spec.facts.description is None

    def cost(trials: int) -> str:
        if not is_timed:
            return f"{trials} trials"
        return f"{trials} trials, {duration(trials * source.trial_s)}, {trials * source.trial_kb / 1000:.0f} MB"

    others = f", {counted(design.other_scenes, 'scene')} more undistorted" if design.other_scenes else ""
    print_out(
        f"{counted(design.agents, 'agent')}, {scenes_text(spec)}{others}, "
        f"{counted(sum(not case.is_reference for case in spec.cases()), 'distorted trial')} each:"
    )
    each = f"{source.trial_s:.2f} s and {source.trial_kb:.0f} kB a trial" if is_timed else "--from RUN says how long"
    print_out(f"  {cost(design.trials)} ({each})")
    if added := len(spec.reference_runs()):
        print_out(f"  {added_text(added, spec.facts.yardstick)}")
    low, high = source.factors
    print_out(f"{100 * power:.0f} % power, 5 % two-sided, paired by scene; in brackets, with variances")
    print_out(f"from {low:.2g} to {high:.2g} times as large:")
    for quantity in Quantity:
        print_out(f"{quantity.value}")
        for name, parts in source.parts.items():
            for line in _lines(name, quantity, parts, source.factors, design, points / 100.0, power, cost):
                print_out(line)
    for line in source.notes or ("Variances: assumed, of five learned policies; --from RUN takes them from a run.",):
        print_out(line)
    if there := scenes_there(spec):
        print_out(f"The world {spec.world} has {counted(there, 'scene')} of these tasks.")
    again = own_command("run", str(experiment), *words_of(setting, **options), "--in-process")
    print_out(f"Run it in simulation on all cores: {again}")


def _lines(
    name: str,
    quantity: Quantity,
    parts: PairedComponents,
    factors: tuple[float, float],
    design: ExperimentSize,
    difference: float,
    wanted: float,
    cost: Callable[[int], str],
) -> list[str]:
    """Two lines with the forecast for one value, and between brackets those with other variances; none for no drop."""
    from merton.study.power import MOST_SCENES, forecast, scatter_of

    scatter = scatter_of(quantity, parts, design.views)
    if scatter is None:
        return []
    scatters = scatter, *scatter.around(factors, quantity)
    found = [forecast(design.scenes, own, difference, wanted) for own in scatters]

    def spread(values: Sequence[float], most: float, spec: str) -> str:
        texts = [
            f"over {most:{spec}}" if value > most else f"{value:{spec}}"
            for value in (values[0], min(values), max(values))
        ]
        return f"{texts[0]} [{texts[1]}, {texts[2]}]"

    least = spread([math.inf if one.resolvable is None else 100 * one.resolvable for one in found], 100, ".1f")
    needed = spread([math.inf if one.needed is None else one.needed for one in found], MOST_SCENES, ".0f")
    seen = spread([100 * one.seen for one in found], 100, ".0f")
    price = f": {cost(design.trials_with(found[0].needed))}" if found[0].needed is not None else ""
    points = f"{100 * difference:g}"
    return [
        f"  {name}: {design.scenes} scenes resolve {least} points, and {points} in {seen} % of runs;",
        f"    {points} points need {needed} scenes{price}",
    ]


def _measured(run: Path) -> Source:
    """The components by value, and the seconds and kilobytes of a trial, of a run."""
    from merton.results.store import open_record
    from merton.study.power import estimate_range
    from merton.study.values import VALUES
    from merton.study.variance import equal_agents, left_out_sentences, paired_components

    with open_record(run, read_only=True) as store:
        records = store.records()
    found = {name: paired_components(records, value) for name, value in VALUES.items()}
    parts = {name: own for name, own in found.items() if own is not None}
    if not parts:
        raise InputError(
            f"{run} has not two agents on two distorted scenes whose trials differ among themselves, so it tells no "
            "variances; leave --from out"
        )
    left_out = {name: equal_agents(records, VALUES[name]) for name in parts}
    agents = min(
        len({record.agent for record in records if record.case.level > 0 and VALUES[name](record) is not None})
        - len(equal)
        for name, equal in left_out.items()
    )
    scenes = len({record.case.scene for record in records if record.case.level > 0})
    size_kb = sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1000 if run.is_dir() else 0.0
    seconds = sum(record.wall_s for record in records) / len(records)
    notes = (f"Variances: of {run}, {counted(scenes, 'scene')}.", *left_out_sentences(left_out))
    return Source(parts, estimate_range(scenes, agents), seconds, size_kb / len(records) or TRIAL_KB, notes)
