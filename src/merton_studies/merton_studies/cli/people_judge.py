"""`merton people judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_out, progress
from merton_studies.cli.people_project import ProjectFile


def judge_command(
    project: ProjectFile,
    out: Annotated[Path, typer.Option("-o", "--out", help="SQLite file for the record: a new one, as of a run.")],
) -> None:
    """Copy a run's record, with the verdicts of people in place of the outcomes of the trials that they judged."""
    from merton.errors import InputError
    from merton_studies.people.judged import write_judged_record
    from merton_studies.people.project import read_project
    from merton_studies.people.sources.run import run_of
    from merton_studies.people.study import recorded_study

    loaded = read_project(project)
    if loaded.project.items.run is None:
        raise InputError(
            f"{project}: verdicts go into the record of a run; the source is {loaded.project.items.source}"
        )
    with progress("media") as on_progress, recorded_study(project, on_progress) as study:
        answers = study.ledger.answers()
    run = run_of(loaded, loaded.project.items.run)
    found = write_judged_record(loaded, study.items, answers, run.database, out)
    print_out(
        f"{found.same} trials keep their outcome, {found.changed} have another one, {found.settled} have one now, "
        f"{found.undecided} are undecided"
    )
    print_out(from_here(out))
