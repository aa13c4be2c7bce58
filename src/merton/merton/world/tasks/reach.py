"""Reach above an object: the easiest task, which the paper does not have."""

from __future__ import annotations

import numpy as np

from merton.world.cell import CellConfig
from merton.world.motion import Motion
from merton.world.tasks.situation import Remaining, Situation, excess
from merton.world.tasks.task import Command, Poses, Task

ABOVE_M, TOLERANCE_M = 0.10, 0.03


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    goal = situation.start[command.object][:3, 3] + (0.0, 0.0, ABOVE_M)
    return Remaining(excess(np.linalg.norm(situation.tcp - goal), TOLERANCE_M))


def _motion(hand: Motion, poses: Poses) -> Motion:
    return hand.move(poses.thing[:3, 3] + (0.0, 0.0, ABOVE_M))


TASK = Task(
    name="reach",
    template="reach above the {object}",
    description="the tool centre point ends within 3 cm of 10 cm above the object",
    remaining=_remaining,
    motion=_motion,
    plan="move hand above it",
    kit="objects",
)
