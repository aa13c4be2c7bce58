"""`merton reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, from_here, print_out, working
from merton.errors import InputError

if TYPE_CHECKING:
    from merton_studies.papers.reproduce import Reproduction


def reproduce_command(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER",
            show_default="all",
            help="embodied-iqa, ur5, agi-elo, a2eval, embodied-arena or world-model.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="Where every number stands, with its verdict.")
    ] = Path("reproduce.html"),
) -> None:
    """Recompute the numbers that the papers print, as far as they can be, and give each a verdict.

    Exit code 1 if a verdict is not the recorded one, so if a digit was changed.
    """
    if out.is_dir():  # not after the work, and not with the exit code of a changed digit
        raise InputError(f"--out {out} is a folder: name a file")
    with working("Recomputing the papers' numbers"):
        from merton.files import write_file
        from merton_studies.papers.page import rendered
        from merton_studies.papers.reproduce import reproduce

        found = reproduce(papers or ())
    for paper in found:
        for group in paper.misprints:
            print_out(f"{paper.paper.name}: {group.sentence}")
    _print_counts(found)
    write_file(out, rendered(found).encode())
    print_out(f"Every number, with its verdict: {from_here(out.absolute())}")
    departures = [(paper.paper.name, text) for paper in found for text in paper.departures]
    for name, text in departures:
        print_out(f"not as recorded: {name}: {text}")
    if departures:
        raise typer.Exit(1)


def _print_counts(found: Sequence[Reproduction]) -> None:
    verdicts = list(found[0].counts)
    table = Table(box=None, pad_edge=False)
    table.add_column("paper", no_wrap=True)
    for title in ("printed", *verdicts, "claims that hold"):
        table.add_column(title)
    for paper in found:
        judged = [judged.claim for judged in paper.claims if judged.claim.verdict != "noted"]
        holding = f"{sum(claim.verdict == 'holds' for claim in judged)} of {len(judged)}" if judged else "-"
        add_row(table, paper.paper.name, paper.printed, *paper.counts.values(), holding)
    if len(found) > 1:
        totals = [sum(paper.counts[verdict] for paper in found) for verdict in verdicts]
        add_row(table, "all", sum(paper.printed for paper in found), *totals, "")
    STDOUT.print(table)
