"""Small networks in plain numpy: the weights of a file, and the layers that take theirs by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.errors import UnknownNameError
from merton.models.convolution import convolve, unfolded_weight

Floats = NDArray[np.float32]


class NumpyNetwork:
    """The weights that a tool of training stored, and the layers that they belong to.

    A model derives its own network, whose twin in torch is in `tools`.

    Args:
        path: .npz file with arrays named as in the twin's `state_dict`, and `words`, if the network knows some; what is
            no array of fractions is left to the model.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self.words = tuple(str(word) for word in stored["words"]) if "words" in stored.files else ()
            fractions = {name: array for name, array in stored.items() if array.dtype.kind == "f"}
            self.weights = {name: _matrix(array) for name, array in fractions.items()}

    def linear(self, name: str, values: Floats) -> Floats:
        """A linear layer of (inputs,), or of each column of (inputs, positions): a convolution of 1 x 1."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return np.asarray(weight @ values + (bias if values.ndim == 1 else bias[:, None]), np.float32)

    def convolve(self, name: str, signal: Floats, stride: int = 1) -> Floats:
        """A convolution of 3 x 3, as `merton.models.convolution.convolve`."""
        return convolve(signal, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"][:, None], stride)


def relu(values: Floats) -> Floats:
    """The values above 0, 0 instead of the others."""
    return np.maximum(values, 0)


def softmax(logits: Floats) -> Floats:
    """Positive shares that add up to 1 along the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True), np.float32)


def weights_file(folder: Path, kind: str, member: str) -> Path:
    """The file of the weights of a member; raises UnknownNameError with the members of its kind in the folder."""
    path = folder / f"{member}.npz"
    if not path.exists():
        raise UnknownNameError("member", member, sorted(each.stem for each in folder.glob(f"{kind}*.npz")))
    return path


def _matrix(stored: NDArray[np.floating]) -> Floats:
    """A kernel of a convolution, (outputs, inputs, ...), as a matrix; anything else as it is."""
    weight = stored.astype(np.float32)
    if weight.shape[2:] == (3, 3):
        return unfolded_weight(weight)
    if weight.ndim > 2 and weight[0, 0].size == 1:
        return weight.reshape(weight.shape[:2])
    return weight
