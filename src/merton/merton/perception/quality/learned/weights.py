"""Weights of a trained metric: one .npz file with arrays, the scale of the labels, and a card."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import merton
from merton.errors import InputError
from merton.files import written_whole
from merton.perception.quality.pairs import ImagePair

_KNOTS = 257
"""Most points of a scale."""


@dataclass(frozen=True)
class Scale:
    """The relation between labels and the unit that a network learns: straight lines between points.

    Attributes:
        unit: (k,) rising, 0..1.
        labels: (k,) rising.
    """

    unit: NDArray[np.float64]
    labels: NDArray[np.float64]

    @classmethod
    def by_range(cls, labels: NDArray[np.float64]) -> Scale:
        """The smallest label becomes 0, the largest 1."""
        return cls(np.array([0.0, 1.0]), np.array([labels.min(), labels.max()]))

    @classmethod
    def by_rank(cls, labels: NDArray[np.float64]) -> Scale:
        """A label becomes the share of labels below it, equal ones counted half.

        Ours: most opinions crowd near the best, and a loss on their range would hardly tell those apart.
        """
        values, counts = np.unique(labels, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2) / len(labels)
        kept = np.unique(np.linspace(0, len(values) - 1, _KNOTS).round().astype(int))
        return cls(ranks[kept], values[kept])

    def to_unit(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The unit of labels that the scale was made of."""
        return np.interp(labels, self.labels, self.unit)

    def to_labels(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """The labels of units; beyond both ends they go on with the slope of the whole, so that no two become equal."""
        beyond = unit - np.clip(unit, self.unit[0], self.unit[-1])
        return np.interp(unit, self.unit, self.labels) + beyond * (self.labels[-1] - self.labels[0])


@dataclass(frozen=True)
class Card:
    """The origin of weights: the network, the training and the images that they were made of.

    Attributes:
        metric, version: of the network; other versions cannot use the weights.
        seed, epochs: of the training.
        pairs: how many.
        lowest, highest: range of the labels.
        pairs_sha256: of the names of the images, with their folders' names.
        labels_sha256: of the labels as float64.
        merton, torch: versions.
    """

    metric: str
    version: int
    seed: int
    epochs: int
    pairs: int
    lowest: float
    highest: float
    pairs_sha256: str
    labels_sha256: str
    merton: str
    torch: str

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def make_card(
    metric: str,
    version: int,
    pairs: Sequence[ImagePair],
    labels: NDArray[np.float64],
    seed: int,
    epochs: int,
    torch_version: str,
) -> Card:
    """The card of a training."""
    names = "\n".join(f"{_name(pair.image)}\t{_name(pair.reference)}" for pair in pairs)
    return Card(
        metric=metric,
        version=version,
        seed=seed,
        epochs=epochs,
        pairs=len(pairs),
        lowest=float(labels.min()),
        highest=float(labels.max()),
        pairs_sha256=hashlib.sha256(names.encode()).hexdigest(),
        labels_sha256=hashlib.sha256(labels.astype("<f8").tobytes()).hexdigest(),
        merton=merton.__version__,
        torch=torch_version,
    )


def write_weights(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    scale: Scale,
    card: Card,
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write the file whole; the same content gives the same bytes. `extra` keeps its types (`read_extra`)."""
    content: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    content |= {"scale_unit": scale.unit, "scale_labels": scale.labels, "card": np.array(card.text)}
    content |= dict(extra or {})
    with written_whole(path) as file:
        np.savez_compressed(file, **content)


def read_card(path: Path) -> Card:
    """The card of a file of `write_weights`; raises InputError for any other file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return Card(**json.loads(str(stored["card"])))
    except OSError as error:
        raise InputError(f"cannot read the weights {str(path)!r}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{str(path)!r} holds no weights of a metric of image quality") from None


def refuse_other_training(folder: Path, known: str, card: str) -> None:
    """Raises InputError if a folder holds the training of another card (`Card.text`) than the one that is wanted."""
    if known != card:
        raise InputError(
            f"{str(folder)!r} holds the training of other images, labels, seed, epochs or versions; "
            "choose another folder"
        )


def check_card(path: Path, metric: str, version: int) -> Card:
    """The card; raises InputError if the weights are not of this metric and version."""
    card = read_card(path)
    if (card.metric, card.version) != (metric, version):
        raise InputError(
            f"{str(path)!r} holds weights of {card.metric}, version {card.version}, and this is {metric}, "
            f"version {version}: train it again"
        )
    return card


def read_scale(path: Path) -> Scale:
    """The scale of a file of `write_weights`."""
    with np.load(path, allow_pickle=False) as stored:
        return Scale(stored["scale_unit"], stored["scale_labels"])


def read_extra(path: Path, name: str) -> NDArray[Any]:
    """One of the extra arrays of a file of `write_weights`."""
    with np.load(path, allow_pickle=False) as stored:
        return np.asarray(stored[name])


def _name(file: Path | None) -> str:
    return "" if file is None else f"{file.parent.name}/{file.name}"
