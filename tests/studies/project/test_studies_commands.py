"""The commands of the studies: found by their entry point, and one sentence where the package is absent."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import merton as library
from merton.cli import tree
from merton.cli.main import app
from merton_studies.cli import commands

ROOT = Path(library.__file__).parents[3]
WITHOUT = "import importlib.metadata as m; m.entry_points = lambda **_: (); from merton.cli.main import main; main()"
"""The command as where only the loop is installed: no package adds commands."""


def merton(*line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT, *line], capture_output=True, text=True, check=False)


def test_the_loop_names_every_command_of_the_studies() -> None:
    groups = get_command(app).commands  # type: ignore[attr-defined]
    own = [name for _, name, _, _ in commands.COMMANDS]
    assert sorted(tree.STUDIES) == sorted([*own, "distort dataset", "leaderboard answers", "leaderboard evaluate"])
    assert set(own) <= groups.keys()
    assert {"answers", "evaluate"} <= groups["leaderboard"].commands.keys()


@pytest.mark.parametrize("line", [name.split() for name in tree.STUDIES], ids=tree.STUDIES)
def test_a_command_of_an_absent_package_says_how_to_install_it(line: list[str]) -> None:
    done = merton(*line, "--help")
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    pip = [sys.executable, "-m", "pip", "install", "-c", str(ROOT / "requirements/lock.txt")]
    install = shlex.join([*pip, str(ROOT / "src/merton_studies")])
    assert sentence == f"merton: `merton {' '.join(line)}` needs the package merton-studies: install it with {install}"


def test_the_loop_alone_shows_its_own_commands() -> None:
    done = merton("--help")
    assert done.returncode == 0
    shown = {text.split()[0] for text in done.stdout.splitlines() if text.startswith("  ")}
    assert shown.isdisjoint(tree.STUDIES)
    assert {"demo", "run", "report", "leaderboard", "monitor"} <= shown


def test_the_help_of_building_a_benchmark_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the most options of all commands of the studies."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = subprocess.run(
        [sys.executable, "-m", "merton", "curate", "build", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert len(shown.splitlines()) <= 43
    assert "--max-cost" in shown
