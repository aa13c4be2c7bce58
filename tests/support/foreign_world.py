"""The adapter of a world in the environment of its simulator, whose Python an environment variable names.

Started by its path there it is the probe: it begins scenes in a shuffled order, saves, goes on, goes back and goes on
again, and prints what it saw as digests. It then imports nothing but numpy and the adapter.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HOSTED = Path(__file__).parents[2] / "src" / "merton" / "merton" / "worlds" / "hosted"


def python_of(variable: str) -> str:
    """The interpreter that a variable names; skips the test if there is none."""
    import pytest

    python = os.environ.get(variable, "")
    if not python:
        pytest.skip(f"{variable} names no Python with its simulator")
    return python


def run(python: str, *arguments: str) -> Any:
    """What a program of that Python prints in its last line, as JSON; adapters are importable there."""
    places = {"PYTHONPATH": str(HOSTED), "MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "egl"}
    done = subprocess.run([python, *arguments], capture_output=True, text=True, env={**os.environ, **places})
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def probe(python: str, world: str, tasks: list[str], scenes: int, order: int) -> dict[str, list[str]]:
    """Task and scene to the digests of its beginning, its middle and its end, which it reached twice.

    Args:
        world: MODULE:CLASS.
        order: of the shuffle.
    """
    found: dict[str, list[str]] = run(python, __file__, world, json.dumps(tasks), str(scenes), str(order))
    return found


def digest(world: Any, camera: str) -> str:
    """Of state, judgement and a picture."""
    state = dict(world.state())
    numbers = {**state.pop("extra", {}), **state}
    seen = hashlib.sha256(repr((world.success(), getattr(world, "progress", lambda: None)())).encode())
    for name in sorted(numbers):
        seen.update(np.asarray(numbers[name], np.float64).tobytes())
    seen.update(world.look(camera).tobytes())
    return seen.hexdigest()[:16]


def row_of(world: Any, columns: list[dict[str, Any]], draw: np.random.Generator) -> np.ndarray:
    """A row near the one of rest, or the expert's every second time."""
    if hasattr(world, "expert") and draw.uniform() < 0.5:
        return world.expert()
    reach = np.array([column["high"] - column["low"] for column in columns])
    return world.state()["rest_row"] + 0.05 * reach * draw.uniform(-1, 1, len(columns))


def goes_on(world: Any, columns: list[dict[str, Any]], camera: str, seed: int) -> str:
    """The digest after 20 rows more."""
    draw = np.random.default_rng(seed)
    for _ in range(20):
        world.step(row_of(world, columns, draw))
    return digest(world, camera)


def main() -> None:
    name, tasks, scenes, order = sys.argv[1:]
    module, kind = name.split(":")
    world = getattr(importlib.import_module(module), kind)()
    description = world.describe()
    columns, camera = description["action"]["columns"], description["cameras"][0]["name"]
    jobs = [(task, scene) for task in json.loads(tasks) for scene in range(int(scenes))]
    random.Random(int(order)).shuffle(jobs)
    found = {}
    for task, scene in jobs:
        world.reset(task, scene)
        begun, middle = digest(world, camera), goes_on(world, columns, camera, scene)
        kept = world.save()
        ends = [goes_on(world, columns, camera, scene + 1)]
        world.load(kept)
        assert digest(world, camera) == middle
        ends.append(goes_on(world, columns, camera, scene + 1))
        world.reset(task, scene + 1)
        world.load(kept)
        ends.append(goes_on(world, columns, camera, scene + 1))
        assert len(set(ends)) == 1, f"{task} {scene}: a fork differs"
        found[f"{task} {scene}"] = [begun, middle, ends[0]]
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
