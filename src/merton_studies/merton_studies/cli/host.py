"""`merton leaderboard evaluate`: the host evaluates a model that applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import Record, TaxonomyOption, from_here, print_out, progress
from merton.cli.tree import needs
from merton.errors import InputError
from merton.progress import OnProgress
from merton_studies.cli.curate_roles import MaxCalls, budget_ends


@needs("dataset", "remote")
def host_command(
    record: Record,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of the application; `merton submission list` shows it.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results; one that was begun is finished.")],
    benchmark: Annotated[
        list[Path], typer.Option(help="Folder of a pool or curated benchmark; give it several times.")
    ],
    taxonomy: TaxonomyOption = None,
    api_key_env: Annotated[
        str, typer.Option(metavar="VARIABLE", help="Variable of the environment with the API's key, if it needs one.")
    ] = "",
    own_network: Annotated[
        bool, typer.Option("--own-network", help="Ask an API on this machine or in its network, too.")
    ] = False,
    max_calls: MaxCalls = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most money for them, by the application's cost_per_1000.")
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="UTC, as 2026-12-01 or 2026-12-01T18:00; else the end of the due day."),
    ] = None,
) -> None:
    """Evaluate a model that applied, as the host, and put its scores into the record.

    It is asked through the harness, with programs shut in a sandbox. Every step is kept in the record and in
    OUT/log.jsonl; OUT/items.csv has the scores for `arena`. After Ctrl-C or a kill the same command goes on, and no
    answer is paid for twice. Without scores it says why, and the application is not evaluated.
    """
    from merton.leaderboard.published.taxonomy import load_taxonomy
    from merton.results.store import open_record
    from merton_studies.curation.pool import read_pool
    from merton_studies.harness.hosting import ITEMS, LOG, Limits, host_evaluation
    from merton_studies.harness.sandbox import Sandbox

    limits = Limits(max_calls, max_cost, None if deadline is None else _moment(deadline), api_key_env, own_network)
    known = load_taxonomy(taxonomy)
    pools = [read_pool(folder) for folder in benchmark]
    with open_record(record) as store, budget_ends(), _bars() as on_progress:
        found = host_evaluation(
            store.database, id, pools, out, known, sandbox=Sandbox(), limits=limits, on_progress=on_progress
        )
    last = found.steps[-1]
    print_out(f"{found.status}: {found.shown_name}, {last.note}; {last.calls} calls, cost {last.cost:g}")
    print_out(f"scores: {from_here(out / ITEMS)}; every step: {from_here(out / LOG)}")


@contextmanager
def _bars() -> Iterator[Callable[[str], OnProgress]]:
    """Gives each benchmark its line of progress; they come one after the other."""
    with ExitStack() as stack:

        def bar(name: str) -> OnProgress:
            stack.close()
            return stack.enter_context(progress(f"answers on {name}"))

        yield bar


def _moment(text: str) -> datetime:
    """The moment of a text; of a day it is the end. Raises InputError for another text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--deadline {text!r} is no time: write it as 2026-12-01 or 2026-12-01T18:00") from None
    if len(text) == len("2026-12-01"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
