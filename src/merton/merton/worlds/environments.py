"""Environments of worlds: a folder for each that was added, with its packages and its description of itself.

The folder is MERTON_WORLDS, or ~/.local/share/merton/worlds; in it lies NAME/added.json, which is written last, so that
an addition that was killed leaves a world that is not added. The environment beside it is never moved, since scripts in
it hold its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from merton.config import Model, validated
from merton.errors import InfrastructureError, InputError
from merton.files import write_file
from merton.progress import OnStep, Stage
from merton.worlds.description import WorldDescription
from merton.worlds.link import OTHERS

VARIABLE = "MERTON_WORLDS"
ADDED_FILE = "added.json"
LOG_FILE = "add.log"
"""The output of venv and pip of the last addition."""
LONGEST_STEP = 60
"""Characters of a line of pip's that are shown as it works."""
_ENVIRONMENT = "environment-"


class Added(Model):
    """A world that was added to this machine, as its `ADDED_FILE` keeps it.

    Attributes:
        origin: all of its entry that the environment and the description depend on, by name; see `WorldEntry.origin`.
        environment: name of the folder of its packages beside the file; "" if none had to be made.
        python: version of the interpreter there, such as "3.11"; "" without an environment.
        size_bytes: of the environment on the disk.
        description: as the world gave it; None if it could not be started yet.
    """

    origin: dict[str, Any]
    environment: str = ""
    python: str = ""
    size_bytes: int = 0
    description: WorldDescription | None = None


def worlds_folder() -> Path:
    """The folder of all environments: `VARIABLE`, or worlds in the data folder of the user's programs."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "merton" / "worlds"


def world_folder(name: str) -> Path:
    """The folder of one world."""
    return worlds_folder() / name


def read_added(name: str) -> Added | None:
    """The world of a name as it was added; None if it was not, or by a Merton whose file had another form."""
    try:
        text = (world_folder(name) / ADDED_FILE).read_text(encoding="utf-8")
        return validated(Added, text, ADDED_FILE)
    except (OSError, InputError):
        return None


def write_added(name: str, added: Added) -> None:
    """Keep what `read_added` reads, whole or not at all.

    Raises:
        InfrastructureError: it cannot be written.
    """
    write_file(world_folder(name) / ADDED_FILE, added.model_dump_json(indent=1).encode() + b"\n")


def interpreter_in(name: str, environment: str) -> Path:
    """The Python of an environment of a world."""
    return world_folder(name) / environment / "bin" / "python"


def version_of(python: Path) -> str:
    """The version of an interpreter, such as "3.11"; "" if it does not run."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-I", "-c", question], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


def find_interpreter(name: str, versions: Sequence[str], chosen: Path | None = None) -> Path:
    """The Python that the environment of a world is made with.

    Args:
        name: of the world.
        versions: that it may have, such as "3.11"; any if there are none.
        chosen: by the user; else this Python, then `pythonVERSION` of PATH.

    Raises:
        InputError: it does not run, or there is none of the versions.
    """
    needed = f"the world {name!r} needs Python {' or '.join(versions)}"
    if chosen is not None:
        found = version_of(chosen.expanduser())
        if not found:
            raise InputError(f"{str(chosen)!r} is no Python that runs: name another with --python")
        if versions and found not in versions:
            raise InputError(f"{needed}, and {str(chosen)!r} is {found}")
        return chosen.expanduser()
    if not versions or f"{sys.version_info.major}.{sys.version_info.minor}" in versions:
        return Path(sys.executable)
    for version in versions:
        on_path = shutil.which(f"python{version}")
        if on_path and version_of(Path(on_path)) == version:
            return Path(on_path)
    raise InputError(f"{needed}, which is not on PATH: install python{versions[-1]}, or name one with --python")


def make_environment(name: str, python: Path, requirements: Sequence[str], stage: Stage) -> str:
    """Make a virtual environment with packages in the folder of a world, which must exist.

    Args:
        name: of the world.
        python: the interpreter to make it with.
        requirements: for pip, which is left to its own configuration: indexes, constraints, cache.
        stage: shows each part of the work and the packages as they come.

    Returns:
        The name of its folder.

    Raises:
        InfrastructureError: venv or pip fails; the text has pip's last error and the file with all of its output.
    """
    environment = f"{_ENVIRONMENT}{token_hex(8)}"
    folder, log = world_folder(name) / environment, world_folder(name) / LOG_FILE
    own = interpreter_in(name, environment)
    install = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off")
    try:
        log.unlink(missing_ok=True)
        with stage(f"an environment of Python {version_of(python)}") as say:
            _carry_out((python, "-m", "venv", folder), name, log, say)
        count = f"{len(requirements)} package{'s' if len(requirements) > 1 else ''}"
        with stage(f"{count} and all that they need") as say:
            _carry_out((own, *install, *requirements), name, log, say)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return environment


def remove_environments(name: str, kept: str) -> None:
    """Remove the environments of a world but one: the one before, and those of additions that were killed."""
    for folder in world_folder(name).glob(f"{_ENVIRONMENT}*"):
        if folder.name != kept:
            shutil.rmtree(folder, ignore_errors=True)


def size_on_disk(folder: Path) -> int:
    """Bytes that the files of a folder take on the disk."""
    files = (Path(parent) / file for parent, _, names in os.walk(folder) for file in names)
    return sum(file.lstat().st_blocks * 512 for file in files)


def free_space(folder: Path) -> int:
    """Bytes that are free where a folder is, or will be made."""
    there = next(part for part in (folder, *folder.parents) if part.exists())
    return shutil.disk_usage(there).free


def _carry_out(command: Sequence[str | Path], name: str, log: Path, say: OnStep) -> None:
    """Carry out a command with its output in a log, of which each line is a step."""
    plain = {key: value for key, value in os.environ.items() if key not in OTHERS}
    lines: list[str] = []
    try:
        with (
            log.open("a", encoding="utf-8") as kept,
            subprocess.Popen(
                command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            ) as process,
        ):
            try:
                for line in process.stdout or ():
                    kept.write(line)
                    if words := line.strip():
                        lines.append(words)
                        say(textwrap.shorten(words, LONGEST_STEP, placeholder=" …"))
            except BaseException:
                process.kill()
                raise
    except OSError as error:
        raise InfrastructureError(f"the environment of the world {name!r} cannot be made: {error}") from None
    if process.returncode:
        raise InfrastructureError(
            f"the environment of the world {name!r} cannot be made: {_last_error(lines)} (all of it is in {log})"
        )


def _last_error(lines: Sequence[str]) -> str:
    """The last line of pip that tells of an error, or the last of all."""

    def last(some: Iterable[str]) -> str:
        return next(reversed(list(some)), "")

    return last(line for line in lines if line.startswith("ERROR")) or last(lines) or "it says nothing"
