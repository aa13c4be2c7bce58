"""The facts of a world that a plan needs: its cameras, tasks and scenes, without the world itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from merton.errors import InputError
from merton.results.recorded_world import EMBEDDED
from merton.simulation.scene import scene_seeds
from merton.world.cell import load_cell
from merton.world.tasks import task_names
from merton.worlds.description import WorldDescription
from merton.worlds.entry import WORLDS

UR5 = EMBEDDED
"""The world of an experiment that names none: the embedded cell, or the cell of a ROS graph."""
YARDSTICKS = ("oracle", "expert")
"""The policies that decide from a world's state: Merton's own in the UR5 cell, and the expert that a world has."""
MAX_STEPS = 8
"""Chunks of a trial in the UR5 cell, at most, if the experiment does not say it."""
MOST_STEPS = 1000
"""Chunks of a trial, at most."""


@dataclass(frozen=True)
class WorldFacts:
    """The facts of a world.

    Attributes:
        name: of the catalogue.
        description: as it gave it; None of the UR5 cell, whose facts are config/cell.yaml and the tasks of this
            machine.
    """

    name: str = UR5
    description: WorldDescription | None = None

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names, in order."""
        return load_cell().camera_names if self.description is None else self.description.camera_names

    @property
    def vlm_camera(self) -> str:
        """The camera whose image the VLM is asked about if the experiment does not say it."""
        return "top" if self.description is None else self.description.camera_names[0]

    @property
    def tasks(self) -> Collection[str]:
        """Names, in order."""
        return task_names() if self.description is None else self.description.task_names

    @property
    def yardstick(self) -> str | None:
        """The policy of the reference runs that are added; None if this world has no expert."""
        if self.description is None:
            return "oracle"
        return "expert" if "expert" in self.description.abilities else None

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras (`merton.extras`) that its trials need in this process."""
        return ("sim",) if self.description is None else ()

    def workers(self, asked: int | None = None) -> int | None:
        """The processes for its trials: as many as were asked for, None for one a core.

        A world at an address serves one client at a time; raises InputError if more are asked for.
        """
        if self.name not in WORLDS or not (address := WORLDS[self.name].address):
            return asked
        if asked is not None and asked > 1:
            raise InputError(
                f"the world {self.name} at {address} serves one process at a time, and --workers {asked} asks for more"
            )
        return 1

    @property
    def max_steps(self) -> int:
        """Chunks of a trial, at most, if the experiment does not say it."""
        if self.description is None:
            return MAX_STEPS
        return min(MOST_STEPS, max(task.max_rows for task in self.description.tasks))

    def scenes(self, task: str, number: int) -> list[int]:
        """The first scenes of a task; raises InputError if it has fewer."""
        if self.description is None:
            return scene_seeds(task, number)
        there = self.description.task(task).scenes
        if number > there:
            raise InputError(f"{task} has {there} scenes in the world {self.name}, not {number}")
        return list(range(number))

    def group(self, task: str) -> str:
        """The sampling group of a task, whose tasks share scenes; "" for the one that follows from its name."""
        if self.description is None:
            return ""
        return self.description.task(task).group

    def require_ur5(self, work: str) -> None:
        """Raise InputError for a world that is not the UR5 cell; `work` is done there alone."""
        if self.description is not None:
            raise InputError(f"{work} is of the UR5 cell alone, and this run is of the world {self.name}")

    def can(self, ability: str) -> bool:
        """Whether the world has an ability of `merton.worlds.description.Ability`; the UR5 cell has all but experts."""
        return ability != "expert" if self.description is None else ability in self.description.abilities


def facts_of(world: str, recorded: WorldDescription | None = None) -> WorldFacts:
    """The facts of a world.

    Args:
        recorded: its description in a run, which need not be this machine's.

    Raises:
        UnknownNameError: no world of this machine or of the run.
        InputError: it is not on this machine yet, or has changed since it was added; the text has the command.
    """
    if recorded is not None:
        return WorldFacts(world, recorded)
    entry = WORLDS[world]
    if not entry.is_hosted and world != UR5:
        raise InputError(f"the world {world} is in this process, and one of your own is in another: FILE.py:Class")
    return WorldFacts(world, entry.described() if entry.is_hosted else None)


_PRESENT: ContextVar[WorldFacts | None] = ContextVar("world of the experiment that is being read", default=None)


def present() -> WorldFacts:
    """The facts of the world of the experiment that is being read, by which its names are checked."""
    return _PRESENT.get() or WorldFacts()


@contextmanager
def reading_of(world: Any, recorded: WorldDescription | None) -> Iterator[WorldFacts]:
    """Check names by the facts of a world, as of `facts_of`, for the length of the block."""
    token = _PRESENT.set(facts_of(world, recorded) if isinstance(world, str) else WorldFacts())
    try:
        yield present()
    finally:
        _PRESENT.reset(token)
