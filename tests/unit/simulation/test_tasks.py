"""The verbs: their instructions, their scenes, and when they are done, near misses included."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.cognition.models.base import question_for
from merton.cognition.models.describe import Describe
from merton.errors import InputError
from merton.models.blobs import find_blobs
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.scene import Scene
from merton.simulation.success import judged
from merton.world.geometry import Matrix, transform
from merton.world.tasks import PAD_LINKS, TASKS, Situation, parse, pour

WITH_PROPS = [name for name, task in TASKS.items() if task.props]
PAPER = {"cover", "insert", "move", "pick", "place", "pour", "press", "pull", "push", "twist"}
"""Embodied-IQA, section 3.1."""


# Words ----------------------------------------------------------------------------------------------------------------


def test_every_verb_of_the_paper_is_a_task() -> None:
    assert set(TASKS) == PAPER | {"reach"}


@pytest.mark.parametrize(
    "words",
    ["twist the red cube to the left", "pour the red cup into the blue mat", "press and hold the pink button", "pull"],
)
def test_a_thing_that_a_verb_cannot_handle_is_refused(words: str) -> None:
    with pytest.raises(InputError, match=r"pour the \{object\} into the \{target\}"):
        parse(words)


# Scenes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", list(TASKS))
def test_things_of_the_instruction_show_their_colour_from_the_top(
    task: str, cell: SimulatedCell, cameras: SceneCameras
) -> None:
    for seed in range(8):
        scene = cell.reset(task, seed)
        view = cameras.render(task, seed, cell.qpos, "top")
        for name in filter(None, (scene.command.object, scene.command.target)):
            blobs = find_blobs(view.color, name.split()[0])
            assert blobs, f"{task} {seed}: no {name}"
            there = cell.scene_state().find(name).base_from_object[:3, 3]
            camera_from_base = np.linalg.inv(view.base_from_camera)
            at = view.intrinsics.project((camera_from_base @ [*there, 1.0])[:3])
            assert np.linalg.norm(np.subtract(blobs[0].centroid_px, at)) < 16, f"{task} {seed}: {name} elsewhere"


@pytest.mark.parametrize("task", WITH_PROPS)
def test_the_rule_based_vlm_names_what_it_sees(task: str, cell: SimulatedCell, cameras: SceneCameras) -> None:
    command = cell.reset(task, 1).command
    view = cameras.render(task, 1, cell.qpos, "top")
    answer = Describe().answer([view.color], question_for(command.instruction)).text.lower()
    assert answer.startswith(command.object)
    assert "unseen" not in answer


def test_a_task_has_the_props_it_needs_and_no_others(cell: SimulatedCell) -> None:
    """So they cost the tasks of cubes and cylinders nothing: 8 joints of the robot, 8 objects that move freely."""
    for task in TASKS:
        cell.reset(task, 0)
        added = {
            "cover": 6,
            "insert": 6,
            "press": 1,
            "pull": 1,
            "twist": 1,
            "pour": 6 + 6 * cell.config.objects.props.beads.number,
        }
        assert cell.model.nv == 56 + added.get(task, 0)


def test_joints_show_in_the_published_poses_and_in_the_pictures(cell: SimulatedCell, cameras: SceneCameras) -> None:
    for task, joint in (("press", "button"), ("pull", "drawer"), ("twist", "knob")):
        scene = cell.reset(task, 3)
        before = cell.scene_state().find(scene.command.object).base_from_object
        image = cameras.render(task, 3, cell.qpos, "top").color
        set_joint(cell, joint, -0.01 if joint == "button" else 0.1)
        after = cell.scene_state().find(scene.command.object).base_from_object
        inside = np.linalg.inv(before) @ after
        if task == "press":
            np.testing.assert_allclose(inside[:3, 3], [0, 0, -0.01], atol=2e-4)
        elif task == "pull":
            np.testing.assert_allclose(inside[:3, 3], [-0.1, 0, 0], atol=2e-4)
        else:
            np.testing.assert_allclose(np.arctan2(inside[1, 0], inside[0, 0]), 0.1, atol=2e-4)
        assert image.tobytes() != cameras.render(task, 3, cell.qpos, "top").color.tobytes()


def test_beads_lie_still_in_the_cup(cell: SimulatedCell) -> None:
    for seed in range(3):
        cell.reset("pour", seed)
        cell.command_trajectory([1.0], [cell.config.home_joints])
        cell.advance(5.0)
        speeds = [cell.data.joint(f"bead {n}").qvel[:3] for n in range(cell.config.objects.props.beads.number)]
        assert np.abs(speeds).max() < 0.02
        assert not cell.success()


# Success --------------------------------------------------------------------------------------------------------------


def set_joint(cell: SimulatedCell, name: str, value: float) -> None:
    """Move a joint [m or rad] by hand."""
    cell.data.joint(name).qpos[0] = value
    mujoco.mj_kinematics(cell.model, cell.data)


@pytest.mark.parametrize(
    ("task", "joint", "misses", "enough"),
    [
        # 80 % of 12 mm of travel
        ("press", "button", (0.0, -0.006, -0.009), -0.0105),
        ("pull", "drawer", (0.0, 0.03, 0.055), 0.065),
        # radians, to the left; the scene asks for either side
        ("twist", "knob", (0.0, np.radians(20), np.radians(43), np.radians(-50)), np.radians(47)),
    ],
)
def test_joints_have_to_go_far_enough(
    cell: SimulatedCell, task: str, joint: str, misses: tuple[float, ...], enough: float
) -> None:
    for seed in range(4):
        sign = -1.0 if cell.reset(task, seed).command.direction == "right" else 1.0
        for value in misses:
            set_joint(cell, joint, sign * value)
            assert not cell.success(), (seed, value)
        set_joint(cell, joint, sign * enough)
        assert cell.success(), seed


def situation_of(cell: SimulatedCell, **moved: Matrix) -> tuple[Scene, Situation]:
    """The start of a scene, with its `thing` or `target` put elsewhere, without any contact."""
    scene = cell.scene
    assert scene is not None
    start = {item.name: item.base_from_object for item in cell.scene_state().objects}
    names = {"thing": scene.command.object, "target": str(scene.command.target)}
    now = {**start, **{names[key]: pose for key, pose in moved.items()}}
    tcp = np.array([0.4, 0.0, 0.5])
    return scene, Situation(start, now, np.empty((0, 3)), tcp, tcp, lambda name: set())


def judge(cell: SimulatedCell, **moved: Matrix) -> bool:
    scene, situation = situation_of(cell, **moved)
    return judged(scene.command, situation, cell.config).success


def tilted(pose: Matrix, angle_deg: float) -> Matrix:
    lean = pose.copy()
    lean[:3, :3] = Rotation.from_euler("x", angle_deg, degrees=True).as_matrix() @ pose[:3, :3]
    return lean


@pytest.mark.parametrize("seed", range(3))
def test_moved_is_beside_the_target_and_nowhere_else(cell: SimulatedCell, seed: int) -> None:
    command = cell.reset("move", seed).command
    thing, target = (cell.scene_state().find(str(name)).base_from_object for name in (command.object, command.target))
    side = 1.0 if command.direction == "left" else -1.0

    def at(beyond: float, ahead: float = 0.0, up: float = 0.0) -> Matrix:
        pose = thing.copy()
        pose[:3, 3] = (target[0, 3] + ahead, target[1, 3] + side * beyond, thing[2, 3] + up)
        return pose

    assert judge(cell, thing=at(0.09))
    assert judge(cell, thing=at(0.12, 0.025))
    for miss in (at(-0.09), at(0.15), at(0.09, 0.04), at(0.09, up=0.02), tilted(at(0.09), 30), thing):
        assert not judge(cell, thing=miss)
    away = target.copy()
    away[0, 3] += 0.025
    assert not judge(cell, thing=at(0.09), target=away)
    scene, situation = situation_of(cell, thing=at(0.09))
    held = replace(situation, touching=lambda name: {PAD_LINKS[0]})
    assert not judged(scene.command, held, cell.config).success


@pytest.mark.parametrize("seed", range(3))
def test_covered_is_wholly_under_the_roof(cell: SimulatedCell, seed: int) -> None:
    command = cell.reset("cover", seed).command
    thing = cell.scene_state().find(command.object).base_from_object

    def lid_at(x: float, up: float = 0.0) -> Matrix:
        return transform((thing[0, 3] + x, thing[1, 3], up))

    assert judge(cell, target=lid_at(0.0))
    assert judge(cell, target=lid_at(0.012))
    for miss in (lid_at(0.03), lid_at(0.08), lid_at(0.0, 0.045), tilted(lid_at(0.0), 20)):
        assert not judge(cell, target=miss)
    scene, situation = situation_of(cell, target=lid_at(0.0))
    assert not judged(scene.command, replace(situation, touching=lambda name: {PAD_LINKS[1]}), cell.config).success


@pytest.mark.parametrize("seed", range(3))
def test_inserted_is_down_in_the_hole(cell: SimulatedCell, seed: int) -> None:
    props = cell.config.objects.props
    command = cell.reset("insert", seed).command
    socket = cell.scene_state().find(str(command.target)).base_from_object

    def peg_at(up: float, x: float = 0.0) -> Matrix:
        return socket @ transform((x, 0.0, props.peg.height / 2 + up))

    assert judge(cell, thing=peg_at(0.0))
    assert judge(cell, thing=peg_at(0.009, 0.002))
    for miss in (peg_at(0.012), peg_at(props.socket.height), peg_at(0.0, 0.07), tilted(peg_at(0.0), 15)):
        assert not judge(cell, thing=miss)


def test_poured_is_three_quarters_of_the_beads_in_the_bowl_and_out_of_the_cup(cell: SimulatedCell) -> None:
    command = cell.reset("pour", 2).command
    bowl, cup = (cell.scene_state().find(str(name)).base_from_object for name in (command.target, command.object))
    scene, situation = situation_of(cell)
    inside, outside = bowl[:3, 3] + (0.03, 0.02, 0.015), bowl[:3, 3] + (0.12, 0.0, 0.008)

    def count(number: int, rest: np.ndarray = outside, now: Situation = situation) -> bool:
        beads = np.array([inside] * number + [rest] * (8 - number))
        return judged(scene.command, replace(now, beads=beads), cell.config).success

    assert pour.POURED_SHARE * 8 == 6
    assert count(8)
    assert count(6)
    assert not count(5)
    assert not count(5, cup[:3, 3] + (0.0, 0.0, 0.02))
    assert not count(5, bowl[:3, 3] + (0.0, 0.0, 0.10)), "above the bowl is not in it"
    standing_in_it = replace(
        situation, now={**situation.now, command.object: transform(bowl[:3, 3] + (0.03, 0.02, 0.006))}
    )
    assert not count(8, now=standing_in_it), "a full cup set into the bowl is not poured"
