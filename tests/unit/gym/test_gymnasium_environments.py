"""The wrappers around environments that labs have: PushT, ALOHA, MetaWorld and LIBERO, each where it is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("MUJOCO_GL", "egl")
pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")
# isort: split
import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import AddRenderObservation

from merton.episodes.design import Design
from merton.episodes.folder import EpisodesFolder
from merton.episodes.run import EpisodesRun
from merton.episodes.shown import EpisodePictures
from merton.gym import Distorted, Recorded
from merton.gym.found import find_pictures

STEPS = 3


def pusht() -> Any:
    pytest.importorskip("gym_pusht", reason="gym-pusht is not installed")
    return gymnasium.make("gym_pusht/PushT-v0", obs_type="pixels_agent_pos")


def aloha() -> Any:
    pytest.importorskip("gym_aloha", reason="gym-aloha is not installed")
    return gymnasium.make("gym_aloha/AlohaTransferCube-v0", obs_type="pixels_agent_pos")


class Upright(gymnasium.Wrapper):
    """MetaWorld's corner camera, which renders upside down, turned inside of Merton's wrapper; scenes by their number.

    Its own wrapper draws the scene before it is seeded, so that a seed does not repeat a scene.
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        import metaworld

        self.env.unwrapped.set_task(metaworld.MT1("reach-v3", seed=0).train_tasks[seed or 0])
        self.env.get_wrapper_attr("toggle_sample_tasks_on_reset")(False)
        observation, info = self.env.reset(seed=seed, options=options)
        return self._turned(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = self.env.step(action)
        return self._turned(observation), *rest  # type: ignore[return-value]

    def _turned(self, observation: Any) -> Any:
        return observation | {"pixels": observation["pixels"][::-1, ::-1].copy()}


def metaworld() -> Any:
    pytest.importorskip("metaworld", reason="MetaWorld is not installed")
    size = {"render_mode": "rgb_array", "camera_name": "corner2", "width": 96, "height": 96}
    env = gymnasium.make("Meta-World/MT1", env_name="reach-v3", disable_env_checker=True, **size)
    return Upright(AddRenderObservation(env, render_only=False, render_key="pixels", obs_key="state"))


class Libero(gymnasium.Env):
    """LIBERO's environment with the methods of Gymnasium; its pictures are turned upright."""

    CAMERAS = {"agentview_image": "agentview", "robot0_eye_in_hand_image": "wrist"}  # noqa: RUF012

    def __init__(self) -> None:
        from libero.libero import benchmark, get_libero_path
        from libero.libero.envs import OffScreenRenderEnv

        suite = benchmark.get_benchmark("libero_spatial")(task_order_index=0)
        task = suite.get_task(0)
        bddl = Path(get_libero_path("bddl_files")) / task.problem_folder / task.bddl_file
        self.env = OffScreenRenderEnv(bddl_file_name=str(bddl), camera_heights=64, camera_widths=64)
        self.states = suite.get_task_init_states(0)
        picture = spaces.Box(0, 255, (64, 64, 3), np.uint8)
        self.observation_space = spaces.Dict({"images": spaces.Dict({"agentview": picture, "wrist": picture})})
        self.action_space = spaces.Box(-1, 1, (7,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.env.seed(0)  # the furniture's places, which no state of LIBERO holds
        self.env.reset()
        return self._turned(self.env.set_init_state(self.states[seed or 0])), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, done, _ = self.env.step(action)
        return self._turned(observation), reward, done, False, {"is_success": bool(self.env.check_success())}

    def _turned(self, observation: Any) -> Any:
        return {"images": {name: observation[key][::-1, ::-1].copy() for key, name in self.CAMERAS.items()}}


def libero() -> Any:
    pytest.importorskip("libero", reason="LIBERO is not installed")
    return Libero()


ENVIRONMENTS = {"pusht": pusht, "aloha": aloha, "metaworld": metaworld, "libero": libero}


def episode(env: Any, seed: int, actions: list[Any]) -> list[Any]:
    """The observations of an episode."""
    return [env.reset(seed=seed)[0], *(env.step(action)[0] for action in actions)]


@pytest.mark.usefixtures("renders")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_pictures_alone_are_distorted_and_the_record_proves_the_pairs(make: Callable[[], Any], tmp_path: Path) -> None:
    env = make()
    places = find_pictures(env.observation_space)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(STEPS)]
    clean = episode(env, 1, actions)
    distorted = Distorted(env, "max_darken", 5)
    seen = episode(distorted, 1, actions)
    for step, (was, now) in enumerate(zip(clean, seen, strict=True)):
        assert distorted.observation_space.contains(now) == env.observation_space.contains(was)
        for place in places:
            wanted = EpisodePictures("max_darken", 5).show(step, place.camera, place.of(was))
            np.testing.assert_array_equal(place.of(now), wanted)
    assert all(np.array_equal(place.of(one), place.of(other)) for place in places
               for one, other in zip(episode(Distorted(env), 1, actions), clean, strict=True))  # fmt: skip

    design = Design(name="dark", distortions=("max_darken",), levels=(5,))
    with EpisodesRun.create(tmp_path, design, name="run") as run:
        recorded = Recorded(env, run, agent="random", task="any")
        for _ in range(2):
            episode(recorded, 1, actions)
        recorded.close()
    folder = EpisodesFolder.read(tmp_path / "run")
    assert {one.case.level: (one.outcome.success, one.steps) for one in folder.records()} == dict.fromkeys(
        (0, 5), (False, STEPS + 1)
    )
    assert (len(folder.pairs.kept), folder.pairs.broken) == (1, ())
