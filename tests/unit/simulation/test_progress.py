"""Laws of progress: it rises with the way that is gone, is 0 at the start, and 1 exactly for a success."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.simulation.cell import SimulatedCell
from merton.simulation.success import UNMET_SHARE, Judged, judged
from merton.world.geometry import Matrix, transform
from merton.world.tasks import DIRECTIONS, PAD_LINKS, TASKS, Command, Situation

Way = Callable[[float], Judged]
"""The judgement after a way [m, or rad for a twist] of the thing that the task moves."""


@pytest.fixture(scope="module")
def cell() -> SimulatedCell:
    return SimulatedCell()


def at_start(cell: SimulatedCell, task: str) -> tuple[Command, Situation]:
    command = cell.reset(task, 1).command
    start = {item.name: item.base_from_object for item in cell.scene_state().objects}
    held = set(PAD_LINKS) if task == "pick" else set()
    tcp = cell.base_from_tcp[:3, 3]
    return command, Situation(start, start, np.empty((0, 3)), tcp, tcp, lambda name: held)


def shifted(pose: Matrix, offset_m: np.ndarray) -> Matrix:
    result = pose.copy()
    result[:3, 3] += offset_m
    return result


def goal_of(command: Command, situation: Situation, cell: SimulatedCell) -> tuple[str, np.ndarray]:
    """The thing that a task moves straight to its goal, and the way (3,) to the middle of that goal [m]."""
    side = np.array([*DIRECTIONS.get(str(command.direction), (0.0, 0.0)), 0.0])
    thing = situation.start[command.object]
    target = situation.start.get(str(command.target), thing)
    between = target[:3, 3] - thing[:3, 3]
    flat = between * (1, 1, 0)
    return {
        "push": (command.object, 0.12 * side),
        "pick": (command.object, np.array([0, 0, 0.16])),
        "place": (command.object, flat),
        "press": (command.object, np.array([0, 0, -0.012])),
        "pull": (command.object, -0.12 * thing[:3, 0]),
        "move": (command.object, flat + 0.09 * side),
        "cover": (str(command.target), -flat),
        "insert": (command.object, flat),
    }[command.verb]


def way_of(cell: SimulatedCell, task: str, met: bool = True) -> tuple[Way, float]:
    """The judgements along the way of a task, and the length of the way to the middle of its goal."""
    command, situation = at_start(cell, task)
    if not met:  # a condition that is no length: held, or released
        situation = replace(situation, touching=lambda name: {PAD_LINKS[0]})
    if task == "reach":
        offset = situation.start[command.object][:3, 3] + (0, 0, 0.10) - situation.start_tcp
    elif task == "twist":
        turn = 1.0 if command.direction == "left" else -1.0
        pose = situation.start[command.object]

        def turned(angle: float) -> Judged:
            now = pose @ transform((0, 0, 0), Rotation.from_euler("z", turn * angle))
            return judged(command, replace(situation, now={**situation.now, command.object: now}), cell.config)

        return turned, 1.2
    else:
        name, offset = goal_of(command, situation, cell)
    length = float(np.linalg.norm(offset))

    def gone(way: float) -> Judged:
        step = offset * way / length
        if task == "reach":
            return judged(command, replace(situation, tcp=situation.start_tcp + step), cell.config)
        now = {**situation.now, name: shifted(situation.start[name], step)}
        return judged(command, replace(situation, now=now), cell.config)

    return gone, length


STRAIGHT = sorted(set(TASKS) - {"pour"})


@pytest.mark.parametrize("task", STRAIGHT)
def test_progress_rises_from_0_to_1_and_is_1_exactly_for_a_success(cell: SimulatedCell, task: str) -> None:
    way, length = way_of(cell, task)
    found = [way(share * length) for share in np.linspace(0, 1, 101)]
    progress = [one.progress for one in found]
    assert progress[0] == 0
    assert progress == sorted(progress)
    assert found[-1].success
    assert all(0 <= one.progress <= 1 and one.success == (one.progress == 1.0) for one in found)


@pytest.mark.parametrize("task", STRAIGHT)
def test_a_failure_by_a_millimetre_is_nearly_a_success_and_none(cell: SimulatedCell, task: str) -> None:
    way, length = way_of(cell, task)
    low, high = 0.0, length
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if way(middle).success else (middle, high)
    assert way(high) == (True, 1.0)
    assert not way(low).success, "one rounding before the goal"
    assert way(low).progress < 1.0
    missed = way(high - 0.001)
    assert not missed.success
    assert 1 - 0.0015 / (high - 0.001) <= missed.progress < 1


@pytest.mark.parametrize("task", ["pick", "place", "move", "cover", "insert"])
def test_an_unmet_condition_costs_a_tenth(cell: SimulatedCell, task: str) -> None:
    way, length = way_of(cell, task)
    unmet, _ = way_of(cell, task, met=False)
    assert unmet(length) == (False, UNMET_SHARE)
    assert unmet(length / 3).progress == pytest.approx(UNMET_SHARE * way(length / 3).progress)
    assert unmet(0.0).progress == 0.0


@pytest.mark.parametrize("task", ["push", "reach", "pull", "twist", "insert"])
def test_the_wrong_way_is_no_progress(cell: SimulatedCell, task: str) -> None:
    way, length = way_of(cell, task)
    assert way(-length / 2) == (False, 0.0)


def test_progress_of_pouring_counts_beads(cell: SimulatedCell) -> None:
    command, situation = at_start(cell, "pour")
    bowl = situation.start[str(command.target)][:3, 3]
    inside = bowl + np.array([0.03, 0.02, 0.015])
    outside = bowl + np.array([0.33, 0.02, 0.015])
    found = [
        judged(command, replace(situation, beads=np.array([inside] * n + [outside] * (8 - n))), cell.config)
        for n in range(9)
    ]
    assert [one.progress for one in found] == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1, 1])
    assert [one.success for one in found] == [False] * 6 + [True] * 3


@pytest.mark.parametrize("task", sorted(TASKS))
def test_doing_nothing_is_next_to_no_progress(cell: SimulatedCell, task: str) -> None:
    for seed in range(2):
        cell.reset(task, seed)
        cell.command_trajectory([1.0], [cell.config.home_joints])
        cell.advance(2.0)
        success, progress = cell.judged()
        assert not success
        assert progress < 0.01
