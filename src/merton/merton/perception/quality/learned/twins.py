"""The networks of Merton's own learned metrics in torch, for training; `small` has them in numpy.

Importing it needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence

from merton.errors import needing
from merton.perception.quality.learned.measures import OF_ONE, OF_TWO
from merton.perception.quality.learned.prepared import Array

with needing("iqa", "a learned metric"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

_SAMPLE = 512
"""Images by which inputs are standardised."""


class PooledNetwork(nn.Module):
    """Two convolutions on local measures, each pooled by mean, largest and standard deviation, and two linear layers.

    The largest sees a fault in one place, such as a lost block; mean and deviation see one that is everywhere.
    """

    def __init__(self, channels: int, width: int, depth: int) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(channels, 1, 1))
        self.register_buffer("spread", torch.ones(channels, 1, 1))
        self.near = nn.Conv2d(4 * channels, width, 1)
        self.far = nn.Conv2d(width, depth, 3, 2, 1)
        self.joined = nn.Linear(3 * (width + depth), 48)
        self.score = nn.Linear(48, 1)

    def standardise(self, arrays: Sequence[tuple[Array, ...]]) -> None:
        """Take center and spread of every channel from the first images."""
        with torch.no_grad():
            some = [
                self.channels(*(torch.from_numpy(part)[None].float() for part in each)) for each in arrays[:_SAMPLE]
            ]
            values = torch.cat([each.flatten(2)[0] for each in some], 1)
            self.center = values.mean(1)[:, None, None]
            self.spread = values.std(1)[:, None, None] + 1.0

    def channels(self, *measured: Tensor) -> Tensor:
        """The measures of an image as they are."""
        return measured[0]

    def forward(self, *measured: Tensor) -> Tensor:
        """(batch,) 0..1, higher is better, for measures (batch, channels, rows, columns)."""
        signal = (self.channels(*measured) - self.center) / self.spread
        rows, columns = (side - side % 2 for side in signal.shape[-2:])
        near = torch.relu(self.near(functional.pixel_unshuffle(signal[..., :rows, :columns], 2)))
        far = torch.relu(self.far(near))
        pooled = torch.cat([*_pooled(near), *_pooled(far)], 1)
        return torch.sigmoid(self.score(torch.relu(self.joined(pooled))))[:, 0]


class ComparingNetwork(PooledNetwork):
    """The same on what has changed and what is there in the reference, so that a loss on an object can weigh more."""

    def channels(self, *measured: Tensor) -> Tensor:
        """Differences to the reference's measures, these, and the measures of both."""
        image, reference, both = measured
        return torch.cat([image - reference, reference, both], 1)


def network(compares: bool, width: int, depth: int, arrays: Sequence[tuple[Array, ...]]) -> PooledNetwork:
    """A network with random weights, standardised by these arrays."""
    kind = ComparingNetwork if compares else PooledNetwork
    made = kind(2 * OF_ONE + OF_TWO if compares else OF_ONE, width, depth)
    made.standardise(arrays)
    return made


def _pooled(signal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = signal.flatten(2)
    mean = flat.mean(2)
    return mean, flat.amax(2), ((flat - mean[..., None]) ** 2).mean(2).add(1e-4).sqrt()
