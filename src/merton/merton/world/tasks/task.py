"""The form of a task and of a command, and the registry of tasks (docs/use/adding_a_task.md)."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import Formatter

import numpy as np

from merton.errors import FileError, InputError, describe_error
from merton.registry import Registry
from merton.world.cell import CellConfig, Props, load_cell
from merton.world.geometry import Array, Matrix, transform
from merton.world.motion import Motion
from merton.world.nouns import SHAPES, VARIED_SHAPES
from merton.world.tasks.prop import Prop
from merton.world.tasks.room import Site
from merton.world.tasks.situation import Remaining, Situation

VARIABLE = "MERTON_TASKS"
"""Names the files of a lab's own tasks; several are separated as in PATH."""
DIRECTIONS = {"left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Direction word to unit vector (x, y) in `base_link`."""
MAT = "mat"
"""The kind of target that is paint on the table: things stand on it, and it takes no room from them."""


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

    @property
    def along(self) -> Array:
        """Unit vector (2,) of the direction in `base_link`; for a command that has one."""
        return np.array(DIRECTIONS[str(self.direction)])


@lru_cache(maxsize=1)
def _sizes() -> Props:
    return load_cell().objects.props


@dataclass(frozen=True)
class Poses:
    """The places of a command's things, from which its motion follows; poses (4, 4) in `base_link`.

    Attributes:
        thing: pose of the object.
        yaw_rad: yaw of its sides; None if it is round.
        target: pose of the target; that of `base_link` if the command has none.
        direction: "left" or "right", or None.
        sizes: of the props; those of config/cell.yaml.
    """

    thing: Matrix
    yaw_rad: float | None = None
    target: Matrix = field(default_factory=transform)
    direction: str | None = None
    sizes: Props = field(default_factory=_sizes)

    @property
    def along(self) -> Array:
        """Unit vector (2,) of the direction; for a command that has one."""
        return np.array(DIRECTIONS[str(self.direction)])


@dataclass(frozen=True)
class Task:
    """A task: all that a scene, the judge, the oracle and questions have to know about a verb.

    Attributes:
        name: the verb, one word, such as "pick".
        template: the instruction, with the fields {object}, {direction}, {target}.
        description: the condition of success in words.
        remaining: of a command, a situation and the cell: the way that remains to success. Success is a way of 0 with
            every condition met.
        motion: of a hand and the poses of things: the same hand after the whole task was done, for the oracle.
        plan: the motion in about five words, with the fields {direction}, {target}, as a VLM would say it.
        objects: shapes that {object} may have.
        targets: shapes that {target} may have.
        props: the props that it needs.
        room: whether it can be done with things at these places; None if it needs no more room than its things do
            (`Prop.plain`).
        beads: the cup has beads in it.
        kit: with which tasks it shares the scenes of splits: those of one kit stand in one scene. Only Merton's own
            tasks are in them; None for all others.
        unfit: shapes with which it cannot be done, in the scenes of splits: they roll away, fall over or do not fit.
        use: a kind of thing, and its use in words, for questions about what can be done with it.
        goal: the state that it reaches in words, with the fields {object}, {target}, for questions about plans.

    Raises:
        InputError: a name that is no word, or that of another thing; a template without {object}, or with a field that
            does not exist; a shape without a thing.
    """

    name: str
    template: str
    description: str
    remaining: Callable[[Command, Situation, CellConfig], Remaining]
    motion: Callable[[Motion, Poses], Motion]
    plan: str
    objects: tuple[str, ...] = SHAPES
    targets: tuple[str, ...] = ()
    props: tuple[Prop, ...] = ()
    room: Callable[[Site], bool] | None = None
    beads: bool = False
    kit: str | None = None
    unfit: tuple[str, ...] = ()
    use: tuple[str, str] = ("", "")
    goal: str = ""

    def __post_init__(self) -> None:
        words = [self.name, *(prop.name for prop in self.props)]
        if wrong := [word for word in words if not re.fullmatch("[a-z]+", word)]:
            raise InputError(f"the name of a task or prop must be one word of small letters, got {wrong[0]!r}")
        if taken := [prop.name for prop in self.props if prop.name in (*SHAPES, *VARIED_SHAPES, MAT)]:
            raise InputError(f"the prop {taken[0]!r} of the task {self.name!r} has the name of another kind of thing")
        fields = [name for _, name, _, _ in Formatter().parse(self.template) if name is not None]
        wanted = {"object", *(["target"] if self.targets else [])}
        if len(set(fields)) < len(fields) or not wanted <= {*fields} <= {*wanted, "direction"}:
            raise InputError(
                f"the template of the task {self.name!r} must have the fields "
                f"{' and '.join(f'{{{name}}}' for name in sorted(wanted))} and may have {{direction}}, each once, "
                f"got {self.template!r}"
            )
        kinds = (*SHAPES, MAT, *(prop.name for prop in self.props))
        if missing := [shape for shape in (*self.objects, *self.targets) if shape not in kinds]:
            raise InputError(
                f"the task {self.name!r} has no thing for the shape {missing[0]!r}; there are: {', '.join(kinds)}"
            )

    @property
    def directed(self) -> bool:
        """Whether its instructions have a direction."""
        return "{direction}" in self.template


class Tasks(Registry[Task]):
    """The tasks by name: Merton's own, then those of the files that MERTON_TASKS names, read at the first use.

    Every access may raise InputError: a file cannot be read, or its task is wrong.
    """

    def __init__(self) -> None:
        super().__init__("task")
        self._files_are_read = False
        self._files: dict[str, Path] = {}

    def _read_once(self) -> None:
        if self._files_are_read:
            return
        own = dict(self._entries)
        self._files_are_read = True  # here, as a file may look at the registry itself
        try:
            for path in lab_files():
                task = task_of_file(path)
                self.add(task.name, task)
                self._files[task.name] = path.absolute()
        except Exception:
            self._entries, self._files_are_read = own, False
            raise

    def add(self, name: str, entry: Task) -> Task:
        """Register a task; raises MertonError if its name, or that of one of its props for another prop, is taken."""
        known = {prop.name: (other, prop) for other, task in self._entries.items() for prop in task.props}
        for prop in entry.props:
            owner, same = known.get(prop.name, (name, prop))
            if same is not prop:
                raise InputError(f"the prop {prop.name!r} of the task {name!r} is another one than that of {owner!r}")
        return super().add(name, entry)

    def file_of(self, name: str) -> Path | None:
        """The lab's file that a task is from, absolute; None of Merton's own, and of a name that is none."""
        self._read_once()
        return self._files.get(name)


TASKS = Tasks()


def lab_files() -> tuple[Path, ...]:
    """The files that MERTON_TASKS names."""
    return tuple(Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name)


def task_of_file(path: Path) -> Task:
    """The `TASK` that a file of Python defines.

    Raises:
        FileError: there is no such file.
        InputError: its code fails, or it has no `TASK`.
    """
    if not path.is_file():
        raise FileError(f"cannot read {path}, which {VARIABLE} names: there is no such file")
    spec = importlib.util.spec_from_file_location(f"merton_task_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}, which {VARIABLE} names, is not a file of Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the code of a lab may raise anything
        raise InputError(f"{path}: its code failed: {describe_error(error)}") from error
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise InputError(f"{path} must define TASK, a merton.world.tasks.Task")
    return task


def prop_of(kind: str) -> Prop | None:
    """The prop of a kind, the last word of a thing's name, such as "lid"; None of an object or mat."""
    return next((prop for task in TASKS.values() for prop in task.props if prop.name == kind), None)


def all_props() -> tuple[Prop, ...]:
    """Every prop once, in the order of the tasks."""
    return tuple({prop.name: prop for task in TASKS.values() for prop in task.props}.values())
