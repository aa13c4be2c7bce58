"""The network of CNNIQA in torch. Importing it needs torch."""

from __future__ import annotations

from merton.errors import needing

with needing("iqa", "a learned metric"):
    import torch
    from torch import Tensor, nn

DRAWN = 4
"""Patches that a step of the training draws from each image. Ours: all of them would cost more and tell little more."""


class PatchNetwork(nn.Module):
    """The score of an image is the mean over its patches."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = nn.Conv2d(1, 50, 7)
        self.first = nn.Linear(100, 800)
        self.second = nn.Linear(800, 800)
        self.dropout = nn.Dropout(0.5)
        self.score = nn.Linear(800, 1)

    def forward(self, patches: Tensor) -> Tensor:
        """(batch,) means over the patches (batch, n, 32, 32); in training (batch, drawn), of some drawn at random."""
        if self.training and patches.shape[1] > DRAWN:
            patches = patches[:, torch.randperm(patches.shape[1])[:DRAWN]]
        maps = self.kernels(patches.flatten(0, 1)[:, None]).flatten(2)
        pooled = torch.cat([maps.max(2).values, maps.min(2).values], 1)  # faster than amax and amin
        hidden = self.dropout(torch.relu(self.second(torch.relu(self.first(pooled)))))
        scores = self.score(hidden)[:, 0].reshape(len(patches), -1)
        return scores if self.training else scores.mean(1)
