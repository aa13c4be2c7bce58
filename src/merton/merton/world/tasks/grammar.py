"""The names of tasks and the grammar of their instructions: one for scenes, agents and answers.

A task has the name of its verb in the `plain` scenes, such as "pick"; in the scenes of a split the split stands before
it, such as "test-pick" (docs/use/scenes.md).
"""

from __future__ import annotations

import re
from functools import lru_cache

from merton.errors import InputError, UnknownNameError
from merton.world.nouns import SHAPES, VARIED_SHAPES, pattern
from merton.world.splits import SPLITS
from merton.world.tasks.own import VERBS
from merton.world.tasks.task import DIRECTIONS, MAT, TASKS, Command, Task, all_props

PLAIN = "plain"
"""The scenes that belong to no split: two shapes, one look, no two things of one colour."""


def split_and_verb(task: str) -> tuple[str, str]:
    """The split of a task (`PLAIN` if its name has none) and its verb, such as ("test", "pick") of "test-pick".

    Raises UnknownNameError with the valid names.
    """
    split, dash, verb = task.rpartition("-")
    if verb not in TASKS or (dash and (split not in SPLITS or verb not in VERBS)):
        raise UnknownNameError("task", task, task_names())
    return split or PLAIN, verb


def task_names() -> tuple[str, ...]:
    """Every task: the verbs, a lab's own ones last, then Merton's in each split."""
    return (*TASKS, *(f"{split}-{verb}" for split in SPLITS for verb in VERBS))


def scene_of(task: str, seed: int) -> str:
    """Name of the things on the table: "test.7" for all tasks of that scene, "pick.7" for the one of a plain scene."""
    split, verb = split_and_verb(task)
    return f"{verb if split == PLAIN else split}.{seed}"


def example_of(task: Task) -> Command:
    """A command for a task, with a red object and a blue target."""
    target = f"blue {task.targets[0]}" if task.targets else None
    return Command(task.name, f"red {task.objects[0]}", "left" if task.directed else None, target)


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


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: _pattern(task) for name, task in TASKS.items()}


def parse(instruction: str) -> Command:
    """Parse an instruction; raises InputError with the forms that are valid."""
    text = " ".join(instruction.lower().split()).rstrip(".")
    for verb, form in _patterns().items():
        if match := form.fullmatch(text):
            return Command(verb, **match.groupdict())
    forms = "; ".join(task.template for task in TASKS.values())
    raise InputError(f"cannot understand the instruction {instruction!r}; it must read like one of: {forms}")


def find(text: str) -> Command | None:
    """The last instruction inside a text, such as the task inside a question; None if there is none."""
    words = " ".join(text.lower().split())
    found = [
        (match.end(), Command(verb, **match.groupdict()))
        for verb, form in _patterns().items()
        for match in re.finditer(rf"\b{form.pattern}\b", words)
    ]
    return max(found, key=lambda end_and_command: end_and_command[0], default=(0, None))[1]


def kinds_of_things() -> tuple[str, ...]:
    """The words for the things of all scenes: shapes, the mat, and the props of the tasks."""
    return tuple(dict.fromkeys((*SHAPES, *VARIED_SHAPES, MAT, *(prop.name for prop in all_props()))))


def action_words() -> dict[str, str]:
    """Every word for an action, in its inflections, to the verb that it stands for.

    The words are the verbs of the tasks and those that begin a step of a plan (`Task.plan`). One that is in the plan of
    a single task stands for its verb, as "turn" for "twist" and "lift" for "pick"; others, as "grasp", for themselves.
    """
    verbs: dict[str, str] = {}
    for task in TASKS.values():
        for step in task.plan.split(","):
            word = step.split()[0] if step.strip() else task.name
            verbs[word] = word if word in verbs else task.name
    verbs.update({name: name for name in TASKS})
    return {form: verb for word, verb in verbs.items() for form in _inflected(word)}


def _inflected(verb: str) -> tuple[str, ...]:
    """The regular forms of a verb: "place", "places", "placing", "placed"."""
    stem = verb.removesuffix("e")
    return (verb, f"{verb}s", f"{verb}es", f"{stem}ing", f"{stem}{verb[-1]}ing", f"{stem}ed")
