"""`merton people invite`, `list` and `withdraw`: the persons of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_out
from merton_studies.cli.people_project import ProjectFile


def invite_command(
    project: ProjectFile,
    out: Annotated[Path, typer.Option(help="Folder of the two files; people who have a link there keep it.")],
    url: Annotated[str, typer.Option(help="Address of the server as raters reach it.")] = "http://127.0.0.1:8100",
) -> None:
    """Make a link for each person of a project: tokens.yaml for `merton people serve`, links.yaml to be sent."""
    from merton_studies.people.invitations import invite
    from merton_studies.people.project import read_project

    done = invite(read_project(project).project, out, url)
    print_out(f"{len(done.new)} new links: {done.links}")
    if done.removed:
        print_out(f"ended, as they are not in the project any more: {', '.join(done.removed)}")
    print_out(f"hashes of their tokens, for merton people serve --tokens: {done.tokens}")


def list_command(project: ProjectFile) -> None:
    """Show who takes part, how much each has answered and how long an answer takes, and when the last one came."""
    from statistics import median

    from merton_studies.people.ledger import Ledger
    from merton_studies.people.project import read_project

    loaded = read_project(project)
    with Ledger(loaded.record, loaded.project.name) as ledger:
        raters, slots, answers = ledger.raters(), ledger.slots(), ledger.answers()
    table = Table("id", "name", "role", "handed out", "answered", "median s", "last (UTC)", box=None, pad_edge=False)
    for rater in raters:
        handed = sum(slot.rater == rater.id for slot in slots)
        theirs = [answer for answer in answers if answer.rater == rater.id]
        seconds = f"{median(answer.seconds for answer in theirs):.1f}" if theirs else ""
        last = max((answer.saved_utc for answer in theirs), default="")[:16].replace("T", " ")
        add_row(table, rater.id, rater.name, rater.role, handed, len(theirs), seconds, last)
    STDOUT.print(table)
    print_out(f"{len(answers)} answers of {len(raters)} persons; items have {loaded.project.ratings} ratings each")


def withdraw_command(
    project: ProjectFile,
    rater: Annotated[str, typer.Argument(metavar="RATER", help="Id of the person, as `merton people list` shows it.")],
) -> None:
    """Remove a person's name, answers and all that was handed to them from the record; this cannot be undone."""
    from merton_studies.people.ledger import Ledger
    from merton_studies.people.project import read_project

    loaded = read_project(project)
    with Ledger(loaded.record, loaded.project.name) as ledger:
        removed = ledger.withdraw(rater)
    print_out(f"{rater}: {removed} answers and the name removed from the record")
    print_out("remove the name from the project and its links too, and what was exported before")
