"""Options that mean the same in every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click
import typer

from merton.cli.main import app


def commands(command: Any, path: str = "merton") -> Iterator[tuple[str, Any]]:
    """Every command below one, with the words that call it."""
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")
    if not hasattr(command, "commands"):
        yield path, command


EVERY = dict(commands(typer.main.get_command(app)))
COPIES = {"merton distort dataset"}
"""IN OUT, two folders of one kind."""


def test_the_place_of_a_result_is_the_option_out() -> None:
    """`--out`, in short `-o`: no argument, and no other option; but a copy of a dataset is named as by `cp`."""
    assert len(EVERY) > 40
    params = [(path, param) for path, command in EVERY.items() for param in command.get_params(click.Context(command))]
    named = {path: param for path, param in params if param.name in ("out", "output")}
    assert {path for path, param in named.items() if set(param.opts) != {"-o", "--out"}} <= COPIES
    assert {"merton distort image", "merton results export"} <= set(named)
    assert {path for path, param in params if "-o" in param.opts} == set(named) - COPIES


def test_a_file_that_is_written_is_named_by_out() -> None:
    """By the words of their help; `study execution` has a second file beside its page."""
    words = re.compile(r"\bwrite\b.*\b(file|folder)|\bfile (to write|for)\b|\bnew (file|folder)\b")
    params = [(path, param) for path, command in EVERY.items() for param in command.get_params(click.Context(command))]
    writes = {(path, param.opts[-1]) for path, param in params if words.search((param.help or "").lower())}
    assert len(writes) > 10
    assert {name for name in writes if name[1] != "--out"} == {("merton study execution", "--json")}
