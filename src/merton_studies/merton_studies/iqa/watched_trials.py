"""Trials in the embedded cell whose first images are measured before anything moves, on which gates are fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial, single_trial
from merton.experiment.trial import TrialRun
from merton.perception.distortion import DISTORTIONS
from merton.results.records import Outcome, Reference
from merton.seeding import derive_seed, generator
from merton.simulation.scene import scene_has
from merton.world.observation import Image
from merton_studies.iqa.disagreement import disagreement

SUBJECTS = ("glance", "glance-hardened", "glance-pair", "glance-twice", "gist")
"""The five policies of the execution study."""
VERBS = ("move", "pick", "place", "pour", "press", "push", "twist")
"""The verbs that all of them claim."""
SPLIT, FIRST_SCENE = "test", 50
"""The scenes before it are in the labelled sample that metrics are trained on (`sample_subjects.parquet`)."""
LEVELS = 6
"""0, undistorted, to 5: a sixth of the trials shows the cell as it is."""
SENSOR = "d455"
MAX_STEPS = 6


@dataclass(frozen=True)
class WatchedTrial:
    """A trial, its outcome, and measurements of its first images.

    Attributes:
        trial: such as "glance.test-pick.4.jpeg.3".
        subject, task: the policy, and the task with its split.
        scene: as `TestCase.scene`, the unit that is sampled.
        distortion, level: of all cameras; "reference" at level 0.
        outcome: how it ended.
        undistorted: how the same trial ends without distortion; that is known of failures alone, else "".
        disagreement_m, disagreement_rad: of the policy's first decision.
        disagreement_s: processor time that its three further decisions took.
    """

    trial: str
    subject: str
    task: str
    scene: str
    distortion: str
    level: int
    outcome: str
    undistorted: str
    disagreement_m: float
    disagreement_rad: float
    disagreement_s: float

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A trial to be run, with the experiment it belongs to."""

    spec: ExperimentSpec
    trial: Trial


def design(scenes: int, seed: int = 0) -> Iterator[Case]:
    """One trial of each subject in each scene: the verb, the type and the level drawn.

    Ours: each trial of a scene has its own draw, so that as few as possible are alike. The types come in rounds of all
    30 in random order, the levels are uniform.
    """
    types = list(DISTORTIONS)
    for number in range(FIRST_SCENE, FIRST_SCENE + scenes):
        verbs = [verb for verb in VERBS if scene_has(f"{SPLIT}-{verb}", number)]
        for place, subject in enumerate(SUBJECTS):
            turn, at = divmod(number * len(SUBJECTS) + place, len(types))
            distortion = types[generator(seed, "types", turn).permutation(len(types))[at]]
            level = derive_seed(seed, "level", subject, number) % LEVELS
            verb = verbs[derive_seed(seed, "verb", subject, number) % len(verbs)]
            yield _case(subject, f"{SPLIT}-{verb}", distortion, level, number, seed)


def watched(ports: LocalPorts, case: Case) -> tuple[WatchedTrial, Mapping[str, tuple[Image, Image]]]:
    """Run a trial; of a failure under distortion the undistorted one too.

    Returns:
        The trial, and camera to (undistorted, distorted) image of its first step.

    Raises:
        InfrastructureError: a model or the cell is missing.
    """
    import time

    spec, trial = case.spec, case.trial
    run = TrialRun(ports, spec, trial)
    views = {name: run.view.distorted[name] for name in run.cameras}
    images = {name: (run.view.reference[name].color, run.view.distorted[name].color) for name in run.cameras}
    observation = run.view.observation("distorted", run.instruction, 0, run.noise_seed)
    began_s = time.process_time()
    found = disagreement(
        lambda shown: ports.act(trial.agent.vla, replace(observation, views=shown), "distorted"), views
    )
    took_s = (time.process_time() - began_s) * 3 / 4
    outcome = _outcome(run)
    undistorted = ""
    if trial.case.level and not outcome.success:
        clean = _case(trial.agent.vla, trial.case.task, "reference", 0, trial.case.seed, spec.seed)
        undistorted = _outcome(TrialRun(ports, clean.spec, clean.trial)).value
    row = WatchedTrial(
        trial.id,
        trial.agent.vla,
        trial.case.task,
        trial.case.scene,
        trial.case.distortion,
        trial.case.level,
        outcome.value,
        undistorted,
        found.position_m,
        found.rotation_rad,
        took_s,
    )
    return row, images


def _case(subject: str, task: str, distortion: str, level: int, scene: int, seed: int) -> Case:
    spec, trial = single_trial(subject, task, distortion, level, scene=scene, seed=seed, max_steps=MAX_STEPS)
    return Case(spec.model_copy(update={"sensor": SENSOR}), trial)


def _outcome(run: TrialRun) -> Outcome:
    while not run.over:
        run.take_step()
    return run.report("", None, (), Reference.NONE).record.outcome
