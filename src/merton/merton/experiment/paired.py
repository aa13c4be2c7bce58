"""Two agents on the same scenes, one scene after another, in processes of this machine and without ROS.

An experiment's file says which trials there could be; each scene here is one of them, drawn anew. Every scene is thus
an independent sample of the whole design, as the confidence sequence of `merton.statistics.sequential` needs it.
One trial a scene and agent: of equally many trials, those in different scenes tell most.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import chain, count
from pathlib import Path

import numpy as np

from merton.config import dumps, validated
from merton.errors import InputError
from merton.experiment.plan import LEVELS, ONE_LEVEL, AgentSpec, ExperimentSpec, Trial
from merton.experiment.recorded import models_named
from merton.experiment.run import RunDirectory
from merton.experiment.runner import attempt
from merton.experiment.trial import run_trial
from merton.experiment.workers import opened
from merton.experiment.world_facts import UR5
from merton.pool import open_pool, results
from merton.results.records import STAIRCASE, TestCase, TrialRecord
from merton.seeding import generator
from merton.simulation.scene import scene_has
from merton.worlds.description import WorldDescription

CANDIDATE, BASELINE = "candidate", "baseline"
"""Ids of the two agents in the run and its record, so that a model can be compared with itself."""
SCENES = 1_000_000
"""Scenes are drawn from so many of a task: none comes twice, and another seed has other ones."""

Pair = tuple[TrialRecord, TrialRecord]
"""The candidate's and the baseline's trial of one scene."""


def agent_named(spec: ExperimentSpec, name: str, role: str) -> AgentSpec:
    """The agent of a name that a user typed, with `role` for its id.

    Args:
        spec: its agents are known by their ids.
        name: such an id, or a VLA of the catalogue, or "vlm+vla"; a VLA alone has the VLM `describe`.

    Raises:
        UnknownNameError: none of these.
    """
    for agent in spec.agents:
        if agent.id == name:
            return agent.model_copy(update={"id": role})
    vlm, vla = models_named(name, [agent.id for agent in spec.agents])
    return AgentSpec(id=role, vla=vla, **({"vlm": vlm} if vlm else {}))


def paired_experiment(spec: ExperimentSpec, candidate: str, baseline: str, seed: int | None = None) -> str:
    """The experiment of two agents on the design of another one, as the text of its file.

    Args:
        candidate, baseline: names for `agent_named`.
        seed: of scenes, types, levels and distortions; None for that of `spec`.

    Raises:
        UnknownNameError: no such agent.
        InputError: levels that depend on earlier results; scenes are drawn independently.
    """
    if spec.levels == STAIRCASE:
        raise InputError(
            "levels: staircase makes a scene's level depend on earlier results, and here scenes are drawn "
            "independently: list levels, or use levels: one"
        )
    agents = (agent_named(spec, candidate, CANDIDATE), agent_named(spec, baseline, BASELINE))
    values = {
        "name": "gate",
        "description": f"{candidate} against {baseline} on {spec.name}",
        "seed": spec.seed if seed is None else seed,
        "agents": agents,
    }
    paired = validated(ExperimentSpec, {**dict(spec), **values}, "")
    unsaid = {"world"} if paired.world == UR5 else set()
    return dumps(paired.model_dump(mode="json", exclude_none=True, exclude=unsaid))


def drawn_cases(spec: ExperimentSpec) -> Iterator[TestCase]:
    """Test cases, each drawn independently and each of a scene of its own: without end in the UR5 cell.

    Task, distortion and level are drawn from those of the experiment, each equally likely, and the scene from `SCENES`
    that have the task. Level 0 is the undistorted reference. The n-th case follows from the seed and n alone. A world
    that has so many scenes and no more gives each of them once, in an order that is drawn.
    """
    levels = LEVELS if spec.levels == ONE_LEVEL else spec.levels
    seen: set[TestCase] = set()
    for rng, task, scene in _drawn_places(spec):
        level = int(rng.choice(levels)) if spec.distortions else 0
        distortion = str(rng.choice(spec.distortions)) if level else "reference"
        case = spec.case(task, scene, distortion, level)
        if case not in seen:
            seen.add(case)
            yield case


def _drawn_places(spec: ExperimentSpec) -> Iterator[tuple[np.random.Generator, str, int]]:
    """Tasks and scenes of `drawn_cases`, each with the generator of the rest of its case."""
    if spec.facts.description is not None:
        places = list(_places(spec, spec.facts.description).items())
        for number, place in enumerate(generator("paired scenes", spec.seed).permutation(len(places))):
            rng, ((_, scene), tasks) = generator("paired scene", spec.seed, number), places[place]
            yield rng, str(rng.choice(tasks)), scene
        return
    for number in count():
        rng = generator("paired scene", spec.seed, number)
        task, scene = str(rng.choice(spec.tasks)), int(rng.integers(SCENES))
        while not scene_has(task, scene):
            scene = int(rng.integers(SCENES))
        yield rng, task, scene


def _places(spec: ExperimentSpec, described: WorldDescription) -> dict[tuple[str, int], list[str]]:
    """Group and number of each scene of a world to the tasks that are done there."""
    found: dict[tuple[str, int], list[str]] = {}
    for task in spec.tasks:
        for scene in range(described.task(task).scenes):
            found.setdefault((spec.facts.group(task), scene), []).append(task)
    return found


def scenes_there(spec: ExperimentSpec) -> int | None:
    """The number of scenes that can be drawn; None in the UR5 cell, where there is always another one."""
    described = spec.facts.description
    return None if described is None else len(_places(spec, described))


def run_pairs(
    run: RunDirectory, done: Mapping[str, TrialRecord], workers: int, on_fault: Callable[[str], None]
) -> Generator[Pair, None, None]:
    """Run the drawn scenes of a run with its two agents, as long as there are any, in the order of drawing.

    Close it to end the processes; the files of scenes that were begun but not yielded are removed.

    Args:
        run: made of `paired_experiment`; the files of trials are saved in it.
        done: records of earlier processes by trial id; the scenes they begin with are not run again.
        workers: processes, each with a cell and the models.
        on_fault: called with a sentence when a trial had to be repeated.

    Raises:
        InfrastructureError: a trial failed again and again, or a process died.
    """
    cases = drawn_cases(run.spec)
    for case in cases:
        candidate, baseline = (done.get(trial.id) for trial in _trials(run, case))
        if candidate is None or baseline is None:
            break
        yield candidate, baseline
    else:
        return
    begun: deque[TestCase] = deque()

    def scenes() -> Iterator[tuple[Path, TestCase]]:
        for own in chain((case,), cases):
            begun.append(own)
            yield run.path, own

    try:
        with open_pool(workers, on_fault=on_fault) as pool:
            for pair, faults in results(pool, _run_scene, scenes(), 2 * workers):
                begun.popleft()
                for fault in faults:
                    on_fault(fault)
                yield pair
    finally:
        for trial in (trial for own in begun for trial in _trials(run, own)):
            shutil.rmtree(run.path / "trials" / trial.id, ignore_errors=True)


def _trials(run: RunDirectory, case: TestCase) -> tuple[Trial, Trial]:
    candidate, baseline = run.spec.agents
    return Trial(candidate, case), Trial(baseline, case)


def _run_scene(path: Path, case: TestCase) -> tuple[Pair, list[str]]:
    """The records of one scene, and the faults that were got over. Runs in a process that keeps its cell and models."""
    run, runner = opened(path)
    faults: list[str] = []
    records = []
    for trial in _trials(run, case):
        once = partial(run_trial, runner.ports, run.spec, run.id, trial, None, ())
        report = attempt(trial, once, faults.append)
        run.save(report)
        records.append(report.record)
    candidate, baseline = records
    return (candidate, baseline), faults
