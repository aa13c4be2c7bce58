"""The loop that trains a network: AdamW with one cycle of the learning rate; it goes on after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

RATE = 2e-3
SAVED_STEPS = 200

Loss = tuple[Tensor, tuple[Tensor, ...]]
"""The number that is made small, and the parts of it that are reported."""


def train(
    network: nn.Module,
    steps: int,
    state_file: Path,
    loss_of: Callable[[int], Loss],
    rate: float = RATE,
    weight_decay: float = 1e-4,
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Train up to `steps` steps, from where the state in `state_file` ends; it is saved every 200 steps.

    Args:
        network: on its device.
        steps: of the whole training, on which the learning rate depends.
        state_file: network, optimizer, rate and step.
        loss_of: the loss of a step, 0 .. steps - 1, on a batch that depends on the step alone.
        rate, weight_decay: of AdamW; the rate is the largest of the cycle.

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
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % SAVED_STEPS == 0 or step + 1 == steps:
            saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**saved, "schedule": schedule.state_dict(), "step": step + 1}, state_file)
        yield step + 1, tuple(part.item() for part in parts)
