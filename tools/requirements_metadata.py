"""Reads the requirements of the package `merton` from requirements/*.txt, so that they are written down once.

A hook of hatchling, which runs it when the package is built: base.txt are the dependencies, and every other file but
those in `NOT_EXTRAS` is an extra of its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

NOT_EXTRAS = ("base", "bench", "build")
"""The dependencies themselves, the peers of `make bench`, and what builds the package."""


class RequirementsMetadata(MetadataHookInterface):
    """Fills in `dependencies` and `optional-dependencies` of pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the lines of the requirements files into the metadata of the project."""
        files = sorted((Path(self.root) / "requirements").glob("*.txt"))
        read = {file.stem: _requirements(file) for file in files}
        metadata["dependencies"] = read["base"]
        metadata["optional-dependencies"] = {name: read[name] for name in read if name not in NOT_EXTRAS}


def _requirements(file: Path) -> list[str]:
    """The requirements of a file, without its comments and empty lines."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
