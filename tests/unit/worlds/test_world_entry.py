"""The catalogue of worlds: one way of hosting each, a lab's own file, and a description that is kept."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from worlds_of_a_lab import ADAPTER, Lab

from merton.config import validated
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.progress import silent
from merton.worlds import entry as entries
from merton.worlds.adding import add
from merton.worlds.client import HostedWorld
from merton.worlds.entry import HOSTED, WORLDS, WorldEntry, Worlds
from merton.worlds.environments import ADDED_FILE
from merton.worlds.hosted.world_wire import TOKEN
from merton.worlds.link import Address

HERE = {"interpreter": sys.executable}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab's folder."""
    return Lab(tmp_path, monkeypatch)


def test_mertons_own_worlds() -> None:
    assert [*WORLDS][:5] == ["ur5", "libero", "metaworld", "pusht", "aloha"]
    for entry in [WORLDS[name] for name in [*WORLDS][:5]]:
        assert entry.is_hosted == (entry.name != "ur5")
        assert entry.is_hosted == bool(entry.requirements)
        packages = [requirement.partition("==")[0].lower() for requirement in entry.requirements]
        assert len(packages) == len(set(packages))
        assert entry.licence
        assert entry.source


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"adapter": ""}, "its adapter is FILE.py:Class or module:Class, unless it has an address, got ''"),
        ({"adapter": "toy.py"}, "its adapter is FILE.py:Class or module:Class"),
        ({"adapter": "toy.py:Toy"}, "either requirements, to make an environment of, or the interpreter"),
        ({"adapter": "toy.py:Toy", **HERE, "requirements": ["a==1"]}, "either requirements"),
        ({"adapter": "toy.py:Toy", **HERE, "python": ["3.11"]}, "the interpreter has a version of its own"),
        (
            {"adapter": "toy:Toy", "requirements": ["a==1"]},
            "FILE.py:Class in an environment of its own: leave requirements",
        ),
        ({"adapter": "toy:Toy", **HERE}, "leave interpreter out"),
        ({"adapter": "toy.py:Toy", "address": "gpu:8010"}, "a world at an address has its own: leave adapter out"),
        ({"adapter": "", "address": "gpu:8010", "python": ["3.11"]}, "leave python out"),
        ({"adapter": "", "address": "gpu"}, "host:port"),
        ({"adapter": "toy.py:Toy", "requirements": ["numpy>=1"]}, "pinned, such as numpy==1.26.4"),
        ({"adapter": "toy.py:Toy", "requirements": ["a==1"], "python": ["11"]}, "a version such as 3.11"),
        ({"adapter": "toy.py:Toy", **HERE, "deadline_s": 0}, "deadline_s"),
        ({"adapter": "toy.py:Toy", **HERE, "settings": {"size": math.nan}}, "its settings are JSON values, and Out of"),
    ],
)
def test_a_world_is_hosted_in_one_way(fields: dict[str, Any], sentence: str) -> None:
    given = json.dumps({"name": "toy", "description": "", **fields})
    with pytest.raises(InputError, match=re.escape(sentence)):
        validated(WorldEntry, given, "mine.yaml")


def test_an_unknown_world_is_answered_with_the_near_one(lab: Lab) -> None:
    with pytest.raises(UnknownNameError, match="unknown world 'liber'; did you mean 'libero'"):
        lab.has()["liber"]


def test_a_world_that_was_not_added_says_how_to(lab: Lab) -> None:
    entry = lab.has(point=HERE)["point"]
    for ask in (entry.described, entry.build):
        with pytest.raises(InputError, match="the world 'point' is not on this machine: `merton world add point`"):
            ask()


def test_a_labs_world_finds_its_adapter_beside_the_catalogue_file(lab: Lab) -> None:
    worlds = lab.has(point=HERE)
    assert worlds["point"].adapter_file == lab.adapter
    assert worlds.file_of("point") == lab.catalogue
    lab.adapter.unlink()
    with pytest.raises(InputError, match=f"point: no file '{lab.adapter}' for its adapter"):
        worlds["point"].origin()


def test_settings_that_are_no_json_values_are_refused(lab: Lab) -> None:
    lab.has(point=HERE)
    common = f"name: point, description: x, adapter: '{ADAPTER}', interpreter: x"
    lab.catalogue.write_text(f"world:\n  - {{{common}, settings: {{since: 2026-01-01}}}}")
    with pytest.raises(InputError, match="its settings are JSON values, and Object of type date is not"):
        Worlds().read()


def test_an_interpreter_lies_beside_the_catalogue_file_as_the_adapter_does(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sim").symlink_to(sys.prefix)
    entry = lab.has(point={"interpreter": "sim/bin/python"})["point"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert entry.program("").interpreter == tmp_path / "sim" / "bin" / "python"
    absolute = lab.has(point={"interpreter": "~/sim/bin/python"})["point"]
    assert absolute.interpreter == str(Path("~/sim/bin/python").expanduser())


def test_a_lab_may_run_one_of_mertons_adapters_in_an_environment_of_its_own(lab: Lab) -> None:
    mine = lab.has(mine={"adapter": "host.py:Server", **HERE})["mine"]
    assert mine.adapter_file == HOSTED / "host.py"


def test_the_description_is_kept_and_starts_no_process(lab: Lab) -> None:
    entry = lab.has(point={**HERE, "settings": {"scenes": 7}})["point"]
    added = add(entry, None, silent)
    assert entry.described() == added.description
    assert [task.scenes for task in entry.described().tasks] == [7, 7]
    world = entry.build()
    assert isinstance(world, HostedWorld)
    assert world.description == entry.described()
    assert world.pid is None


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda lab: lab.has(point={**HERE, "settings": {"scenes": 8}}), "settings"),
        (lambda lab: lab.adapter.write_text(lab.adapter.read_text() + "\n"), "adapter"),
        (lambda lab: lab.adapter.with_name("helper.py").write_text("SIZE = 2\n"), "adapter"),
        (lambda lab: lab.has(point={"requirements": ["numpy==2.4.6"]}), "requirements and interpreter"),
    ],
)
def test_a_change_of_the_entry_or_its_files_is_told(lab: Lab, change: Any, part: str) -> None:
    lab.adapter.write_text(f"{lab.adapter.read_text()}\n\nif False:\n    import helper\n")
    add(lab.has(point=HERE)["point"], None, silent)
    change(lab)
    now = entries.WORLDS
    with pytest.raises(InputError, match=f"another one than when it was added, by its {part}: `merton world add point"):
        now["point"].described()
    (lab.worlds / "point" / ADDED_FILE).write_text("{}")
    with pytest.raises(InputError, match="is not on this machine"):
        now["point"].described()


def test_what_does_not_matter_to_a_world_changes_nothing(lab: Lab) -> None:
    add(lab.has(point=HERE)["point"], None, silent)
    assert lab.has(point={**HERE, "description": "a dot", "deadline_s": 5.0})["point"].described()


def test_an_interpreter_that_is_gone(lab: Lab) -> None:
    entry = lab.has(point={"interpreter": str(lab.adapter.with_name("none"))})["point"]
    with pytest.raises(InfrastructureError, match=r"the interpreter of the world 'point' is gone, .*none: correct"):
        add(entry, None, silent)


def test_a_world_at_an_address_shows_the_token_of_the_environment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "hush")
    entry = lab.has(far={"adapter": "", "address": "[::1]:8010"})["far"]
    place = entry.place("")
    assert isinstance(place, Address)
    assert (place.host, place.port, place.token) == ("::1", 8010, "hush")
    assert "hush" not in repr(place)
    assert entry.origin() == {"address": "[::1]:8010"}


def test_a_world_of_a_module_is_built_in_this_process(lab: Lab) -> None:
    code = "class Cell:\n    def __init__(self, size):\n        self.size = size\n"
    lab.adapter.with_name("a_labs_cell.py").write_text(code)
    entry = lab.has(cell={"adapter": "a_labs_cell:Cell", "settings": {"size": 3}})["cell"]
    assert not entry.is_hosted
    assert vars(entry.build()) == {"size": 3}
    with pytest.raises(InputError, match=r"cell: a_labs_cell:Cell refuses its settings: .*colour"):
        lab.has(cell={"adapter": "a_labs_cell:Cell", "settings": {"colour": 3}})["cell"].build()
    with pytest.raises(InputError, match="is in this process"):
        entry.described()
