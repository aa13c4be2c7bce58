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

app = App("Hand scores in to a leaderboard.")

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
    archive: Archive,
) -> None:
    """Submit to the leaderboard of a record, or to one that is served; its token, if it wants one: MERTON_TOKEN."""
    from merton.leaderboard.submissions import sending
    from merton.leaderboard.submissions.evaluation import ACCEPTED
    from merton.leaderboard.submissions.rules import submit
    from merton.results.store import open_record

    if not archive.exists():  # a typing error must not count as an attempt
        raise InputError(f"there is no file {archive}")
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


@app.command("withdraw")
def withdraw_command(record: Record, id: Annotated[str, typer.Argument(help="Of the submission.")]) -> None:
    """Take a submission off the board; it stays in the list, and its month stays used up."""
    from merton.leaderboard.submissions.rules import withdraw
    from merton.results.store import open_record

    with open_record(record) as store:
        receipt = withdraw(store.database, id)
    print_out(f"withdrawn: {receipt.agent_id}, {receipt.id}")


@app.command("status")
def status_command(
    record: Record,
    id: Annotated[str, typer.Argument(help="Of the submission.")],
    status: Annotated[str, typer.Argument(help="evaluating, scored or refused.")],
    reason: Annotated[str, typer.Option(help="Shown to all; a refusal needs one.")] = "",
) -> None:
    """Say as the host how far the evaluation of a submission is; a refused one leaves the board."""
    from merton.leaderboard.submissions.rules import evaluate
    from merton.results.store import open_record

    with open_record(record) as store:
        receipt = evaluate(store.database, id, status, reason)
    print_out(f"{receipt.evaluation}: {receipt.agent_id}, {receipt.id}, due {receipt.due}")


@app.command("list")
def list_command(
    record: Record,
    attempts: Annotated[bool, typer.Option("--attempts", help="Show every attempt, with the reasons.")] = False,
) -> None:
    """Show all submissions, withdrawn ones too; those whose evaluation is overdue first."""
    from merton.leaderboard.submissions import receipts
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
            found = receipts.submissions(connection)
            table = Table(Column("id", no_wrap=True), "agent", "on the board from", "evaluation", "due")
            for receipt in sorted(found, key=lambda one: (0, one.due) if one.is_overdue(today) else (1, "")):
                window = receipt.window if receipt.standing == "accepted" else receipt.standing
                due = f"{receipt.due} overdue" if receipt.is_overdue(today) else receipt.due
                add_row(table, receipt.id, receipt.agent_id, window, receipt.evaluation, due)
    STDOUT.print(table)
