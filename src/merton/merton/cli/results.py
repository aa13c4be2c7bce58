"""`merton results`: list, export, score, import and merge records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, Record, add_row, print_out, print_remarks, progress, record_named
from merton.cli.tree import App
from merton.errors import InputError
from merton.extras import ready
from merton.files import refuse_overwriting

app = App("List, export, import and merge records of results, and score predictions.")


@app.command("list")
def list_command(record: Record) -> None:
    """Show the experiments and foreign matrices of a record."""
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        about = {item.id: item for item in store.experiment_records()}
        trials, scores = store.sizes()
    table = Table("experiment or import", "agents", "cases", "results", "made by", "made (UTC)")
    for size in trials:
        run = about[size.name]
        merton = f"Merton {run.merton_version}" if run.merton_version else ""
        made = (run.created_utc or "")[:16].replace("T", " ")
        add_row(table, size.name, size.agents, size.cases, size.results, merton, made)
    for size in scores:
        add_row(table, size.name, size.agents, size.cases, size.results, "import", "")
    STDOUT.print(table)


@app.command("export")
def export_command(
    record: Record,
    out: Annotated[Path, typer.Option("-o", "--out", help="A file ending in .parquet, .csv or .json; it is replaced.")],
    table: Annotated[str, typer.Option(help="trials, drops, scores, matches, agents, cases, experiments.")] = "trials",
) -> None:
    """Write a table of the record to a file."""
    if out.suffix == ".parquet":
        ready(str(out), "dataset")
    from merton.results.export import export
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        count = export(store, out, table)
    print_out(f"{count} rows of {table}: {out}")


@app.command("import")
def import_command(
    record: Record,
    matrix: Annotated[
        Path,
        typer.Argument(
            help="A response matrix, .csv, .tsv or .parquet: rows agents, columns cases; or a row for each score; or "
            "results of lm-eval, mteb or Inspect, .json or a folder."
        ),
    ],
    source: Annotated[str | None, typer.Option(help="Name of the matrix; the file's, if not given.")] = None,
    agent_column: Annotated[str | None, typer.Option(help="The column with the agents' ids.")] = None,
    version_column: Annotated[str | None, typer.Option(help="The column with their versions.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="What the values are, such as execution or pdms; scores 0 to 1 if not given.")
    ] = None,
) -> None:
    """Import a foreign response matrix into a record; an SQLite file that is not there is made."""
    from merton.rating.metric import named
    from merton.results.matrix import import_matrix, read_matrix
    from merton.results.store import ResultStore

    to_score = named(metric).score if metric else None
    # read before the record is made: a refused matrix leaves no empty record behind
    read = read_matrix(
        matrix,
        source,
        agent_column=agent_column,
        version_column=version_column,
        metric=metric or "",
        to_score=to_score,
    )
    with ResultStore(record) as store, progress("importing") as on_progress:
        done = import_matrix(store, read, on_progress)
    print_out(
        f"{done.source}: {done.agents} agents x {done.cases} cases, {done.scores} scores ({done.new} new), "
        f"{done.blanks} blanks"
    )
    print_remarks(read.remarks)
    if done.blank_agents:
        whose = "1 agent has" if done.blank_agents == 1 else f"{done.blank_agents} agents have"
        print_out(f"{whose} no score at all, and no place in lists and on boards")


@app.command("score")
def score_command(
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="coco_ap, pass_all, womd_map, pdms, acc_at_1, mmlu.")],
    predictions: Annotated[
        list[Path],
        typer.Argument(metavar="PREDICTIONS...", help="Files, of one agent each or with a column of agents."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The matrix to write, .csv: rows agents, columns cases.")],
    truth: Annotated[Path | None, typer.Option(help="The right answers, for coco_ap, acc_at_1 and mmlu.")] = None,
) -> None:
    """Score predictions case by case, and write the values as a matrix for `merton results import --metric`."""
    from merton.rating.scoring.scorers import score, scorer, write_matrix

    if out.suffix != ".csv":
        raise InputError(f"--out must be a .csv file, got {out.name!r}")
    refuse_overwriting(out, [*predictions, *([truth] if truth else [])])
    scorer(metric)  # an unknown one, before any file is looked at
    agents, cases, blanks = write_matrix(score(metric, predictions, truth), out)
    print_out(f"{metric}: {agents} agents x {cases} cases, {blanks} blanks: {out}")


@app.command("merge")
def merge_command(
    record: Record,
    into: Annotated[
        str,
        typer.Argument(callback=record_named, help="The record to copy into; a file that is not there is made."),
    ],
) -> None:
    """Copy one record into another, such as a run into a lab's; results that are there already stay as they are."""
    from merton.results.merge import merge
    from merton.results.store import ResultStore, open_record

    with (
        open_record(record, read_only=True) as source,
        ResultStore(into) as target,
        progress("merging") as on_progress,
    ):
        done = merge(source, target, on_progress)
    print_out(
        f"{done.experiments} experiments, {done.trials} trials ({done.new_trials} new), {done.scores} foreign scores "
        f"({done.new_scores} new)"
    )
