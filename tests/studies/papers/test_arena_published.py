"""Boards by the rules of Embodied Arena: worked examples, published rows, invariants, refused tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from merton.leaderboard.board import Board, BoardRow
from merton.leaderboard.published.arena import ItemScore, boards
from merton.leaderboard.published.taxonomy import Taxonomy, load_taxonomy
from merton_studies.papers.embodied_arena import VSI_DIMENSIONS


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return load_taxonomy()


def items(agent: str, benchmark: str, dimension: str, scores: Sequence[float], original: str = "") -> list[ItemScore]:
    """One question a score."""
    name = original or dimension
    return [ItemScore(agent, benchmark, f"{name} {i}", dimension, s, original) for i, s in enumerate(scores)]


def named(found: Sequence[Board], name: str) -> Board:
    return next(board for board in found if board.name == name)


def row(board: Board, agent: str) -> BoardRow:
    return next(row for row in board.rows if row.agent == agent)


def scores(board: Board, agent: str = "a") -> dict[str, float]:
    """The agent's scores by column, missing ones left out."""
    cells = zip(board.columns, row(board, agent).cells, strict=True)
    return {column: cell.score for column, cell in cells if cell.score is not None}


VSI_ROWS = {
    "GPT-4o": ([46.2, 5.3, 43.8, 38.2, 37.0, 41.3, 31.5, 28.5], 34.0),
    "Gemini-2.5 Pro": ([43.8, 34.9, 64.3, 42.8, 61.1, 47.8, 45.9, 71.3], 51.5),
    "Spatial-MLLM-4B": ([65.3, 34.8, 63.1, 45.1, 41.3, 46.2, 33.5, 46.3], 47.0),
    "VG-LLM-4B": ([66.0, 37.8, 55.2, 59.2, 44.6, 45.6, 33.5, 36.4], 47.3),
    "Cambrian-S-3B": ([70.7, 40.6, 68.0, 46.3, 64.8, 61.9, 27.3, 78.8], 57.3),
    "Qwen3.5-4B": ([56.5, 36.5, 67.5, 53.8, 60.3, 57.5, 34.0, 62.3], 53.6),
}


def test_published_rows_of_vsi_bench(taxonomy: Taxonomy) -> None:
    entries = [
        entry
        for agent, (printed, _) in VSI_ROWS.items()
        for (original, fine), value in zip(VSI_DIMENSIONS.items(), printed, strict=True)
        for entry in items(agent, "VSI-Bench", fine, [value / 100], original)
    ]
    board = named(boards(entries, taxonomy), "benchmark-vsi-bench")
    for agent, (_, total) in VSI_ROWS.items():
        assert row(board, agent).total.score == pytest.approx(total, abs=0.0501)
    assert [entry.agent for entry in board.rows] == sorted(VSI_ROWS, key=lambda agent: -VSI_ROWS[agent][1])
