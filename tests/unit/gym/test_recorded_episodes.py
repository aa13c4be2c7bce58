"""The recorders of Gymnasium environments: conditions by the design, scenes by seeds, success by info."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")
# isort: split
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gym_cells import ACTION, ACTIONS, LENGTH, Cell, frames, same
from merton.episodes.design import Design
from merton.episodes.folder import EpisodesFolder
from merton.episodes.run import EpisodesRun
from merton.errors import InputError
from merton.gym import Distorted, Recorded, RecordedVector
from merton.gym.recorded import success_of

DESIGN = Design(name="blur", distortions=("lens_blur", "frozen"), levels=(5,))
CONDITIONS = {"reference", "lens_blur", "frozen"}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    with EpisodesRun.create(tmp_path, DESIGN, name="run") as opened:
        yield opened


def outcomes(run: EpisodesRun) -> dict[tuple[int, str], tuple[bool | None, int]]:
    """(scene, distortion) to (success, steps) of every trial in the record."""
    run.close()
    found = EpisodesFolder.read(run.path).records()
    return {(one.case.seed, one.case.distortion): (one.outcome.success, one.steps) for one in found}


@pytest.mark.parametrize("key", ["is_success", "success"])
def test_every_scene_gets_every_condition_and_success_is_what_any_step_says(run: EpisodesRun, key: str) -> None:
    env = Recorded(Cell(key=key), run, agent="policy", task="reach")
    for scene in (4, 7):
        for number in range(3):
            _, info = env.reset(seed=scene)
            assert (info["merton"]["distortion"] == "reference") == (number == 0)
            for _ in range(LENGTH):
                info = env.step(ACTION)[4]
            assert info["merton"] | {"distortion": ""} == {
                "distortion": "", "level": 5.0 * (number > 0), "part": "all", "scene": scene, "recorded": True,
            }  # fmt: skip
    found = outcomes(run)
    assert {name for _, name in found} == CONDITIONS
    assert found == {(scene, name): (scene == 4, LENGTH + 1) for scene in (4, 7) for name in CONDITIONS}


def test_a_pair_begins_with_equal_frames_and_only_the_shown_ones_differ(run: EpisodesRun) -> None:
    env, clean = Recorded(Cell(key="success"), run, agent="policy", task="reach"), frames(Cell(), 4)
    assert all(map(same, frames(env, 4), clean))
    distorted = [frames(env, 4), frames(env, 4)]
    assert not any(all(map(same, seen, clean)) for seen in distorted)
    run.close()
    pairs = EpisodesFolder.read(run.path).pairs
    assert (len(pairs.kept), pairs.broken) == (2, ())


def test_an_environment_that_no_seed_repeats_breaks_its_pairs(run: EpisodesRun) -> None:
    env = Recorded(Cell(key="success"), run, agent="policy", task="reach")
    frames(env, 4)
    env.env.reset = lambda seed, options: Cell.reset(env.env, seed=99)  # type: ignore[method-assign, attr-defined]
    frames(env, 4)
    run.close()
    pairs = EpisodesFolder.read(run.path).pairs
    assert (len(pairs.kept), len(pairs.broken)) == (0, 1)


def test_resets_without_a_seed_go_from_scene_to_scene(run: EpisodesRun) -> None:
    env = Recorded(Cell(key="success"), run, agent="policy", task="reach")
    scenes = [env.reset()[1]["merton"]["scene"] for _ in range(7)]
    assert scenes == [0, 0, 0, 1, 1, 1, 2]
    assert env.unwrapped.seed == 2  # type: ignore[attr-defined]


def test_beyond_the_design_an_episode_passes_unrecorded(run: EpisodesRun) -> None:
    env = Recorded(Cell(key="success"), run, agent="policy", task="reach")
    for _ in range(3):
        frames(env, 4)
    observation, info = env.reset(seed=4)
    assert same(observation, frames(Cell(), 4)[0])
    assert not info["merton"]["recorded"]
    assert len(outcomes(run)) == 3


def test_without_a_word_of_success_it_counts_as_none_and_the_record_says_why(run: EpisodesRun) -> None:
    frames(Recorded(Cell(), run, agent="policy", task="reach"), 4)
    run.close()
    (trial,) = EpisodesFolder.read(run.path).records()
    assert trial.outcome.success is False
    assert "'is_success'" in trial.error_message


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, True), (np.bool_(False), False), (1, True), (0.0, False), (np.array([1.0]), True), ([False], False),
        (None, None), (float("nan"), None), (np.array([np.nan]), None),
    ],
)  # fmt: skip
def test_success_is_true_false_or_not_said(value: Any, said: bool | None) -> None:
    assert success_of({"is_success": value}) is said


@pytest.mark.parametrize("value", ["yes", 0.7, {"reach": True}, np.array([]), 2])
def test_another_success_is_no_guess(value: Any) -> None:
    with pytest.raises(InputError, match=r"info\['is_success'\] must be true or false, 1 or 0, got"):
        success_of({"is_success": value})


def test_a_camera_of_the_design_that_the_environment_lacks_is_refused(tmp_path: Path) -> None:
    """Its episodes would be recorded as distorted, and nothing of them were."""
    design = DESIGN.model_copy(update={"distort": Design(name="x", distort={"cameras": ("side",)}).distort})
    with EpisodesRun.create(tmp_path, design, name="run") as run:
        env = Recorded(Cell(key="success"), run, agent="policy", task="reach")
        frames(env, 4)
        with pytest.raises(InputError, match="distorts the camera 'side', and the program shows: "):
            env.reset(seed=4)


def test_a_recorder_and_a_distortion_are_not_one_in_the_other(run: EpisodesRun) -> None:
    for make in (
        lambda: Distorted(Recorded(Cell(), run, agent="policy", task="reach"), "lens_blur", 3),
        lambda: Recorded(Distorted(Cell(), "lens_blur", 3), run, agent="policy", task="reach"),
    ):
        with pytest.raises(InputError, match="is inside of the wrapper, and"):
            make()


def test_a_harness_with_a_step_limit_of_its_own_ends_the_episode_by_the_next_reset(run: EpisodesRun) -> None:
    env = Recorded(Cell(key="success"), run, agent="policy", task="reach")
    for scene in (4, 7):
        frames(env, scene, steps=3)
    env.close()
    assert outcomes(run) == {(4, "reference"): (True, 4), (7, "reference"): (False, 4)}


def test_an_environment_that_fails_gives_its_condition_again(run: EpisodesRun) -> None:
    cell = Cell(key="success", fails_at=1)
    env = Recorded(cell, run, agent="policy", task="reach")
    with pytest.raises(RuntimeError, match="renderer"):
        frames(env, 4)
    cell.fails_at = -1
    frames(env, 4)
    assert run.counts.lost == 1
    assert outcomes(run) == {(4, "reference"): (True, LENGTH + 1)}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_is_recorded_from_its_resets_in_every_mode_of_autoreset(run: EpisodesRun, mode: Any) -> None:
    vector = SyncVectorEnv([lambda: Cell(key="is_success")] * 2, autoreset_mode=mode)
    env = RecordedVector(vector, run, agent="policy", task="reach")
    steps = LENGTH if mode is AutoresetMode.DISABLED else LENGTH + 2
    for _ in range(3):
        env.reset(seed=[4, 7])
        for _ in range(steps):
            infos = env.step(ACTIONS)[4]
        assert list(infos["merton"]["recorded"]) == [mode is AutoresetMode.DISABLED] * 2
    assert outcomes(run) == {(scene, name): (scene == 4, LENGTH + 1) for scene in (4, 7) for name in CONDITIONS}


def test_a_vector_shows_each_environment_its_own_condition(run: EpisodesRun) -> None:
    env = RecordedVector(SyncVectorEnv([Cell] * 2, autoreset_mode=AutoresetMode.DISABLED), run, agent="p", task="reach")
    env.reset(seed=[4, 7])
    mask = np.array([True, False])
    seen, infos = env.reset(seed=[4, None], options={"reset_mask": mask})
    changed = [
        not np.array_equal(seen["pixels"]["top"][i], frames(Cell(), (4, 7)[i])[0]["pixels"]["top"]) for i in (0, 1)
    ]
    assert changed == [infos["merton"]["distortion"][0] == "lens_blur", False]
    env.step(ACTIONS)
    env.close()


def test_unseeded_environments_of_a_vector_take_scenes_in_turn(run: EpisodesRun) -> None:
    env = RecordedVector(SyncVectorEnv([Cell] * 2), run, agent="policy", task="reach")
    assert [list(env.reset()[1]["merton"]["scene"]) for _ in range(3)] == [[0, 0], [0, 1], [1, 1]]


def test_the_wrong_recorder_is_said(run: EpisodesRun) -> None:
    with pytest.raises(InputError, match="RecordedVector"):
        Recorded(SyncVectorEnv([Cell]), run, agent="policy", task="reach")
    with pytest.raises(InputError, match=r"merton\.gym\.Recorded"):
        RecordedVector(Cell(), run, agent="policy", task="reach")
