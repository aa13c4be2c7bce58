"""A world of Gymnasium environments: a subclass names its tasks and columns and makes the environment of a task.

`docs/use/tutorials/your_world.md` makes one. Runs in a hosted world's own environment.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np


class NotRepeatableError(Exception):
    """An environment that is another one after the same reset, or the same rows."""


class GymnasiumWorld:
    """Environments with `render_mode="rgb_array"`, whose scene is the seed of their reset.

    It goes back to a state by the reset and all rows since, so a fork is exact in every environment that repeats, and
    costs as much as those rows. Overrule `save` and `load` where the state itself can be kept.

    Attributes:
        tasks: name to instruction.
        scenes: of every task.
        max_rows: rows after which a trial ends, if the environment has no limit of its own.
        columns: of a row, see `merton.world.action_space.ActionColumn`.
        period_s: time that a row lasts [s].
        spread_from: the source of the columns' spread, in words.
        frame: the frame and unit of `state()["point"]`, in words; "" without one.
        camera: the name of the one camera, `render()`.
        packages: whose versions make runs comparable.
    """

    tasks: ClassVar[dict[str, str]]
    scenes = 1000
    max_rows: int
    columns: ClassVar[list[dict[str, Any]]]
    period_s: float
    spread_from = "the columns' ranges, because no demonstrations are known"
    frame = ""
    camera = "front"
    packages: tuple[str, ...] = ("gymnasium", "numpy")

    def __init__(self) -> None:
        self._envs: dict[str, Any] = {}
        self._verified: set[str] = set()

    def make(self, task: str) -> Any:
        """The environment of a task; it is made once."""
        raise NotImplementedError(f"{type(self).__name__} needs make(task), which gives a task's environment")

    def native(self, row: np.ndarray) -> Any:
        """The environment's own action for a row of `columns`."""
        return row.astype(self.env.action_space.dtype)

    def success(self) -> bool:
        """`info["is_success"]` or `info["success"]`, of the last row; False before the first.

        Raises:
            KeyError: the environment says neither.
        """
        for key in ("is_success", "success"):
            if key in self.info:
                return bool(self.info[key])
        if self._rows:
            raise KeyError(f"the info of {self._at[0]} has neither is_success nor success: its world needs success()")
        return False

    def state(self) -> dict[str, Any]:
        """The keys of `merton.worlds.base.RobotState` that the robot has; `rest_row` is for the floor `hold`."""
        return {}

    def look(self, camera: str) -> np.ndarray:
        """The picture that the environment renders.

        Raises:
            TypeError: it renders none.
        """
        picture = self.env.render()
        if np.ndim(picture) != 3:
            raise TypeError(f'the environment of {self._at[0]} renders no picture: give it render_mode="rgb_array"')
        return np.ascontiguousarray(picture)

    def cameras(self) -> list[dict[str, Any]]:
        """Name and size of each; the one camera by a picture of the first task."""
        self._begin(next(iter(self.tasks)), 0)
        height, width = self.look(self.camera).shape[:2]
        return [{"name": self.camera, "width_px": width, "height_px": height}]

    def versions(self) -> dict[str, str]:
        """Those of `packages`."""
        return {name: version(name) for name in self.packages}

    def describe(self) -> dict[str, Any]:
        limits = {"scenes": self.scenes, "max_rows": self.max_rows}
        return {
            "cameras": self.cameras(),
            "tasks": [
                {"name": name, "instruction": words, "group": name, **limits} for name, words in self.tasks.items()
            ],
            "action": {
                "form": "rows",
                "columns": self.columns,
                "period_s": self.period_s,
                "spread_from": self.spread_from,
            },
            "frame": self.frame,
            "distorted_at": "The picture as the environment renders it, before the policy resizes or crops it.",
            "versions": self.versions(),
        }

    def reset(self, task: str, scene: int) -> str:
        """Begin a trial; a task's first reset is verified.

        Raises:
            NotRepeatableError: the same seed does not give the same first observation and picture.
        """
        if task not in self._verified:
            self._verify(task, scene)
            self._verified.add(task)
        self._begin(task, scene)
        return self.tasks[task]

    def step(self, row: np.ndarray) -> str | None:
        self._rows.append(np.array(row))
        self.observation, _, terminated, truncated, self.info = self.env.step(self.native(row))
        if terminated:
            return "success" if self.success() else "terminated by the environment"
        return "step limit" if truncated else None

    def save(self) -> Any:
        return self._at, tuple(self._rows), _flat(self.observation)

    def load(self, snapshot: Any) -> None:
        """Go back to a snapshot by the rows that led to it.

        Raises:
            NotRepeatableError: they led elsewhere.
        """
        (task, scene), rows, observation = snapshot
        self._begin(task, scene)
        for row in rows:
            self.step(row)
        if not np.array_equal(_flat(self.observation), observation, equal_nan=True):
            raise NotRepeatableError(f"{task} is elsewhere after the same {len(rows)} rows: it draws from no seed")

    def close(self) -> None:
        for env in self._envs.values():
            env.close()

    def _begin(self, task: str, scene: int) -> None:
        if task not in self._envs:
            self._envs[task] = self.make(task)
        self.env, self._at = self._envs[task], (task, scene)
        self._rows: list[np.ndarray] = []
        self.observation, self.info = self.env.reset(seed=scene)

    def _verify(self, task: str, scene: int) -> None:
        """Reset twice, with another scene and some rows between."""
        seen = []
        for seed in (scene, scene + 1, scene):
            self._begin(task, seed)
            seen.append((_flat(self.observation), self.look(self.camera)))
            self.env.action_space.seed(seed)
            for _ in range(3):
                self.env.step(self.env.action_space.sample())
        for index, part in enumerate(("observation", "picture")):
            if not np.array_equal(seen[0][index], seen[2][index], equal_nan=index == 0):
                raise NotRepeatableError(
                    f"the first {part} of {task} is another one after a second reset with seed {scene}: "
                    "its environment must draw everything from self.np_random"
                )


def _flat(observation: Any) -> np.ndarray:
    """All numbers of an observation, in order; keys of a Dict by their names."""
    if isinstance(observation, dict):
        observation = [observation[key] for key in sorted(observation)]
    if isinstance(observation, (list, tuple)):
        return np.concatenate([np.zeros(0), *map(_flat, observation)])
    return np.asarray(observation, dtype=float).ravel()
