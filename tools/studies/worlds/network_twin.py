"""`cloned.Network` in torch, and its training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from cloned import PLACES
from numpy.typing import NDArray
from torch import Tensor, nn

BATCH = 64
MAPS, WIDTH = 24, 256
PLACES_SHARE = 0.3
"""Of the places' error in the loss: a second task in training, which teaches the eyes to find them."""


@dataclass(frozen=True)
class Examples:
    """Looks of all tasks: pictures (n, cameras, 64, 64, 3), state (n, 4 + tasks), rows (n, 7 k) in units of the spread,
    and places (n, 6) [dm] from the middle of the hands."""

    pictures: NDArray[np.uint8]
    state: NDArray[np.float64]
    rows: NDArray[np.float64]
    places: NDArray[np.float64]


class NetworkTwin(nn.Module):
    """As `cloned.Network`, for batches and with gradients.

    Args:
        cameras, tasks: how many there are.
        rows: numbers that it gives.
    """

    def __init__(self, cameras: int, tasks: int, rows: int) -> None:
        super().__init__()
        self.eyes = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(12, 32, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(32, 32, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(32, MAPS, 3, padding=1),
            )
            for _ in range(cameras)
        )
        self.motion1 = nn.Linear(2 * MAPS * cameras + 4 + tasks, WIDTH)
        self.motion2 = nn.Linear(WIDTH, WIDTH)
        self.motion3 = nn.Linear(WIDTH, rows)
        self.places = nn.Linear(2 * MAPS * cameras + tasks, 3 * PLACES)

    def forward(self, images: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (n, 7 k) and places (n, 6) for images (n, cameras, 3, 64, 64) 0..255 and states (n, 4 + tasks)."""
        points = torch.cat([self._points(eye, images[:, at]) for at, eye in enumerate(self.eyes)], 1)
        hidden = self.motion2(self.motion1(torch.cat([points, state], 1)).relu()).relu()
        return self.motion3(hidden), self.places(torch.cat([points, state[:, 4:]], 1))

    @staticmethod
    def _points(eye: nn.Module, images: Tensor) -> Tensor:
        maps = eye(nn.functional.pixel_unshuffle(images.float() / 255 - 0.5, 2))
        shares = maps.flatten(2).softmax(-1).unflatten(2, maps.shape[2:])
        ticks = torch.linspace(-1, 1, maps.shape[2])
        return torch.cat([shares.sum(2) @ ticks, shares.sum(3) @ ticks], 1)


def trained(examples: Examples, steps: int, state_file: Path) -> Mapping[str, NDArray[np.float32]]:
    """The weights of `cloned.Network` after so many steps of behaviour cloning; prints the loss.

    Args:
        state_file: of `training_loop.train`: from there it goes on after an interruption.
    """
    sys.path.append(str(Path(__file__).parents[2] / "train"))
    from training_loop import Loss, train

    torch.manual_seed(0)
    pictures = torch.from_numpy(examples.pictures).permute(0, 1, 4, 2, 3)
    state, rows, places = (torch.from_numpy(each).float() for each in (examples.state, examples.rows, examples.places))
    network = NetworkTwin(pictures.shape[1], state.shape[1] - 4, rows.shape[1])
    rng = torch.Generator().manual_seed(0)
    batches = [torch.randint(len(rows), (BATCH,), generator=rng) for _ in range(steps)]

    def loss_of(step: int) -> Loss:
        batch = batches[step]
        found, where = network(pictures[batch], state[batch])
        loss = (found - rows[batch]).abs().mean() + PLACES_SHARE * (where - places[batch]).abs().mean()
        return loss, (loss,)

    for done, (loss,) in train(network, steps, state_file, loss_of):
        if done % 250 == 0 or done == steps:
            print(f"step {done}: loss {loss:.3f}", flush=True)
    weights = network.state_dict().items()
    return {name: value.detach().numpy() for name, value in weights if not name.startswith("places")}
