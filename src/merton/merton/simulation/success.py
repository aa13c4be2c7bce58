"""Success and progress of a task, from the poses of things and their contacts with the robot.

Each task writes its geometry once, as the way that remains to success (`Task.remaining`). Success is a way of nothing;
progress compares the way now with the way at the start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from merton.world.cell import CellConfig
from merton.world.tasks import TASKS, Command, Situation

UNMET_SHARE = 0.9
"""Ours: a condition that is no length (upright, held, released) and does not hold costs a tenth of the progress."""

_BELOW_1 = math.nextafter(1.0, 0.0)


class Judged(NamedTuple):
    """The judgement of a situation.

    Attributes:
        success: the command has been carried out.
        progress: the share of the way from the start of the trial to success, 0..1; 1 exactly if `success`.
    """

    success: bool
    progress: float


def judged(command: Command, situation: Situation, cell: CellConfig) -> Judged:
    """Success by the condition of the command's task (`Task.description`), and progress towards it.

    With r the way that remains, progress is 1 - r(now) / r(start), at least 0, and `UNMET_SHARE` of that if a
    condition is not met that is no length. Ours: the paper has no such score.
    """
    remaining = TASKS[command.verb].remaining
    way, met = remaining(command, situation, cell)
    if way == 0 and met:
        return Judged(True, 1.0)
    whole = remaining(command, situation.at_start, cell).way
    share = max(0.0, 1 - way / whole) if whole > 0 else 0.0
    return Judged(False, float(min(share * (1.0 if met else UNMET_SHARE), _BELOW_1)))
