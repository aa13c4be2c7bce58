"""An environment of Gymnasium with pictures in every layout, whose episodes are short."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

PICTURE = spaces.Box(0, 255, (32, 40, 3), np.uint8)
FIRST = spaces.Box(0, 255, (3, 32, 40), np.uint8)
POSITION = spaces.Box(-1, 1, (2,))
NESTED = spaces.Dict(
    {
        "pixels": spaces.Dict({"top": PICTURE, "wrist": FIRST}),
        "pair": spaces.Tuple((PICTURE, spaces.Box(0, 255, (32, 40, 1), np.uint8))),
        "agent_pos": POSITION,
    }
)
LENGTH = 4


class Cell(gymnasium.Env):
    """An environment whose observations are drawn from the seed, of episodes of LENGTH steps.

    Args:
        key: of its info, under which it says at step 2 alone that the task is done if the seed is even; None: nowhere.
        fails_at: the steps left at which it raises an error.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self, space: Any = NESTED, render_mode: str | None = None, key: str | None = None, fails_at: int = -1
    ) -> None:
        self.observation_space, self.action_space = space, POSITION
        self.render_mode, self.name, self._left, self.key, self.fails_at = render_mode, "cell", LENGTH, key, fails_at
        self.seed: int | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left, self.seed = LENGTH, seed
        return self._drawn(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._left -= 1
        if self._left == self.fails_at:
            raise RuntimeError("the renderer is gone")
        said = {} if self.key is None else {self.key: self._left == 2 and self.seed is not None and self.seed % 2 == 0}
        return self._drawn(), 0.0, self._left == 0, False, {"left": self._left, **said}

    def render(self) -> Any:
        return np.full((8, 8, 3), self._left, np.uint8)

    def _drawn(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()


ACTION = np.zeros(2, np.float32)
ACTIONS = np.zeros((2, 2), np.float32)


def frames(env: Any, seed: int | None, steps: int = LENGTH) -> list[Any]:
    """The observations of an episode."""
    seen = [env.reset(seed=seed)[0]]
    return seen + [env.step(ACTION)[0] for _ in range(steps)]


def leaves(observation: Any) -> dict[str, np.ndarray]:
    """The arrays of an observation of NESTED."""
    return {
        "top": observation["pixels"]["top"],
        "wrist": observation["pixels"]["wrist"],
        "0": observation["pair"][0],
        "grey": observation["pair"][1],
        "agent_pos": observation["agent_pos"],
    }


def same(one: Any, other: Any) -> bool:
    """Whether two observations are the same numbers."""
    return all(np.array_equal(a, b) for a, b in zip(leaves(one).values(), leaves(other).values(), strict=True))
