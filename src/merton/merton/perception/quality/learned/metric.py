"""The common base of all trained metrics: checks, preparation, training and prediction by torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, MissingDependencyError, require
from merton.files import locked_folder
from merton.perception.quality.learned.base import TrainableMetric
from merton.perception.quality.learned.prepared import Array, Item, prepare_all
from merton.perception.quality.learned.weights import (
    Scale,
    check_card,
    make_card,
    read_card,
    read_scale,
    refuse_other_training,
    write_weights,
)
from merton.perception.quality.pairs import ImagePair
from merton.progress import OnProgress, unseen
from merton.seeding import derive_seed

if TYPE_CHECKING:
    from torch import nn

    from merton.perception.quality.learned.train import Recipe

LEAST_PAIRS = 8
"""Fewer pairs than this are refused. Ours: below, no split leaves anything to learn."""
WEIGHTS = "weights.npz"
READING_MS = 0.3
"""Time of a core for what was prepared of an image, in a training of any number of epochs."""


class LearnedMetric(ABC):
    """A metric whose network is trained by torch; implements `TrainableMetric`.

    A kind of it sets the attributes, says what it needs of a pair, and builds the network.
    """

    name: str
    needs_reference: bool
    description: str
    version: ClassVar[int] = 1
    """Of the network and of what is prepared for it: weights of another version are refused."""
    ranked: ClassVar[bool] = True
    """Whether labels become shares of labels below them (`Scale.by_rank`), or parts of their range."""
    packages: ClassVar[tuple[str, ...]] = ("torch",)
    """That a training imports."""
    began: ClassVar[str] = "random start"
    """As `TrainableMetric.start`."""
    image_ms: float
    """Time of a core for an image in an epoch; tells of progress alone."""

    @abstractmethod
    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """The preparations of a pair: the arguments of the network, in their order."""

    @abstractmethod
    def recipe(self) -> Recipe:
        """The settings of its training."""

    @abstractmethod
    def network(self, arrays: Sequence[tuple[Array, ...]]) -> nn.Module:
        """A network with random weights, its inputs standardised by some of the arrays that it will be trained on."""

    def start(self, weights: Path) -> str:
        """As `TrainableMetric.start`."""
        return self.began

    def missing(self) -> str | None:
        """As `TrainableMetric.missing`."""
        try:
            for package in self.packages:
                require(package, "iqa", f"the training of {self.name}")
        except MissingDependencyError as error:
            return str(error)
        return None

    def cost(self, images: int, epochs: int | None) -> float:
        """As `TrainableMetric.cost`."""
        return 1e-3 * images * (READING_MS + self.image_ms * (self.recipe().epochs if epochs is None else epochs))

    def prepare(self, pairs: Sequence[ImagePair], cache: Path, on_progress: OnProgress = unseen) -> None:
        """As `TrainableMetric.prepare`."""
        check_references(self, pairs)
        prepare_all([item for pair in pairs for item in self.items(pair)], cache, on_progress)

    def train(
        self,
        pairs: Sequence[ImagePair],
        labels: NDArray[np.float64],
        seed: int,
        folder: Path,
        epochs: int | None = None,
        on_progress: OnProgress = unseen,
        cache: Path | None = None,
    ) -> Path:
        """As `TrainableMetric.train`."""
        labels = checked_labels(self, pairs, labels)
        torch = require("torch", "iqa", f"the training of {self.name}")
        from merton.perception.quality.learned import train

        recipe = self.recipe()
        epochs = check_epochs(self.name, recipe.epochs if epochs is None else epochs)
        card = make_card(self.name, self.version, pairs, labels, seed, epochs, str(torch.__version__))
        path = folder / WEIGHTS
        with locked_folder(folder, "training"):
            if path.exists():
                refuse_other_training(folder, read_card(path).text, card.text)
                return path
            arrays = self.arrays(pairs, cache)
            scale = (Scale.by_rank if self.ranked else Scale.by_range)(labels)
            with train.seeded_single_thread(derive_seed(seed, "weights")):
                network = self.network(arrays)
                learned = train.fit(
                    network, arrays, scale.to_unit(labels), recipe, epochs, seed, folder, card.text, on_progress
                )
            write_weights(path, learned, scale, card)
        return path

    def predict(self, weights: Path, pairs: Sequence[ImagePair], cache: Path | None = None) -> NDArray[np.float64]:
        """As `TrainableMetric.predict`."""
        check_card(weights, self.name, self.version)
        check_references(self, pairs)
        return read_scale(weights).to_labels(self.outputs(weights, self.arrays(pairs, cache)))

    def outputs(self, weights: Path, arrays: Sequence[tuple[Array, ...]]) -> NDArray[np.float64]:
        """(n,) what the network gives, about 0..1; here by torch."""
        torch = require("torch", "iqa", self.name)
        from merton.perception.quality.learned import train

        network = self.network(arrays)
        with np.load(weights) as stored:
            network.load_state_dict({name: torch.from_numpy(stored[name]) for name in network.state_dict()})
        with train.seeded_single_thread(0):
            return train.run(network, arrays)

    def arrays(self, pairs: Sequence[ImagePair], cache: Path | None) -> list[tuple[Array, ...]]:
        """The preparations of each pair; one that several pairs share is held once."""
        held: dict[Any, Array] = {}

        def of(item: Item) -> Array:
            if item not in held:
                held[item] = item[0].of(item[1], cache)
            return held[item]

        return [tuple(of(item) for item in self.items(pair)) for pair in pairs]


def check_references(metric: TrainableMetric, pairs: Sequence[ImagePair]) -> None:
    """Raises InputError for an image without the reference that the metric compares it with."""
    if metric.needs_reference and (alone := next((pair for pair in pairs if pair.reference is None), None)):
        raise InputError(f"{metric.name} compares with a reference image, and {str(alone.image)!r} has none")


def check_epochs(name: str, epochs: int) -> int:
    """The number; raises InputError if it is below 1."""
    if epochs < 1:
        raise InputError(f"{name} is trained for at least 1 epoch, not {epochs}")
    return epochs


def checked_labels(
    metric: TrainableMetric, pairs: Sequence[ImagePair], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The labels (n,) from which a metric is to learn, as float64.

    Raises InputError for images without the reference that the metric needs, and as `check_labels`.
    """
    found = np.asarray(labels, np.float64)
    check_references(metric, pairs)
    check_labels(metric.name, pairs, found)
    return found


def check_labels(name: str, pairs: Sequence[ImagePair], labels: NDArray[np.float64]) -> None:
    """Raises InputError for labels from which nothing can be learned: too few, not finite, or all equal."""
    if labels.shape != (len(pairs),):
        raise InputError(f"{len(pairs)} images need as many labels, got an array of {labels.shape}")
    if len(pairs) < LEAST_PAIRS:
        raise InputError(f"{name} needs at least {LEAST_PAIRS} images with labels to learn from, got {len(pairs)}")
    if not np.isfinite(labels).all():
        wrong = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"the label of {str(pairs[wrong].image)!r} is {labels[wrong]}: labels are finite numbers")
    if labels.min() == labels.max():
        raise InputError(f"all {len(labels)} labels are {labels[0]:g}: there is nothing to learn")
