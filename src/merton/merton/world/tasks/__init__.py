"""The tasks: a file for each verb, their registry and the grammar of their instructions (docs/use/adding_a_task.md).

Directions are the robot's: in `base_link`, left is +y, right is -y, forward is +x.
"""

from merton.world.nouns import COLORS, SHAPES
from merton.world.splits import SPLITS
from merton.world.tasks.grammar import (
    PLAIN,
    action_words,
    example_of,
    find,
    kinds_of_things,
    parse,
    scene_of,
    split_and_verb,
    task_names,
)
from merton.world.tasks.own import VERBS
from merton.world.tasks.prop import Joint, MovingPart, Prop
from merton.world.tasks.room import PLAIN_OBJECT, VARIED_OBJECT, Neighbour, Site, Stand
from merton.world.tasks.situation import PAD_LINKS, Remaining, Situation, excess, shortfall
from merton.world.tasks.task import (
    DIRECTIONS,
    MAT,
    TASKS,
    VARIABLE,
    Command,
    Poses,
    Task,
    all_props,
    lab_files,
    prop_of,
)

__all__ = [
    "COLORS",
    "DIRECTIONS",
    "MAT",
    "PAD_LINKS",
    "PLAIN",
    "PLAIN_OBJECT",
    "SHAPES",
    "SPLITS",
    "TASKS",
    "VARIABLE",
    "VARIED_OBJECT",
    "VERBS",
    "Command",
    "Joint",
    "MovingPart",
    "Neighbour",
    "Poses",
    "Prop",
    "Remaining",
    "Site",
    "Situation",
    "Stand",
    "Task",
    "action_words",
    "all_props",
    "example_of",
    "excess",
    "find",
    "kinds_of_things",
    "lab_files",
    "parse",
    "prop_of",
    "scene_of",
    "shortfall",
    "split_and_verb",
    "task_names",
]
