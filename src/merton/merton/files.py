"""Files and folders: where those lie that are not Python, and folders that one process at a time may write into.

Robot description, launch files and configuration are under `share/<package>` of a prefix where colcon installed them;
in a checkout they are at its top.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merton.errors import InfrastructureError, InputError, MissingDependencyError

_FOLDERS = {"merton_description": ("urdf",), "merton_bringup": ("config", "launch")}
_CHECKOUT = Path(__file__).resolve().parents[3]


def resource(package: str, relative: str) -> Path:
    """The absolute path of a file or folder that `package` installs, such as ("merton_bringup", "config/cell.yaml").

    Every prefix in AMENT_PREFIX_PATH is asked in order, then the checkout this file is part of.

    Raises:
        InputError: not a package of Merton's that has such files.
        MissingDependencyError: the file is in none of those places.
    """
    if package not in _FOLDERS:
        raise InputError(f"package {package!r} has no resources; choose one of: {', '.join(_FOLDERS)}")
    if Path(relative).parts[:1] not in [(folder,) for folder in _FOLDERS[package]]:
        raise InputError(f"{package} installs only {' and '.join(_FOLDERS[package])}, not {relative!r}")
    prefixes = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    for candidate in [prefix / "share" / package / relative for prefix in prefixes] + [_CHECKOUT / relative]:
        if candidate.exists():
            return candidate.resolve()
    raise MissingDependencyError(
        f"{package} is not installed ({relative} was not found): source the workspace's install/setup.bash, "
        "or run Merton from its checkout"
    )


@contextmanager
def locked_folder(folder: Path, work: str) -> Iterator[None]:
    """Make the folder if need be and keep others of the same work out of it; ends with this process, however it ends.

    A file system that locks no folders, such as some network ones, keeps nobody out.

    Args:
        folder: where the work is done.
        work: what it is called, for the sentence that the other one gets: "merton run".

    Raises:
        InputError: another process is at work there.
        InfrastructureError: there can be no such folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(folder)!r}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another {work} is at work in {str(folder)!r}; wait for it, or choose another folder"
            ) from None
        except OSError:  # locks no folders
            pass
        yield
    finally:
        os.close(opened)
