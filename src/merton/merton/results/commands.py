"""`merton results`: what a record holds, and its ways in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

app = typer.Typer(help="Look into the record of results, export it, and take results in.", no_args_is_help=True)
_out, _err = Console(), Console(stderr=True)

Record = Annotated[str, typer.Argument(help="A run's directory, an SQLite file or a postgresql:// URL.")]


@app.command("list")
def list_command(record: Record) -> None:
    """Show the experiments and foreign matrices of a record."""
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        about = {item.id: item for item in store.about_experiments()}
        trials, scores = store.sizes()
    table = Table("experiment or import", "agents", "cases", "results", "made by", "on")
    for size in trials:
        run = about[size.name]
        merton = f"Merton {run.merton_version}" if run.merton_version else ""
        _add(table, size.name, size.agents, size.cases, size.results, merton, run.created_utc or "")
    for size in scores:
        _add(table, size.name, size.agents, size.cases, size.results, "import", "")
    _out.print(table)


def _add(table: Table, *cells: object) -> None:
    table.add_row(*(Text(str(cell)) for cell in cells))  # Text: what stands in a name is no markup


@app.command("export")
def export_command(
    record: Record,
    out: Annotated[Path, typer.Argument(help="A new file ending in .parquet, .csv or .json.")],
    table: Annotated[str, typer.Option(help="trials, scores, matches, agents, cases or experiments.")] = "trials",
) -> None:
    """Write a table of the record to a file."""
    from merton.results.export import export
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        count = export(store, out, table)
    _out.print(f"{count} rows of {table}: {out}", soft_wrap=True, highlight=False, markup=False)


@app.command("import")
def import_command(
    record: Record,
    matrix: Annotated[Path, typer.Argument(help="A response matrix, .csv or .parquet: rows agents, columns cases.")],
    source: Annotated[str | None, typer.Option(help="Name of the matrix; the file's, if not given.")] = None,
    agent_column: Annotated[str | None, typer.Option(help="The column with the agents' ids.")] = None,
    version_column: Annotated[str | None, typer.Option(help="The column with their versions.")] = None,
) -> None:
    """Take a foreign response matrix into a record, which is made if there is none."""
    from merton.results.matrix import import_matrix, read_matrix
    from merton.results.store import ResultStore

    # read before the record is made: what is refused leaves no empty record behind
    read = read_matrix(matrix, source, agent_column=agent_column, version_column=version_column)
    with ResultStore(record) as store, _progress("importing") as on_progress:
        done = import_matrix(store, read, on_progress)
    _out.print(
        f"{done.source}: {done.agents} agents x {done.cases} cases, {done.scores} scores ({done.new} new), "
        f"{done.blanks} blanks",
        soft_wrap=True, highlight=False, markup=False,
    )  # fmt: skip


@app.command("merge")
def merge_command(
    record: Record,
    into: Annotated[str, typer.Argument(help="The record that takes it in, made if there is none.")],
) -> None:
    """Take what one record has into another, such as a run into a lab's; what is there already is left as it is."""
    from merton.results.merge import merge
    from merton.results.store import ResultStore, open_record

    with (
        open_record(record, read_only=True) as source,
        ResultStore(into) as target,
        _progress("merging") as on_progress,
    ):
        done = merge(source, target, on_progress)
    _out.print(
        f"{done.experiments} experiments, {done.trials} trials ({done.new_trials} new), {done.scores} foreign scores "
        f"({done.new_scores} new)",
        soft_wrap=True, highlight=False,
    )  # fmt: skip


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    with Progress(console=_err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
