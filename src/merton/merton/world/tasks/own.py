"""Merton's own tasks, in the order in which they are registered and shown."""

from __future__ import annotations

from merton.world.tasks import cover, insert, move, pick, place, pour, press, pull, push, reach, twist
from merton.world.tasks.task import TASKS

_OWN = (reach, push, pick, place, press, pull, twist, move, cover, insert, pour)

VERBS = tuple(module.TASK.name for module in _OWN)
"""The ten verbs of Embodied-IQA (section 3.1) and reach: the verbs of the scenes of splits, of datasets and of the
policies that were trained. A lab's own tasks are not among them."""

for _module in _OWN:
    TASKS.add(_module.TASK.name, _module.TASK)
