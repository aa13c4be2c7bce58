"""The `merton` command as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton import __version__
from merton.cli import doctor
from merton.cli.main import COMMANDS, app
from merton.cli.tree import PANELS
from merton.errors import MertonError, install_line
from merton.extras import EXTRAS


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and stdout of a command."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.stdout


def test_the_version_is_one_line() -> None:
    assert run("--version") == (0, f"{__version__}\n")


@pytest.mark.parametrize("command", [[], ["report"], ["distort"], ["distort", "gallery"], ["leaderboard", "build"]])
def test_h_is_short_for_help(command: list[str]) -> None:
    code, text = run(*command, "-h")
    assert code == 0
    assert "Usage:" in text
    assert text == run(*command, "--help")[1]


def test_the_help_fits_a_screen() -> None:
    """A line of at most 80 characters for each command, and 43 lines at most."""
    lines = run("--help")[1].splitlines()
    assert len(lines) <= 43
    assert max(map(len, lines)) <= 80
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert {name for _, name, _, _ in COMMANDS} <= set(shown)
    assert len(shown) == len(set(shown))
    headings = [line for line in lines if line in PANELS]
    assert headings == list(PANELS)


def test_flags_have_no_type() -> None:
    assert "bool" not in run("run", "--help")[1]
    assert "<str>" in run("run", "--help")[1]


def test_a_shell_completes_commands() -> None:
    asked = {"_MERTON_COMPLETE": "complete_bash", "COMP_WORDS": "merton leaderboard s", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "merton"]
    ended = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["show", "serve"], ended.stderr


def test_the_doctor_names_the_remedy_of_a_check_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise MertonError("no [disk]\nmore")

    checks = (("Python", lambda: "Python 3", "none"), ("disk", broken, "buy a disk"))
    monkeypatch.setattr(doctor, "CHECKS", checks)
    code, text = run("doctor")
    assert code == 1
    assert [line.split() for line in text.partition("Optional parts:")[0].splitlines()] == [
        ["ok", "Python", "Python", "3"],
        ["fail", "disk", "no", "[disk]"],
        ["mend:", "buy", "a", "disk"],
    ]


def test_the_doctor_lists_the_optional_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not installed is no failure: it has the packages, what they are for and the command."""
    monkeypatch.setattr(doctor, "CHECKS", ())
    monkeypatch.setattr(doctor, "absent", lambda name: ["ray"] if name == "cluster" else [])
    code, text = run("doctor")
    heading, *lines = text.splitlines()
    assert (code, heading) == (0, "Optional parts:")
    place = next(number for number, line in enumerate(lines) if "not installed" in line)
    assert lines[place].split("not installed: ")[1] == f"ray -> {EXTRAS['cluster'].purpose}"
    assert lines[place + 1].strip() == install_line("cluster")
    assert len(lines) == len(EXTRAS) + 1


def test_the_tree_of_commands_loads_no_numerics() -> None:
    """`merton --help` answers at once."""
    code = "import sys, merton.cli.main; print({'numpy', 'cv2', 'sqlalchemy'} & {*sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"


def test_a_broken_package_of_commands_stops_no_other_command(tmp_path: Path) -> None:
    """An import that fails, and a command for a panel that does not exist."""
    (tmp_path / "broken.py").write_text("raise ValueError('not\\ntoday')\n")
    (tmp_path / "astray.py").write_text("def add(app):\n    app.add('Toys', 'kite', print, 'Fly')\n")
    for name in ("broken", "astray"):
        about = tmp_path / f"{name}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: the-{name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[merton.commands]\nx = {name}:add\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}
    command = [sys.executable, "-m", "merton", "errors"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "UNREACHABLE" in ended.stdout
    assert sorted(ended.stderr.splitlines()) == [
        "merton: the commands of the-astray cannot be loaded: unknown panel 'Toys'; choose one of: "
        "Boards, Data, Lab, Start here, Studies",
        f"merton: the commands of the-broken cannot be loaded: ValueError: not today ({tmp_path}/broken.py, line 1)",
    ]
