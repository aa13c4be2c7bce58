"""The loop that trains a metric's network: seeded, one thread, and after a kill it goes on to the same bytes.

AdamW with one cycle of the learning rate and the mean absolute error (L1), which opinions that are outliers do not
dominate. Importing it needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import needing
from merton.files import written_whole
from merton.perception.quality.learned.prepared import Array
from merton.perception.quality.learned.weights import refuse_other_training
from merton.processes import one_torch_thread
from merton.progress import OnProgress, unseen
from merton.seeding import derive_seed, generator

with needing("iqa", "a learned metric"):
    import torch
    from torch import Tensor, nn

CHECKPOINT = "checkpoint.pt"
_RISING = 0.2
"""Share of the steps in which the learning rate rises."""


@dataclass(frozen=True)
class Recipe:
    """The settings of a network's training.

    Attributes:
        epochs: passes over the images.
        batch: images in a step.
        rate: the largest learning rate.
        decay: of AdamW.
        mirrored: whether images are mirrored at random; only for arrays whose last axis runs across the image.
    """

    epochs: int
    batch: int = 32
    rate: float = 4e-3
    decay: float = 1e-3
    mirrored: bool = False


def fit(
    network: nn.Module,
    arrays: Sequence[tuple[Array, ...]],
    targets: NDArray[np.float64],
    recipe: Recipe,
    epochs: int,
    seed: int,
    folder: Path,
    identity: str,
    on_progress: OnProgress = unseen,
) -> dict[str, NDArray[Any]]:
    """Train a network on what was prepared of images, from where the checkpoint in the folder ends.

    Args:
        network: takes tensors (batch, ...), gives (batch,) or, in training, (batch, parts); its weights are random.
        arrays: of each image.
        targets: (n,) about 0..1.
        recipe: batch, learning rate and decay.
        epochs: passes over the images.
        seed: order and dropout of each epoch.
        folder: of the checkpoint.
        identity: text that tells this training from any other.
        on_progress: called with (epochs done, epochs in all).

    Returns:
        The network's weights.

    Raises:
        InputError: the checkpoint is that of another training.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    batches = max(1, len(arrays) // recipe.batch)
    state_file = folder / CHECKPOINT
    first = _restore(state_file, identity, network, optimizer)
    goals = torch.from_numpy(targets.astype(np.float32)).to(device)
    for epoch in range(first, epochs):
        on_progress(epoch, epochs)
        rng = generator(seed, "epoch", epoch)
        torch.manual_seed(derive_seed(seed, "dropout", epoch))
        for step, chosen in enumerate(np.array_split(rng.permutation(len(arrays)), batches)):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * _cycle((epoch * batches + step + 1) / (epochs * batches))
            inputs = gather([arrays[index] for index in chosen], device)
            if recipe.mirrored and rng.random() < 0.5:
                inputs = tuple(each.flip(-1) for each in inputs)
            outputs = network(*inputs).reshape(len(chosen), -1)
            loss = (outputs - goals[chosen][:, None]).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with written_whole(state_file) as file:
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "epoch": epoch + 1, "identity": identity}, file)
    on_progress(epochs, epochs)
    return {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}


def gather(chosen: Sequence[tuple[Array, ...]], device: torch.device) -> tuple[Tensor, ...]:
    """The arrays of images as tensors (batch, ...) of float32; maps of several sizes are cut to what all have."""
    return tuple(torch.from_numpy(_stacked(each)).to(device).float() for each in zip(*chosen, strict=True))


def run(network: nn.Module, arrays: Sequence[tuple[Array, ...]]) -> NDArray[np.float64]:
    """(n,) outputs for what was prepared of images, one image at a time."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).eval()
    with torch.no_grad():
        outputs = [network(*gather([each], device)).item() for each in arrays]
    return np.array(outputs, np.float64)


@contextmanager
def seeded_single_thread(seed: int) -> Iterator[None]:
    """Torch works in one thread, and its random numbers begin with the seed."""
    with one_torch_thread(torch):
        torch.manual_seed(seed)
        yield


def _restore(file: Path, identity: str, network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    if not file.exists():
        return 0
    state = torch.load(file, weights_only=True, map_location="cpu")
    refuse_other_training(file.parent, state["identity"], identity)
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"])


def _cycle(part: float) -> float:
    """The learning rate as a share of the largest: half a cosine up, half a cosine down to a thousandth."""
    if part < _RISING:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * part / _RISING)) / 2
    return 0.001 + 0.999 * (1 + math.cos(math.pi * (part - _RISING) / (1 - _RISING))) / 2


def _stacked(arrays: Sequence[Array]) -> Array:
    if arrays[0].ndim < 3 or all(array.shape == arrays[0].shape for array in arrays):
        return np.stack(arrays)
    height, width = (min(array.shape[axis] for array in arrays) for axis in (-2, -1))
    cuts = []
    for array in arrays:
        top, left = (array.shape[-2] - height) // 2, (array.shape[-1] - width) // 2
        cuts.append(array[..., top : top + height, left : left + width])
    return np.stack(cuts)
