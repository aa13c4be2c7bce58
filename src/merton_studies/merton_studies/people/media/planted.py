"""Defects that are planted into the film of a good trial, so that the right score of each film is known.

The scores follow the decision tree of the episodes protocol: another outcome and another motion 0; another outcome 1;
the same outcome with any defect 2; none 3.
"""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np

from merton.experiment.filming import ROBOT, Take, pictures
from merton.simulation.cameras import SceneCameras
from merton.world.geometry import Array
from merton.world.observation import Image

RIGHT_ANSWERS: dict[str, dict[str, object]] = {
    "faithful": {"score": 3, "same_outcome": True, "defects": []},
    "deformed": {"score": 2, "same_outcome": True, "defects": ["deformed"]},
    "warped": {"score": 2, "same_outcome": True, "defects": ["other_motion"]},
    "vanished": {"score": 1, "same_outcome": False, "defects": ["deformed"]},
    "wrong_outcome": {"score": 1, "same_outcome": False, "defects": []},
    "chaotic": {"score": 0, "same_outcome": False, "defects": ["other_motion"]},
}
"""Name of a planted defect to the right answer of the episodes protocol."""
SCORES = {defect: answer["score"] for defect, answer in RIGHT_ANSWERS.items()}
"""Name of a defect to the score of its film."""
VISIBLE_PX = 60
"""Pixels of 640 x 480 that must differ clearly for a defect to be seen. Ours: a cube of 4 cm covers about 150 from the
side camera."""
_AWAY_M = -3.0
"""Height at which a thing is put that is not to be seen [m]: below the floor."""
_CLEAR = 24
"""Grey levels by which a pixel differs clearly."""


class Planting:
    """A take of a trial that succeeded, and its films.

    Args:
        cameras: that render.
        scene: the take.

    Attributes:
        clean: the film without a defect, (height, width, 3) uint8 RGB each.
    """

    def __init__(self, cameras: SceneCameras, scene: Take) -> None:
        self._cameras, self._scene = cameras, scene
        self.clean = list(pictures(cameras, scene, scene.states))

    def film(self, defect: str, rng: np.random.Generator) -> list[Image] | None:
        """The film with a defect of `SCORES`; None if it could not be seen in this take. `rng` cuts "chaotic"."""
        made = {
            "faithful": lambda: self.clean,
            "deformed": self._deformed,
            "warped": lambda: [self.clean[index] for index in _there_and_back(len(self.clean))],
            "vanished": self._vanished,
            "wrong_outcome": lambda: self._untouched,
            "chaotic": lambda: _cut_up(self._untouched, rng),
        }[defect]()
        if made is None or (
            not RIGHT_ANSWERS[defect]["same_outcome"] and not _differs(self._untouched[-1], self.clean[-1])
        ):
            return None
        return None if defect == "vanished" and not _differs(made[-1], self.clean[-1]) else made

    @cached_property
    def _untouched(self) -> list[Image]:
        """All things stay where they were at the start: the arm moves as it did, and nothing follows it."""
        states = self._scene.states.copy()
        states[:, ROBOT:] = states[0, ROBOT:]
        return list(pictures(self._cameras, self._scene, states))

    def _without(self, start: int) -> list[Image]:
        """The film from a frame on without the thing to handle."""
        assert self._scene.thing is not None
        states = self._scene.states[start:].copy()
        states[:, self._scene.thing.stop - 1] = _AWAY_M
        return list(pictures(self._cameras, self._scene, states))

    def _vanished(self) -> list[Image] | None:
        """The thing is gone in the last fifth of the film."""
        if self._scene.thing is None:
            return None
        start = len(self.clean) - max(5, len(self.clean) // 5)
        return [*self.clean[:start], *self._without(start)]

    def _deformed(self) -> list[Image] | None:
        """The thing swells and flattens, up to 1.9 times as wide and 0.6 as high, from a third of the film on."""
        if self._scene.thing is None:
            return None
        start = len(self.clean) // 3
        made, seen = self.clean[:start], False
        for index, (picture, empty) in enumerate(zip(self.clean[start:], self._without(start), strict=True)):
            amount = min(1.0, index / start)
            shown = _stretched(picture, empty, 1 + 0.9 * amount, 1 - 0.4 * amount)
            seen |= _differs(shown, picture)
            made.append(shown)
        return made if seen else None


def _stretched(picture: Image, empty: Image, wide: float, high: float) -> Image:
    """A picture with the thing that `empty` lacks stretched about its lower middle."""
    mask = (_difference(picture, empty) > 0).astype(np.uint8)
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return picture
    x, y = float(columns.mean()), float(rows.max())
    move = np.array([[wide, 0.0, x - wide * x], [0.0, high, y - high * y]])
    size = picture.shape[1], picture.shape[0]
    moved = cv2.warpAffine(picture, move, size, flags=cv2.INTER_LINEAR)
    inside = cv2.warpAffine(mask, move, size, flags=cv2.INTER_NEAREST)
    return np.where(inside[..., None] > 0, moved, empty).astype(np.uint8)


def _there_and_back(count: int) -> list[int]:
    """Numbers of the frames of a film of equal length that runs ahead, goes back, and still ends as it should."""
    turns = [0.0, 0.7, 0.25, 0.8, 0.45, 1.0, 1.0]
    at = np.interp(np.linspace(0, len(turns) - 1, count), range(len(turns)), turns)
    return [round(float(share) * (count - 1)) for share in at]


def _cut_up(frames: list[Image], rng: np.random.Generator) -> list[Image]:
    """A film in eight pieces in a random order, each of them forwards or backwards."""
    pieces = [piece for piece in np.array_split(np.arange(len(frames)), 8) if len(piece)]
    order = rng.permutation(len(pieces))
    backwards = rng.random(len(pieces)) < 0.5
    return [frames[i] for p, back in zip(order, backwards, strict=True) for i in pieces[p][:: -1 if back else 1]]


def _difference(one: Image, other: Image) -> Array:
    return np.abs(one.astype(np.int16) - other.astype(np.int16)).max(axis=2)


def _differs(one: Image, other: Image) -> bool:
    return int((_difference(one, other) > _CLEAR).sum()) >= VISIBLE_PX
