"""A lab's own worlds for tests: catalogue files beside `point_world.py`, and an interpreter whose venv and pip obey."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import point_world
import pytest

from merton.config import dumps
from merton.models.catalogue import VARIABLE
from merton.worlds import entry as entries
from merton.worlds.entry import Worlds
from merton.worlds.environments import VARIABLE as FOLDER

ADAPTER = "point_world.py:Point"

INTERPRETER = f"""#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python";;
  "-m pip") echo "Collecting point"; %s;;
  *) exec {sys.executable} "$@";;
esac
"""
"""A Python for which `-m venv` copies itself, and `-m pip` does what is put in; all else is this interpreter's."""


class Lab:
    """A lab's folder with a catalogue, an adapter beside it and the folder of its environments.

    Args:
        folder: empty.
        monkeypatch: puts its catalogue and its folder of worlds in place of the user's.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalogue, self.adapter, self.worlds = folder / "mine.yaml", folder / "point_world.py", folder / "worlds"
        self._folder, self._monkeypatch = folder, monkeypatch
        shutil.copy(point_world.__file__, self.adapter)
        monkeypatch.setenv(VARIABLE, str(self.catalogue))
        monkeypatch.setenv(FOLDER, str(self.worlds))

    def has(self, **worlds: Mapping[str, Any]) -> Worlds:
        """Write worlds, by name, into the catalogue; returns all worlds as another process would read them."""
        common = {"description": "a point in a plane", "adapter": ADAPTER}
        entries_ = [{"name": name, **common, **fields} for name, fields in worlds.items()]
        self.catalogue.write_text(dumps({"world": entries_}), encoding="utf-8")
        self._monkeypatch.setattr(entries, "WORLDS", Worlds())
        return entries.WORLDS

    def interpreter(self, pip: str, name: str = "python") -> Path:
        """An `INTERPRETER` whose pip carries out shell commands."""
        path = self._folder / name
        path.write_text(INTERPRETER % pip, encoding="utf-8")
        path.chmod(0o755)
        return path
