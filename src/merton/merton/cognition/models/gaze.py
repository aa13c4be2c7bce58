"""Learned VLMs that find the things of an instruction in the picture and say what and where they are.

Ours. The middle of the image, at half of its resolution, becomes a map of features by a small convolutional network.
The nouns of the instruction (`merton.world.nouns`) ask it for places: a query is a sum of learned vectors for colour,
shape and size, and its attention over the map says where the thing is. "left" and "nearest to" shift the attention
among things that are alike; a further attention finds the thing beside it. A second network, the fovea, looks at the
pixels of each place and names the colour and the shape that are there. So every word but the plan depends on the image:
"Red mug far left, beside blue ball; lower gripper, close, lift." `tools/train/train_vlm.py` trains the members on the
scenes of the split `train`; docs/reference/learned_vlms.md is the model card. Runs in plain numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.learned import LearnedVlm
from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu, softmax
from merton.world.nouns import COLORS, PLACES, SIZES, Noun, noun
from merton.world.observation import Image
from merton.world.tasks import TASKS, Command, find

SIDE_PX = 240
"""The shorter side of an image before it is cropped; all pixels below are those of this size."""
ROWS_PX, COLUMNS_PX, ABOVE_CENTER_PX = 112, 192, 12
"""Size of the middle part that is seen, and how much its centre is above that of the image: there the things are."""
PITCH = 4
"""Pixels between neighbouring places of the map, for members that see all pixels."""
FOVEA = 24
"""Height and width of the part of the image around a place that is looked at."""
SHIFT = 8.0
"""Largest change of an attention's logit by a word of place; ours: e^8 times less likely."""
NEARER_PX = 11.0
"""Difference of distances from a landmark that tells two things apart: 5 cm, that of the instructions."""
APART_PX = 22.0
"""Scale of the differences in place: 10 cm."""
ITSELF_PX = 12.0
"""Size of a thing, within which no other is beside it."""
_CENTER_PX = np.array([(COLUMNS_PX - 1) / 2, (ROWS_PX - 1) / 2 + ABOVE_CENTER_PX])
"""Column and row of the centre of the image in the part that is seen."""
COLUMN_ENDS_PX = ((-25.0, "left"), (25.0, "center"), (np.inf, "right"))
ROW_ENDS_PX = ((-24.0, "far"), (7.0, "middle"), (np.inf, "near"))
"""Thirds of the area where things are, right of and below the centre of the image."""


@dataclass(frozen=True)
class Sight:
    """A thing as it is seen.

    Attributes:
        color: its colour word; empty for a member that sees no colours.
        shape: its shape word.
        place_px: right of and below the centre of the image, which is `SIDE_PX` high.
    """

    color: str
    shape: str
    place_px: tuple[float, float]

    @property
    def name(self) -> str:
        """Such as "red mug"."""
        return f"{self.color} {self.shape}".strip()

    def __str__(self) -> str:
        row = next(word for end, word in ROW_ENDS_PX if self.place_px[1] <= end)
        column = next(word for end, word in COLUMN_ENDS_PX if self.place_px[0] <= end)
        return f"{self.name} {row} {column}"


def sentence(command: Command | None, thing: Sight, beside: Sight, target: Sight | None) -> str:
    """The answer about what is seen: the thing, its place, its neighbour, and the plan of `command` if there is one."""
    text = f"{thing}, beside {beside.name}"
    if command is not None:
        text += f"; {TASKS[command.verb].plan.format(direction=command.direction, target=target)}"
    return f"{text[0].upper()}{text[1:]}."


class Network(NumpyNetwork):
    """The network in numpy; `tools/train/vlm_networks.py` has the same in torch."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.shapes = self.words
        self.channels = self.weights["fine1.weight"].shape[1] // (9 * 4)  # 3 x 3 squares of 2 x 2 pixels
        self.shrink = int(self.weights["shrink"])
        self.places_px = places_px(self.shrink)

    def planes(self, image: Image) -> Floats:
        """The part of an image that it sees, (channels, rows, columns) -0.5..0.5."""
        return prepared(image, self.channels, self.shrink).astype(np.float32) / np.float32(255) - np.float32(0.5)

    def features(self, planes: Floats) -> Floats:
        """Features (width, places) of the map."""
        halved = fold(planes).reshape(self.channels, 4, planes.shape[1] // 2, -1).mean(1)
        signal = relu(self.convolve("fine2", relu(self.convolve("fine1", fold(halved)))))
        coarse = fold(signal)
        shape = coarse.shape[1:]
        coarse = relu(self.linear("coarse1", coarse.reshape(len(coarse), -1))).reshape(-1, *shape)
        coarse = relu(self.convolve("coarse3", relu(self.convolve("coarse2", coarse))))
        both = np.concatenate([signal, coarse.repeat(2, axis=1).repeat(2, axis=2)])
        return relu(self.linear("merge", both.reshape(len(both), -1)))

    def look_for(self, features: Floats, said: Noun) -> Floats:
        """The attention (places,) to the thing that a noun means."""
        weights = self.weights
        logits = self._query(said.color, said.shape, said.size) @ features
        first = softmax(logits)
        shift = np.zeros_like(logits)
        if said.place:
            offsets = (self.places_px - first @ self.places_px) / np.float32(APART_PX)
            shift += np.tanh(offsets @ weights["direction.weight"][list(PLACES).index(said.place)])
        if said.landmark:
            other = noun(said.landmark)
            landmark = softmax(self._query(other.color, other.shape, other.size) @ features) @ self.places_px
            away = np.hypot(*(self.places_px - landmark).T)
            shift += weights["nearness"] * np.tanh((first @ away - away) / np.float32(NEARER_PX))
        return softmax(logits + np.float32(SHIFT) * np.sqrt(first / first.max()) * shift)

    def look_beside(self, features: Floats, thing: Sight) -> Floats:
        """The attention (places,) to the neighbour of a thing."""
        away = np.hypot(*(self.places_px - np.array(thing.place_px, np.float32)).T)
        itself = np.exp(-0.5 * np.square(away / np.float32(ITSELF_PX)))
        far = np.logaddexp(0, self.weights["farness"]) * away / np.float32(APART_PX)
        return softmax(self.linear("occupied", features)[0] - far - np.float32(2 * SHIFT) * itself)

    def anything(self, features: Floats) -> Floats:
        """The attention (places,) to the thing that stands out most."""
        return softmax(self.linear("occupied", features)[0])

    def sight(self, planes: Floats, attention: Floats) -> Sight:
        """The thing where an attention is strongest, as the fovea sees it."""
        u, v = (float(number) for number in self.places_px[int(np.argmax(attention))])
        row, column = corner((u, v), self.shrink)
        padded = np.pad(planes, ((0, 0), (FOVEA // 2, FOVEA // 2), (FOVEA // 2, FOVEA // 2)))
        signal = relu(self.convolve("look1", fold(padded[:, row : row + FOVEA, column : column + FOVEA])))
        seen = relu(self.linear("look3", relu(self.convolve("look2", signal, stride=2)).ravel()))
        color = COLORS[int(np.argmax(self.linear("color_seen", seen)))] if self.channels == 3 else ""
        return Sight(color, self.shapes[int(np.argmax(self.linear("shape_seen", seen)))], (u, v))

    def _query(self, color: str, shape: str, size: str | None) -> Floats:
        weights = self.weights
        query = weights["size.weight"][SIZES.index(size) + 1 if size else 0]
        if shape in self.shapes:
            query = query + weights["shape.weight"][self.shapes.index(shape)]
        return query + weights["color.weight"][COLORS.index(color)] if self.channels == 3 else query


class Gaze(LearnedVlm[Network]):
    """Says what it sees of the things of an instruction, and how to do it."""

    kind = "gaze"
    network_class = Network

    def say(self, image: Image, question: str, most: int) -> tuple[str, bool]:
        """See `LearnedVlm.say`; a question without an instruction of `merton.world.tasks` is about the thing that
        stands out most."""
        network = self.network
        planes = network.planes(image)
        features = network.features(planes)
        command = find(question)
        if command is None:
            thing, target = network.sight(planes, network.anything(features)), None
        else:
            thing = network.sight(planes, network.look_for(features, noun(command.object)))
            said = noun(command.target) if command.target else None
            target = network.sight(planes, network.look_for(features, said)) if said else None
        beside = network.sight(planes, network.look_beside(features, thing))
        words = sentence(command, thing, beside, target).split()
        return " ".join(words[:most]), len(words) <= most


def prepared(image: Image, channels: int, shrink: int) -> NDArray[np.uint8]:
    """The part of an image that a network sees.

    Args:
        image: (height, width, 3) uint8 RGB; its shorter side is brought to `SIDE_PX`.
        channels: 3, or 1 for grey.
        shrink: 1, or 2 for half of the pixels each way.

    Returns:
        (channels, `ROWS_PX` / shrink, `COLUMNS_PX` / shrink).
    """
    height, width = image.shape[:2]
    if min(height, width) != SIDE_PX:
        scale = SIDE_PX / min(height, width)
        size = (round(width * scale), round(height * scale))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        height, width = image.shape[:2]
    top, left = (height - ROWS_PX) // 2 - ABOVE_CENTER_PX, (width - COLUMNS_PX) // 2
    part = image[top : top + ROWS_PX, left : left + COLUMNS_PX]
    if shrink > 1:
        part = np.asarray(cv2.resize(part, None, fx=1 / shrink, fy=1 / shrink, interpolation=cv2.INTER_AREA), np.uint8)
    if channels == 1:
        return np.asarray(cv2.cvtColor(part, cv2.COLOR_RGB2GRAY), np.uint8)[None]
    return np.ascontiguousarray(part.transpose(2, 0, 1))


def places_px(shrink: int) -> Floats:
    """(places, 2) right of and below the centre of the image: the places of the map, row by row."""
    pitch = PITCH * shrink
    rows, columns = np.mgrid[0 : ROWS_PX // pitch, 0 : COLUMNS_PX // pitch]
    pixels = pitch * np.stack([columns.ravel(), rows.ravel()], -1) + 0.5 * (pitch - 1)
    return (pixels - _CENTER_PX).astype(np.float32)


def corner(place_px: tuple[float, float], shrink: int) -> tuple[int, int]:
    """Row and column of the first pixel that the fovea sees around a place, in planes with half a fovea of border."""
    column, row = (np.asarray(place_px) + _CENTER_PX) / shrink + 0.5
    return int(np.clip(row, 0, ROWS_PX // shrink)), int(np.clip(column, 0, COLUMNS_PX // shrink))
