"""An experiment before it is run: its trials, their levels, its duration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from merton.cognition.models.base import MODELS
from merton.decision.models.base import POLICIES
from merton.experiment.plan import ExperimentSpec
from merton.extras import absent
from merton.models.catalogue import examine
from merton.perception.quality import METRICS
from merton.processes import usable_cores
from merton.results.records import STAIRCASE
from merton.results.text import counted

SECONDS_A_TRIAL = 0.4
"""Wall time of a trial in the graph `sim` [s], as in the quickstart on two idle cores."""
SECONDS_OF_A_CORE = 0.3
"""Processor time of such a trial without ROS, which is done on one core [s]."""


def outline(spec: ExperimentSpec) -> list[str]:
    """Lines of text: numbers of trials, how many distorted trials each level has, and the expected duration."""
    trials = spec.trials()
    levels = Counter(trial.case.level for trial in trials if not trial.case.is_reference)
    references = sum(trial.case.is_reference for trial in trials)
    distorted = spec.trial_count - references
    by_level = [f"level {level}: {levels[level]} distorted trials" for level in sorted(levels)]
    if spec.levels == STAIRCASE:
        chains = len(spec.agents) * len(spec.distortions)
        by_level = [f"{counted(chains, 'staircase')} of {distorted // max(chains, 1)} distorted trials"]
    views = f"{references} undistorted, {distorted} distorted" if distorted else "undistorted"
    further = f" and {spec.reference_scenes} more undistorted" if spec.reference_scenes else ""
    added = len(spec.reference_runs())
    return [
        f"{spec.name}: {counted(spec.trial_count, 'trial')} ({views})",
        *([added_text(added, spec.facts.yardstick)] if added else []),
        f"{counted(len(spec.agents), 'agent')}, {scenes_text(spec)}{further}, "
        f"{counted(len(spec.distortions), 'distortion')}",
        *by_level,
        _expected(spec, spec.trial_count + added),
    ]


def _expected(spec: ExperimentSpec, trials: int) -> str:
    """The duration of so many trials, in words; of another world than the UR5 cell it is not known."""
    if spec.facts.description is not None:
        return f"a trial takes as long as rows and pictures of {spec.world} do: `merton world check {spec.world}`"
    graph, in_process = (
        duration(trials * trial_s) for trial_s in (SECONDS_A_TRIAL, SECONDS_OF_A_CORE / usable_cores())
    )
    return (
        f"about {graph} of trials at {SECONDS_A_TRIAL:g} s each, as in the quickstart on two cores; larger models take "
        f"longer. Without ROS, by merton run --in-process: about {in_process} on the cores here ({usable_cores()})"
    )


def duration(seconds: float) -> str:
    """In seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def extras_of_models(names: Iterable[str]) -> list[str]:
    """The extras (`merton.extras`) that models of the catalogue need, each once; a name that is none needs nothing."""
    entries = [kind[name] for name in names for kind in (MODELS, POLICIES) if name in kind]
    return [extra for extra in dict.fromkeys(entry.extra for entry in entries) if extra]


def extras_of(spec: ExperimentSpec) -> list[str]:
    """The extras (`merton.extras`) that models and image gate of an experiment need, each once."""
    extras = extras_of_models(name for agent in spec.agents for name in (agent.vlm, agent.vla))
    extras += [METRICS[spec.quality_metric].extra] if spec.min_image_quality else []
    return [extra for extra in dict.fromkeys(extras) if extra]


def not_ready(spec: ExperimentSpec) -> list[str]:
    """A line for each model of the experiment that cannot be used on this machine, with the remedy; loads nothing new.

    Models whose extra is not installed are passed over: `extras_of` has it.
    See `merton.models.catalogue.examine`, which may ask a server or load weights that are installed.
    """
    models = {("vlm", agent.vlm): MODELS[agent.vlm] for agent in spec.agents}
    policies = {("vla", agent.vla): POLICIES[agent.vla] for agent in spec.agents}
    lines = []
    for (kind, name), entry in [*models.items(), *policies.items()]:
        if entry.extra and absent(entry.extra):
            continue
        for finding in examine(entry):
            if not finding.ok:
                remedy = f"; {finding.remedy}" if finding.remedy else ""
                lines.append(f"not ready here: {kind} {name}: {finding.subject}: {finding.detail}{remedy}")
    return lines


def added_text(added: int, yardstick: str | None) -> str:
    """A sentence about the number of reference runs that are added to an experiment."""
    runs = "once" if added == 1 else f"{added} times"
    elsewhere = ", and is left out on a real robot" if yardstick == "oracle" else ""
    return f"The {yardstick} runs {runs} more as yardstick; it is not rated{elsewhere}."


def scenes_text(spec: ExperimentSpec) -> str:
    """The tasks and scenes of an experiment: scenes of each task, and how many are different in all."""
    places = [(task, seed) for task in spec.tasks for seed in spec.facts.scenes(task, spec.scenes)]
    scenes = {spec.case(task, seed).scene for task, seed in places}
    different = len(scenes)
    return f"{counted(len(spec.tasks), 'task')} x {counted(spec.scenes, 'scene')} ({different} different)"
