"""Wrappers of Gymnasium environments that show the conditions of a design and record how the episodes end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from merton.episodes.episode import Episode
from merton.episodes.run import EpisodesRun
from merton.errors import InputError, describe_error
from merton.gym.distorted import Distorted, Info, Recorder, refuse_stacks, refuse_wrappers, seeds_of, with_said
from merton.gym.found import find_pictures
from merton.gym.shown_in import Pictures, ShownInBatches, shown_in
from merton.perception.distortion.stream import REFERENCE
from merton.results.text import one_line

SUCCESS = ("is_success", "success")
"""Keys of `info` under which environments say that the task is done, in the order in which they are looked for."""
UNSAID = f"the environment's info says neither {SUCCESS[0]!r} nor {SUCCESS[1]!r}"
CUT = "the next reset came before the environment said that it was over"


class Slot:
    """The episodes of one environment, one after the other.

    Args:
        run: the folder that they are written to.
        agent, task: as `EpisodesRun.begin`.
        instruction: the task in words.
    """

    def __init__(self, run: EpisodesRun, agent: str, task: str, instruction: str) -> None:
        self.run, self.agent, self.task, self.instruction = run, agent, task, instruction
        self.episode: Episode | None = None
        self.said: Info = {}
        self._step = 0
        self._success: bool | None = None

    def begin(self, seed: int | None) -> int:
        """Begin an episode and give the scene, by which the environment is seeded.

        Args:
            seed: of the reset, which is the scene's number; None takes the first scene with a condition left.
        """
        self.finish(CUT)
        scene = self.run.scene_to_do(self.agent, self.task) if seed is None else int(seed)
        self.episode = self.run.begin(self.agent, self.task, scene, instruction=self.instruction)
        condition = self.episode.condition
        self.said = {
            "distortion": condition.distortion,
            "level": float(condition.level),
            "part": condition.part,
            "scene": scene,
            "recorded": self.episode.recorded,
        }
        self._step, self._success = 0, None
        return scene

    def decided(self, action: Any) -> None:
        """Keep an action, if it is numbers of a Box."""
        if self.episode is not None and isinstance(action, np.ndarray) and action.dtype.kind == "f":
            self.episode.decided(self._step, action.ravel())

    def stepped(self, said: bool | None) -> None:
        """Count an observation, and keep what is said of success (`success_of`): one step that says so is enough."""
        self._step += 1
        if said is not None:
            self._success = bool(self._success) or said

    def show(self, pictures: Pictures) -> Pictures:
        """The pictures as the policy gets them; between recorded episodes those of the environment."""
        if self.episode is None:
            return pictures
        if self._step == 0 and (absent := self.episode.absent(pictures)):
            raise InputError(
                f"the design distorts the camera {absent[0]!r}, and the program shows: {', '.join(pictures)}"
            )
        return self.episode.show(self._step, pictures)

    def finish(self, why: str = "") -> None:
        """End the episode, if there is one."""
        episode, self.episode = self.episode, None
        if episode is not None:
            episode.end(self._success, UNSAID if self._success is None else why)

    def leave(self) -> None:
        """End the episode; what follows until the next `begin` passes undistorted and unrecorded."""
        self.finish()
        self.said = {**self.said, "distortion": REFERENCE, "level": 0.0, "recorded": False}

    def lose(self, error: Exception) -> None:
        """Give the episode up, because the environment failed: its condition is given again."""
        episode, self.episode = self.episode, None
        if episode is not None:
            episode.lost(f"the environment failed: {describe_error(error)}")


def success_of(info: Mapping[str, Any], i: int | None = None) -> bool | None:
    """What an info says of success, a vector's of its environment `i`; None if nothing.

    At the end of an episode the info of its last step may stand in "final_info".

    Raises:
        InputError: it says something else than true or false.
    """
    if isinstance(final := info.get("final_info"), Mapping) and (said := success_of(final, i)) is not None:
        return said
    for key in SUCCESS:
        if key in info and (i is None or info.get(f"_{key}", np.ones(i + 1, bool))[i]):
            return _told(key, info[key] if i is None else info[key][i])
    return None


def _told(key: str, value: Any) -> bool | None:
    """A success as true or false; None, or a number that is none, says nothing."""
    found = np.asarray(value)
    if value is None or (found.dtype.kind == "f" and np.isnan(found).any()):
        return None
    if not found.size or found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise InputError(f"info[{key!r}] must be true or false, 1 or 0, got {one_line(repr(value), 60)}")
    return bool(found.all())


class Recorded(Recorder, gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes get the conditions of a run's design and are entered into its record.

    The seed of a reset is the number of the scene: the run gives each scene the undistorted condition first, then the
    others of the design. A reset without a seed is seeded by the wrapper, which takes the first scene that has a
    condition left. `info["merton"]` has the condition, the scene and whether the episode is recorded. An episode is a
    success if any of its steps says so in `info["is_success"]` or `info["success"]`; one that says neither counts as
    an episode without success, and the record says why. If the environment raises an error, the condition is given
    again.

    Args:
        env: as of `Distorted`, and not inside or around one.
        run: open; closed by the caller, who may give it to several wrappers of one process.
        agent: id of the policy that acts.
        task: name of the environment's task.
        keys: the pictures that are shown and recorded; every picture if left out.
        instruction: the task in words, if the policy gets any.

    Raises:
        InputError: no picture, no such key, or a wrapper inside that stacks pictures or distorts them.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        run: EpisodesRun,
        *,
        agent: str,
        task: str,
        keys: Collection[str] | None = None,
        instruction: str = "",
    ) -> None:
        if isinstance(env, VectorEnv):
            raise InputError("Recorded wraps one environment; a vector of them takes merton.gym.RecordedVector")
        super().__init__(env)
        refuse_wrappers(env, Distorted, "has conditions of its own, which the record would not have")
        refuse_stacks(env)
        self._places = find_pictures(env.observation_space, keys)
        self._slot = Slot(run, agent, task, instruction)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin an episode in the scene of this seed."""
        scene = self._slot.begin(seed)
        try:
            observation, info = self.env.reset(seed=scene, options=options)
        except Exception as error:
            self._slot.lose(error)
            raise
        return shown_in(observation, self._places, self._slot.show), {**info, "merton": self._slot.said}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """As of the environment, with pictures of the condition."""
        self._slot.decided(action)
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except Exception as error:
            self._slot.lose(error)
            raise
        self._slot.stepped(success_of(info))
        observation = shown_in(observation, self._places, self._slot.show)
        if terminated or truncated:
            self._slot.finish()
        return observation, reward, terminated, truncated, {**info, "merton": self._slot.said}

    def close(self) -> None:
        """End an episode that is under way, and close the environment; the run stays open."""
        self._slot.finish("the environment was closed")
        super().close()


class RecordedVector(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector of environments with the conditions of a run's design, as `Recorded` has one.

    Only episodes that begin with `reset` are recorded, since an episode that an environment begins by itself has no
    seed and so no scene: its pictures pass undistorted, and `info["merton"]["recorded"]` says so.

    Args and errors: as of `Recorded`.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        run: EpisodesRun,
        *,
        agent: str,
        task: str,
        keys: Collection[str] | None = None,
        instruction: str = "",
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InputError("RecordedVector wraps a vector of environments; one of them takes merton.gym.Recorded")
        super().__init__(env)
        self._places = find_pictures(env.single_observation_space, keys)
        self._batches = ShownInBatches(self._places, env.num_envs)
        self._slots = [Slot(run, agent, task, instruction) for _ in range(env.num_envs)]

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin an episode in each environment, or in those of `options["reset_mask"]`."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        seeds = seeds_of(seed, self.num_envs)
        scenes: Any = [slot.begin(seeds[i]) if mask[i] else None for i, slot in enumerate(self._slots)]
        observations, infos = self._asked(lambda: self.env.reset(seed=scenes, options=options))
        return self._shown(observations, infos, mask)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        """As of the environments, with pictures of their conditions."""
        for slot, action in zip(self._slots, actions, strict=True):
            slot.decided(action)
        observations, rewards, terminated, truncated, infos = self._asked(lambda: self.env.step(actions))
        begins_at_once = self.env.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP
        done = np.logical_or(terminated, truncated)
        for i, slot in enumerate(self._slots):
            slot.stepped(success_of(infos, i))
            if done[i] and begins_at_once:
                last = infos.get("final_obs")
                if last is not None and last[i] is not None:
                    last[i] = shown_in(last[i], self._places, slot.show)
                slot.leave()
        observations, infos = self._shown(observations, infos)
        for i in map(int, np.flatnonzero(done)):
            self._slots[i].leave()
        return observations, rewards, terminated, truncated, infos

    def close(self, **kwargs: Any) -> None:
        """End the episodes that are under way, and close the environments; the run stays open."""
        for slot in self._slots:
            slot.finish("the environments were closed")
        super().close(**kwargs)

    def _asked(self, call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            for slot in self._slots:
                slot.lose(error)
            raise

    def _shown(self, observations: Any, infos: Info, new: NDArray[np.bool_] | None = None) -> tuple[Any, Info]:
        shown = self._batches.shown_in(observations, lambda i, given: self._slots[i].show(given), new)
        return shown, with_said(self, infos, {i: slot.said for i, slot in enumerate(self._slots)}, new)
