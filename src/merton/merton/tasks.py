"""The tasks, and the few words they are told in. One grammar for scenes, agents and answers.

Directions are the robot's: in `base_link`, left is +y, right is -y, forward is +x.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from merton.errors import InputError
from merton.registry import Registry

COLORS = ("red", "green", "blue", "yellow")
SHAPES = ("cube", "cylinder")
DIRECTIONS = {"left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Direction word to unit vector (x, y) in `base_link`."""


@dataclass(frozen=True)
class Task:
    """A task verb.

    Attributes:
        name: the verb, such as "pick".
        template: the instruction, with the fields {object}, {direction}, {target}.
        difficulty: 1 (easiest) upwards, the order in which the paper would ask them.
        description: what counts as success, for people.
    """

    name: str
    template: str
    difficulty: int
    description: str


@dataclass(frozen=True)
class Command:
    """An instruction, understood.

    Attributes:
        verb: name of the task.
        object: what is to be handled, "<color> <shape>".
        direction: "left" or "right" for push, else None.
        target: "<color> mat" for place, else None.
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
    Task("place", "place the {object} on the {target}", 4, "the object ends on the mat, released, gripper clear of it"),
):
    TASKS.add(_task.name, _task)

_OBJECT = rf"(?P<object>(?:{'|'.join(COLORS)}) (?:{'|'.join(SHAPES)}))"
_PATTERNS = {
    "reach": rf"reach above the {_OBJECT}",
    "push": rf"push the {_OBJECT} to the (?P<direction>{'|'.join(DIRECTIONS)})",
    "pick": rf"pick up the {_OBJECT}",
    "place": rf"place the {_OBJECT} on the (?P<target>(?:{'|'.join(COLORS)}) mat)",
}


def parse(instruction: str) -> Command:
    """Understand an instruction; raises InputError with the forms that are understood."""
    text = " ".join(instruction.lower().split()).rstrip(".")
    for verb, pattern in _PATTERNS.items():
        if match := re.fullmatch(pattern, text):
            return Command(verb, **match.groupdict())
    forms = "; ".join(task.template for task in TASKS.values())
    raise InputError(f"cannot understand the instruction {instruction!r}; it must read like one of: {forms}")
