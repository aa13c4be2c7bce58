"""Two policies that look, cloned from a world's expert by `clone.py`: how they decide, in plain numpy.

Both see pictures of 64 px of two cameras and know where the hand is, and give the expert's next rows. `Ridge` finds
two places in the pictures by linear regression, and from them its motion by kernel regression; `Network` is a small
convolutional network that gives the rows at once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.decision.models.base import Policy, example_in_a_world
from merton.errors import InputError, InvalidActionError
from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu, softmax
from merton.world.action import ActionChunk
from merton.world.action_space import ActionColumn, ActionSpace
from merton.world.observation import Image, Observation

SIZE_PX = 64
"""Width and height of a picture as these policies see it."""
COLUMNS = 7
PLACES = 2
"""The expert's hand when its gripper changes for the first time, and at the end."""


def seen(color: Image) -> NDArray[np.uint8]:
    """A camera's picture (height, width, 3) as it is seen, (SIZE_PX, SIZE_PX, 3)."""
    return np.asarray(cv2.resize(color, (SIZE_PX, SIZE_PX), interpolation=cv2.INTER_AREA), np.uint8)


def pixels(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pictures (n, cameras, SIZE_PX, SIZE_PX, 3) as rows of half their size with mean 0, (n, pixels)."""
    count, cameras = pictures.shape[:2]
    squares = pictures.reshape(count, cameras, SIZE_PX // 2, 2, SIZE_PX // 2, 2, 3).mean((3, 5)) / 255
    return np.asarray((squares - 0.5).reshape(count, -1), np.float64)


def situation(
    hand: NDArray[np.float64], gripper_open: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Inputs (n, 7) of a motion: from the hand (n, 3) to the places (n, 6) [dm], and the gripper (n,)."""
    ways = places.reshape(-1, PLACES, 3) - hand[:, None]
    return np.concatenate([ways.reshape(len(hand), -1) / 0.1, gripper_open[:, None] / 0.5], 1)


def kernel(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Likeness (n, m) of situations (n, 7) and (m, 7): Laplace's kernel, whose width is a decimetre."""
    return np.asarray(np.exp(-np.abs(left[:, None] - right[None]).sum(-1) / 3))


class Cloned(Policy):
    """A clone of a world's expert; raises InvalidActionError for a task that it was not trained on.

    Args:
        weights: the file that `clone.py` wrote.
    """

    def __init__(self, weights: str) -> None:
        if not Path(weights).is_file():
            raise InputError(f"no weights {weights!r}: tools/studies/worlds/clone.py makes them")
        with np.load(weights) as stored:
            self._stored = dict(stored)
        self.instructions = tuple(str(text) for text in self._stored["instructions"])
        self.cameras = tuple(str(name) for name in self._stored["cameras"])

    def act(self, observation: Observation) -> ActionChunk:
        """See `Policy.act`."""
        self.require_views(observation)
        if observation.base_from_tcp is None or observation.gripper_open is None or observation.action is None:
            raise InputError(f"{self.name} needs a world with a tool and a gripper")
        if observation.instruction not in self.instructions:
            raise InvalidActionError(f"{self.name} was not trained to {observation.instruction!r}")
        pictures = np.array([seen(observation.views[camera].color) for camera in self.cameras])
        task = self.instructions.index(observation.instruction)
        rows = self.rows(task, pictures, observation.base_from_tcp[:3, 3], observation.gripper_open)
        low, high = np.array([[column.low, column.high] for column in observation.action.columns]).T
        return observation.action.chunk(np.clip(rows, low, high), self.name)

    def make_example(self) -> Observation:
        """See `Policy.make_example`: the first task that it was trained on, in a world of tool deltas."""
        column = ActionColumn(name="a", unit="1", low=-1.0, high=1.0, spread=1.0)
        action = ActionSpace(form="tool_deltas", columns=(column,) * COLUMNS, period_s=0.1, spread_from="made up")
        return replace(example_in_a_world(self.cameras), instruction=self.instructions[0], action=action)

    @abstractmethod
    def rows(
        self, task: int, pictures: NDArray[np.uint8], hand: NDArray[np.float64], opening: float
    ) -> NDArray[np.float64]:
        """The rows (n, 7) for pictures (cameras, SIZE_PX, SIZE_PX, 3), a hand (3,) [m] and a gripper 0..1."""


class Ridge(Cloned):
    """Places by ridge regression on pixels, then rows by kernel ridge regression; one of each for every task.

    Args:
        weights: as of `Cloned`.
        blind: does not look: its places are the mean of the training's. The floor of what pictures are good for.
    """

    name = "ridge"

    def __init__(self, weights: str, *, blind: bool = False) -> None:
        super().__init__(weights)
        self._blind = blind
        if blind:
            self.cameras = ()
        parts = ("eye", "mean", "known", "motion", "rest")
        self._of_task = [
            {name: self._stored[f"{name}_{task}"].astype(np.float64) for name in parts}
            for task in range(len(self.instructions))
        ]

    def rows(
        self, task: int, pictures: NDArray[np.uint8], hand: NDArray[np.float64], opening: float
    ) -> NDArray[np.float64]:
        """See `Cloned.rows`."""
        of = self._of_task[task]
        places = of["mean"][None] if self._blind else of["mean"] + pixels(pictures[None]) @ of["eye"]
        now = situation(hand[None], np.array([opening]), places)
        return np.asarray((of["rest"] + kernel(now, of["known"]) @ of["motion"]).reshape(-1, COLUMNS))


class Network(Cloned):
    """A convolutional network whose maps become points (spatial softmax: Levine et al. 2016), and rows from them."""

    name = "network"

    def __init__(self, weights: str) -> None:
        super().__init__(weights)
        self._network = NumpyNetwork(Path(weights))
        self._spread = self._stored["spread"].astype(np.float64)
        self._middle = self._stored["middle"].astype(np.float64)

    def rows(
        self, task: int, pictures: NDArray[np.uint8], hand: NDArray[np.float64], opening: float
    ) -> NDArray[np.float64]:
        """See `Cloned.rows`."""
        points = [self._points(index, picture) for index, picture in enumerate(pictures)]
        one_hot = np.eye(len(self.instructions))[task]
        values = np.concatenate([*points, (hand - self._middle) / 0.1, [opening], one_hot]).astype(np.float32)
        hidden = relu(self._network.linear("motion1", values))
        hidden = relu(self._network.linear("motion2", hidden))
        return self._network.linear("motion3", hidden).reshape(-1, COLUMNS) * self._spread

    def _points(self, camera: int, picture: NDArray[np.uint8]) -> Floats:
        """The points (2 maps,) of a camera's picture, -1..1."""
        signal = fold((picture.transpose(2, 0, 1) / np.float32(255) - np.float32(0.5)).astype(np.float32))
        signal = relu(self._network.convolve(f"eyes.{camera}.0", signal))
        signal = relu(self._network.convolve(f"eyes.{camera}.2", signal))
        maps = self._network.convolve(f"eyes.{camera}.4", signal)
        side = maps.shape[1]
        shares = softmax(maps.reshape(len(maps), -1)).reshape(maps.shape)
        ticks = np.linspace(-1, 1, side, dtype=np.float32)
        return np.concatenate([shares.sum(1) @ ticks, shares.sum(2) @ ticks])
