"""The parts of the images of a distorted trial, and the trials in which only some of them are distorted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from merton import __version__
from merton.errors import InputError, UnknownNameError
from merton.experiment.forks import can_fork
from merton.experiment.placebo import PLACEBO, run_placebo
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import attempt
from merton.experiment.subsets import (
    AXES,
    STEP_PARTS,
    WHOLE,
    Dissection,
    Game,
    design_name,
    first_steps,
    parts_of_steps,
    subsets,
)
from merton.experiment.trial import Shown, sides_shown
from merton.experiment.workers import opened
from merton.pool import results
from merton.results.comparison import field_differences
from merton.results.records import TrialRecord
from merton.results.store import ResultStore


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
    if not spec.facts.can("things") and "regions" in axes:
        if len(axes) == 1:
            raise InputError(f"the world {spec.world} does not know which pixels show which thing, as regions need")
        axes = [axis for axis in axes if axis != "regions"]
    if spec.min_image_quality:
        raise InputError("min_image_quality judges whole images, so a loss cannot be shared out among parts of them")
    if not 1 <= step_parts <= 8:
        raise InputError(f"steps are divided into 1 to 8 parts, got {step_parts}: their subsets are all run")
    designs: dict[str, DistortedPart] = {}

    def design(axis: str, values: Collection[Any]) -> str:
        everything = _values(spec, axis)
        chosen = tuple(value for value in everything if value in values)
        name = design_name(axis, values, everything)
        designs[name] = spec.distort if name == WHOLE else spec.distort.model_copy(update={axis: chosen})
        return name

    games = []
    for axis in (name for name in AXES if name in axes):
        parts = parts_of(spec, agent, axis, step_parts)
        seen = {value for part in parts.values() for value in part}
        unseen = tuple(value for value in _values(spec, axis) if value not in seen)
        names = {some: design(axis, {*unseen}.union(*(parts[part] for part in some))) for some in subsets(parts)}
        without = tuple(map(str, unseen)) if axis != "stages" or spec.couple is not None else ()
        if parts and len(parts) + len(without) > 1:
            games.append(Game(axis, parts, names, without))
    steps = _values(spec, "steps")
    sees_steps = "steps" in axes and parts_of(spec, agent, "steps", step_parts)
    counts = first_steps(steps) if sees_steps else []
    prefixes = {steps[before]: design("steps", steps[:count]) for before, count in pairwise([0, *counts])}
    looks = bool(parts_of(spec, agent, "stages", step_parts))
    return Dissection(tuple(games), prefixes, designs, looks)


def parts_of(spec: ExperimentSpec, agent: AgentSpec, axis: str, step_parts: int) -> dict[str, tuple[Any, ...]]:
    """Name of each part of an axis to its values. A part that has no effect on the arm is none.

    Those are cameras that the agent does not look through, and the image that the VLM is asked about unless its answer
    is the policy's instruction (`couple`).
    """
    part, policy = spec.distort, spec.vla_entry(agent.vla)
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
    return parts_of_steps(steps, step_parts)


@dataclass(frozen=True)
class Job:
    """All that is still to be run of a trial.

    Attributes:
        designs: name to the distorted part; of a distorted trial alone.
        placebo: whether the trial is to be run with the images of `PlaceboPorts`, too.
    """

    trial: Trial
    designs: Mapping[str, DistortedPart]
    placebo: bool

    def seconds(self, spec: ExperimentSpec, record: TrialRecord) -> float:
        """Time that it takes one process [s], by the time that the trial took in the run and the number of its chunks.

        Designs that show a model the same images up to a step share its chunks where a trial can be forked
        (`forks.run_forked`).
        """
        if not can_fork(spec, self.trial):
            return record.wall_s * (len(self.designs) + self.placebo)
        shared = chunks(spec, self.trial.agent, self.designs, record.steps) / max(record.steps, 1)
        return record.wall_s * (shared + self.placebo)


def chunks(spec: ExperimentSpec, agent: AgentSpec, designs: Mapping[str, DistortedPart], steps: int) -> int:
    """The number of chunks that are carried out in all designs of a trial of so many steps: one for all that are alike
    so far."""
    cameras = spec.vla_entry(agent.vla).cameras
    alike, count = dict.fromkeys(designs, 0), 0
    for step in range(steps):
        groups: dict[tuple[int, tuple[Shown, ...]], int] = {}
        for name, part in designs.items():
            so_far = alike[name], sides_shown(part, cameras, spec.vlm_camera, step)
            alike[name] = groups.setdefault(so_far, len(groups))
        count += len(groups)
    return count


def jobs_left(
    run: RunDirectory, store: ResultStore, dissections: Mapping[str, Dissection], trials: Sequence[Trial]
) -> list[Job]:
    """All that is not recorded of distorted trials, in every design of their agents, and of the placebo.

    The placebo is run of each of them and of its undistorted trial.

    Args:
        run: in which the trials were run.
        store: where the results are recorded, each design as an experiment of its name.
        dissections: by the agent's id.

    Raises:
        InputError: the record has results of other designs or of another Merton.
    """
    parts = {name: part.model_dump(mode="json") for item in dissections.values() for name, part in item.designs.items()}
    for name, part in (parts | {PLACEBO: PLACEBO}).items():
        design = json.dumps([run.experiment_sha256, part], sort_keys=True)
        digest = hashlib.sha256(design.encode()).hexdigest()
        store.register_experiment(name, spec_sha256=digest, merton_version=__version__)
    done = {name: set(store.ids(name)) for name in (*parts, PLACEBO)}
    jobs = []
    for trial in trials:
        designs = dissections[trial.agent.id].designs
        left = {name: part for name, part in designs.items() if trial.id not in done[name]}
        jobs.append(Job(trial, left, trial.id not in done[PLACEBO]))
    undistorted = dict.fromkeys(Trial(trial.agent, trial.case.reference) for trial in trials)
    jobs += [Job(trial, {}, trial.id not in done[PLACEBO]) for trial in undistorted]
    return [job for job in jobs if job.designs or job.placebo]


def run_jobs(
    pool: Executor, run: RunDirectory, store: ResultStore, jobs: Sequence[Job], recorded: Sequence[TrialRecord]
) -> Iterator[Job]:
    """Run jobs in the world of the run; yields each once its results are durable.

    Args:
        run: its undistorted runs are what the results are measured against.
        recorded: results of the run.

    Raises:
        InfrastructureError: as `workers.complete`.
        InputError: as `run_job`.
    """
    known = {record.id: record for record in recorded}
    work = [(run.path, job, known[job.trial.id]) for job in jobs]
    for job, found in zip(jobs, results(pool, run_job, work), strict=True):
        store.record_all(found)
        yield job


def run_job(path: Path, job: Job, known: TrialRecord) -> list[TrialRecord]:
    """The records of a trial in each design; carried out in a process of a pool.

    Args:
        known: its record in the run.

    Raises:
        InputError: the trial has other results than in the run, and the same ones twice: so it was not by chance.
    """
    _, runner = opened(path)
    specs = {name: runner.spec.model_copy(update={"distort": part}) for name, part in job.designs.items()}
    reports = attempt(job.trial, partial(runner.run_forked, job.trial, specs)) if specs else []
    found = [report.record for report in reports]
    for record in found:
        if record.experiment == WHOLE and (differences := field_differences(known, record)):
            again = attempt(job.trial, partial(runner.run_forked, job.trial, {WHOLE: specs[WHOLE]}))[0].record
            if not field_differences(record, again):
                raise InputError(
                    f"{path} has other results of {job.trial.id} than this Merton's world {runner.spec.world}, which "
                    f"twice gave the same ones ({'; '.join(differences)}): run the experiment again"
                )
    return [*found, attempt(job.trial, partial(run_placebo, runner, job.trial))] if job.placebo else found


def _values(spec: ExperimentSpec, axis: str) -> tuple[Any, ...]:
    """All values of a field of the experiment's distorted part, in order."""
    if axis == "steps":
        return tuple(sorted(spec.distort.steps)) if spec.distort.steps is not None else tuple(range(spec.max_steps))
    return tuple(getattr(spec.distort, axis))
