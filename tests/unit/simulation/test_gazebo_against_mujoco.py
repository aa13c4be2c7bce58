"""The page of `tools/studies/gazebo_against_mujoco.py`: the embedded cell against itself, and with a difference."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from merton.results.records import Outcome

EXPERIMENT = """
name: both
seed: 5
agents:
  - {id: servo, vla: servo}
  - {id: oracle, vla: oracle}
tasks: [reach, press]
distortions: [gaussian_blur]
levels: [0, 3]
scenes: 2
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).parents[3] / "tools" / "studies" / "gazebo_against_mujoco.py"
    specification = importlib.util.spec_from_file_location("gazebo_against_mujoco", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(renders: None, tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    file = folder / "both.yaml"
    file.write_text(EXPERIMENT)
    return tool.embedded_run(file, folder)


@pytest.mark.usefixtures("renders")
def test_a_cell_against_itself_differs_in_nothing(tool: ModuleType, run: Path, tmp_path: Path) -> None:
    for folder in ("images", "lab"):
        (tmp_path / folder).mkdir()
    (run / "mujoco").mkdir()
    (run / "mujoco" / "embedded").symlink_to(run, target_is_directory=True)
    tool.main(run, tmp_path)
    page = (tmp_path / "lab" / "gazebo_against_mujoco.md").read_text()
    assert "4 scenes, 2 of each task" in page
    assert "| `reach` | 2 of 2 | 2 of 2 | 2 of 2 | 2 of 2 | 0.0 | 0.0 | 0.0 |" in page
    assert "| `press` | 2 of 2 | 2 of 2 | refused | refused | 0.0 | 0.0 | 0.0 |" in page
    assert "none in any of 2 scenes: fewer than 66 % differ" in page, "servo, which knows reach alone"
    assert "resolved" not in page.split("## Tasks")[0]
    assert (tmp_path / "images" / tool.PICTURE).read_text().count("<svg") == 1


def test_differences_are_by_scene_and_say_whether_they_are_resolved(tool: ModuleType, run: Path) -> None:
    trials = tool.Run.read(run).trials
    failed = {
        name: replace(trial, record=replace(trial.record, outcome=Outcome.FAILURE)) for name, trial in trials.items()
    }
    oracle = [name for name in trials if name.startswith("oracle.")]
    first = [name for name in oracle if ".reach.0." in name]
    assert len(first) == 2, "two trials of one scene"
    one_scene = [((failed if name in first else trials)[name], trials[name]) for name in oracle]
    text = tool.difference(one_scene, tool.succeeded)
    assert text.startswith("-0.25 [")
    assert text.endswith("not resolved"), "one of four scenes"
    every_scene = [(failed[name], trials[name]) for name in oracle]
    assert tool.difference(every_scene, tool.succeeded).startswith("-1 ")
    assert "not resolved" not in tool.difference(every_scene, tool.succeeded)


def test_distances_are_of_the_thing_that_the_task_moves(tool: ModuleType, run: Path) -> None:
    trial = tool.Run.read(run).trials["oracle.press.0.reference.0"]
    assert trial.moved.endswith("button")
    aside = {**trial.things_m, trial.moved: trial.things_m[trial.moved] + np.array([0.003, 0.004, 0.0])}
    assert tool.apart_mm(trial, replace(trial, things_m=aside)) == pytest.approx((0.0, 5.0))
    assert np.isnan(tool.apart_mm(trial, replace(trial, things_m={}))[1]), "no state was seen"
