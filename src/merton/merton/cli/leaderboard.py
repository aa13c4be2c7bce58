"""`merton leaderboard`: boards of a record on the terminal and as pages, and their verification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli import battles, boards
from merton.cli.console import (
    METRIC_OPTION,
    AllOption,
    Record,
    RecordOrMatrix,
    TaxonomyOption,
    print_err,
    print_out,
    print_remarks,
    working,
)
from merton.cli.tree import App, needs
from merton.errors import InfrastructureError, InputError
from merton.results.metrics import DEFAULT_METRIC

if TYPE_CHECKING:
    from merton.leaderboard.published.tables import Tables

app = App("Leaderboards from a record of results.")

_BY_DEFAULT = "in runs/ beside the record or here"
"""Where the runs of a merged record are looked for without --runs."""

NameOption = Annotated[str | None, typer.Option(help="Name of the snapshot.")]
RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", help="Where runs of a merged record lie, for pictures; else runs/ beside it or here."),
]
TitleOption = Annotated[
    str | None, typer.Option(help="Title of the pages; by default the names of the matrices and experiments.")
]


@app.command("show")
def show_command(
    record: RecordOrMatrix,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Also write the snapshot, canonical JSON, into this file.")
    ] = None,
    name: NameOption = None,
    metric: Annotated[str | None, METRIC_OPTION] = None,
    everything: AllOption = False,
) -> None:
    """Rate the agents and test cases of a record, or of a response matrix, and show the board."""
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshots
        from merton.leaderboard.snapshot.terminal import render_snapshot
        from merton.leaderboard.terminal import terminal_width
        from merton.results.matrix import is_matrix_file, read_matrix
        from merton.results.store import open_record

    with working("reading the record") as progress:
        if is_matrix_file(record):
            if metric is not None:
                raise InputError(f"a response matrix has one score a cell: --metric {metric} is for records of trials")
            matrix = read_matrix(Path(record))
            print_remarks(matrix.remarks)
            snapshot = snapshots.of_matrix(matrix, name, progress)
        else:
            with open_record(record, read_only=True) as store:
                snapshot = snapshots.take(store, name, progress, metric=metric or DEFAULT_METRIC)
    if out is not None:  # before anything is printed: a pipe into `head` ends the command there
        _write(out, snapshots.to_json(snapshot))
    print_out(render_snapshot(snapshot, terminal_width(), everything))


@app.command()
def build(
    record: Record,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the pages; index.html is the first.")],
    name: NameOption = None,
    metric: Annotated[str, METRIC_OPTION] = DEFAULT_METRIC,
    arena: boards.ArenaOption = None,
    taxonomy: TaxonomyOption = None,
    world_model: boards.WorldModelOption = None,
    ground_truth: boards.GroundTruthOption = None,
    capabilities: Annotated[
        list[Path] | None, typer.Option(help="Also show the board of this evaluation, as for `capabilities`.")
    ] = None,
    title: TitleOption = None,
    runs: RunsOption = None,
) -> None:
    """Write the leaderboard as static pages, and keep the snapshot they show in the record."""
    with working("loading"):
        from merton.leaderboard import site
        from merton.leaderboard.published.tables import Tables
        from merton.leaderboard.snapshot import store as snapshots
        from merton.results.store import open_record

    tables = Tables(tuple(arena or ()), taxonomy, world_model, ground_truth)
    _make_record(record, tables)
    with open_record(record, read_only=True) as store, working("reading the record") as progress:
        published = [*tables.boards(store)]
        if capabilities:
            published.append(boards.capabilities_board(capabilities))
        snapshot = snapshots.take(store, name, progress, metric=metric)
    try:
        with open_record(record) as store:
            is_new = snapshots.store_snapshot(store, snapshot)
        stored = "kept in the record" if is_new else "already in the record"
    except InfrastructureError as error:
        # The board of a read-only record is still shown; only its history does not grow.
        stored = f"not kept in the record ({error})"
    with open_record(record, read_only=True) as store, working("writing the pages"):
        images, without_run = site.run_directories(store, runs)
        index = site.write_site(snapshot, out, store, images=images, published=published, title=title)
    _tell_without_run(without_run, _BY_DEFAULT if runs is None else f"below {runs}")
    print_out(f"{index}; snapshot {stored}")


@app.command()
@needs("serve")
def serve(
    record: Record,
    host: Annotated[str, typer.Option(help="Address to listen on. Only loopback is private.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="<int>", help="0 takes a free one and prints it.")
    ] = 8080,
    tokens: Annotated[
        Path | None, typer.Option(help="File of tokens for submissions; see docs/use/serving_boards.md.")
    ] = None,
    name: Annotated[list[str] | None, typer.Option(help="A further host name of the server.")] = None,
    title: TitleOption = None,
    metric: Annotated[str, METRIC_OPTION] = DEFAULT_METRIC,
    arena: boards.ArenaOption = None,
    taxonomy: TaxonomyOption = None,
    world_model: boards.WorldModelOption = None,
    ground_truth: boards.GroundTruthOption = None,
) -> None:
    """Serve the leaderboard, its API and the form for submissions until Ctrl-C."""
    from merton.leaderboard import site
    from merton.leaderboard.published.tables import Tables
    from merton.leaderboard.serve import run
    from merton.results.store import open_record

    tables = Tables(tuple(arena or ()), taxonomy, world_model, ground_truth)
    _make_record(record, tables)
    with open_record(record, read_only=True) as store:
        without_run = site.run_directories(store)[1]
    _tell_without_run(without_run, f"{_BY_DEFAULT}; `merton leaderboard build` has --runs")
    run(record, host, port, tokens=tokens, names=name or (), title=title, metric=metric, tables=tables)


@app.command()
def verify(
    record: Record,
    snapshot_file: Annotated[
        Path,
        typer.Argument(metavar="SNAPSHOT", help="A site's board.json, or a file written by `leaderboard show --out`."),
    ],
) -> None:
    """Compute a snapshot again from the record; exit code 1 if a single byte differs."""
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshots
        from merton.results.store import open_record
        from merton.results.tables import file_bytes

    data = file_bytes(snapshot_file)
    snapshots.from_json(data, str(snapshot_file))
    with open_record(record, read_only=True) as store, working("reading the record") as progress:
        differences = snapshots.verify(store, data, progress)
    for difference in differences:
        print_out(difference)
    if differences:
        raise typer.Exit(1)
    print_out(f"identical: {len(data)} bytes")


@app.command()
def coverage(
    studies: Annotated[int, typer.Option(min=2, help="Simulated studies of each size.")] = 400,
) -> None:
    """Simulate how many 95 % intervals of boards hold the truth, and print the tables of docs/reference/ratings.md."""
    from merton.leaderboard import coverage as intervals

    with working("simulating studies") as progress:
        by_size = intervals.measure(intervals.SIZES, studies, progress)
        progress("simulating annotators")
        by_videos = intervals.measure_agreement(studies)
    print(intervals.table(by_size, by_videos, studies), end="")


app.command("battles")(battles.battles_command)
app.command("arena")(boards.arena_command)
app.command("world-model")(boards.world_model_command)
app.command("capabilities")(boards.capabilities_command)


def _make_record(record: str, tables: Tables) -> None:
    """Make an empty record where there is none: an Arena may begin with tables alone, before its first submission."""
    from merton.results.database import file_of
    from merton.results.store import ResultStore

    if tables.has_any and "://" not in record and not file_of(record).exists():
        tables.boards()  # a mistake in them leaves no file behind
        with ResultStore(record):
            print_err(f"{record} is new and empty")


def _tell_without_run(experiments: Sequence[str], where: str) -> None:
    """Say in one line which experiments have no run directory where it was looked for, so no pictures of cases."""
    if experiments:
        others = f" and {len(experiments) - 3} more" if len(experiments) > 3 else ""
        print_err(f"no pictures of {', '.join(experiments[:3])}{others}: no such run is {where}")


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror or error}") from error
