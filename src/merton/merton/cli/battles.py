"""`merton leaderboard battles`: ratings from battles of two models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, from_here, print_err, print_out
from merton.files import make_folder
from merton.results.text import counted
from merton.statistics.intervals import interval_text


def battles_command(
    battles: Annotated[
        Path,
        typer.Argument(
            help="Table (.csv, .tsv, .jsonl, .json, .parquet): model_a,model_b,winner; perhaps tie, question_id."
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for ranking.csv and ranking.json.")] = None,
) -> None:
    """Rate models that were compared two at a time: Bradley and Terry, a tie is half a win for each."""
    from merton.leaderboard.preferences import Preference, board, write_board
    from merton.rating.battles import read_battles
    from merton.statistics.means import ranks

    read = [Preference(one.a, one.b, one.choice, "a", one.scene) for one in read_battles(battles)]
    fitted = board(read)
    names = sorted(fitted.contenders, key=lambda name: (-round(fitted.contenders[name].mean, 6), name))
    table = Table("", "model", "rating", "battles", box=None, pad_edge=False)
    for place, name in zip(ranks(fitted.contenders[name].mean for name in names), names, strict=True):
        found = fitted.contenders[name]
        add_row(table, place, name, f"{found.mean:.0f} {interval_text(found.interval, '.0f')}", found.matches)
    STDOUT.print(table)
    counts = f"{counted(fitted.comparisons, 'battle')} about {counted(fitted.scenes, 'question')}"
    print_out(f"{counts}; mean rating 1500, 95 % intervals")
    for warning in fitted.warnings:
        print_err(warning)
    if out is not None:
        make_folder(out)
        print_out(f"Tables: {', '.join(from_here(file.absolute()) for file in write_board(read, out))}")
