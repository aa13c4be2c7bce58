"""`merton rate`: how the ratings of a record settle, its long tail, and where a newcomer stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import (
    METRIC_OPTION,
    STDOUT,
    RecordOrMatrix,
    add_row,
    from_here,
    print_err,
    print_out,
    print_remarks,
    progress,
    working,
)
from merton.errors import InputError
from merton.files import refuse_file
from merton.results.metrics import DEFAULT_METRIC
from merton.results.text import counted
from merton.statistics.intervals import interval_text

if TYPE_CHECKING:
    from merton.leaderboard.rate.newcomers import Placed
    from merton.leaderboard.rate.page import Findings
    from merton.leaderboard.rate.tail import LongTail
    from merton.leaderboard.snapshot.inputs import Inputs
    from merton.rating.convergence import Convergence

SHOWN, SENTENCES = 10, 2
"""Agents of the long tail on the terminal, and sentences on negative gaps; the page has all."""

JOINT = "a case against all its agents in one match (eq. 8 over several opponents)"
PAIRS = "one pair at a time, as in the paper's software"
"""The two readings of AGI-Elo's section 3.3."""


def rate_command(
    record: RecordOrMatrix,
    convergence: Annotated[
        bool, typer.Option("--convergence", help="How ratings settle with the share of the matches.")
    ] = False,
    long_tail: Annotated[
        bool, typer.Option("--long-tail", help="The cases beyond each agent, the hardest cases, gaps to mastery.")
    ] = False,
    place: Annotated[
        Path | None,
        typer.Option(
            metavar="NEWCOMER",
            help="Place newcomers: a CSV file of case and score, or a matrix.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the page, its numbers and tables.")] = Path("ratings"),
    metric: Annotated[str | None, METRIC_OPTION] = None,
    joint: Annotated[
        bool,
        typer.Option("--joint", help="AGI-Elo: a case meets all its agents in one match."),
    ] = False,
    examples: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE|FOLDER",
            help="Cases at each level of rating, from a table or a folder of texts and pictures.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random orders of --convergence.")] = 0,
    shuffles: Annotated[int, typer.Option(min=1, help="Number of these orders.")] = 20,
) -> None:
    """Look behind the ratings of a record or a response matrix; writes one page with what is asked for.

    Without any of --convergence, --long-tail, --place and --examples it shows the first two.
    """
    with working("loading"):
        from merton.leaderboard.rate import newcomers, tail
        from merton.leaderboard.rate.examples import levels, read_sources
        from merton.leaderboard.rate.page import Findings, write_page
        from merton.leaderboard.snapshot.compute import rate_both
        from merton.rating.convergence import convergence as follow

    refuse_file(out)
    long_tail = long_tail or examples is not None
    if not (convergence or long_tail or place):
        convergence = long_tail = True
    wanted, remarks = newcomers.read_newcomers(place) if place else ({}, ())
    print_remarks(remarks)
    with working("reading the record") as step:
        inputs = _inputs(record, metric)
        table = inputs.matches()
        if not len(table.scores):
            raise InputError(f"{record} has no scored trial and no imported score, so there is nothing to rate")
        sources, unknown = read_sources(examples, set(table.case_ids)) if examples else ({}, 0)
        rated = rate_both(table, step, joint)
    scenes = {trial.case.id: trial.case.scene for trial in inputs.trials}
    placed = tuple(newcomers.place(name, results, rated, table, scenes) for name, results in wanted.items())
    followed: tuple[Convergence, ...] = ()
    if convergence:
        with progress("shares of the matches") as move:
            followed = follow(table, seed=seed, shuffles=shuffles, progress=move, joint=joint)
    tails = tail.long_tails(table, rated) if long_tail else ()
    about = _about(record, inputs, len(table.scores), len(table.agent_ids), len(table.case_ids), joint)
    if convergence:
        about["orders"] = f"{shuffles} random orders of the matches, seed {seed}"
    found = Findings(about, rated.warnings, followed, tails, placed, levels(tails[0], sources) if sources else ())
    if unknown:
        print_err(f"{counted(unknown, 'example')} of {examples} left out: not rated here")
    _show(found)
    files = write_page(found, out)
    print_out(f"Page: {from_here(files[0].absolute())}. Beside it: {', '.join(file.name for file in files[1:])}")


def _inputs(record: str, metric: str | None) -> Inputs:
    from merton.leaderboard.snapshot import store as snapshots
    from merton.results.matrix import is_matrix_file, read_matrix
    from merton.results.store import open_record

    if is_matrix_file(record):
        if metric is not None:
            raise InputError(f"a response matrix has one score a cell: --metric {metric} is for records of trials")
        matrix = read_matrix(Path(record))
        print_remarks(matrix.remarks)
        return snapshots.inputs_of_matrix(matrix)
    with open_record(record, read_only=True) as store:
        return snapshots.inputs_of(store, metric=metric or DEFAULT_METRIC)


def _about(record: str, inputs: Inputs, matches: int, agents: int, cases: int, joint: bool) -> dict[str, str]:
    """The facts of a rating by name, such as its record and its matches, for the page and its numbers."""
    from merton import __version__
    from merton.rating.agi_elo import SEED, SHUFFLES

    name = record if "://" in record else Path(record).name
    return {
        "record": name.rpartition("@")[2],  # a URL may hold a password
        "matches": f"{agents} agents, {cases} cases, {matches} matches",
        "rated by": inputs.rated_by,
        "AGI-Elo": f"mean of {SHUFFLES} seeded orders (seed {SEED}); {JOINT if joint else PAIRS}",
        "inputs, SHA-256": inputs.sha256(),
        "made with": f"Merton {__version__}",
    }


def _show(found: Findings) -> None:
    from merton.leaderboard.rate.finding import rate_finding
    from merton.leaderboard.rate.tail import METHOD_NAMES

    if found.tails or found.convergence:  # a newcomer has a sentence of its own
        print_out(rate_finding(found.tails, found.convergence))
    for warning in found.warnings:
        print_err(warning)
    for item in found.placed:
        _show_placed(item)
    if found.convergence:
        STDOUT.print(_convergence_table(found.convergence))
    for tail in found.tails:
        print_out(
            f"Long tail by {METHOD_NAMES[tail.method]}, of {found.about['rated by']}: % of cases predicted below 50, "
            "90, 99 %; on the hardest case % predicted, and gaps"
        )
        STDOUT.print(_tail_table(tail))
        _show_negative(tail)
    for tail in found.tails[:1]:
        _show_hardest(tail)


def _show_placed(item: Placed) -> None:
    at = item.standing
    rating = f"{at.bound_sign} {at.mean:.0f}" if at.flag else f"{at.mean:.0f} {interval_text(at.interval, '.0f')}"
    best, worst = item.places
    print_out(
        f"{item.id}: rating {rating} by likelihood, place {at.rank} of {item.of} "
        f"({best} to {worst}); {item.agi_elo.mean:.0f} by AGI-Elo. Mean score {100 * item.mean_score:.1f} % on "
        f"{item.matches} cases, predicted {100 * item.predicted:.1f} % on all {len(item.by_case)} and "
        f"{100 * item.predicted_hardest:.1f} % on the hardest ({item.hardest})."
    )


def _convergence_table(found: tuple[Convergence, ...]) -> Table:
    table = Table(box=None, pad_edge=False, title="By share of the matches: mean over the orders", title_justify="left")
    for name in ("method", "share, %", "matches", "rank corr. cases", "agents", "MAE", "MSE"):
        table.add_column(name, no_wrap=True, justify="left" if name == "method" else "right")
    for item in found:
        for place, share in enumerate(item.shares):
            row = [item.measures[name][place] for name in ("case_correlation", "agent_correlation", "mae", "mse")]
            cells = [f"{at.mean:.4f}" if at else "–" for at in row]
            add_row(table, "" if place else item.method, f"{100 * share:g}", item.matches[place], *cells)
    return table


def _tail_table(tail: LongTail) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=28)
    for name in ("rating", "<50", "<90", "<99", "hardest", "gap 50", "gap 90", "gap 99"):
        table.add_column(name, no_wrap=True, justify="right")
    targets = [item for item in tail.beyond if item.is_target]
    agents = [item for item in tail.beyond if not item.is_target]
    for item in (*targets, *agents[:SHOWN]):
        gaps = [f"{gap.gap:.0f}" for gap in item.to_hardest] or ["", "", ""]
        add_row(
            table,
            item.name,
            f"{item.rating:.0f}",
            *(f"{100 * share:.1f}" for share in item.shares),
            f"{100 * item.on_hardest:.1f}",
            *gaps,
        )
    if len(agents) > SHOWN:
        add_row(table, f"and {len(agents) - SHOWN} more", *[""] * 8)
    return table


def _show_negative(tail: LongTail) -> None:
    from merton.leaderboard.rate.tail import negative_gaps

    sentences = negative_gaps(tail)
    for sentence in sentences[:SENTENCES]:
        print_err(sentence)
    if len(sentences) > SENTENCES:
        print_err(f"{counted(len(sentences) - SENTENCES, 'more agent')} with a negative gap: the page names them.")


def _show_hardest(tail: LongTail) -> None:
    for case in tail.hardest[:5]:
        solved = f"solved by {len(case.solved_by)} of {case.met}"
        if not case.solved_by:
            solved = f"solved by none of {case.met}, best {case.best[0]} with {100 * case.best[1]:.1f} %"
        print_out(f"hard: {case.id}, {case.rating:.0f}, mean score {100 * case.mean_score:.1f} %, {solved}")
