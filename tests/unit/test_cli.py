"""The `merton` command as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from merton import __version__
from merton.cli import doctor
from merton.cli.main import app
from merton.errors import MertonError


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and stdout of a command."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_is_one_line(arguments: list[str]) -> None:
    assert run(*arguments) == (0, f"{__version__}\n")


@pytest.mark.parametrize("command", [[], ["rate"], ["distort"], ["distort", "gallery"], ["leaderboard", "build"]])
def test_h_is_short_for_help(command: list[str]) -> None:
    code, text = run(*command, "-h")
    assert code == 0
    assert "Usage:" in text
    assert text == run(*command, "--help")[1]


def test_the_doctor_names_the_remedy_of_a_check_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise MertonError("no [disk]\nmore")

    checks = (("Python", lambda: "Python 3", "none"), ("disk", broken, "buy a disk"))
    monkeypatch.setattr(doctor, "CHECKS", checks)
    code, text = run("doctor")
    assert code == 1
    assert [line.split() for line in text.splitlines()] == [
        ["ok", "Python", "Python", "3"],
        ["fail", "disk", "no", "[disk]"],
        ["mend:", "buy", "a", "disk"],
    ]


def test_the_tree_of_commands_loads_no_numerics() -> None:
    """`merton --help` answers at once."""
    code = "import sys, merton.cli.main; print({'numpy', 'cv2', 'sqlalchemy'} & {*sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"
