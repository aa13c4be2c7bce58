"""Episodes of lerobot-eval: scenes by their number, successes by the file that it writes at its end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")

from merton.episodes.design import Condition, Design
from merton.episodes.folder import EpisodesFolder
from merton.episodes.names import safe_name
from merton.episodes.run import EpisodesRun
from merton.errors import InputError
from merton.gym.rollouts import Rollouts

DESIGN = Design(name="blur", distortions=("lens_blur",), levels=(5,))
FRAME = np.random.default_rng(0).integers(0, 256, (32, 40, 3), np.uint8)
TASKS = ("Push the T", "Reach the goal")
WON = {TASKS[0]: [True, False], TASKS[1]: [False, True]}


def evaluated(runs: Path, condition: Condition | None = None) -> Rollouts:
    """Two episodes of each task, of three steps, as lerobot-eval runs them."""
    path = runs / "run"
    run = EpisodesRun.open(path) if path.exists() else EpisodesRun.create(runs, DESIGN, name="run")
    rollouts = Rollouts(condition, run, "act")
    for task in TASKS:
        for _ in WON[task]:
            rollouts.over()
            rollouts.begin([task])
            for _ in range(3):
                rollouts.show(0, {"top": FRAME})
                rollouts.step += 1
    return rollouts


def results(folder: Path, successes: dict[str, list[bool]] = WON) -> Path:
    """The file of a harness."""
    file = folder / "eval_info.json"
    content = [
        {"task_group": "g", "task_id": i, "metrics": {"successes": successes[name]}} for i, name in enumerate(TASKS)
    ]
    file.write_text(json.dumps({"per_task": content, "overall": {}}), encoding="utf-8")
    return file


def test_each_run_of_the_harness_gets_the_next_condition_of_its_scenes(tmp_path: Path) -> None:
    for _ in range(2):
        assert evaluated(tmp_path).close(results(tmp_path)) == 4
    folder = EpisodesFolder.read(tmp_path / "run")
    found = {(one.case.task, one.case.seed, one.case.level): one.outcome.success for one in folder.records()}
    names = {task: safe_name(task) for task in TASKS}
    won = {(names[task], scene): WON[task][scene] for task in TASKS for scene in (0, 1)}
    assert found == {(*place, level): success for place, success in won.items() for level in (0, 5)}
    assert {one.steps for one in folder.records()} == {3}
    assert len(folder.pairs.kept) == 4


def test_a_condition_that_is_asked_for_is_that_of_every_episode(tmp_path: Path) -> None:
    evaluated(tmp_path, Condition("white_noise", 2)).close(results(tmp_path))
    records = EpisodesFolder.read(tmp_path / "run").records()
    assert {(one.case.distortion, one.case.level) for one in records} == {("white_noise", 2)}


def stale(folder: Path, begun: float) -> Path:
    file = results(folder)
    os.utime(file, (begun - 60, begun - 60))
    return file


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (lambda folder, begun: folder / "none.json", "none.json"),
        (stale, "older than the episodes"),
        (lambda folder, begun: results(folder, WON | {TASKS[1]: [True]}), "3 episodes, and 4 were begun"),
        (lambda folder, begun: Path(__file__), "no results of lerobot-eval"),
    ],
    ids=["absent", "stale", "fewer", "other"],
)
def test_without_results_nothing_follows_and_the_conditions_are_given_again(
    tmp_path: Path, file: Any, sentence: str
) -> None:
    rollouts = evaluated(tmp_path)
    rollouts._began_s = min(rollouts._began_s, Path(__file__).stat().st_mtime)
    with pytest.raises(InputError, match=sentence):
        rollouts.close(file(tmp_path, rollouts._began_s))
    folder = EpisodesFolder.read(tmp_path / "run")
    assert (list(folder.records()), folder.counts.lost) == ([], 4)
    evaluated(tmp_path).close(results(tmp_path))
    assert {one.case.level for one in EpisodesFolder.read(tmp_path / "run").records()} == {0}


def test_a_batch_cannot_be_recorded_but_shown(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, name="run") as run, pytest.raises(InputError, match="batch_size=1"):
        Rollouts(None, run, "act").begin(["", ""])
    rollouts = Rollouts(Condition("white_noise", 3))
    rollouts.begin(["", ""])
    first, second = (rollouts.show(i, {"top": FRAME})["top"] for i in range(2))
    assert (first != second).any(), "two scenes, two draws"
    again = Rollouts(Condition("white_noise", 3))
    again.begin(["", ""])
    np.testing.assert_array_equal(again.show(1, {"top": FRAME})["top"], second)
