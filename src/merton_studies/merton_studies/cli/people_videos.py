"""`merton people videos`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_err, print_out, progress
from merton.cli.tree import needs

SHOWN = 5
"""So many sentences on films that are left out."""


@needs("sim", "people")
def videos_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or name, or latest.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A new folder for the films.")],
    planted: Annotated[
        bool, typer.Option("--planted", help="Plant defects of known scores 0..3 into undistorted trials.")
    ] = False,
    videos: Annotated[
        int, typer.Option("--videos", min=1, help="Films of a team and task, at most; the rubric has ten an annotator.")
    ] = 10,
) -> None:
    """Film trials of a run in the embedded cell: distorted beside undistorted ones, for the source videos.

    Each trial is carried out again, and left out if it goes another way than it was recorded.
    """
    from merton.experiment.run_names import find_run
    from merton_studies.people.media.films import make_films

    with progress("trials") as on_progress:
        made = make_films(find_run(run), out, videos, planted, on_progress)
    print_out(f"{made.films} films of {len(made.tasks)} tasks in {out}; teams: {', '.join(made.teams)}")
    for sentence in made.left_out[:SHOWN]:
        print_err(f"left out: {sentence}")
    if len(made.left_out) > SHOWN:
        print_err(f"{len(made.left_out)} films are left out; all are in {out / 'about.json'}")
