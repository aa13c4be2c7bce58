"""`merton submission`: scores handed in to a leaderboard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from merton.cli.console import STDOUT, Record, add_row, print_out
from merton.cli.tree import App
from merton.errors import InputError
from merton.files import write_file

app = App("Hand scores in to a leaderboard, or apply as a model or benchmark.")

Archive = Annotated[Path, typer.Argument(help="A submission: a .zip or a folder.")]


@app.command("pack")
def pack_command(
    record: Record,
    agent: Annotated[str, typer.Option(help="Id of the agent in the record.")],
    manufacturer: Annotated[str, typer.Option(help="Who submits.")],
    out: Annotated[Path, typer.Option(help="The archive to write, a .zip.")],
    version: Annotated[str | None, typer.Option(help="Of the agent, if the record does not know it.")] = None,
    weights_sha256: Annotated[
        str | None, typer.Option("--weights-sha256", help="Of its weights, if the record does not know it, or: none.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Experiment or imported matrix, if there are several.")] = None,
    contact: Annotated[str | None, typer.Option(help="Where the manufacturer can be reached.")] = None,
) -> None:
    """Make a submission of one agent's scores in a record."""
    from merton.leaderboard.submissions.packing import make_submission
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        data = make_submission(store, agent, manufacturer, version, weights_sha256, dataset, contact)
    write_file(out, data)
    print_out(f"{len(data)} bytes: {out}")


@app.command("check")
def check_command(
    archive: Archive,
    record: Annotated[str | None, typer.Option(help="Check the items too, against this record.")] = None,
) -> None:
    """Check a submission without sending it."""
    from merton.leaderboard.submissions.datasets import check_items, datasets
    from merton.leaderboard.submissions.manifest import verify
    from merton.results.store import open_record

    try:
        submission = verify(archive)
    except InputError as error:
        raise InputError(f"{archive}: {error}") from None
    manifest = submission.manifest
    dataset = manifest.dataset_sha256
    if record is not None:
        with open_record(record, read_only=True) as store, store.database.reading() as connection:
            dataset = check_items(submission, datasets(connection))
    print_out(
        f"{manifest.agent} {manifest.version} of {manifest.manufacturer}: {len(submission.scores)} scores of {dataset}"
        f"\nSHA-256 of the archive: {submission.archive_sha256}"
    )


@app.command("send")
def send_command(
    record: Annotated[str, typer.Argument(help="A record, or the http:// address of a board that is served.")],
    file: Annotated[
        Path,
        typer.Argument(help="A submission, a .zip or a folder; or an application for the host, a .yaml or .json."),
    ],
) -> None:
    """Submit scores to a board, or apply as a model to evaluate or a benchmark that joins.

    A served board that wants a token finds it in MERTON_TOKEN.
    """
    if not file.exists():  # a typing error must not count as an attempt
        raise InputError(f"there is no file {file}")
    if file.suffix in (".yaml", ".yml", ".json"):
        _apply(record, file)
    else:
        _submit(record, file)


def _submit(record: str, archive: Path) -> None:
    from merton.leaderboard.submissions import sending
    from merton.leaderboard.submissions.evaluation import ACCEPTED
    from merton.leaderboard.submissions.rules import submit
    from merton.results.store import open_record

    if sending.is_server(record):
        receipt = sending.send(record, archive, os.environ.get(sending.TOKEN_VARIABLE))
    else:
        with open_record(record) as store:
            receipt = submit(store.database, archive)
    before = "was received before" if receipt.repeated else "accepted"
    if receipt.standing != ACCEPTED:
        reason = f": {receipt.reason}" if receipt.reason else ""
        print_out(f"{before}: {receipt.agent_id}, {receipt.id}, {receipt.standing}{reason}")
        return
    print_out(
        f"{before}: {receipt.agent_id}, {receipt.id}, on the board from {receipt.window} (00:00 UTC) on, evaluated by "
        f"{receipt.due}"
    )


def _apply(record: str, file: Path) -> None:
    from merton.leaderboard.submissions import sending
    from merton.leaderboard.submissions.applications import apply
    from merton.results.database import file_of
    from merton.results.store import ResultStore
    from merton.results.tables import file_bytes

    if sending.is_server(record):
        found = sending.send_application(record, file, os.environ.get(sending.TOKEN_VARIABLE))
    else:
        is_new = "://" not in record and not file_of(record).exists()
        with ResultStore(record) as store:  # an Arena may begin with its first application
            found = apply(store.database, file_bytes(file), file.name).receipt
        if is_new:
            print_out(f"a new record: {record}")
    before = "was received before" if found.repeated else "received"
    print_out(f"{before}: {found.kind} {found.name}, {found.id}, {found.status}, due {found.due}")


@app.command("withdraw")
def withdraw_command(
    record: Record, id: Annotated[str, typer.Argument(help="Of the submission or application.")]
) -> None:
    """Take a submission or an application back; it stays in the list, and its month stays used up."""
    from merton.leaderboard.submissions import applications
    from merton.leaderboard.submissions.rules import withdraw
    from merton.results.store import open_record

    with open_record(record) as store:
        if applications.is_application(id):
            name = applications.withdraw(store.database, id).shown_name
        else:
            name = withdraw(store.database, id).agent_id
    print_out(f"withdrawn: {name}, {id}")


@app.command("status")
def status_command(
    record: Record,
    id: Annotated[str, typer.Argument(help="Of the submission or application.")],
    status: Annotated[str, typer.Argument(help="evaluating, scored or refused; of a benchmark that joins: accepted.")],
    reason: Annotated[str, typer.Option(help="Shown to all; a refusal needs one.")] = "",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Taxonomy to write, of a benchmark that is accepted (.yaml).")
    ] = None,
) -> None:
    """Say as the host how far the evaluation is; a refused submission leaves the board."""
    from merton.leaderboard.submissions.applications import is_application
    from merton.leaderboard.submissions.rules import evaluate
    from merton.results.store import open_record

    if is_application(id):
        _decide(record, id, status, reason, out)
        return
    if out is not None:
        raise InputError("--out is for a benchmark that is accepted; this is a submission of scores")
    with open_record(record) as store:
        receipt = evaluate(store.database, id, status, reason)
    print_out(f"{receipt.evaluation}: {receipt.agent_id}, {receipt.id}, due {receipt.due}")


def _decide(record: str, id: str, status: str, reason: str, out: Path | None) -> None:
    from merton.leaderboard.published.joining import taxonomy_entry
    from merton.leaderboard.submissions.applications import application, decide
    from merton.leaderboard.submissions.evaluation import ACCEPTED
    from merton.results.store import open_record

    with open_record(record) as store:
        with store.database.reading() as connection:
            found = application(connection, id)
        entry = None
        if status == ACCEPTED and found.kind == "benchmark":
            if out is None:
                raise InputError(
                    f"an accepted benchmark gets an entry of the taxonomy: name its file by --out {id}.yaml"
                )
            entry = taxonomy_entry(found)
        elif out is not None:
            raise InputError("--out is for a benchmark that is accepted")
        found = decide(store.database, id, status, reason)
    if entry is not None and out is not None:
        write_file(out, entry.encode())
        print_out(f"its taxonomy: {out}")
    print_out(f"{found.status}: {found.shown_name}, {found.id}, due {found.due}")


@app.command("log")
def log_command(record: Record, id: Annotated[str, typer.Argument(help="Of the submission or application.")]) -> None:
    """Show every step of a submission or an application, with its calls and cost."""
    from merton.leaderboard.submissions import applications, evaluation
    from merton.results.store import open_record

    table = Table("time (UTC)", "status", Column("step", overflow="fold"), "calls", "cost")
    with open_record(record, read_only=True) as store, store.database.reading() as connection:
        if applications.is_application(id):
            for step in applications.application(connection, id).steps:
                note = f"due {step.due}" if step.due else step.note
                add_row(table, step.at_utc[:19], step.status, note, str(step.calls), f"{step.cost:g}")
        else:
            taken = evaluation.steps(connection).get(id)
            if taken is None:
                raise InputError(f"there is no submission {id!r}; merton submission list shows those there are")
            for one in taken:
                add_row(table, one.at_utc[:19], one.status, f"due {one.due}" if one.due else one.reason, "", "")
    STDOUT.print(table)


@app.command("list")
def list_command(
    record: Record,
    attempts: Annotated[bool, typer.Option("--attempts", help="Show every attempt, with the reasons.")] = False,
) -> None:
    """Show all submissions and applications, withdrawn ones too; those whose evaluation is overdue first."""
    from merton.leaderboard.submissions import receipts
    from merton.leaderboard.submissions.applications import applications
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store, store.database.reading() as connection:
        if attempts:
            columns = ("received (UTC)", "manufacturer", "archive", "accepted", "reason")
            table = Table(*(Column(name, overflow="fold") for name in columns))
            for item in receipts.attempts(connection):
                accepted = "yes" if item.accepted else "no"
                add_row(table, item.received_utc, item.manufacturer, item.archive_sha256[:12], accepted, item.reason)
        else:
            today = receipts.clock().date()
            rows = []
            for receipt in receipts.submissions(connection):
                window = receipt.window if receipt.standing == "accepted" else receipt.standing
                cells = (receipt.id, receipt.agent_id, window, receipt.evaluation)
                rows.append((receipt.is_overdue(today), receipt.due, cells))
            for one in applications(connection):
                shown = "with its scores" if one.kind == "model" else f"a {one.kind}"
                rows.append((one.is_overdue(today), one.due, (one.id, one.shown_name, shown, one.status)))
            table = Table(Column("id", no_wrap=True), "agent", "on the board from", "evaluation", "due")
            for overdue, due, cells in sorted(rows, key=lambda row: (0, row[1]) if row[0] else (1, "")):
                add_row(table, *cells, f"{due} overdue" if overdue else due)
    STDOUT.print(table)
