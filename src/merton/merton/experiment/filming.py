"""Films of trials: the embedded cell carries a trial out again, in the same way, before a camera that stands still."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from merton.experiment.again import carried_out_again
from merton.experiment.local import SLICE_S, LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.trial import rounded
from merton.experiment.trial_report import TrialPicture
from merton.simulation import props, varied_model
from merton.simulation.cameras import SceneCameras
from merton.simulation.scene import Scene
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS
from merton.world.geometry import Array
from merton.world.observation import Image

CAMERA = "side"
"""It sees arm, things and table; the picture has no distortion and no errors of a sensor, since it shows what the arm
did, not what a policy saw."""
FILM_HZ = 10.0
"""Pictures a second of simulated time."""
ROBOT = len(ARM_JOINTS) + len(FINGER_JOINTS)
"""Number of values at the start of a state that are joints of the robot; the others are poses of things."""
_FREE_JOINT = 0  # mujoco.mjtJoint.mjJNT_FREE; only the simulation imports mujoco


@dataclass(frozen=True)
class Take:
    """The motion of a trial: the states of its scene, and the path of the tool.

    Attributes:
        task, seed: the scene.
        states: (n, nq), MuJoCo's configuration vector at `FILM_HZ`, from the start to the end.
        path: of the tool in `base_link`, as trial.json keeps it [m]; a point for each `SLICE_S` of motion.
        thing: the part of a state with the position of the thing to handle; None if it is fixed to the table.
        steps: (n,) the number of the step under way at each state, from 0.
        pictures: those that the models were shown, by step and camera.
    """

    task: str
    seed: int
    states: Array
    path: tuple[tuple[float, float, float], ...]
    thing: slice | None
    steps: tuple[int, ...]
    pictures: tuple[TrialPicture, ...]


def take(ports: LocalPorts, spec: ExperimentSpec, trial: Trial) -> Take:
    """Carry a trial out again, and keep the states of its scene.

    Raises:
        InfrastructureError: a model cannot be asked, as in `merton.experiment.trial.run_trial`.
    """
    states: list[tuple[Array, int]] = []
    run = carried_out_again(ports, spec, trial, lambda step: states.append((ports.cell.qpos, step)))
    every = round(1 / (FILM_HZ * SLICE_S))
    configurations, steps = zip(*states[::every], states[-1], strict=True)
    scene = ports.cell.scene
    assert scene is not None
    return Take(
        task=trial.case.task,
        seed=trial.case.seed,
        states=np.array(configurations),
        path=rounded(run.path),
        thing=_position(ports, scene),
        steps=steps,
        pictures=tuple(run.pictures),
    )


def pictures(cameras: SceneCameras, scene: Take, states: Iterable[Array]) -> Iterator[Image]:
    """The film of states of a take's scene, (height, width, 3) uint8 RGB each."""
    for state in states:
        yield cameras.render(scene.task, scene.seed, state, CAMERA, depth=False).color


def _position(ports: LocalPorts, scene: Scene) -> slice | None:
    """The slice of a state with the position of the thing that the command names; None if it is fixed to the table."""
    name = (props if scene.layout is None else varied_model).body_of(scene.meant.object)
    model = ports.cell.model
    joint = int(model.body(name).jntadr[0])
    if joint < 0 or model.jnt_type[joint] != _FREE_JOINT:
        return None
    start = int(model.jnt_qposadr[joint])
    return slice(start, start + 3)
