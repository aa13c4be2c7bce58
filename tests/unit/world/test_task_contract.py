"""The contract of a task (docs/use/adding_a_task.md): every task of the registry, and those that MERTON_TASKS names."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from policy_in_cell import observe, perform

from merton.decision.models.base import POLICIES
from merton.simulation.cell import SimulatedCell
from merton.simulation.gazebo_props import prop_sdf
from merton.simulation.layout import PIXELS_PER_M, draw
from merton.simulation.places import stand_of
from merton.simulation.scene import make_scene
from merton.simulation.surfaces import RGB
from merton.world.cell import load_cell
from merton.world.tasks import COLORS, MAT, SHAPES, TASKS, example_of, find, parse

CELL = load_cell()
SCENES = range(20)
PLAYED = range(5)
"""Scenes that the oracle plays."""
SETTLED_M = 0.002

tasks = pytest.mark.parametrize("name", list(TASKS))


def kind_of(name: str | None) -> str:
    return str(name).split()[-1]


@tasks
def test_its_instructions_are_read_back(name: str) -> None:
    for command in (example_of(TASKS[name]), *(make_scene(name, seed).command for seed in SCENES)):
        assert command.verb == name
        assert parse(command.instruction) == command
        assert parse(f" {command.instruction.upper()}. ") == command
        assert find(f"Look at the table. How would you {command.instruction}, with one hand?") == command


@tasks
def test_its_words_have_no_fields_that_a_command_lacks(name: str) -> None:
    task = TASKS[name]
    command = example_of(task)
    assert task.description
    assert not task.description.endswith(".")
    words = task.plan.format(direction=command.direction, target=command.target)
    assert words
    assert "None" not in words
    if task.goal:
        assert "None" not in task.goal.format(object=command.object, target=command.target)
        assert all(task.use)


@tasks
def test_its_scenes_have_its_things_each_with_its_room(name: str) -> None:
    task, directions = TASKS[name], set()
    kinds = {*SHAPES, MAT, *(prop.name for prop in task.props)}
    for seed in SCENES:
        scene = make_scene(name, seed)
        assert scene == make_scene(name, seed)
        things = {thing: np.array(place[:2]) for thing, place in {**scene.placements, **scene.mats}.items()}
        assert next(iter(scene.placements)) == scene.command.object
        assert kind_of(scene.command.object) in task.objects
        assert (scene.command.target in things) == bool(task.targets)
        assert not task.targets or kind_of(scene.command.target) in task.targets
        assert {kind_of(thing) for thing in things} <= kinds
        colors = [thing.split()[0] for thing in things]
        assert len(set(colors)) == len(colors)
        assert set(colors) <= set(COLORS)
        for thing, place in things.items():
            assert stand_of(kind_of(thing), plain=True).allows(place)
            assert (place >= CELL.objects.area.min).all()
            assert (place <= CELL.objects.area.max).all()
        for one, other in combinations(things, 2):
            room_m = sum(stand_of(kind_of(thing), plain=True).room_m for thing in (one, other))
            assert np.hypot(*(things[one] - things[other])) >= room_m - 1e-12
        directions.add(scene.command.direction)
    assert directions == ({"left", "right"} if task.directed else {None})


@tasks
def test_its_scenes_are_drawn_for_an_operator_who_sets_them_up(name: str) -> None:
    scene = make_scene(name, 1)
    picture = draw(scene, CELL)
    for thing in (*scene.placements, *scene.mats):
        painted = (picture == np.round(255 * np.array(RGB[thing.split()[0]]))).all(axis=2)
        assert painted.sum() > (0.02 * PIXELS_PER_M) ** 2, thing


@tasks
def test_its_props_exist_in_both_simulators(name: str, cell: SimulatedCell) -> None:
    cell.reset(name, 0)
    for prop in TASKS[name].props:
        assert cell.model.body(prop.base).geomnum[0] > 0
        assert cell.model.body(prop.name).geomnum[0] > 0
        links = {link.get("name") for link in ElementTree.fromstring(prop_sdf(f"red {prop.name}", CELL)).iter("link")}
        assert links == {prop.base, prop.name}


@tasks
def test_at_the_start_things_stand_where_the_scene_says_and_nothing_is_done(name: str, cell: SimulatedCell) -> None:
    for seed in PLAYED:
        scene = cell.reset(name, seed)
        for thing, (x, y, _) in scene.placements.items():
            place = cell.scene_state().find(thing).base_from_object[:2, 3]
            assert np.hypot(*(place - (x, y))) < SETTLED_M, (seed, thing)
        assert cell.contact is None
        success, progress = cell.judged()
        assert not success, seed
        assert progress < 0.01, seed


@tasks
def test_the_oracle_does_it_through_the_whole_gate(name: str, cell: SimulatedCell) -> None:
    for seed in PLAYED:
        cell.reset(name, seed)
        plans = perform(cell, POLICIES["oracle"].build())
        assert all(motion.verdict.ok for motion in plans), (seed, plans[-1].verdict)
        assert cell.contact is None, (seed, cell.contact)
        assert cell.judged() == (True, 1.0), seed
        assert len(plans) == 1


@tasks
def test_its_motion_is_a_function_of_the_poses(name: str, cell: SimulatedCell) -> None:
    """Two scenes in turn: what the second left behind would show when the first comes again."""
    deltas = []
    for seed in (0, 1, 0):
        command = cell.reset(name, seed).command
        chunk = POLICIES["oracle"].build().act(observe(cell, command.instruction))
        deltas.append(chunk.deltas.tobytes())
    assert deltas[0] == deltas[2] != deltas[1]
