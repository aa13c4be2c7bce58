"""Boards of every kind in one form: those of the snapshot, and those under published rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from merton.leaderboard.board import PublishedBoard, PublishedCell
from merton.leaderboard.published.world_model import Evaluation
from merton.leaderboard.snapshot.contents import BoardCell, Snapshot

NEVER_MET = "the agent met no such case"


@dataclass(frozen=True)
class SheetLine:
    """An agent's line; `index` into the snapshot's agents, None for one that is on this board alone."""

    agent: str
    index: int | None
    rank: int | None
    total: PublishedCell
    cells: tuple[PublishedCell, ...]


@dataclass(frozen=True)
class Sheet:
    """A board as it is drawn.

    Attributes:
        name: unlike that of any other sheet.
        title, note, columns, warnings: as in `PublishedBoard`.
        maximum: the highest score there is.
        lines: best first, those without a total last.
    """

    name: str
    title: str
    note: str
    maximum: float
    columns: tuple[str, ...]
    lines: tuple[SheetLine, ...]
    warnings: tuple[str, ...] = ()

    @property
    def digits(self) -> int:
        """Decimals of a score."""
        return 3 if self.maximum <= 1.0 else 2


def sheets(snapshot: Snapshot, published: Sequence[PublishedBoard | Evaluation]) -> list[Sheet]:
    """All boards, the snapshot's first. A world model's evaluation carries its annotators' agreement as a note."""
    own = [
        Sheet(
            board.name,
            board.title,
            board.note,
            1.0,
            board.columns,
            tuple(
                SheetLine(
                    snapshot.agents[row.agent].id,
                    row.agent,
                    row.rank,
                    _cell(row.total, "a cell is missing"),
                    tuple(_cell(cell, NEVER_MET) for cell in row.cells),
                )
                for row in board.rows
            ),
        )
        for board in snapshot.boards
    ]
    return own + [_published(board, snapshot) for board in published]


def _cell(cell: BoardCell, reason: str) -> PublishedCell:
    return PublishedCell(cell.score, cell.interval, cell.n, missing=reason if cell.score is None else "")


def _published(item: PublishedBoard | Evaluation, snapshot: Snapshot) -> Sheet:
    board = item.board if isinstance(item, Evaluation) else item
    index = {agent.id: place for place, agent in enumerate(snapshot.agents)}
    return Sheet(
        f"published-{board.name}",
        board.title,
        f"{board.note} {_agreement(item)}".strip() if isinstance(item, Evaluation) else board.note,
        board.maximum,
        board.columns,
        tuple(SheetLine(row.agent, index.get(row.agent), row.rank, row.total, row.cells) for row in board.rows),
        board.warnings,
    )


def _agreement(evaluation: Evaluation) -> str:
    found = evaluation.agreement
    if found.kappa is None or found.interval is None:
        return "How far the annotators agree is unknown: no two of them scored the same videos, or no score varies."
    low, high = found.interval
    return f"Annotators agree with a weighted kappa of {found.kappa:.2f} [{low:.2f}, {high:.2f}], {found.n} videos."
