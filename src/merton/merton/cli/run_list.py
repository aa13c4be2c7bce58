"""`merton runs`: the runs of this folder; and arguments that name a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_err, print_out
from merton.errors import InputError


def runs_command(
    open_report: Annotated[bool, typer.Option("--open", help="Open the report of the newest in a browser.")] = False,
    runs: Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")] = Path("runs"),
) -> None:
    """List the runs, newest first, and how far each is; `latest` names the newest of an experiment everywhere."""
    from merton.experiment.run_names import LATEST, PAGES, find_run, run_folders, summarize

    if open_report:
        pages = (folder / page for folder in run_folders(runs) for page in PAGES if (folder / page).is_file())
        if (newest := next(pages, None)) is None:
            raise InputError(f"no run below {runs} has a report yet: merton report {find_run(LATEST, runs)}")
        show_page(newest)
        return
    if runs.is_file():
        raise InputError(f"{runs} is a file: name a directory of runs")
    folders = run_folders(runs)
    if not folders:
        print_out(f"there is no run below {runs} yet: merton demo makes one")
        return
    table = Table("run", "experiment", "begun", "trials", "state", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    summaries = [summarize(folder) for folder in folders]
    for summary in summaries:
        begun = f"{summary.created.astimezone():%Y-%m-%d %H:%M}"
        trials = f"{summary.done} of {summary.planned}" if summary.planned else str(summary.done or "")
        add_row(table, summary.path.name, summary.experiment, begun, trials, summary.state)
    STDOUT.print(table)
    for summary in summaries:
        if summary.fault:
            print_err(summary.fault)


def show_page(page: Path) -> None:
    """Open a page in the user's browser; without one, say where it lies."""
    address = page.resolve().as_uri()
    if not webbrowser.open(address):
        print_err(f"no browser was found here; open {address}")
