"""`merton leaderboard answers`: the score of every question from models' answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import TaxonomyOption, from_here, print_err, print_out, progress, working
from merton.errors import InputError
from merton.files import refuse_overwriting, write_file
from merton.results.text import counted
from merton_studies.cli.curate_roles import MaxCalls, MaxCost, budget_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merton_studies.harness.answers import Answered, Scored


def answers_command(
    answers: Annotated[
        Path,
        typer.Argument(
            help="Table (.csv, .jsonl, .parquet): agent,benchmark,item,dimension,measure,answer,gold and, where "
            "needed, original,type,source,kind,choices,unit,question."
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Table of scores, a .csv; a .json with its origin beside it.")
    ],
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Chat model of the catalogue that marks answers.")
    ] = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    taxonomy: TaxonomyOption = None,
) -> None:
    """Score answers by the measures of Embodied Arena's benchmarks, for `arena`.

    A judge's marks are kept beside the scores, so the same command goes on after Ctrl-C or a kill.
    """
    from merton.leaderboard.published.taxonomy import load_taxonomy
    from merton.results.csv_writer import write_csv
    from merton_studies.curation.roles import refuse_idle_limits
    from merton_studies.harness.answers import about_file, read_answers, score_answers

    if out.suffix != ".csv":
        raise InputError(f"{out}: the name of the table of scores must end in .csv")
    refuse_overwriting(out, [answers])
    refuse_idle_limits([judge] if judge else [], max_calls, max_cost, "--judge")
    with working("reading the answers"):
        read = read_answers(answers, load_taxonomy(taxonomy))
    scored = _judged(read, judge, out, max_calls, max_cost) if judge else score_answers(read)
    columns, rows = _table(scored)
    write_csv(out, columns, rows)
    origin = json.dumps(about_file(scored, answers), indent=1, ensure_ascii=False) + "\n"
    write_file(out.with_suffix(".json"), origin.encode())
    agents = len({one.agent for one in read})
    print_out(f"{len(rows)} scores of {counted(agents, 'agent')}: {from_here(out)}")
    if scored.unscored:
        one, reason = scored.unscored[0]
        count = len(scored.unscored)
        print_err(f"{count} answer{'s have' if count > 1 else ' has'} no score, such as {one.where}: {reason}")


def _judged(read: Sequence[Answered], judge: str, out: Path, max_calls: int | None, max_cost: float | None) -> Scored:
    from merton_studies.annotate.cache import Cache
    from merton_studies.curation.budget import Budget
    from merton_studies.curation.llm.asker import Asker
    from merton_studies.harness.answers import score_answers

    marks = out.with_suffix(".marks.sqlite")
    with Cache(marks) as cache, budget_ends(), progress(f"marks of {judge}") as on_progress:
        return score_answers(read, Asker(judge, cache, Budget(max_calls, max_cost)), on_progress)


def _table(scored: Scored) -> tuple[Sequence[str], list[tuple[str | float, ...]]]:
    """Columns and rows; of the optional columns those that some row has something in."""
    from merton.leaderboard.published.items import COLUMNS, COUNTS, OPTIONAL

    rows = [
        {
            **{name: getattr(one, name) for name in COLUMNS},
            "original": one.original,
            "type": one.type,
            "source": one.source,
            **dict(zip(COUNTS, one.counts or ("", "", ""), strict=True)),
        }
        for one in scored.scores
    ]
    columns = (*COLUMNS, *(name for name in OPTIONAL if any(row[name] != "" for row in rows)))
    return columns, [tuple(row[name] for name in columns) for row in rows]
