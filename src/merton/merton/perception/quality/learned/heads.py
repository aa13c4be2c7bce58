"""Heads on frozen features, in torch. Importing it needs torch."""

from __future__ import annotations

from collections.abc import Sequence

from merton.errors import needing
from merton.perception.quality.learned.lite_features import CHANNELS, GRID
from merton.perception.quality.learned.prepared import Array
from merton.perception.quality.learned.train import gather

with needing("iqa", "a learned metric"):
    import torch
    from torch import Tensor, nn

_SAMPLE = 512
"""Images by which inputs are standardised."""


class Distance(nn.Module):
    """A weighed sum of differences, no weight below 0, then a curve: more difference never means a higher score."""

    spread: Tensor

    def __init__(self, some: Tensor) -> None:
        super().__init__()
        values = some.clamp(min=0).sqrt()
        self.register_buffer("spread", values.mean(0) + 1e-3)
        self.weight = nn.Parameter(torch.full((values.shape[1],), 1.0 / values.shape[1]))
        self.steepness = nn.Parameter(torch.tensor(2.0))
        self.offset = nn.Parameter(torch.tensor(2.0))

    def forward(self, differences: Tensor) -> Tensor:
        """(batch,) 0..1 of differences (batch, features)."""
        scaled = differences.clamp(min=0).sqrt() / self.spread
        return torch.sigmoid(self.offset - self.steepness.abs() * (scaled * self.weight.abs()).sum(1))


class TopDown(nn.Module):
    """From coarse to fine: at each stage the coarser ones say which features count and where."""

    center: Tensor
    spread: Tensor

    def __init__(self, some: Tensor, width: int = 32) -> None:
        super().__init__()
        flat = some.reshape(len(some), -1, *GRID).transpose(0, 1).flatten(1)
        self.register_buffer("center", flat.mean(1)[:, None, None])
        self.register_buffer("spread", flat.std(1)[:, None, None] + 1e-3)
        self.parts = len(flat) // sum(CHANNELS)
        self.enter = nn.ModuleList([nn.Conv2d(self.parts * count, width, 1) for count in CHANNELS])
        self.gates = nn.ModuleList([nn.Conv2d(width, width + 1, 1) for _ in CHANNELS[:-1]])
        self.joined = nn.Linear(len(CHANNELS) * 2 * width, 48)
        self.dropout = nn.Dropout(0.2)
        self.score = nn.Linear(48, 1)

    def forward(self, features: Tensor) -> Tensor:
        """(batch,) 0..1 of features (batch, numbers) of the image and, if it compares, of differences."""
        standard = (features.reshape(len(features), -1, *GRID) - self.center) / self.spread
        parts = [part.split(list(CHANNELS), 1) for part in standard.chunk(self.parts, 1)]
        stages = [
            torch.relu(enter(torch.cat([part[index] for part in parts], 1))) for index, enter in enumerate(self.enter)
        ]
        above, pooled = stages[-1], [*_pooled(stages[-1])]
        for gate, stage in zip(reversed(self.gates), reversed(stages[:-1]), strict=True):
            said = gate(above)
            places = torch.softmax(said[:, :1].flatten(2), 2).reshape(said[:, :1].shape)
            gated = stage * torch.sigmoid(said[:, 1:])
            pooled += [(gated * places).sum((2, 3)), gated.amax((2, 3))]
            above = above + gated
        return torch.sigmoid(self.score(self.dropout(torch.relu(self.joined(torch.cat(pooled, 1))))))[:, 0]


def make(kind: str, arrays: Sequence[tuple[Array, ...]]) -> nn.Module:
    """A head with random weights, standardised by some arrays."""
    (some,) = gather(arrays[:_SAMPLE], torch.device("cpu"))
    return Distance(some) if kind == "Distance" else TopDown(some)


def _pooled(stage: Tensor) -> tuple[Tensor, Tensor]:
    return stage.mean((2, 3)), stage.amax((2, 3))
