"""`merton people serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out, progress
from merton.cli.tree import needs
from merton_studies.cli.people_project import ProjectFile


@needs("serve")
def serve_command(
    project: ProjectFile,
    host: Annotated[str, typer.Option(help="Where to listen. Beyond loopback --tokens is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and prints it.")] = 8100,
    tokens: Annotated[
        Path | None, typer.Option(help="File of the raters' tokens, as `merton people invite` makes it.")
    ] = None,
    name: Annotated[list[str] | None, typer.Option(help="A further host name of the server.")] = None,
) -> None:
    """Serve a study to its raters until Ctrl-C: each answer is on the disk before the page is told so."""
    from merton_studies.people.serve import run
    from merton_studies.people.study import open_study

    with progress("media") as on_progress:
        study = open_study(project, on_progress)
    try:
        run(study, host, port, tokens=tokens, names=name or (), say=print_out)
    finally:
        study.close()
