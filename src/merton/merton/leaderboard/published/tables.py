"""The tables that boards under published rules are made of, as a command or a server names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError, MertonError
from merton.leaderboard.board import Board
from merton.leaderboard.published import arena, world_model
from merton.leaderboard.published.items import ItemScore
from merton.leaderboard.published.taxonomy import load_taxonomy, taxonomy_files
from merton.leaderboard.submissions.evaluated import evaluated_items
from merton.results.store import ResultStore


@dataclass(frozen=True)
class Tables:
    """Files of scores and of the rules that they are read by.

    Attributes:
        arena: tables of the score of every question; all of them together make the Arena's boards.
        taxonomy: of the Arena, a file; None: the shipped one.
        world_model: sheet of annotators' scores.
        ground_truth: table of how many real videos a task has.
    """

    arena: tuple[Path, ...] = ()
    taxonomy: Path | None = None
    world_model: Path | None = None
    ground_truth: Path | None = None

    @property
    def has_any(self) -> bool:
        """Whether any file is named."""
        return any((self.arena, self.taxonomy, self.world_model, self.ground_truth))

    def boards(self, store: ResultStore | None = None) -> tuple[Board, ...]:
        """The boards that have a score, those of the Arena first.

        Args:
            store: a record; the scores of the applications in it that the host evaluated stand beside the tables'.

        Raises:
            InputError: a table or the taxonomy is wrong, with file and line; or the sheet or the counts of world models
                are named without the other.
        """
        evaluated = [] if store is None else evaluated_scores(store)
        found: list[Board] = []
        if self.arena or evaluated:
            found += [board for board in arena_boards(self.arena, self.taxonomy, evaluated) if board.has_scores]
        elif self.taxonomy is not None:
            load_taxonomy(self.taxonomy)  # a mistake is told before there are scores
        if self.world_model is not None:
            found.append(world_model_board(self.world_model, self.ground_truth).board_with_agreement)
        elif self.ground_truth is not None:
            raise InputError(f"the counts {self.ground_truth} need a sheet of scores: name one by --world-model")
        return tuple(found)

    def state(self) -> tuple[object, ...]:
        """A value that is cheap to get and changes whenever a file is changed, removed or made."""
        try:
            taxonomies = taxonomy_files(self.taxonomy)
        except MertonError:
            taxonomies = (self.taxonomy,) if self.taxonomy is not None else ()
        others = [file for file in (self.world_model, self.ground_truth) if file is not None]
        return tuple(_state(file) for file in (*self.arena, *taxonomies, *others))


def evaluated_scores(store: ResultStore) -> list[ItemScore]:
    """The scores of the applications in a record that the host evaluated."""
    return [
        ItemScore(
            one.agent,
            one.benchmark,
            one.item,
            one.dimension,
            one.score,
            one.original,
            f"the host's evaluation of {one.agent}",
            one.type,
            one.source,
        )
        for one in evaluated_items(store.database)
    ]


def arena_boards(
    items: Sequence[Path], taxonomy: Path | None = None, evaluated: Sequence[ItemScore] = ()
) -> tuple[Board, ...]:
    """All boards of an Arena from tables of scores together; raises InputError with the line at fault."""
    known = load_taxonomy(taxonomy)
    read = [item for file in items for item in arena.read_items(file, known)]
    return arena.boards([*read, *evaluated], known)


def world_model_board(sheet: Path, ground_truth: Path | None) -> world_model.Evaluation:
    """The board of annotators' scores; raises InputError with the line at fault, or without counts of real videos."""
    if ground_truth is None:
        raise InputError(
            "the number of real videos of every task is missing: name a table with the columns "
            f"{','.join(world_model.COUNT_COLUMNS)} by --ground-truth"
        )
    rules = world_model.load_rules()
    counts = world_model.read_ground_truth(ground_truth)
    return world_model.evaluate(world_model.read_sheet(sheet, rules), counts, rules)


def _state(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
