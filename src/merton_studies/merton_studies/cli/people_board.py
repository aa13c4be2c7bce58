"""`merton people board`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress
from merton_studies.cli.people_project import ProjectFile


def board_command(
    project: ProjectFile,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write everything as JSON into this file.")] = None,
) -> None:
    """The board of world models as evaluators from the scores that annotators have given so far."""
    from merton.cli.boards import show_world_model_board
    from merton.errors import InputError
    from merton.results.text import counted
    from merton_studies.people.project import read_project
    from merton_studies.people.protocols.episodes import board_of
    from merton_studies.people.study import recorded_study

    protocol = read_project(project).project.protocol
    if protocol != "episodes":
        raise InputError(f"{project}: the protocol is {protocol}; episodes alone has a board, for others see export")
    with progress("media") as on_progress, recorded_study(project, on_progress) as study:
        found = board_of(study.items, study.ledger.answers())
    show_world_model_board(found.evaluation, out)
    if found.left_out:
        print_err(
            f"{counted(found.left_out, 'score')} left out, for which the rubric has no room: "
            "left_out.csv of `merton people export` has the reasons"
        )
    if out is not None:
        print_out(from_here(out))
