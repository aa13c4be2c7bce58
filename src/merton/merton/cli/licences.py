"""The licences of all packages that are installed beside Merton, as their own metadata names them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.metadata import Distribution
from pathlib import Path

UNNAMED = "not named in its metadata"
_LONGEST = 60
"""A field "License" that is longer holds the licence's text rather than its name."""


def licences(installed: Iterable[Distribution] | None = None) -> list[tuple[str, str, str]]:
    """Name, version and licence of every installed package, in the order of the alphabet.

    Args:
        installed: the packages to look at; None for all of the Python that runs.
    """
    found = metadata.distributions() if installed is None else installed
    return sorted({(each.name, each.version, _licence(each)) for each in found}, key=lambda row: row[0].lower())


def _licence(package: Distribution) -> str:
    """An SPDX expression if there is one, else the classifiers, else the name in the old field."""
    fields = package.metadata
    if "License-Expression" in fields:
        return fields["License-Expression"]
    classifiers = [line.split(" :: ")[-1] for line in fields.get_all("Classifier") or [] if "License ::" in line]
    if named := [line for line in classifiers if line not in ("OSI Approved", "DFSG approved")]:
        return " or ".join(named)
    lines = fields["License"].strip().splitlines() if "License" in fields else []
    if lines and len(lines[0]) <= _LONGEST:
        return re.sub(r"\s+", " ", lines[0])
    return _licence_of_ros(package.name, Path(sys.prefix) / "share") or UNNAMED


def _licence_of_ros(name: str, share: Path) -> str:
    """The licence in the package.xml of a ROS package, as its wheel installs it; empty for any other package."""
    file = share / re.sub(r"^ros-(jazzy-)?", "", name).replace("-", "_") / "package.xml"
    if not file.is_file():
        return ""
    return " and ".join(re.findall(r"<license[^>]*>([^<]+)</license>", file.read_text(encoding="utf-8")))
