"""`merton people new` and `merton people check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, own_command, print_err, print_out, progress

ProjectFile = Annotated[Path, typer.Argument(metavar="PROJECT", help="A project's folder, or its YAML file.")]
"""The argument that names a project of people."""


def new_command(
    protocol: Annotated[str, typer.Argument(help="tasks, episodes, trials, labels, likert, pairs or quality.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A new or empty folder for the project.")],
) -> None:
    """Write a small project with material that is drawn here, to try a protocol and to change into one's own."""
    from merton_studies.people.examples import write_example

    file = write_example(protocol, out)
    print_out(f"{from_here(file)}: now {own_command('people', 'serve', from_here(file))}")


def check_command(project: ProjectFile) -> None:
    """Read a project and all its items, prepare their media, and say what is in it."""
    from merton_studies.people.project import read_project
    from merton_studies.people.protocols import protocol_named
    from merton_studies.people.sources import items_of
    from merton_studies.people.workload import sentences, workload

    loaded = read_project(project)
    with progress("media") as on_progress:
        items = items_of(loaded, on_progress)
    protocol = protocol_named(loaded.project.protocol)
    print_out(f"{loaded.project.name}: {protocol.title}")
    for sentence in sentences(workload(loaded.project, protocol, items)):
        print_out(sentence)
    if protocol.reviewed and not loaded.project.experts:
        print_err("there are no experts, so nothing that raters write is accepted: name them under experts")
