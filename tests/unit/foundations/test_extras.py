"""Extras: the table of them is that of the distributions, and what is missing is named at once, before any work."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from set_up_alone import extras_of_setup

from merton.cli.main import app
from merton.cli.tree import Command
from merton.errors import MissingDependencyError
from merton.extras import EXTRAS, absent, lacking, ready
from merton.graph.spec import load_graph
from sources import PROJECTS, ROOT, project

DECLARED = {name: lines for file in PROJECTS for name, lines in project(file)["optional-dependencies"].items()}


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, with its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


NEEDY = {
    path: command
    for path, command in commands(typer.main.get_command(app), "merton")
    if getattr(command.callback, "needs", ())
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which no package is installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_the_table_has_every_extra_with_all_that_it_brings() -> None:
    brought = {name: {Requirement(line).name for line in lines} for name, lines in DECLARED.items()}
    assert {name: set(extra.packages) for name, extra in EXTRAS.items()} == brought


def test_a_distribution_is_known_by_a_module_that_it_has() -> None:
    homes = {module: {canonicalize_name(name) for name in names} for module, names in _homes().items()}
    pairs = [pair for extra in EXTRAS.values() for pair in extra.packages.items() if pair[1] in homes]
    assert len(pairs) > 10
    assert [pair for pair in pairs if canonicalize_name(pair[0]) not in homes[pair[1]]] == []


def _homes() -> dict[str, list[str]]:
    return {module: list(names) for module, names in metadata.packages_distributions().items()}


def test_what_is_installed_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lacking("a test", "sim") == ""
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert absent("sim") == ["mujoco"]


def test_all_that_is_missing_is_one_sentence_with_one_command(bare: None) -> None:
    sentence = lacking("`merton x`", "dataset", "people", "cluster", "dataset")
    assert sentence.startswith("`merton x` needs pyarrow, av and ray: install it with ")
    assert sentence.count(" pip install ") == 1
    assert re.search(r"merton\[dataset,cluster\]\S+ \S*(merton-studies|merton_studies)\[people\]\S*$", sentence), (
        sentence
    )
    with pytest.raises(MissingDependencyError, match="needs pyarrow:"):
        ready("a test", "dataset")


@pytest.mark.parametrize("path", NEEDY)
def test_a_command_asks_before_it_works(path: str, bare: None) -> None:
    command = NEEDY[path]
    assert isinstance(command, Command)
    context = command.make_context(path, [], resilient_parsing=True)
    with pytest.raises(MissingDependencyError) as caught:
        command.invoke(context)
    named = str(caught.value).partition(": install it with")[0]
    assert named.startswith(f"`{path}` needs ")
    assert [name for extra in command.callback.needs for name in EXTRAS[extra].packages if name not in named] == []


def test_many_commands_ask() -> None:
    assert {"merton demo", "merton monitor", "merton dataset build", "merton leaderboard serve"} <= NEEDY.keys()


def test_a_graph_knows_the_extras_of_its_processes() -> None:
    assert load_graph("sim").extras == ("sim",)
    assert "postgres" in load_graph("sim").with_arguments({"record": "postgresql://host/merton"}).extras
    assert set(load_graph("lab").with_arguments({"recording": "a.mcap"}).extras) == {"sim", "lab", "recording"}


def test_the_page_lists_every_extra_and_those_of_the_set_up() -> None:
    page = (ROOT / "docs/use/installing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)`.*\|(.*)\|$", page.partition("## Extras")[2], re.MULTILINE))
    assert rows.keys() == EXTRAS.keys()
    always = {Requirement(line).extras.pop() for line in project(PROJECTS[1])["dependencies"]}  # of merton-studies
    assert {name for name, cell in rows.items() if cell.strip() == "yes"} == {*extras_of_setup()} | always
