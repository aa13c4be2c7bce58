"""`merton leaderboard arena`, `world-model` and `capabilities`: boards under published rules from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merton.cli.console import TaxonomyOption, print_out
from merton.errors import InputError

if TYPE_CHECKING:
    from merton.leaderboard.board import Board
    from merton.leaderboard.published.world_model import Evaluation

GroundTruthOption = Annotated[
    Path | None,
    typer.Option("--ground-truth", help="Table of the tasks and how many real videos each has: task,videos."),
]
ArenaOption = Annotated[
    list[Path] | None, typer.Option("--arena", help="Also show the Arena's boards of this table, as for `arena`.")
]
WorldModelOption = Annotated[
    Path | None,
    typer.Option("--world-model", help="Also show the board of this annotation sheet, as for `world-model`."),
]
OutOption = Annotated[Path | None, typer.Option("-o", "--out", help="Write everything as JSON into this file.")]


def arena_command(
    items: Annotated[
        list[Path],
        typer.Argument(
            help="Tables (.csv, .jsonl, .parquet): agent,benchmark,item,dimension,score and, if you like, original, "
            "type (general or embodied), source (self-reported, evaluated by the host), tp,fp,fn."
        ),
    ],
    taxonomy: TaxonomyOption = None,
    out: OutOption = None,
) -> None:
    """Boards by the rules of Embodied Arena from the score of every question, 0 to 1."""
    from merton.leaderboard.board import plain_values
    from merton.leaderboard.published.tables import arena_boards
    from merton.leaderboard.terminal import render_board, terminal_width

    boards = arena_boards(items, taxonomy)
    _write(out, {"boards": [plain_values(board) for board in boards]})
    for board in boards:
        if board.has_scores:
            print_out(render_board(board, terminal_width()))
    if len(items) > 1:
        print_out(f"Scores of {len(items)} tables together: {', '.join(map(str, items))}")


def world_model_command(
    sheet: Annotated[Path, typer.Argument(help="Table (.csv, .jsonl, .parquet): team,task,video,annotator,score.")],
    ground_truth: GroundTruthOption = None,
    out: OutOption = None,
) -> None:
    """The board of world models as evaluators from annotators' scores of 0 to 3."""
    from merton.leaderboard.published.tables import world_model_board

    show_world_model_board(world_model_board(sheet, ground_truth), out)


def show_world_model_board(found: Evaluation, out: Path | None) -> None:
    """Print the board with the annotators' agreement, and write both as JSON if there is a file for it."""
    from merton.leaderboard.board import plain_values
    from merton.leaderboard.terminal import render_board, terminal_width

    agreement, kappa = found.agreement, found.agreement.kappa
    _write(out, {"boards": [plain_values(found.board)], "agreement": asdict(agreement)})
    print_out(render_board(found.board, terminal_width()))
    if kappa.value is None:
        print_out("Agreement of the annotators is unknown: no two of them scored the same videos, or no score varies.")
    else:
        print_out(
            f"Agreement of the annotators (kappa, quadratic weights): {kappa.shown}, {kappa.n} videos, "
            f"{len(agreement.pairs)} pairs"
        )


def capabilities_command(
    evaluations: Annotated[list[Path], typer.Argument(help="Folders of `merton curate evaluate` on one benchmark.")],
    out: OutOption = None,
) -> None:
    """The board of models by capability from evaluations on a curated benchmark."""
    from merton.leaderboard.board import plain_values
    from merton.leaderboard.terminal import render_board, terminal_width

    board = capabilities_board(evaluations)
    _write(out, {"boards": [plain_values(board)]})
    print_out(render_board(board, terminal_width()))


def capabilities_board(evaluations: Sequence[Path]) -> Board:
    """The board of evaluations; raises InputError for a folder without predictions."""
    from merton.leaderboard import capabilities

    return capabilities.capability_board(capabilities.question_scores(evaluations))


def _write(out: Path | None, content: Mapping[str, Any]) -> None:
    from merton.leaderboard.board import to_json

    if out is None:
        return
    try:
        out.write_bytes(to_json(content))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None
