"""The lines and tables of the `merton` command."""

from __future__ import annotations

import pytest
from rich.table import Table

from merton.cli import console


def test_lines_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"module:M: [red]3[/] {'long ' * 40}"
    console.print_out(text)
    console.print_err(text)
    printed = capsys.readouterr()
    assert printed.out == printed.err == f"{text}\n"


def test_a_bracket_in_a_cell_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name", "count", box=None)
    console.add_row(table, "[red]agent[/]", 3)
    console.STDOUT.print(table)
    assert "[red]agent[/]" in capsys.readouterr().out


def test_progress_says_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("counting") as on_progress:
        on_progress(1, 2)
    assert capsys.readouterr().out == ""
