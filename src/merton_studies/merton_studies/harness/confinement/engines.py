"""The engines that shut a program in, the Python that runs inside, and the view that this Python has of the machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import merton
import merton_studies
from merton.errors import InputError, MissingDependencyError
from merton_studies.harness.confinement.limits import ROOM

ENGINES = ("bubblewrap", "namespaces")
"""In order of preference: bubblewrap where it is installed, else the kernel's namespaces through our own launcher."""
UNPRIVILEGED = 65534
"""The user and group that root becomes: "nobody"."""
OLDEST_PYTHON = (3, 10)
PYTHON_PLACE = "/python"


@dataclass(frozen=True)
class Inside:
    """The Python inside and the file system around it."""

    python: str
    """Its path inside."""
    binds: list[tuple[str, str]]
    """Mounts, read-only: path outside, path inside."""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Symbolic links: content, path inside."""
    masks: list[str] = field(default_factory=list)
    """Folders inside that are covered by an empty one."""
    environ: dict[str, str] = field(default_factory=dict)


def bubblewrap_path() -> str | None:
    """The `bwrap` of this machine."""
    return shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")


def remedy() -> str:
    """The remedy for a machine where no engine works: a clause."""
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_file():
        return "Ubuntu forbids user namespaces: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return (
        "sudo apt-get install bubblewrap, and let users make namespaces: sudo sysctl user.max_user_namespaces=10000; "
        "in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
        "--security-opt systempaths=unconfined --cap-add SYS_ADMIN"
    )


def system_python() -> Path | None:
    """The system's Python with its whole standard library, if it is new enough."""
    python = Path("/usr/bin/python3").resolve()
    version = re.fullmatch(r"python(3)\.(\d+)", python.name)
    if not (python.is_file() and version) or (int(version[1]), int(version[2])) < OLDEST_PYTHON:
        return None
    # Debian's python3-minimal has the interpreter and a tenth of the library
    homes = [Path("/usr") / lib / python.name for lib in ("lib", "lib64")]
    return python if any((home / "ctypes").is_dir() and (home / "statistics.py").is_file() for home in homes) else None


def system_folders() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Mounts and symbolic links of the system, as of `Inside`: /usr, and /bin, /lib, ... as they are there."""
    binds, links = [("/usr", "/usr")], []
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        place = Path("/") / name
        if place.is_symlink():
            links.append((str(place.resolve()).removeprefix("/"), str(place)))
        elif place.is_dir():
            binds.append((str(place), str(place)))
    return binds, links


def packages_of(place: Path) -> list[Path]:
    """Folders of installed packages below a prefix of Python."""
    found = [*place.glob("lib*/python3*/site-packages"), *place.glob("lib*/python3*/dist-packages")]
    return sorted(path for path in found if path.is_dir() and not path.is_symlink())


def inside(python: Path | None) -> Inside:
    """The view of a program: the system read-only without any installed package, and `python`.

    Args:
        python: the system's Python; None takes the installation that this process's Python comes from, mounted aside.
    """
    binds, links = system_folders()
    hidden = [*packages_of(Path("/usr")), *(path for path in (Path("/usr/local"), Path("/usr/src")) if path.is_dir())]
    masks = [str(path) for path in hidden]
    environ = {"PATH": "/usr/bin", "LANG": "C.UTF-8", "HOME": f"{ROOM}/tmp", "TMPDIR": f"{ROOM}/tmp"}
    places = {Path("/usr"): "/usr"}
    own = "/usr/bin/python3" if python is None else str(python)
    if python is None:
        base = Path(sys.base_prefix).resolve()
        binds.append((str(base), PYTHON_PLACE))
        masks += [PYTHON_PLACE + str(path).removeprefix(str(base)) for path in packages_of(base)]
        environ["LD_LIBRARY_PATH"] = f"{PYTHON_PLACE}/lib"
        own = f"{PYTHON_PLACE}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
        places[base] = PYTHON_PLACE
    for package, (place, shown) in product((merton, merton_studies), places.items()):
        sources = Path(str(package.__file__)).resolve().parent
        covered = f"{shown}/{sources.relative_to(place)}" if sources.is_relative_to(place) else ""
        if covered and not any(covered.startswith(f"{mask}/") for mask in masks):
            masks.append(covered)
    links.append((f"{ROOM}/tmp", "/tmp"))
    return Inside(own, binds, links, masks, environ)


def check_inputs(inputs: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Mounts of input files and folders below /inputs.

    Raises:
        InputError: for a name that is no file name, a path that does not exist, and, as root, one closed to others.
    """
    binds = []
    for name, path in inputs.items():
        check_name(name)
        if not path.exists():
            raise InputError(f"the input {name!r} of a sandbox does not exist: {path}")
        needed = 0o005 if path.is_dir() else 0o004
        if os.geteuid() == 0 and path.stat().st_mode & needed != needed:
            raise InputError(f"the input {name!r} of a sandbox is closed to other users: chmod -R o+rX {path}")
        binds.append((str(path.resolve()), f"/inputs/{name}"))
    return binds


def check_name(name: str) -> None:
    """Refuse a name that leads out of the folder it is meant for, with an InputError."""
    parts = name.split("/")
    if not name.isprintable() or any(part in ("", ".", "..") for part in parts) or len(name) > 200:
        raise InputError(
            f"{name!r} is no name of a file in a sandbox: relative, without '..', printable, 200 characters"
        )


def plan(
    engine: str,
    view: Inside,
    inputs: list[tuple[str, str]],
    descriptors: Mapping[str, int],
    room_bytes: int,
    room_files: int,
) -> dict[str, Any]:
    """The plan for the launcher, as plain values.

    Raises:
        MissingDependencyError: bubblewrap is not installed.
    """
    if engine == "bubblewrap" and bubblewrap_path() is None:
        raise MissingDependencyError("bubblewrap is not installed: sudo apt-get install bubblewrap")
    warden = Path(__file__).with_name("warden.py").read_text(encoding="utf-8")
    return {
        "engine": engine,
        "parent": os.getpid(),
        "bwrap": bubblewrap_path(),
        "uid": UNPRIVILEGED if os.geteuid() == 0 else None,
        "binds": [[source, target] for source, target in (*view.binds, *inputs)],
        "links": view.links,
        "masks": view.masks,
        "room": ROOM,
        "bytes": room_bytes,
        "files": room_files,
        "descriptors": dict(descriptors),
        "command": [view.python, "-I", "-S", "-B", "-c", warden],
    }
