"""merton-tiny-vla: a small learned policy that gives the whole motion from one image taken from above.

Ours. For an instruction a convolutional network finds up to three points in the image of the camera "top", by attention
with queries made from the words. The camera's calibration maps the points onto the table. The motion consists of
straight segments, each to a mixture of the points that depends on the words alone, plus a small correction that depends
on the image. It was behaviour-cloned from the oracle by `tools/train/train_tiny_vla.py`; docs/reference/tiny_models.md
is its model card. Runs in plain numpy.
"""

from __future__ import annotations

import math
import time
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu, softmax
from merton.world.action import ActionChunk, checked_chunk
from merton.world.motion import STEP_S
from merton.world.observation import CameraView, Image, Observation

WEIGHTS = Path(__file__).with_name("tiny_vla.npz")

CAMERA = "top"
VIEW_WIDTH, VIEW_HEIGHT = 424, 240
"""Size of the training views [px]; others are resized to it."""
CROP = (slice(56, 168), slice(132, 292))
"""Rows and columns of that view that contain the objects of a task."""
STRIDE = 2
SLOTS = 16
"""Number of words of an instruction that are used."""
POINTS = 3
"""Number of points of the image that a motion may refer to."""
SEGMENTS = 12
"""Most segments of a motion."""
HEIGHT_M = 0.0225
"""Assumed height of the points of the image above the table: half of a cube."""

SEGMENT_SIZE = 9
"""Numbers of a segment: end position x, y, z [m]; rotation vector [rad]; gripper 0..1; log of the number of deltas; and
whether the motion goes on (a logit)."""


class TinyVla(Policy):
    """Gives the whole motion from the first image."""

    name = "tiny-vla"
    cameras = (CAMERA,)

    @cached_property
    def network(self) -> Network:
        """Its network, read when it is needed first."""
        return Network(WEIGHTS)

    def act(self, observation: Observation) -> ActionChunk:
        """The whole task at step 0, nothing afterwards; raises InputError if the view from above is missing."""
        if CAMERA not in observation.views:
            raise InputError(f"{self.name} needs the camera {CAMERA!r}; there are: {', '.join(observation.views)}")
        started = time.perf_counter()
        if observation.step > 0:
            deltas = np.empty((0, 7))
        else:
            words = tokens(observation.instruction, self.network.words)
            segments = self.network.segments(observation.views[CAMERA], words)
            deltas = to_deltas(segments, observation.base_from_tcp[:3, 3])
        return checked_chunk(deltas, STEP_S, model=self.name, latency_s=time.perf_counter() - started, done=True)


def tokens(instruction: str, words: tuple[str, ...]) -> NDArray[np.int64]:
    """The words of an instruction as numbers (SLOTS,): 0 for none, 1 for an unknown one, else 2 and up."""
    numbers = {word: index + 2 for index, word in enumerate(words)}
    found = [numbers.get(word.strip(".,"), 1) for word in instruction.lower().split()[:SLOTS]]
    return np.array(found + [0] * (SLOTS - len(found)), np.int64)


def crop(color: Image) -> Image:
    """The part of a view from above that the network sees, (112, 160, 3) uint8."""
    if color.shape[:2] != (VIEW_HEIGHT, VIEW_WIDTH):
        color = np.asarray(cv2.resize(color, (VIEW_WIDTH, VIEW_HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)
    return color[CROP]


def table_points(view: CameraView, positions: NDArray[np.floating]) -> NDArray[np.float64]:
    """Points (n, 2) x, y [m] in `base_link` of positions (n, 2) (u, v) in the feature map."""
    corner = np.array([CROP[1].start, CROP[0].start])
    pixels = corner + STRIDE * np.asarray(positions, np.float64) + 0.5 * (STRIDE - 1)
    return view_points(view, pixels * (view.color.shape[1] / VIEW_WIDTH))


def view_points(view: CameraView, pixels: NDArray[np.floating]) -> NDArray[np.float64]:
    """Points (n, 2) x, y [m] in the plane `HEIGHT_M` above the table of pixels (n, 2) (u, v) of a view."""
    u, v = np.asarray(pixels).T
    rays = view.intrinsics.deproject(u, v, np.ones(len(pixels))) @ view.base_from_camera[:3, :3].T
    origin = view.base_from_camera[:3, 3]
    return np.asarray(origin[:2] + rays[:, :2] * ((HEIGHT_M - origin[2]) / rays[:, 2])[:, None])


def from_deltas(deltas: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Segments (n, SEGMENT_SIZE) of a chunk (m, 7): runs of equal deltas; the inverse of `to_deltas`.

    `start` is the position (3,) of the tool centre point before the first delta [m].
    """
    rows: list[list[float]] = []
    position = np.array(start, np.float64)
    previous: NDArray[np.float64] | None = None
    for delta in deltas:
        position = position + delta[:3]
        if previous is not None and np.allclose(delta, previous, rtol=0, atol=1e-9):
            rows[-1][:3] = position
            rows[-1][7] += 1
        else:
            rows.append([*position, *delta[3:6], delta[6], 1, 1])
        previous = delta
    segments = np.array(rows).reshape(-1, SEGMENT_SIZE)
    segments[:, 3:6] *= segments[:, 7:8]
    segments[:, 7] = np.log(segments[:, 7])
    return segments


def to_deltas(segments: NDArray[np.floating], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal deltas (m, 7) along every segment (n, SEGMENT_SIZE), up to the first whose last number is not positive."""
    position, parts = np.array(start, np.float64), [np.empty((0, 7))]
    for segment in np.asarray(segments, np.float64):
        if segment[8] <= 0:
            break
        count = max(1, round(math.exp(min(segment[7], 4.0))))
        turn = Rotation.from_rotvec(segment[3:6]).as_rotvec()
        gripper = min(1.0, max(0.0, segment[6]))
        parts.append(np.tile([*(segment[:3] - position) / count, *turn / count, gripper], (count, 1)))
        position = segment[:3]
    return np.vstack(parts)


class Network(NumpyNetwork):
    """The network in numpy; `tools/train/train_tiny_vla.py` has the same in torch."""

    def segments(self, view: CameraView, numbers: NDArray[np.int64]) -> Floats:
        """(SEGMENTS, SEGMENT_SIZE) for the words `numbers` (SLOTS,)."""
        text = self._text(numbers)
        features = self._features(crop(view.color), text)
        pixels, seen = self._attend(features, text)
        points = table_points(view, pixels).astype(np.float32)
        return self._motion(points, seen, text)

    def _text(self, numbers: NDArray[np.int64]) -> Floats:
        embedded = self.weights["words_embedded"][np.arange(SLOTS), numbers].sum(axis=0)
        return relu(self.linear("text2", relu(self.linear("text1", embedded))))

    def _features(self, image: Image, text: Floats) -> Floats:
        """(channels, height / STRIDE, width / STRIDE)."""
        signal = fold(np.ascontiguousarray(image.transpose(2, 0, 1), np.float32) / np.float32(255) - np.float32(0.5))
        signal = self.convolve("conv2", relu(self.convolve("conv1", signal)))
        scale, shift = np.split(self.linear("film", text), 2)
        signal = relu(signal * (1 + scale[:, None, None]) + shift[:, None, None])
        flat = self.linear("point2", relu(self.linear("point1", signal.reshape(len(signal), -1))))
        return flat.reshape(-1, *signal.shape[1:])

    def _attend(self, features: Floats, text: Floats) -> tuple[Floats, Floats]:
        """Points (POINTS, 2) (u, v) in the feature map, and the features (POINTS, channels) there."""
        channels, height, width = features.shape
        queries = self.linear("queries", text).reshape(POINTS, channels)
        flat = features.reshape(channels, -1)
        attention = softmax(queries @ flat)
        v, u = np.divmod(np.arange(height * width), width)
        pixels = attention @ np.column_stack([u, v]).astype(np.float32)
        return pixels.astype(np.float32), (attention @ flat.T).astype(np.float32)

    def _motion(self, points: Floats, seen: Floats, text: Floats) -> Floats:
        centered = points - self.weights["center"]
        mixture = self.linear("mixture", text).reshape(SEGMENTS, 2, 2 * POINTS)
        hidden = np.concatenate([text, centered.ravel() / np.float32(0.15), seen.ravel()])
        hidden = relu(self.linear("motion2", relu(self.linear("motion1", hidden))))
        segments = self.linear("motion3", hidden).reshape(SEGMENTS, SEGMENT_SIZE)
        segments = segments * self.weights["spread"] + self.weights["mean"]
        segments[:, :2] += mixture @ centered.ravel()
        return segments
