"""The contract of metrics that are trained on opinions, and their registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from merton.errors import MissingDependencyError
from merton.perception.quality.pairs import ImagePair
from merton.progress import OnProgress, unseen
from merton.registry import Registry

if TYPE_CHECKING:
    from merton.perception.quality.learned.prepared import Item


class TrainableMetric(Protocol):
    """A network that learns to predict a score from images.

    Attributes:
        name: as in `TRAINABLE`.
        needs_reference: whether it compares with the undistorted image.
        description: one line, with the source.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs_reference(self) -> bool: ...

    @property
    def description(self) -> str: ...

    def missing(self) -> str | None:
        """One sentence that names a package it cannot be trained without, and how to install it; None if it can be."""
        ...

    def start(self, weights: Path) -> str:
        """Words about what the network of a file of weights began with, such as "random start"."""
        ...

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """The preparations of an image and its reference, which must be there if the metric compares with one."""
        ...

    def cost(self, images: int, epochs: int | None) -> float:
        """About how long a training on so many images lasts, for the progress of many: in seconds of one core."""
        ...

    def prepare(self, pairs: Sequence[ImagePair], cache: Path, on_progress: OnProgress = unseen) -> None:
        """Compute what the metric needs of each image and keep it in a folder, with all usable cores.

        The folder may be shared by metrics, trainings and processes. An image that has changed is computed anew.

        Args:
            pairs: images.
            cache: the folder; for `train` and `predict`.
            on_progress: called with (pieces done, pieces that are missing); an image or a pair may need several.

        Raises:
            InputError: an image that cannot be read, or a missing reference.
            MissingDependencyError: a package for training is not installed.
        """
        ...

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
        """Learn, or go on learning after a kill, and write the weights.

        One thread, so that the bytes do not depend on the number of cores: two trainings beside each other use two.

        Args:
            pairs: (n,) images.
            labels: (n,) scores, higher is better, of any scale.
            seed: the same arguments and seed give the same bytes on one processor.
            folder: for the checkpoints; a folder with those of other arguments is refused.
            epochs: passes over the pairs; None for the metric's own number.
            on_progress: called with (epochs done, epochs in all).
            cache: a folder of `prepare`; None computes everything anew.

        Returns:
            The weights: one .npz file in `folder`, with the metric's name and version, seed, epochs, range of labels,
            and hashes of pairs and labels.

        Raises:
            InputError: fewer pairs than can be learned from, a missing reference, or labels that are not finite or
                all equal.
            MissingDependencyError: a package for training is not installed.
        """
        ...

    def predict(self, weights: Path, pairs: Sequence[ImagePair], cache: Path | None = None) -> NDArray[np.float64]:
        """(n,) predicted scores on the scale of the labels, higher is better.

        Raises:
            InputError: weights of another metric or version, an image that cannot be read, or a missing reference.
        """
        ...


ELSEWHERE: Registry[TrainableMetric] = Registry("trainable metric")
"""Name to metric that is trained in an environment of others."""


class _Trainable(Registry[TrainableMetric]):
    """The metrics that are trained in this environment; a name of `ELSEWHERE` is found, too, but not listed."""

    def _found(self, name: str) -> TrainableMetric | None:
        return self._entries.get(name) or ELSEWHERE.get(name)

    def _known(self) -> Iterable[str]:
        return *self._entries, *ELSEWHERE


TRAINABLE: Registry[TrainableMetric] = _Trainable("trainable metric")
"""Name to metric."""


def trainable(name: str) -> TrainableMetric:
    """The metric of a name, which can be trained here.

    Raises:
        UnknownNameError: no such metric.
        MissingDependencyError: a package for its training is not installed.
    """
    metric = TRAINABLE[name]
    if reason := metric.missing():
        raise MissingDependencyError(reason)
    return metric
