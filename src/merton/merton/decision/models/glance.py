"""Learned policies that look once, or twice, and answer with the whole motion from there.

Ours. The images of one or two cameras are brought onto the table by their calibration (`table_view`), and a
convolutional network gives every place 40 features. The words of the instruction ask for up to three places: the thing
that is handled, the target, and the landmark beside which the thing stands. Each is the mean place under the attention
of a query that is a sum over the words that name it; "left" and "nearest to" shift the attention among things that are
alike. The motion consists of straight segments: a script that depends on the words alone, in which each segment goes to
a mixture of these places, plus a correction from words, places and features. `tools/train/train_vla.py` clones the
oracle's motions; docs/reference/learned_policies.md is the model card. Runs in plain numpy.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from merton.decision.models import picture_view, table_view
from merton.decision.models.base import Policy, example_observation
from merton.decision.models.segments import SEGMENT_SIZE, SEGMENTS, SLOTS, to_deltas, tokens
from merton.errors import InputError
from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu, softmax, weights_file
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import Matrix
from merton.world.motion import STEP_S
from merton.world.observation import Image, Observation
from merton.world.tasks import TASKS, VERBS, example_of, parse

FOLDER = Path(__file__).parent
"""Folder of the members' weights, NAME.npz."""
STRIDE = 2
ROWS, COLUMNS = table_view.ROWS // STRIDE, table_view.COLUMNS // STRIDE
"""Size of the map of features."""
ROLES = 3
"""The thing that is handled, the target, the landmark."""
WINDOW = 3
"""Words before and after a word that decide its part in the sentence."""
SHIFT = 8.0
"""Largest change of an attention's logit by a word of place; ours: e^8 times less likely."""
NEARER_M = 0.05
"""Difference of distances from a landmark that tells two things apart. That of the instructions."""
LONGEST_M, LARGEST_RAD = 0.07, 0.27
"""Most that one delta moves and turns the hand. Ours: between the oracle's and the limits of the arm."""
CENTER_M = (0.52, 0.0)
"""Places enter the network relative to this one."""
PLACE_SCALE_M = 0.15
HAND = 6
"""Numbers of `hand_state`."""


class Glance(Policy):
    """Gives the whole motion from the first image; refuses verbs that it did not learn well enough.

    Args:
        member: name of its weights in `FOLDER`.
        verbs: the verbs that it does.
        cameras: the views that it uses, in the order of its weights.
        calibrated: whether it sees the table from above (`table_view`), or the picture as it is (`picture_view`).
    """

    family: ClassVar[str] = "glance"
    """With which the names of its members begin."""

    def __init__(
        self,
        member: str,
        verbs: Sequence[str] = VERBS,
        cameras: Sequence[str] = ("top",),
        calibrated: bool = True,
    ) -> None:
        self.name = member
        self.view = table_view.from_above if calibrated else picture_view.from_picture
        self.verbs, self.cameras = tuple(verbs), tuple(cameras)
        self._weights = weights_file(FOLDER, self.family, member)

    @cached_property
    def network(self) -> SceneNetwork:
        """Its network, read when it is needed first."""
        return Network(self._weights)

    def act(self, observation: Observation) -> ActionChunk:
        """The whole task at step 0, nothing afterwards.

        Raises:
            InputError: an unknown instruction, a verb that it does not claim, or a missing view.
        """
        self.check_claims(observation)
        started = time.perf_counter()
        deltas = self.motion(observation) if observation.step == 0 else np.empty((0, 7))
        return checked_chunk(deltas, STEP_S, model=self.name, latency_s=time.perf_counter() - started, done=True)

    def check_claims(self, observation: Observation) -> None:
        """Raise InputError for an unknown instruction, a verb that it does not claim, or a missing view."""
        verb = parse(observation.instruction).verb
        if verb not in self.verbs:
            raise InputError(f"{self.name} cannot {verb}; it can: {', '.join(self.verbs)}")
        self.require_views(observation)

    def motion(self, observation: Observation) -> NDArray[np.float64]:
        """The deltas (n, 7) of the whole task from where the hand is."""
        tables = self.tables(observation)
        hand = hand_state(observation.tool, observation.opened)
        words = tokens(observation.instruction, self.network.words)
        segments = self.network.segments(np.dstack(tables), words, hand)
        start = observation.tool[:3, 3]
        return to_deltas(slow_enough(segments, start), start)

    def tables(self, observation: Observation) -> list[Image]:
        """The table as each camera sees it, on the network's grid."""
        return [self.view(observation.views[camera]) for camera in self.cameras]

    def make_example(self) -> Observation:
        """Grey images and the first verb that it does."""
        return example_observation(example_of(TASKS[self.verbs[0]]).instruction, self.cameras)


class SecondGlance(Glance):
    """Goes where the first look says, looks again from there with the camera at the wrist, and does the task.

    The cameras are that of the first look, and the one that joins it for the second.
    """

    def act(self, observation: Observation) -> ActionChunk:
        """The first movement at step 0, the whole task from there at step 1, nothing afterwards; raises as `Glance`."""
        self.check_claims(observation)
        started = time.perf_counter()
        deltas = self.motion(observation) if observation.step < 2 else np.empty((0, 7))
        if observation.step == 0:
            deltas = first_movement(deltas)
        latency_s = time.perf_counter() - started
        return checked_chunk(deltas, STEP_S, model=self.name, latency_s=latency_s, done=observation.step > 0)

    def tables(self, observation: Observation) -> list[Image]:
        """As `Glance.tables`; at step 0 the second camera shows nothing, wherever it looks."""
        first, second = super().tables(observation)
        return [first, second if observation.step else np.zeros_like(second)]


def first_movement(deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """A chunk up to the end of its first straight movement, with the gripper commands before it."""
    moves = np.flatnonzero(np.linalg.norm(deltas[:, :3], axis=1) > 1e-6)
    if not len(moves):
        return deltas
    end = int(moves[0])
    while end + 1 < len(deltas) and np.allclose(deltas[end + 1], deltas[moves[0]], rtol=0, atol=1e-9):
        end += 1
    return deltas[: end + 1]


def hand_state(base_from_tcp: Matrix, gripper_open: float) -> Floats:
    """The hand's state for a network that knows it: place, cosine and sine of yaw, gripper; (HAND,), about -1 to 1."""
    x, y, z = base_from_tcp[:3, 3]
    yaw = math.atan2(base_from_tcp[1, 0], base_from_tcp[0, 0])
    near = ((x - CENTER_M[0]) / PLACE_SCALE_M, (y - CENTER_M[1]) / PLACE_SCALE_M, (z - 0.2) / PLACE_SCALE_M)
    return np.array([*near, math.cos(yaw), math.sin(yaw), 2 * gripper_open - 1], np.float32)


def slow_enough(segments: Floats, start: NDArray[np.float64]) -> Floats:
    """The segments with so many deltas each that none is longer than the arm may go in one.

    `start` is the position (3,) of the tool centre point before the first [m].
    """
    ways = np.diff(segments[:, :3], axis=0, prepend=start[None])
    lengths = np.maximum(
        np.linalg.norm(ways, axis=1) / LONGEST_M, np.linalg.norm(segments[:, 3:6], axis=1) / LARGEST_RAD
    )
    slow = segments.copy()
    slow[:, 7] = np.maximum(segments[:, 7], np.log(np.ceil(np.maximum(lengths, 1.0))))
    return slow


class SceneNetwork(NumpyNetwork, ABC):
    """Reads the words and the image; its kinds make a motion of them; in torch: `tools/train/vla_networks.py`."""

    @abstractmethod
    def segments(self, image: Image, numbers: NDArray[np.int64], hand: Floats) -> Floats:
        """(SEGMENTS, SEGMENT_SIZE) for an image of the grid, 3 channels a camera, the words `numbers` (SLOTS,), and the
        hand (HAND,)."""

    def read(self, numbers: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """The meaning of the words: the sentence (channels,), the queries (ROLES, channels), and the weight 0..1 of
        each word in each role (SLOTS, ROLES)."""
        weights = self.weights
        words = np.pad(weights["embedding.weight"][numbers], ((WINDOW, WINDOW), (0, 0)))
        windows = np.stack([words[slot : slot + 2 * WINDOW + 1].ravel() for slot in range(SLOTS)])
        context = relu(windows @ weights["context.weight"].T + weights["context.bias"])
        there = (numbers > 0)[:, None]
        gates = there / (1 + np.exp(-(context @ weights["gates.weight"].T + weights["gates.bias"])))
        queries = gates.T @ weights["meaning.weight"][numbers]
        text = relu(self.linear("sentence", (context * there).sum(0)))
        return text, queries.astype(np.float32), gates

    def features(self, image: Image) -> Floats:
        """Features (channels, ROWS * COLUMNS) of all places."""
        signal = fold(np.ascontiguousarray(image.transpose(2, 0, 1), np.float32) / np.float32(255) - np.float32(0.5))
        signal = relu(self.convolve("fine2", relu(self.convolve("fine1", signal))))
        coarse = fold(signal[:, : ROWS - ROWS % 2])
        shape = coarse.shape[1:]
        coarse = relu(self.linear("coarse1", coarse.reshape(len(coarse), -1))).reshape(-1, *shape)
        coarse = relu(self.convolve("coarse3", relu(self.convolve("coarse2", coarse))))
        both = np.concatenate([signal, coarse.repeat(2, axis=1).repeat(2, axis=2)])
        return relu(self.linear("merge", both.reshape(len(both), -1)))


class Network(SceneNetwork):
    """From places to the motion."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        text, channels = len(self.weights["sentence.bias"]), len(self.weights["merge.bias"])
        self.knows_hand = self.weights["motion1.weight"].shape[1] > text + ROLES * (2 + channels)
        rows, columns = np.mgrid[0:ROWS, 0:COLUMNS]
        pixels = STRIDE * np.stack([columns.ravel(), rows.ravel()], -1) + 0.5 * (STRIDE - 1)
        self._places = table_view.places(pixels).astype(np.float32)

    def segments(self, image: Image, numbers: NDArray[np.int64], hand: Floats) -> Floats:
        """As `SceneNetwork.segments`; only some members know the hand."""
        text, queries, gates = self.read(numbers)
        places, seen = self.attend(self.features(image), queries, *self.selection(numbers, gates))
        return self._motion(places, seen, text, hand)

    def selection(self, numbers: NDArray[np.int64], gates: Floats) -> tuple[Floats, float]:
        """The direction (2,) [1/m] in which a thing stands further than its like, and how much the landmark counts."""
        direction = 10 * gates[:, 0] @ self.weights["direction.weight"][numbers]
        nearness = 10 * float((self.weights["nearness.weight"][numbers] * (numbers > 0)[:, None]).sum())
        return direction.astype(np.float32), nearness

    def attend(self, features: Floats, queries: Floats, direction: Floats, nearness: float) -> tuple[Floats, Floats]:
        """Places (ROLES, 2) [m], and the features (ROLES, channels) there."""
        logits = queries @ features
        first = softmax(logits[0])
        away = np.hypot(*(self._places - softmax(logits[2]) @ self._places).T)
        aside = np.tanh((self._places - first @ self._places) @ direction)
        closer = np.tanh((first @ away - away) / np.float32(NEARER_M))
        like = np.sqrt(first / first.max())
        logits[0] += np.float32(SHIFT) * like * (aside + np.float32(nearness) * closer)
        attention = softmax(logits)
        return attention @ self._places, attention @ features.T

    def _motion(self, places: Floats, seen: Floats, text: Floats, hand: Floats) -> Floats:
        centered = (places - np.array(CENTER_M, np.float32)).ravel()
        mixture = self.linear("mixture", text).reshape(SEGMENTS, 2, 2 * ROLES)
        known = [hand] if self.knows_hand else []
        hidden = np.concatenate([text, centered / np.float32(PLACE_SCALE_M), seen.ravel(), *known])
        hidden = relu(self.linear("motion2", relu(self.linear("motion1", hidden))))
        segments = self.linear("motion3", hidden).reshape(SEGMENTS, SEGMENT_SIZE)
        segments = segments * self.weights["spread"] + self.linear("script", text).reshape(SEGMENTS, SEGMENT_SIZE)
        segments[:, :2] += mixture @ centered
        return segments
