"""The texts and drawings for the lab's operator, and the way home."""

from __future__ import annotations

import numpy as np
import pytest

from merton.execution.gate.planner import plan
from merton.execution.gate.safety import limits_of_mode
from merton.execution.robots.homing import STEP_S, deltas_home, is_home
from merton.simulation.layout import PIXELS_PER_M, draw, places
from merton.simulation.scene import make_scene
from merton.simulation.surfaces import RGB
from merton.world.cell import load_cell
from merton.world.tasks import TASKS

CELL = load_cell()
HOME = CELL.home_joints


@pytest.mark.parametrize("seed", range(20))
def test_the_way_home_passes_the_gate_and_ends_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    deltas = rng.uniform(-0.04, 0.04, (8, 7)) * [1, 1, 1, 2, 2, 2, 0]
    away = plan(HOME, deltas, 0.3, "base_link", CELL).joints_rad[-1]
    home = plan(away, deltas_home(away, CELL), STEP_S, "base_link", CELL, limits_of_mode("reduced"), 0.0)
    assert home.verdict.ok
    assert home.slowdown < 2
    assert np.abs(home.joints_rad[-1] - HOME).max() < 1e-6
    heights = home.base_from_tcp[:, 2, 3]
    assert heights.min() >= min(heights[0], heights[-1]) - 1e-9, "never lower than either end"
    if heights[0] < heights[-1] - 0.01:
        assert np.allclose(np.diff(home.base_from_tcp[:2, :2, 3], axis=0), 0, atol=1e-9), "straight up first"
    assert (home.gripper_open[1:] == 1).all()


def test_at_home_the_way_home_is_empty() -> None:
    assert deltas_home(HOME, CELL).shape == (0, 7)
    assert is_home(HOME + 0.02, CELL)
    assert not is_home(HOME + 0.05 * np.eye(6)[5], CELL)


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_thing_is_listed_and_drawn_at_its_place(task: str) -> None:
    scene, workspace = make_scene(task, 3), CELL.workspace
    picture, text = draw(scene, CELL), places(scene)
    size = np.subtract(workspace.max, workspace.min)[:2] * PIXELS_PER_M
    assert picture.shape == (round(size[0]), round(size[1]), 3)
    spots = {name: (x, y) for name, (x, y, _) in scene.placements.items()} | dict(scene.mats)
    assert [line.partition(":")[0] for line in text.splitlines()] == list(spots)
    for name, (x_m, y_m) in spots.items():
        row, column = ((workspace.max[0] - x_m) * PIXELS_PER_M, (workspace.max[1] - y_m) * PIXELS_PER_M)
        around = picture[round(row) - 12 : round(row) + 12, round(column) - 12 : round(column) + 12].reshape(-1, 3)
        wanted = np.round(255 * np.array(RGB[name.split()[0]]))
        assert (np.abs(around - wanted).max(axis=1) < 3).mean() > 0.5, f"{name} is not where it is to stand"
        side = "left" if y_m >= 0 else "right"
        assert f"{name}: {100 * x_m:.1f} cm ahead, {100 * abs(y_m):.1f} cm to the {side}" in text
