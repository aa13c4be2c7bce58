"""merton-nr and merton-fr: small convolutional networks on local measures, learned from the opinions of robots' models.

Ours. `measures` is the fixed first layer; the rest is learned from opinions and runs in plain numpy. merton-nr sees the
image alone, merton-fr also the reference. docs/studies/learned_metrics.md is the model card of the weights that ship.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu
from merton.perception.quality.learned.base import TRAINABLE
from merton.perception.quality.learned.measures import SMALLEST_SIDE_PX, differences, measures
from merton.perception.quality.learned.metric import LearnedMetric
from merton.perception.quality.learned.prepared import Array, Item, Preparation
from merton.perception.quality.learned.weights import Scale, read_scale
from merton.perception.quality.pairs import ImagePair
from merton.world.observation import Image

if TYPE_CHECKING:
    from torch import nn

    from merton.perception.quality.learned.train import Recipe

FOLDER = Path(__file__).parent
"""Folder of the weights that ship."""
BEST = 5.0
"""The score of an image on which all five tasks are decided as on the reference."""

MEASURES = Preparation("measures-1", measures)
DIFFERENCES = Preparation("differences-1", differences)


class SmallNetwork(NumpyNetwork):
    """The network in plain numpy; `twins.PooledNetwork` and `twins.ComparingNetwork` are the same in torch.

    Args:
        path: weights of merton-nr or merton-fr.
    """

    def output(self, *measured: Array) -> float:
        """0..1, higher is better, of an image's measures, or of those of an image, a reference and both."""
        signal = measured[0].astype(np.float32)
        if len(measured) > 1:
            reference = measured[1].astype(np.float32)
            signal = np.concatenate([signal - reference, reference, measured[2].astype(np.float32)])
        signal = (signal - self.weights["center"][..., None]) / self.weights["spread"][..., None]
        rows, columns = (side - side % 2 for side in signal.shape[1:])
        folded = fold(np.ascontiguousarray(signal[:, :rows, :columns]))
        near = relu(self.linear("near", folded.reshape(len(folded), -1)).reshape(-1, rows // 2, columns // 2))
        far = relu(self.convolve("far", near, stride=2))
        hidden = relu(self.linear("joined", np.concatenate([*_pooled(near), *_pooled(far)])))
        return float(1 / (1 + np.exp(-np.float64(self.linear("score", hidden)[0]))))


class SmallMetric(LearnedMetric):
    """The common base of merton-nr and merton-fr."""

    width: ClassVar[int]
    depth: ClassVar[int]
    epochs: ClassVar[int]

    def recipe(self) -> Recipe:
        """One cycle, images mirrored at random."""
        from merton.perception.quality.learned.train import Recipe

        return Recipe(self.epochs, mirrored=True)

    def network(self, arrays: Sequence[tuple[Array, ...]]) -> nn.Module:
        """The twin in torch."""
        from merton.perception.quality.learned import twins

        return twins.network(self.needs_reference, self.width, self.depth, arrays)

    def outputs(self, weights: Path, arrays: Sequence[tuple[Array, ...]]) -> NDArray[np.float64]:
        """By numpy."""
        network = SmallNetwork(weights)
        return np.array([network.output(*each) for each in arrays], np.float64)


class MertonNR(SmallMetric):
    """merton-nr."""

    name = "merton-nr"
    needs_reference = False
    description = "ours: a small network on local measures of the image, without a reference"
    width, depth, epochs = 24, 32, 6
    image_ms = 0.45

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """The image's measures."""
        return ((MEASURES, (pair.image,)),)


class MertonFR(SmallMetric):
    """merton-fr."""

    name = "merton-fr"
    needs_reference = True
    description = "ours: a small network on local measures of image and reference and of their difference"
    width, depth, epochs = 24, 32, 4
    image_ms = 1.0

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """The measures of the image, of the reference, and of their difference."""
        assert pair.reference is not None, "checked before"
        image, reference = pair.image, pair.reference
        return (MEASURES, (image,)), (MEASURES, (reference,)), (DIFFERENCES, (image, reference))


def shipped(name: str) -> Path:
    """The weights of a metric that ship with Merton, learned from decisions."""
    return FOLDER / f"{name}-decision.npz"


def measure_alone(image: Image) -> float:
    """merton-nr of the shipped weights: the predicted decision score 0..5 of an image, higher is better."""
    return _score(shipped(MertonNR.name), measures(image))


def measure_beside(image: Image, reference: Image) -> float:
    """merton-fr of the shipped weights: the predicted decision score 0..5 of an image beside its reference."""
    return _score(shipped(MertonFR.name), measures(image), measures(reference), differences(image, reference))


def _score(weights: Path, *measured: Array) -> float:
    network, scale = _loaded(weights)
    return float(np.clip(scale.to_labels(np.array([network.output(*measured)]))[0], 0.0, BEST))


@lru_cache(maxsize=4)
def _loaded(weights: Path) -> tuple[SmallNetwork, Scale]:
    return SmallNetwork(weights), read_scale(weights)


def _pooled(signal: Floats) -> tuple[Floats, Floats, Floats]:
    flat = signal.reshape(len(signal), -1)
    mean = flat.mean(1)
    deviation = np.sqrt(((flat - mean[:, None]) ** 2).mean(1) + np.float32(1e-4))
    return mean, flat.max(1), deviation


for _metric in (MertonNR(), MertonFR()):
    TRAINABLE.add(_metric.name, _metric)

__all__ = ["SMALLEST_SIDE_PX", "MertonFR", "MertonNR", "measure_alone", "measure_beside", "shipped"]
