"""The point world (`point_world.py`) and a policy that looks, in the catalogue of a test and added to its machine."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from merton.decision.models.base import POLICIES
from merton.progress import silent
from merton.worlds.adding import add
from merton.worlds.entry import WORLDS

HERE = Path(__file__).parent
EXPERIMENT = """
name: small
world: point
seed: 5
agents:
  - {id: seer, vla: point-seer}
  - {id: hold, vla: hold}
tasks: [reach]
distortions: [max_darken, gaussian_blur]
levels: [5]
scenes: 2
"""


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the catalogues read again, as in a new terminal."""
    for catalogue in (WORLDS, POLICIES):
        monkeypatch.setattr(catalogue, "_read", False)
        monkeypatch.setattr(catalogue, "_entries", {})
        monkeypatch.setattr(catalogue, "_files", {})


def add_point(folder: Path, monkeypatch: pytest.MonkeyPatch, *, adapter: str = "Point", **settings: Any) -> None:
    """Put the world `point` into the catalogue of this test and add it to a machine whose worlds are in `folder`."""
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / "point_seer.py", folder)  # a module beside a catalogue file is found
    file = folder / "worlds.yaml"
    file.write_text(f"""
world:
  - name: point
    description: "a point in a plane"
    adapter: "{HERE / "point_world.py"}:{adapter}"
    settings: {json.dumps(settings)}
    interpreter: {sys.executable}
    deadline_s: 20.0
vla:
  - name: point-seer
    description: "finds point and goal by their colours"
    adapter: "point_seer:PointSeer"
    cameras: [above]
    action: rows
""")
    monkeypatch.setenv("MERTON_CATALOGUE", str(file))
    monkeypatch.setenv("MERTON_WORLDS", str(folder / "worlds"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    forget(monkeypatch)
    add(WORLDS["point"], None, silent)
