"""The splits of varied scenes, and the sampling unit that the name of a task stands for."""

from __future__ import annotations

SPLITS = ("train", "val", "test", "shift")
"""The splits of the varied scenes: three of one kind, and one with textures, lights and shapes of its own."""


def unit_of(task: str) -> str:
    """The unit in which scenes are numbered: the split of a task in varied scenes, else the task itself.

    All tasks of a split, such as "test-pick", are done in its scenes. The verb behind a split is one word, so tasks of
    other programs keep scenes of their own, such as "push-v3" and "push-back-v3".
    """
    split, _, verb = task.partition("-")
    return split if split in SPLITS and verb.isascii() and verb.isalpha() and verb.islower() else task
