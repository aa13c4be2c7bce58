"""Adding a world to this machine: its environment is made, it is started once, and its description is kept."""

from __future__ import annotations

from pathlib import Path

from merton.errors import InputError
from merton.files import locked_folder
from merton.progress import Stage
from merton.worlds.entry import WorldEntry
from merton.worlds.environments import (
    Added,
    find_interpreter,
    interpreter_in,
    make_environment,
    read_added,
    remove_environments,
    size_on_disk,
    version_of,
    world_folder,
    write_added,
)


def add(entry: WorldEntry, python: Path | None, stage: Stage) -> Added:
    """Make the environment of a hosted world, start it once, and keep its description.

    An environment that is there already stays if it is of the same requirements, and of the Python that is asked for.
    It is kept as soon as it is whole, so that an adapter with a mistake costs no second installation.

    Args:
        entry: of the world.
        python: the interpreter to make the environment with; None: see `find_interpreter`.
        stage: shows the parts of the work.

    Raises:
        InputError: the world is in this process, no such Python is there, another process adds it, or as
            `WorldEntry.origin`.
        InfrastructureError: the environment cannot be made, or the world cannot be started.
    """
    if not entry.is_hosted:
        raise InputError(f"the world {entry.name!r} is part of this installation: there is nothing to add")
    if python is not None and not entry.requirements:
        raise InputError(f"no environment is made for the world {entry.name!r}: leave --python out")
    origin = entry.origin()
    with locked_folder(world_folder(entry.name), "merton world add"):
        before = read_added(entry.name)
        remove_environments(entry.name, before.environment if before else "")
        added = Added(origin=origin)
        if entry.requirements:
            added = _with_environment(entry, added, before, python, stage)
        if before is None or added.environment != before.environment:
            write_added(entry.name, added)
            remove_environments(entry.name, added.environment)
        with stage("its start") as say:
            say(entry.adapter or entry.address)
            world = entry.hosted(added.environment, None)
            try:
                added = added.model_copy(update={"description": world.description})
            finally:
                world.close()
        write_added(entry.name, added)
    return added


def _with_environment(
    entry: WorldEntry, added: Added, before: Added | None, python: Path | None, stage: Stage
) -> Added:
    """The same with an environment: that of before, if it serves, else a new one."""
    if before and _serves(entry, added, before, python):
        kept = {"environment": before.environment, "python": before.python, "size_bytes": before.size_bytes}
        return added.model_copy(update=kept)
    chosen = find_interpreter(entry.name, entry.python, python)
    environment = make_environment(entry.name, chosen, entry.requirements, stage)
    return added.model_copy(
        update={
            "environment": environment,
            "python": version_of(interpreter_in(entry.name, environment)),
            "size_bytes": size_on_disk(world_folder(entry.name) / environment),
        }
    )


def _serves(entry: WorldEntry, added: Added, before: Added, python: Path | None) -> bool:
    """Whether the environment of before is of the same requirements, runs, and has the Python that is asked for."""
    version = before.environment and version_of(interpreter_in(entry.name, before.environment))
    if not version or before.origin.get("requirements") != added.origin["requirements"]:
        return False
    wanted = entry.python if python is None else (version_of(python.expanduser()),)
    return not wanted or version in wanted
