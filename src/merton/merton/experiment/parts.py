"""The parts of the images of a distorted trial, and the trials in which only some of them are distorted.

For one axis (stages, cameras, steps, regions) the parts are the players of a game whose value is the loss of a trial:
without any of them distorted it is the undistorted run, with all of them the trial itself (`merton.study.attribution`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from merton import __version__
from merton.decision.models.base import POLICIES
from merton.errors import InputError, UnknownNameError
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.workers import opened
from merton.pool import results
from merton.results.comparison import field_differences
from merton.results.records import TrialRecord
from merton.results.store import ResultStore

AXES = ("stages", "cameras", "steps", "regions")
WHOLE = "all"
"""The design in which every part is distorted: the experiment's own."""
STEP_PARTS = 4
"""Parts of the axis "steps" by default: as many more double the trials."""


@dataclass(frozen=True)
class Game:
    """The parts of one axis that an agent can see.

    Attributes:
        axis: of `AXES`.
        parts: name of a part to the values of the field `axis` of a `DistortedPart` that it is made of.
        designs: subset of the parts' names, never empty, to the name of the design in which those are distorted.
    """

    axis: str
    parts: Mapping[str, tuple[Any, ...]]
    designs: Mapping[frozenset[str], str]


@dataclass(frozen=True)
class Dissection:
    """All that is run of an agent's distorted trials.

    Attributes:
        games: one for each axis of which the agent sees more than one part.
        prefixes: number of steps k, from 1, to the name of the design in which the first k steps are distorted.
        designs: name to the distorted part.
    """

    games: tuple[Game, ...]
    prefixes: Mapping[int, str]
    designs: Mapping[str, DistortedPart]

    @property
    def is_trivial(self) -> bool:
        """Whether the agent sees one part at most of every axis."""
        return not self.games and not self.prefixes


def dissection(
    spec: ExperimentSpec, agent: AgentSpec, axes: Collection[str] = AXES, step_parts: int = STEP_PARTS
) -> Dissection:
    """The designs of every subset of the parts of each axis, and of the first steps; none for an agent without eyes.

    Args:
        step_parts: parts of the axis "steps": single steps, and the rest of them in the last part.

    Raises:
        InputError: an unknown axis, too few or too many parts, or an experiment with `min_image_quality`.
    """
    for axis in axes:
        if axis not in AXES:
            raise UnknownNameError("axis", axis, AXES)
    if spec.min_image_quality:
        raise InputError("min_image_quality judges whole images, so a loss cannot be shared out among parts of them")
    if not 1 <= step_parts <= 8:
        raise InputError(f"steps are divided into 1 to 8 parts, got {step_parts}: their subsets are all run")
    designs: dict[str, DistortedPart] = {}

    def design(axis: str, values: Collection[Any]) -> str:
        everything = _values(spec, axis)
        chosen = tuple(value for value in everything if value in values)
        name = WHOLE if chosen == everything else f"{axis}.{'+'.join(map(str, chosen))}"
        designs[name] = spec.distort if name == WHOLE else spec.distort.model_copy(update={axis: chosen})
        return name

    games = []
    for axis in (name for name in AXES if name in axes):
        parts = parts_of(spec, agent, axis, step_parts)
        unseen = set(_values(spec, axis)) - {value for part in parts.values() for value in part}
        subsets = [frozenset(some) for size in range(len(parts)) for some in combinations(parts, size + 1)]
        names = {some: design(axis, unseen.union(*(parts[part] for part in some))) for some in subsets}
        if len(parts) > 1:
            games.append(Game(axis, parts, names))
    steps = _values(spec, "steps")
    sees_steps = "steps" in axes and parts_of(spec, agent, "steps", step_parts)
    prefixes = {k: design("steps", steps[:k]) for k in range(1, len(steps) + 1)} if sees_steps else {}
    return Dissection(tuple(games), prefixes, designs)


def parts_of(spec: ExperimentSpec, agent: AgentSpec, axis: str, step_parts: int) -> dict[str, tuple[Any, ...]]:
    """Name of each part of an axis to its values. A part that has no effect on the arm is none.

    Those are cameras that the agent does not look through, and the image that the VLM is asked about unless its answer
    is the policy's instruction (`couple`).
    """
    part, policy = spec.distort, POLICIES[agent.vla]
    looked = tuple(name for name in part.cameras if name in policy.cameras) if "decision" in part.stages else ()
    steps = _values(spec, "steps")
    is_asked = spec.couple is not None and "cognition" in part.stages and spec.vlm_camera in part.cameras and 0 in steps
    if axis == "stages":
        seen = (("cognition", is_asked), ("decision", bool(looked)))
        return {stage: (stage,) for stage, is_part in seen if is_part}
    if axis == "cameras":
        asked = {spec.vlm_camera} if is_asked else set()
        return {name: (name,) for name in part.cameras if name in asked.union(looked)}
    if not looked and not is_asked:
        return {}
    if axis == "regions":
        return {region: (region,) for region in part.regions}
    single = {str(step): (step,) for step in steps[: step_parts - 1]}
    rest = steps[step_parts - 1 :]
    return single | ({f"{rest[0]}{' and later' if len(rest) > 1 else ''}": rest} if rest else {})


def lost_trials(
    spec: ExperimentSpec, records: Sequence[TrialRecord], agents: Collection[str] = ()
) -> tuple[list[Trial], list[Trial]]:
    """The distorted trials that lose success or progress against the undistorted run, and those that do not.

    Both in the order of a run. A trial without a result, or whose undistorted run has none, is in neither.

    Args:
        agents: ids; empty for all.
    """
    found = {record.id: record for record in records if record.success is not None}
    lost: list[Trial] = []
    unharmed: list[Trial] = []
    for trial in chain.from_iterable(spec.rounds({id: record.success for id, record in found.items()})):
        reference = found.get(Trial(trial.agent, trial.case.reference).id)
        if trial.case.is_reference or reference is None or (agents and trial.agent.id not in agents):
            continue
        if (record := found.get(trial.id)) is not None:
            loses = _less(record.success, reference.success) or _less(record.progress, reference.progress)
            (lost if loses else unharmed).append(trial)
    return lost, unharmed


def run_parts(
    pool: Executor,
    run: RunDirectory,
    store: ResultStore,
    dissections: Mapping[str, Dissection],
    trials: Sequence[Trial],
    recorded: Sequence[TrialRecord],
) -> Iterator[Trial]:
    """Run trials in every design of their agents that is not recorded; yields each once its results are durable.

    Args:
        run: in which the trials were run; its undistorted runs are what the results are measured against.
        store: where the results are recorded, each design as an experiment of its name.
        dissections: by the agent's id.
        recorded: results of the run.

    Raises:
        InfrastructureError: as `workers.complete`.
        InputError: the record has results of other designs or of another Merton; or a trial of the run has other
            results today, so that nothing can be said about its loss.
    """
    for part in dissections.values():
        for name, distorted in part.designs.items():
            design = json.dumps([run.experiment_sha256, distorted.model_dump(mode="json")], sort_keys=True)
            digest = hashlib.sha256(design.encode()).hexdigest()
            store.register_experiment(name, spec_sha256=digest, merton_version=__version__)
    done = {name: set(store.ids(name)) for part in dissections.values() for name in part.designs}
    jobs = []
    for trial in trials:
        designs = dissections[trial.agent.id].designs
        jobs.append((run.path, trial, {name: part for name, part in designs.items() if trial.id not in done[name]}))
    known = {record.id: record for record in recorded}
    for trial, found in zip(trials, results(pool, run_subsets, jobs), strict=True):
        for record in found:
            if record.experiment == WHOLE and (differences := field_differences(known[trial.id], record)):
                raise InputError(
                    f"{run.path} has other results of {trial.id} than this Merton's embedded cell "
                    f"({'; '.join(differences)}): run the experiment again"
                )
        store.record_all(found)
        yield trial


def run_subsets(path: Path, trial: Trial, designs: Mapping[str, DistortedPart]) -> list[TrialRecord]:
    """The records of a trial in each design; carried out in a process of a pool."""
    if not designs:
        return []
    _, runner = opened(path)
    specs = {name: runner.spec.model_copy(update={"distort": part}) for name, part in designs.items()}
    return [report.record for report in runner.run_forked(trial, specs)]


def _values(spec: ExperimentSpec, axis: str) -> tuple[Any, ...]:
    """All values of a field of the experiment's distorted part, in order."""
    if axis == "steps":
        return tuple(sorted(spec.distort.steps)) if spec.distort.steps is not None else tuple(range(spec.max_steps))
    return tuple(getattr(spec.distort, axis))


def _less(value: float | None, than: float | None) -> bool:
    return value is not None and than is not None and value < than
