"""Wrappers of Gymnasium environments whose pictures come distorted to the policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from merton.episodes.shown import EpisodePictures
from merton.errors import InputError
from merton.gym.found import find_pictures
from merton.gym.schedule import ByEpisode, Schedule
from merton.gym.shown_in import Pictures, ShownInBatches, shown_in
from merton.perception.distortion.stream import REFERENCE

Info = dict[str, Any]


def refuse_wrappers(env: gymnasium.Env[Any, Any], kind: type[Any], why: str) -> None:
    """Raises InputError if an environment, or a wrapper inside of it, is of a kind that must not be inside."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, kind):
            raise InputError(f"{type(env).__name__} is inside of the wrapper, and {why}")
        env = env.env


def refuse_stacks(env: gymnasium.Env[Any, Any]) -> None:
    """Raises InputError for stacked pictures: three grey ones of one camera have the shape of a coloured one."""
    refuse_wrappers(
        env, gymnasium.wrappers.FrameStackObservation, "stacks pictures of other instants: put it outside of this one"
    )


class Recorder:
    """The mark of a wrapper that records what the policy is shown: nothing may change that outside of it."""


class Distorted(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose pictures are distorted on their way to the policy, and nothing else of it.

    Spaces, shapes and types stay as they are; `render` shows what the environment renders, undistorted. At level 0 the
    observation is the very object that the environment gave. `info["merton"]` has the condition and the number of the
    episode. A fault of time counts observations and begins anew with each reset.

    Args:
        env: with Box, Dict or Tuple observations, nested as deep as it likes. Pictures must be upright here: a wrapper
            that turns them comes before this one, one that resizes or stacks them after it.
        distortion: a type of images or a fault of time, by name or id.
        level: 0 .. 5, 5 the worst.
        schedule: conditions (distortion, level) by episode instead: a sequence that is repeated, or a function of the
            number of the episode.
        keys: the pictures that are distorted, each by the key that leads to it; every picture if left out.
        seed: of noise and faults, >= 0. They depend also on the seed of the last seeded reset and the number of resets
            since, so that the same reset shows the same pictures, in whichever process.

    Raises:
        InputError: no such distortion, level or key, an environment without a picture, or one that stacks or records
            what it shows inside of this wrapper.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        distortion: str = REFERENCE,
        level: float = 0,
        *,
        schedule: ByEpisode | None = None,
        keys: Collection[str] | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(env, VectorEnv):
            raise InputError("Distorted wraps one environment; a vector of them takes merton.gym.DistortedVector")
        RecordConstructorArgs.__init__(
            self, distortion=distortion, level=level, schedule=schedule, keys=keys, seed=seed, _disable_deepcopy=True
        )
        gymnasium.Wrapper.__init__(self, env)
        refuse_wrappers(env, Recorder, "would record other pictures than the policy sees")
        refuse_stacks(env)
        self._places = find_pictures(env.observation_space, keys)
        self._schedule = Schedule(distortion, level, schedule, seed)
        self._pictures, self._step = EpisodePictures(), 0
        self._scene: int | None = None
        self._resets = 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin an episode under the next condition."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._scene, self._resets = seed, 0
        self._pictures, self._step = self._schedule.begin(self._scene, self._resets), 0
        self._resets += 1
        return self._shown(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """As of the environment, with distorted pictures."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._step += 1
        observation, info = self._shown(observation, info)
        return observation, reward, terminated, truncated, info

    def _shown(self, observation: Any, info: Mapping[str, Any]) -> tuple[Any, Info]:
        said = condition(self._pictures, self._schedule.episodes - 1)
        shown = shown_in(observation, self._places, partial(self._pictures.show_all, self._step))
        return shown, {**info, "merton": said}


def condition(pictures: EpisodePictures, episode: int) -> Info:
    """`info["merton"]`: the condition of an episode and its number, from 0."""
    return {"distortion": pictures.distortion, "level": float(pictures.level), "episode": episode}


class DistortedVector(VectorWrapper[Any, Any, Any, Any, Any], RecordConstructorArgs):
    """A vector of environments whose pictures are distorted, as `Distorted` does it for one of them.

    Each environment has its own episodes; they get the conditions of the schedule in the order in which they begin. It
    works in every mode of autoreset: the last observation of an episode, which SAME_STEP puts into
    `info["final_obs"]`, is shown under that episode's condition.

    Args and errors: as of `Distorted`.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        distortion: str = REFERENCE,
        level: float = 0,
        *,
        schedule: ByEpisode | None = None,
        keys: Collection[str] | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InputError("DistortedVector wraps a vector of environments; one of them takes merton.gym.Distorted")
        RecordConstructorArgs.__init__(
            self, distortion=distortion, level=level, schedule=schedule, keys=keys, seed=seed, _disable_deepcopy=True
        )
        VectorWrapper.__init__(self, env)
        self._places = find_pictures(env.single_observation_space, keys)
        self._batches = ShownInBatches(self._places, env.num_envs)
        self._schedule = Schedule(distortion, level, schedule, seed)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        n = env.num_envs
        self._pictures, self._numbers, self._steps = [EpisodePictures()] * n, [0] * n, [0] * n
        self._scenes: list[int | None] = [None] * n
        self._resets, self._ended = [0] * n, np.zeros(n, bool)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin an episode in each environment, or in those of `options["reset_mask"]`."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        observations, infos = self.env.reset(seed=seed, options=options)
        seeds = seeds_of(seed, self.num_envs)
        for i in map(int, np.flatnonzero(mask)):
            self._begin(i, seeds[i])
        self._ended = self._ended & ~mask
        return self._shown(observations, infos, mask)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        """As of the environments, with distorted pictures."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        done, last = np.logical_or(terminated, truncated), infos.get("final_obs")
        for i in range(self.num_envs):
            if self._mode is AutoresetMode.NEXT_STEP and self._ended[i]:
                self._begin(i)
                continue
            self._steps[i] += 1
            if self._mode is AutoresetMode.SAME_STEP and done[i]:
                if last is not None and last[i] is not None:
                    last[i] = shown_in(last[i], self._places, self._shower(i))
                self._begin(i)
        self._ended = done
        observations, infos = self._shown(observations, infos)
        return observations, rewards, terminated, truncated, infos

    def _begin(self, i: int, seed: int | None = None) -> None:
        """Begin an episode of environment i; a reset of its own has no seed."""
        if seed is not None:
            self._scenes[i], self._resets[i] = seed, 0
        # without a seed two environments must not fail at the same steps
        scene = ("environment", i) if self._scenes[i] is None else (self._scenes[i],)
        self._numbers[i] = self._schedule.episodes
        self._pictures[i], self._steps[i] = self._schedule.begin(*scene, self._resets[i]), 0
        self._resets[i] += 1

    def _shower(self, i: int) -> Callable[[Pictures], Pictures]:
        return partial(self._pictures[i].show_all, self._steps[i])

    def _shown(self, observations: Any, infos: Info, new: NDArray[np.bool_] | None = None) -> tuple[Any, Info]:
        shown = self._batches.shown_in(observations, lambda i, given: self._shower(i)(given), new)
        said = {i: condition(self._pictures[i], self._numbers[i]) for i in range(self.num_envs)}
        return shown, with_said(self, infos, said, new)


def with_said(
    env: VectorEnv[Any, Any, Any], infos: Info, said: Mapping[int, Info], new: NDArray[np.bool_] | None
) -> Info:
    """The infos of a vector with `infos["merton"]` of the environments whose observation is new."""
    infos = dict(infos)
    for i in range(env.num_envs):
        if new is None or new[i]:
            infos = env._add_info(infos, {"merton": said[i]}, i)
    return infos


def seeds_of(seed: Any, count: int) -> list[int | None]:
    """The seeds of a vector's environments from that of its reset: None, the first one, or a list."""
    if seed is None or isinstance(seed, int | np.integer):
        return [None if seed is None else int(seed) + i for i in range(count)]
    return list(seed)
