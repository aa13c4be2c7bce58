"""`merton curate induce` and `merton curate voters`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import STDOUT, add_row, from_here, print_err, print_out, progress
from merton.cli.tree import needs
from merton.statistics.intervals import interval_text
from merton_studies.cli.annotate import default_cache
from merton_studies.cli.curate_roles import Assigner, MaxCalls, MaxCost, Pictures, Voters, budget_ends, chosen_roles

if TYPE_CHECKING:
    from merton_studies.curation.voter_agreement import VoterAgreement

NOT_STABLE = 3
"""Exit code of an induction that did not end stable."""


@needs("dataset", "curation")
def induce_command(
    pool: Annotated[Path, typer.Argument(help="Folder of the pool.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the dimensions; one begun is finished.")],
    proposer: Annotated[str, typer.Option(metavar="MODEL", help="Model that proposes dimensions.")],
    reviewer: Annotated[str, typer.Option(metavar="MODEL", help="Model that reviews them.")],
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of examples and calls.")] = 0,
    assigner: Assigner = None,
    voters: Voters = None,
    pictures: Pictures = 0,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
) -> None:
    """Find the capability dimensions of a pool: proposed, reviewed and tried out until they are stable.

    Exit code 3: they took turns, still changed at the last of four trials, or the budget was spent.
    """
    from merton.files import locked_folder
    from merton_studies.curation.agents import left_out
    from merton_studies.curation.computed.matchers import zero_shot_voters
    from merton_studies.curation.computed.texts import Remembered, full_texts
    from merton_studies.curation.embedding import text_embedder
    from merton_studies.curation.induced import MEMORY, TAXONOMY, induce_into
    from merton_studies.curation.pool import TABLE, read_pool
    from merton_studies.curation.roles import roles

    questions = read_pool(pool)
    chosen = chosen_roles(proposer, reviewer, assigner, voters, pictures, max_calls, max_cost)
    with locked_folder(out, "merton curate induce"), budget_ends():
        embedder = text_embedder()
        with progress("embedding") as on_progress:
            embed = Remembered(embedder.embed, full_texts(questions.questions), on_progress)
        settings = {
            "pool_sha256": hashlib.sha256((pool / TABLE).read_bytes()).hexdigest(),
            "seed": seed,
            "embedding": embedder.made,
        }
        with roles(chosen, lambda: zero_shot_voters(embed), questions, out, default_cache(), seed) as cast:
            found = induce_into(out, questions, cast, embed, settings, step=progress)
    for dimension in found.taxonomy.dimensions:
        print_out(f"{dimension.name}: {dimension.definition}")
    print_out(f"{from_here(out / TAXONOMY)}, {from_here(out / MEMORY)}: {found.reason}")
    for sentence in left_out(found.rounds):
        print_err(f"merton: {sentence}")
    if found.ended != "stable":
        print_err(f"merton: the dimensions are not stable: {found.reason}")
        raise typer.Exit(NOT_STABLE)


@needs("dataset", "curation")
def voters_command(
    pool: Annotated[Path, typer.Argument(help="Folder of a pool whose questions have dimensions given by people.")],
    taxonomy: Annotated[str, typer.Option(help="Name of a taxonomy that comes with Merton, or a file.")],
    shots: Annotated[int, typer.Option(min=1, help="Examples of each dimension.")] = 10,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the scenes; each is judged by the others.")] = 5,
    seed: Annotated[int, typer.Option(help="Of folds and shots.")] = 0,
) -> None:
    """Agreement of voters without an LLM with people, without examples and with some.

    Twenty draws of folds and examples; intervals are 95 %, over scenes.
    """
    from merton_studies.curation.computed.texts import Remembered, full_texts
    from merton_studies.curation.embedding import embed_texts
    from merton_studies.curation.pool import read_pool
    from merton_studies.curation.taxonomy import read_taxonomy
    from merton_studies.curation.voter_agreement import voter_agreement

    questions, dimensions = read_pool(pool), read_taxonomy(taxonomy)
    with progress("embedding") as on_progress:
        embed = Remembered(embed_texts, full_texts(questions.questions), on_progress)
    for count in (0, shots):
        with progress(f"{count} shots") as on_progress:
            found = voter_agreement(questions, dimensions, embed, count, folds, seed, on_progress=on_progress)
        _print(found, dimensions.names)


def _print(found: VoterAgreement, names: tuple[str, ...]) -> None:
    from rich.table import Table

    draws = f", mean of {found.draws} draws" if found.shots else ""
    print_out(
        f"{found.shots or 'no'} examples of each dimension{draws}: {found.questions} questions in {found.scenes} "
        f"scenes, {found.contested:.1%} contested"
    )
    table = Table("", "accuracy", "Cohen's kappa", "SD of draws")
    for name, one in found.of.items():
        scatter = f"{one.scatter:.3f}" if found.shots else ""
        add_row(
            table,
            name,
            f"{one.accuracy:.3f} {interval_text(one.accuracy_interval, '.3f')}",
            f"{one.kappa:.3f} {interval_text(one.kappa_interval, '.3f')}",
            scatter,
        )
    STDOUT.print(table)
    gain, ends = found.gain
    print_out(f"kappa of the vote less that of the baseline: {gain:+.3f} {interval_text(ends, '+.3f')}")
    table = Table(
        "people's (rows), the vote's", *(str(number) for number in range(1, len(names) + 1)), "Other", "right"
    )
    for number, (name, row) in enumerate(zip(names, found.confusion, strict=True)):
        right = f"{row[number] / row.sum():.0%}" if row.sum() else ""
        add_row(table, f"{number + 1} {name}", *(f"{value:.0f}" for value in row), right)
    STDOUT.print(table)
