"""`GymnasiumWorld`: the world of docs/use/tutorials/your_world.md, and environments that do not repeat."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import merton.worlds.hosted
from merton.worlds.description import WorldDescription
from sources import ROOT

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (the extra gym)")
PAGE = ROOT / "docs" / "use" / "tutorials" / "your_world.md"


@pytest.fixture
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the tutorial's world, imported as host.py does: its folder and that of the adapters come first."""
    for name, content in re.findall(r"```python\n# (dot_\w+\.py)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    names = {"dot_env", "dot_world", "gymnasium_world"}
    monkeypatch.syspath_prepend(str(Path(merton.worlds.hosted.__file__).parent))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("dot_world")
    for name in names:
        sys.modules.pop(name, None)


def test_the_tutorials_world_has_thirty_lines() -> None:
    (adapter,) = re.findall(r"```python\n# dot_world\.py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(adapter.splitlines()) <= 30


def test_it_describes_itself_and_its_expert_arrives(tutorial: Any) -> None:
    world = tutorial.DotWorld()
    description = WorldDescription.model_validate_json(json.dumps(world.describe()))
    assert description.camera_names == ("front",)
    assert (description.cameras[0].width_px, description.action.form) == (96, "rows")
    for scene in range(3):
        assert world.reset("go-to-green", scene) == "move the red dot onto the green one"
        assert not world.success()
        ends = [world.step(world.expert()) for _ in range(10)]
        assert world.success()
        assert ends[-1] == "success"


def test_a_fork_is_the_reset_and_the_same_rows(tutorial: Any) -> None:
    world, draw = tutorial.DotWorld(), np.random.default_rng(0)
    world.reset("go-to-green", 4)
    for row in draw.uniform(-0.1, 0.1, (5, 2)):
        world.step(row)
    kept, seen = world.save(), world.look("front")
    rows = draw.uniform(-0.1, 0.1, (5, 2))
    ends = []
    for _ in range(2):
        for row in rows:
            world.step(row)
        ends.append((world.state(), world.look("front").tobytes()))
        world.reset("go-to-green", 9)
        world.load(kept)
        assert (world.look("front") == seen).all()
    assert ends[0] == ends[1]


@pytest.mark.parametrize("part", ["observation", "picture"])
def test_a_reset_that_does_not_repeat_is_refused(tutorial: Any, part: str) -> None:
    class Unseeded(tutorial.DotEnv):
        count = 0

        def reset(self, **given: Any) -> Any:
            self.count += 1
            observation, info = super().reset(**given)
            return observation + (self.count if part == "observation" else 0), info

        def render(self) -> Any:
            return super().render() + np.uint8(self.count)

    class World(tutorial.DotWorld):
        def make(self, task: str) -> Unseeded:
            return Unseeded()

    world = World()
    world.describe()
    with pytest.raises(Exception, match=f"the first {part} of go-to-green .* with seed 2.*self.np_random"):
        world.reset("go-to-green", 2)


def test_a_fork_that_leads_elsewhere_is_refused(tutorial: Any) -> None:
    class Slippery(tutorial.DotEnv):
        steps = 0

        def step(self, action: Any) -> Any:
            self.steps += 1
            return super().step(action + 0.001 * self.steps)

    class World(tutorial.DotWorld):
        def make(self, task: str) -> Slippery:
            return Slippery()

    world = World()
    world.reset("go-to-green", 0)
    world.step(np.zeros(2))
    with pytest.raises(Exception, match="elsewhere after the same 1 rows"):
        world.load(world.save())


def test_an_environment_without_a_word_on_success_is_refused(tutorial: Any) -> None:
    class Silent(tutorial.DotEnv):
        def step(self, action: Any) -> Any:
            return (*super().step(action)[:4], {})

    class World(tutorial.DotWorld):
        def make(self, task: str) -> Silent:
            return Silent()

    world = World()
    world.reset("go-to-green", 0)
    assert not world.success()
    world.step(np.zeros(2))
    with pytest.raises(KeyError, match="neither is_success nor success"):
        world.success()


def test_an_environment_that_is_missing_or_renders_nothing_is_told(tutorial: Any) -> None:
    class Blind(tutorial.DotEnv):
        def render(self) -> None:
            return None

    class World(tutorial.DotWorld):
        def make(self, task: str) -> Blind:
            return Blind()

    class Nothing(tutorial.GymnasiumWorld):
        tasks = tutorial.DotWorld.tasks
        max_rows = 30

    with pytest.raises(TypeError, match='go-to-green renders no picture: give it render_mode="rgb_array"'):
        World().describe()
    with pytest.raises(NotImplementedError, match=r"Nothing needs make\(task\)"):
        Nothing().describe()


def test_numbers_of_every_observation_are_compared(tutorial: Any) -> None:
    flat = importlib.import_module("gymnasium_world")._flat
    assert flat({"b": np.array([[1, 2]], np.uint8), "a": (3.5, {"c": True})}).tolist() == [3.5, 1, 1, 2]
    assert flat(7).tolist() == [7]
    assert flat({}).tolist() == []
