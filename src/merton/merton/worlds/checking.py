"""The check of a world: it starts, describes itself, and keeps what `World` promises, to the last bit and pixel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, InputError, MertonError
from merton.models.base import Finding
from merton.world.geometry import Array
from merton.worlds.base import RobotState
from merton.worlds.client import HostedWorld
from merton.worlds.description import WorldDescription
from merton.worlds.entry import WorldEntry

ROWS = 3
"""Of the expert that are asked for."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Instant:
    """The state and the pictures of all cameras of a world at one instant."""

    state: RobotState
    pictures: dict[str, NDArray[np.uint8]]


def examined(entry: WorldEntry) -> Iterator[Finding]:
    """Start a hosted world and check it on the first scene of its first task; the first problem ends the check.

    Each finding has the time of what it did, so that a reader sees the cost of a trial.

    Raises InputError for a world in this process, whose checks are Merton's own tests.
    """
    if not entry.is_hosted:
        raise InputError(f"the world {entry.name!r} is part of this installation: there is nothing to check")
    subject, world = "start", None
    try:
        world = entry.build()
        assert isinstance(world, HostedWorld)
        for subject, check in CHECKS:
            if detail := check(world):
                yield Finding(subject, True, detail)
    except MertonError as error:
        yield Finding(subject, False, str(error))
    finally:
        if world is not None:
            world.close()


def _start(world: HostedWorld) -> str:
    """A hosted world's process starts at the first reset; its description is then compared with that of before."""
    description = world.description
    task = description.tasks[0]
    instruction, took_s = _timed(lambda: world.reset(task.name, 0))
    versions = ", ".join(f"{name} {version}" for name, version in description.versions.items())
    return f"{_seconds(took_s)}; {task.name}: {instruction!r}; {versions}"


def _scenes(world: HostedWorld) -> str:
    """The first scene again, after another task's or another scene, is the same."""
    description = world.description
    task, other = description.tasks[0], description.tasks[-1]
    world.reset(task.name, 0)
    first = instant(world)
    world.reset(other.name, other.scenes - 1)
    _, took_s = _timed(lambda: world.reset(task.name, 0))
    _agree(first, instant(world), f"scene 0 of {task.name} is another one after a scene of {other.name}")
    return f"the same bytes and pixels after another scene; a reset takes {_seconds(took_s)}"


def _pictures(world: HostedWorld) -> str:
    """Looking changes nothing; depth and things, where the world is able, have the size of the picture."""
    able, task = world.description.abilities, world.description.tasks[0].name
    world.reset(task, 0)
    row, _ = next_row(world)
    took = []
    for camera in world.description.cameras:
        look, took_s = _timed(partial(world.look, camera.name, depth="depth" in able))
        took.append(f"{camera.name} {look.color.shape[1]} x {look.color.shape[0]} px in {_seconds(took_s)}")
        if "things" in able:
            world.things(camera.name)
    world.carry_out_rows(row[None])
    looked = instant(world)
    world.reset(task, 0)
    world.carry_out_rows(row[None])
    _agree(looked, instant(world), "a row after looking leads elsewhere than without")
    return ", ".join(took)


def _rows(world: HostedWorld) -> str:
    """A row of the expert, else of rest, is carried out."""
    row, kind = next_row(world)
    carried, took_s = _timed(lambda: world.carry_out_rows(row[None]))
    if carried.rows != 1:
        raise InfrastructureError(f"a row of {kind} was not carried out: {carried.ended or 'it does not say why'}")
    action = world.description.action
    return f"a row of {kind}, {action.form} of {len(row)}, {action.period_s:g} s each, in {_seconds(took_s)}"


def _fork(world: HostedWorld) -> str:
    """What follows a state that the world went back to is what followed it before."""
    if "fork" not in world.description.abilities:
        return ""
    world.reset(world.description.tasks[0].name, 0)
    snapshot, took_s = _timed(world.save)
    row, _ = next_row(world)
    world.carry_out_rows([row] * ROWS)
    first = instant(world)
    world.load(snapshot)
    world.carry_out_rows([row] * ROWS)
    _agree(first, instant(world), f"{ROWS} rows after going back lead elsewhere than before")
    return f"the same bytes and pixels {ROWS} rows after going back; saved in {_seconds(took_s)}"


def _expert(world: HostedWorld) -> str:
    """The expert's rows are those that it decides one by one."""
    if "expert" not in world.description.abilities:
        return ""
    world.reset(world.description.tasks[0].name, 0)
    rows, took_s = _timed(lambda: world.expert(ROWS))
    for number, row in enumerate(rows):
        if world.expert(1)[0].tobytes() != row.tobytes():
            raise InputError(f"the expert decides otherwise if it is asked for one row at a time, from row {number} on")
        world.carry_out_rows(row[None])
    return f"{len(rows)} rows in {_seconds(took_s)}, the same as one by one"


CHECKS: tuple[tuple[str, Callable[[HostedWorld], str]], ...] = (
    ("start", _start),
    ("scenes", _scenes),
    ("pictures", _pictures),
    ("rows", _rows),
    ("fork", _fork),
    ("expert", _expert),
)
"""Subject to a function that says in a clause what it found, "" if the world is not able to; a problem is raised."""


def next_row(world: HostedWorld) -> tuple[Array, str]:
    """A row that can be carried out now, and its kind: the expert's, else rest, else the middle of each column."""
    description = world.description
    if "expert" in description.abilities and len(rows := world.expert(1)):
        return rows[0], "the expert"
    if (rest := world.state().rest_row) is not None:
        return rest, "rest"
    return np.array([(column.low + column.high) / 2 for column in description.action.columns]), "the middle"


def instant(world: HostedWorld) -> Instant:
    """The state and the pictures now."""
    names = world.description.camera_names
    return Instant(world.state(), {name: world.look(name).color for name in names})


def differences(first: Instant, second: Instant) -> list[str]:
    """All that differs between two instants, in words; empty if they are the same to the last bit and pixel."""
    found = [
        f"{name} of the state"
        for name, value, other in _pairs(first.state, second.state)
        if _bytes(value) != _bytes(other)
    ]
    for name, picture in first.pictures.items():
        if (share := float(np.mean((picture != second.pictures[name]).any(axis=-1)))) > 0:
            found.append(f"{100 * share:.2g} % of the pixels of {name}")
    return found


def _pairs(first: RobotState, second: RobotState) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(RobotState):
        value, other = getattr(first, field.name), getattr(second, field.name)
        if field.name != "extra":
            yield field.name, value, other
            continue
        value, other = value or {}, other or {}
        yield from ((name, value.get(name), other.get(name)) for name in {**value, **other})


def _bytes(value: Any) -> bytes | None:
    return None if value is None else np.asarray(value).tobytes()


def _agree(first: Instant, second: Instant, otherwise: str) -> None:
    if found := differences(first, second):
        raise InputError(f"{otherwise}: it differs in {' and '.join(found)}")


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    began_s = time.monotonic()
    result = work()
    return result, time.monotonic() - began_s


def _seconds(took_s: float) -> str:
    return f"{1000 * took_s:.2g} ms" if took_s < 0.1 else f"{took_s:.2g} s"


def summary(description: WorldDescription) -> str:
    """A world in a few words: tasks, scenes, cameras, abilities."""
    scenes, count = sum(task.scenes for task in description.tasks), len(description.tasks)
    cameras = ", ".join(description.camera_names)
    able = f"; able: {', '.join(description.abilities)}" if description.abilities else ""
    return f"{count} task{'s' if count > 1 else ''} with {scenes} scenes, cameras {cameras}{able}"
