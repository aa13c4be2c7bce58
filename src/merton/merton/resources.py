"""Where the files lie that are not Python: the robot description, launch files and configuration.

Installed by colcon they are under `share/<package>` of a prefix; in a checkout they are at its top.
"""

from __future__ import annotations

import os
from pathlib import Path

from merton.errors import InputError, MissingDependencyError

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
