"""The tasks, and the grammar of their instructions: one for scenes, agents and answers.

Directions are the robot's: in `base_link`, left is +y, right is -y, forward is +x.

A task has the name of its verb in the `plain` scenes, such as "pick"; in the scenes of a split the split stands before
it, such as "test-pick" (docs/use/scenes.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from merton.errors import InputError, UnknownNameError
from merton.registry import Registry
from merton.world.nouns import COLORS, SHAPES, VARIED_SHAPES, pattern

__all__ = ["COLORS", "DIRECTIONS", "PLAIN", "SHAPES", "SPLITS", "TASKS", "Command", "Task"]
__all__ += ["find", "parse", "scene_of", "split_and_verb", "task_names"]

PLAIN = "plain"
"""The scenes that belong to no split: two shapes, one look, no two things of one colour."""
SPLITS = ("train", "val", "test", "shift")
"""The splits of the varied scenes: three of one kind, and one with textures, lights and shapes of its own."""
DIRECTIONS = {"left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Direction word to unit vector (x, y) in `base_link`."""


@dataclass(frozen=True)
class Task:
    """A task verb.

    Attributes:
        name: the verb, such as "pick".
        template: the instruction, with the fields {object}, {direction}, {target}.
        difficulty: 1 (easiest) upwards.
        description: the condition of success in words.
        objects: shapes that {object} may have.
        targets: shapes that {target} may have.
    """

    name: str
    template: str
    difficulty: int
    description: str
    objects: tuple[str, ...] = SHAPES
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A parsed instruction.

    Attributes:
        verb: name of the task.
        object: the thing to handle, a noun of `merton.world.nouns` such as "red cube"; for cover, the thing under the
            lid.
        direction: "left" or "right" if the task has a direction, else None.
        target: the second thing of the task, such as the "<color> mat" of place, else None.
    """

    verb: str
    object: str
    direction: str | None = None
    target: str | None = None

    @property
    def instruction(self) -> str:
        """The command in words; `parse` reads it back."""
        return TASKS[self.verb].template.format(object=self.object, direction=self.direction, target=self.target)


TASKS: Registry[Task] = Registry("task")
for _task in (
    Task("reach", "reach above the {object}", 1, "the tool centre point ends within 3 cm of 10 cm above the object"),
    Task(
        "push",
        "push the {object} to the {direction}",
        2,
        "the object ends at least 6 cm further that way, upright on the table",
    ),
    Task("pick", "pick up the {object}", 3, "the object ends at least 8 cm higher, held by the gripper"),
    Task(
        "place",
        "place the {object} on the {target}",
        4,
        "the object ends on the mat, released, gripper clear of it",
        targets=("mat",),
    ),
    Task(
        "press",
        "press and hold the {object}",
        2,
        "the button ends pressed down by at least 80 % of its travel, against its spring",
        objects=("button",),
    ),
    Task("pull", "pull the {object} open", 3, "the drawer ends at least 6 cm further open", objects=("drawer",)),
    Task(
        "twist",
        "twist the {object} to the {direction}",
        3,
        "the knob ends turned by at least 45 degrees, right being clockwise as seen from above",
        objects=("knob",),
    ),
    Task(
        "move",
        "move the {object} to the {direction} of the {target}",
        4,
        "the object ends 5 to 13 cm to that side of the other and at most 3 cm before or behind it, upright on the "
        "table, released, the other within 2 cm of where it was",
        targets=SHAPES,
    ),
    Task(
        "cover",
        "cover the {object} with the {target}",
        5,
        "the lid ends upright on the table with the whole object under its roof, released",
        targets=("lid",),
    ),
    Task(
        "insert",
        "insert the {object} into the {target}",
        5,
        "the peg ends upright in the hole, at least three quarters of the way in, released",
        objects=("peg",),
        targets=("socket",),
    ),
    Task(
        "pour",
        "pour the {object} into the {target}",
        6,
        "at least three quarters of the beads end in the bowl, out of the cup",
        objects=("cup",),
        targets=("bowl",),
    ),
):
    TASKS.add(_task.name, _task)


def split_and_verb(task: str) -> tuple[str, str]:
    """The split of a task (`PLAIN` if its name has none) and its verb, such as ("test", "pick") of "test-pick".

    Raises UnknownNameError with the valid names.
    """
    split, dash, verb = task.rpartition("-")
    if verb not in TASKS or (split not in SPLITS if dash else False):
        raise UnknownNameError("task", task, task_names())
    return split or PLAIN, verb


def task_names() -> tuple[str, ...]:
    """Every task: the verbs, then those of each split."""
    return (*TASKS, *(f"{split}-{verb}" for split in SPLITS for verb in TASKS))


def scene_of(task: str, seed: int) -> str:
    """What is on the table: "test.7" for all tasks of that scene, "pick.7" for the one of a plain scene."""
    split, verb = split_and_verb(task)
    return f"{verb if split == PLAIN else split}.{seed}"


def _pattern(task: Task) -> re.Pattern[str]:
    def shapes(named: tuple[str, ...]) -> tuple[str, ...]:
        return SHAPES + VARIED_SHAPES if named == SHAPES else named

    return re.compile(
        task.template.format(
            object=f"(?P<object>{pattern(shapes(task.objects))})",
            target=f"(?P<target>{pattern(shapes(task.targets))})",
            direction=f"(?P<direction>{'|'.join(DIRECTIONS)})",
        )
    )


_PATTERNS = {name: _pattern(task) for name, task in TASKS.items()}


def parse(instruction: str) -> Command:
    """Parse an instruction; raises InputError with the forms that are valid."""
    text = " ".join(instruction.lower().split()).rstrip(".")
    for verb, form in _PATTERNS.items():
        if match := form.fullmatch(text):
            return Command(verb, **match.groupdict())
    forms = "; ".join(task.template for task in TASKS.values())
    raise InputError(f"cannot understand the instruction {instruction!r}; it must read like one of: {forms}")


def find(text: str) -> Command | None:
    """The last instruction inside a text, such as the task inside a question; None if there is none."""
    words = " ".join(text.lower().split())
    found = [
        (match.end(), Command(verb, **match.groupdict()))
        for verb, form in _PATTERNS.items()
        for match in re.finditer(rf"\b{form.pattern}\b", words)
    ]
    return max(found, key=lambda end_and_command: end_and_command[0], default=(0, None))[1]
