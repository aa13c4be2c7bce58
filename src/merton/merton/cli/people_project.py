"""`merton people new` and `merton people check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out, progress

ProjectFile = Annotated[Path, typer.Argument(metavar="PROJECT.yaml", help="The project's file.")]


def check_command(project: ProjectFile) -> None:
    """Read a project and all its items, prepare their media, and say what is in it."""
    from merton.people.project import read_project
    from merton.people.sources import items_of

    loaded = read_project(project)
    with progress("media") as moved:
        items = items_of(loaded, moved)
    print_out(f"{len(items)} items")
