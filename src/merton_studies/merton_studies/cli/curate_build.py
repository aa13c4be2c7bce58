"""`merton curate build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress
from merton.cli.tree import needs
from merton.results.text import counted
from merton_studies.cli.annotate import default_cache
from merton_studies.cli.curate_roles import (
    Assigner,
    MaxCalls,
    MaxCost,
    Pictures,
    Proposer,
    Reviewer,
    Voters,
    budget_ends,
    chosen_roles,
)


@needs("dataset", "curation")
def build_command(
    pool: Annotated[Path, typer.Argument(help="Folder of a pool.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder; what was begun goes on.")],
    taxonomy: Annotated[
        str | None,
        typer.Option(help="Dimensions by name or file; else as above.", metavar="NAME|FILE"),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="Most questions of a dimension.")] = 500,
    shots: Annotated[
        int, typer.Option(min=0, metavar="N", help="Labelled questions of each that teach computed voters.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Of all that is drawn.")] = 0,
    proposer: Proposer = None,
    reviewer: Reviewer = None,
    assigner: Assigner = None,
    voters: Voters = None,
    pictures: Pictures = 0,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    cache: Annotated[Path | None, typer.Option(help="File of models' answers.")] = None,
) -> None:
    """Make a small, balanced benchmark of a pool: find dimensions, assign every question, keep different ones of each.

    Without a model everything is computed; without --taxonomy, too, the labels of the questions are the dimensions if
    each has one, else the paper's eight are. After a kill, the same command goes on.
    """
    from merton_studies.curation.curate import Wanted, curate
    from merton_studies.curation.pool import read_pool

    chosen = chosen_roles(proposer, reviewer, assigner, voters, pictures, max_calls, max_cost)
    with budget_ends():
        found = curate(
            read_pool(pool), out, Wanted(taxonomy, keep, shots, seed, chosen), cache or default_cache(), step=progress
        )
    for sentence in (*found.made.get("induction", {}).get("left_out", ()), *found.made.get("invalid_votes", ())):
        print_err(f"merton: {sentence}")
    if "dimensions" in found.made:
        print_out(found.made["dimensions"])
    for row in found.rows:
        print_out(f"{row.dimension.name}: {row.kept} of {counted(row.assigned, 'question')}")
    print_out(f"{len(found.pool.questions)} of {counted(found.total, 'question')}; entropy {found.entropy_kept:.2f}")
    print_out(f"page: {from_here(out / 'index.html')}")
