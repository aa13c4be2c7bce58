"""The description of a world: its cameras, tasks, actions and versions, as it gives it itself and run.json keeps it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from merton.config import Model, text_like
from merton.world.action_space import ActionSpace

Ability = Literal["fork", "expert", "depth", "things", "progress", "scene", "sensor", "latency", "stop"]
"""Something that not every world can: `fork`, save a state and go back to it; `expert`, decide from its own state;
`depth`, of its pictures; `things`, the pixels of the things that a task names; `progress`, the way to success. The last
four are the UR5 cell's alone: `scene`, tell the oracle where everything is; `sensor`, imitate one; `latency`, show the
past; `stop`, before table and walls."""

Count = Annotated[int, Field(ge=1)]
Name = Annotated[
    str,
    text_like(
        r"^[a-z0-9][a-z0-9_-]{0,63}$",
        "lower-case letters, digits, _ and -, beginning with a letter or digit, at most 64",
    ),
]


class WorldCamera(Model):
    """A camera, whose pictures are upright.

    Attributes:
        name: such as "agentview".
        width_px, height_px: of its pictures.
    """

    name: Name
    width_px: Count
    height_px: Count


class WorldTask(Model):
    """A task, with its scenes 0, 1, ... `scenes` - 1.

    Attributes:
        name: such as "libero_spatial_0".
        instruction: its words.
        scenes: the number of its scenes.
        group: tasks of one group are done in the same scenes, which count as one unit of every interval; usually the
            task's own name.
        max_rows: rows after which the world ends a trial, the step limit of its benchmark.
    """

    name: Name
    instruction: str
    scenes: Count
    group: Name
    max_rows: Count


class WorldDescription(Model):
    """All that Merton must know of a world before a trial.

    Attributes:
        cameras: at least one.
        tasks: at least one.
        action: the form of its actions.
        frame: the frame of the points of a path and its unit, in words, such as "LIBERO's world [m]"; "" if its robot
            has no such point.
        distorted_at: the point of the preprocessing at which a picture is distorted, in one sentence.
        abilities: of `Ability`.
        versions: package, "renderer" or "assets" to its version or hash: runs with others are not comparable.
    """

    cameras: Annotated[tuple[WorldCamera, ...], Field(min_length=1)]
    tasks: Annotated[tuple[WorldTask, ...], Field(min_length=1)]
    action: ActionSpace
    frame: str
    distorted_at: str
    abilities: tuple[Ability, ...] = ()
    versions: dict[str, str]

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        for kind, names in (("camera", self.camera_names), ("task", self.task_names)):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"the {kind} {name!r} is there twice")
        return self

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Of `cameras`, in order."""
        return tuple(camera.name for camera in self.cameras)

    @property
    def task_names(self) -> tuple[str, ...]:
        """Of `tasks`, in order."""
        return tuple(task.name for task in self.tasks)

    def task(self, name: str) -> WorldTask:
        """The task of a name of `task_names`."""
        return next(task for task in self.tasks if task.name == name)
