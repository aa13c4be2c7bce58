"""Parts that trainings of small networks share: the loop, which goes on after an interruption; light; weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

RATE, CLIP = 2e-3, 5.0
SAVED_STEPS = 200

Loss = tuple[Tensor, tuple[Tensor, ...]]
"""The number that is made small, and the parts of it that are reported."""


@dataclass(frozen=True)
class Light:
    """Variation of light: widths of the ranges of strength and colour, about 1, and of the offset of contrast."""

    gain: float
    tint: float
    offset: float


def relit(images: Tensor, rng: torch.Generator, light: Light) -> Tensor:
    """Random strength and colour of light, and contrast; (batch, channels, h, w) 0..1."""
    count = len(images)
    gain = 1 - light.gain / 2 + light.gain * torch.rand(count, 1, 1, 1, generator=rng)
    tint = 1 - light.tint / 2 + light.tint * torch.rand(count, images.shape[1], 1, 1, generator=rng)
    offset = light.offset * (torch.rand(count, 1, 1, 1, generator=rng) - 0.5)
    return (images * gain * tint + offset).clamp(0, 1)


def save(network: nn.Module, words: tuple[str, ...], path: Path) -> None:
    """The weights as float16, and the words that the network knows; makes the folder."""
    arrays = {name: value.detach().cpu().numpy().astype(np.float16) for name, value in network.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, words=np.array(words), **arrays)


def train(
    network: nn.Module,
    steps: int,
    state_file: Path,
    loss_of: Callable[[int], Loss],
    rate: float = RATE,
    weight_decay: float = 1e-4,
    clip: float = CLIP,
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Train up to `steps` steps, from where the state in `state_file` ends; it is saved every 200 steps.

    Args:
        network: on its device.
        steps: of the whole training, on which the learning rate depends.
        state_file: network, optimizer, rate and step.
        loss_of: the loss of a step, 0 .. steps - 1, on a batch that depends on the step alone.
        rate, weight_decay: of AdamW; the rate is the largest of the cycle.
        clip: the largest norm of the gradient.

    Yields:
        The number of steps done, and the parts of the last one's loss.
    """
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    first = 0
    if state_file.exists():
        state = torch.load(state_file, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first = state["step"]
    for step in range(first, steps):
        loss, parts = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        schedule.step()
        if (step + 1) % SAVED_STEPS == 0 or step + 1 == steps:
            saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**saved, "schedule": schedule.state_dict(), "step": step + 1}, state_file)
        yield step + 1, tuple(part.item() for part in parts)
