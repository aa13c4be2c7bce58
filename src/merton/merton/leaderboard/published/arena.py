"""Boards by the rules of Embodied Arena (arXiv 2509.15273 and the platform's rules for its leaderboards).

With c the sum of the scores (0..1) of k questions, times 100 throughout:

- a dimension of a benchmark: S = c / k; a benchmark: A = mean of its S; a task: mean of its benchmarks' A (macro);
- capabilities in one benchmark: S = c / k of each fine dimension; a core capability: C = mean of its S; A = mean of S;
- a fine dimension over all benchmarks: T = sum c / sum k (micro); a core capability: mean of its T; all: mean of all T.

Our decisions where the rules are open (docs/studies/published_rules.md gives the reasons): k is the number of questions
that at least one agent has a score for; an agent that lacks one of them has a missing cell; a column without any score
is shown and is not part of a total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from merton.leaderboard.board import NOT_MEASURED, Board, BoardCell, BoardRow, missing_cell, ranked, total_cell
from merton.leaderboard.published.items import COLUMNS, MAXIMUM, ORIGINAL, Entrant, ItemScore, Scores, own, read_items
from merton.leaderboard.published.taxonomy import Benchmark, Task, Taxonomy, word
from merton.results.text import counted

__all__ = ["COLUMNS", "MAXIMUM", "ORIGINAL", "ItemScore", "boards", "read_items"]


def boards(items: Iterable[ItemScore], taxonomy: Taxonomy) -> tuple[Board, ...]:
    """All boards: a core task each, core capabilities, fine dimensions, two for each benchmark with a score.

    Raises InputError as `Scores` does.
    """
    scores = Scores(items, taxonomy)
    measured = [benchmark for benchmark in taxonomy.benchmarks if scores.dimensions_of(benchmark.name)]
    return (
        *(_task_board(task, scores) for task in taxonomy.tasks),
        _core_board(taxonomy, scores),
        _dimension_board(taxonomy, scores),
        *(_benchmark_board(benchmark, scores) for benchmark in measured),
        *(_capability_board(benchmark, taxonomy, scores) for benchmark in measured),
    )


def _board(
    scores: Scores,
    name: str,
    title: str,
    note: str,
    columns: Iterable[str],
    row: Callable[[Entrant], tuple[BoardCell, Iterable[BoardCell]]],
    warnings: tuple[str, ...] = (),
) -> Board:
    """The board whose rows hold the total and the cells that `row` gives for each entrant."""
    rows = []
    for entrant in scores.entrants:
        total, cells = row(entrant)
        about = {"type": scores.types[entrant.agent], "source": entrant.source}
        rows.append(BoardRow(entrant.agent, None, total, tuple(cells), **about))
    return Board(name, title, note, tuple(columns), ranked(rows), MAXIMUM, (*warnings, *_wide_totals(rows)))


def _wide_totals(rows: Iterable[BoardRow]) -> tuple[str, ...]:
    """A sentence if a total's interval is wider than that of every cell of its row, which looks like a mistake."""
    wide = sum(
        row.total.interval is not None
        and bool(widths := [cell.interval.high - cell.interval.low for cell in row.cells if cell.interval])
        and row.total.interval.high - row.total.interval.low > max(widths)
        for row in rows
    )
    if not wide:
        return ()
    return (
        f"total: of {counted(wide, 'agent')} its interval is wider than those of the columns: with so few questions "
        "their scatter is hardly known, which widens a total's interval, and a column's by no more than that of coins",
    )


def _task_board(task: Task, scores: Scores) -> Board:
    names = [benchmark.name for benchmark in task.benchmarks]
    measured = [name for name in names if scores.dimensions_of(name)]

    def row(entrant: Entrant) -> tuple[BoardCell, Iterable[BoardCell]]:
        cells = {name: scores.benchmark(entrant, name) for name in names}
        return total_cell({name: cells[name] for name in measured}, MAXIMUM), cells.values()

    note = "A benchmark is the mean of its own dimensions, the total the mean of the benchmarks (macro means)."
    warnings = _incomplete("total", measured, names)
    return _board(scores, f"task-{word(task.name)}", task.name, note, names, row, warnings)


def _benchmark_board(benchmark: Benchmark, scores: Scores) -> Board:
    names = scores.dimensions_of(benchmark.name)

    def row(entrant: Entrant) -> tuple[BoardCell, Iterable[BoardCell]]:
        return scores.benchmark(entrant, benchmark.name), (
            scores.cell(entrant, own(benchmark.name, name)) for name in names
        )

    note = "A dimension is the mean score of its questions, the total the mean of the dimensions."
    return _board(scores, f"benchmark-{word(benchmark.name)}", benchmark.name, note, names, row)


def _capability_board(benchmark: Benchmark, taxonomy: Taxonomy, scores: Scores) -> Board:
    """Capabilities in one benchmark: C of each core capability, S of each fine dimension, A as the total."""
    names = [name for name in taxonomy.dimensions if name in benchmark.dimensions]
    cores = {core.name: [name for name in core.dimensions if name in names] for core in taxonomy.capabilities}
    cores = {name: dimensions for name, dimensions in cores.items() if dimensions}

    def row(entrant: Entrant) -> tuple[BoardCell, Iterable[BoardCell]]:
        cells = scores.dimensions(entrant, names, benchmark.name)
        means = (total_cell({name: cells[name] for name in part if name in cells}, MAXIMUM) for part in cores.values())
        alone = (cells.get(name, missing_cell(NOT_MEASURED)) for name in names)
        return total_cell(cells, MAXIMUM), (*means, *alone)

    note = (
        "In this benchmark alone: a fine dimension is the mean score of its questions, a core capability (core) the "
        "mean of its fine dimensions, the total the mean of the fine dimensions."
    )
    measured = [name for name in names if name in {group[2] for group in scores.size if group[0] == benchmark.name}]
    columns = (*(f"{name} (core)" for name in cores), *names)
    title = f"{benchmark.name}: capabilities"
    warnings = _incomplete("total", measured, names)
    return _board(scores, f"capabilities-{word(benchmark.name)}", title, note, columns, row, warnings)


def _core_board(taxonomy: Taxonomy, scores: Scores) -> Board:
    def row(entrant: Entrant) -> tuple[BoardCell, Iterable[BoardCell]]:
        total = total_cell(scores.dimensions(entrant, taxonomy.dimensions), MAXIMUM)
        return total, (
            total_cell(scores.dimensions(entrant, core.dimensions), MAXIMUM) for core in taxonomy.capabilities
        )

    warnings: list[str] = []
    for core in taxonomy.capabilities:
        measured = [name for name in core.dimensions if name in scores.measured]
        if measured:
            warnings += _incomplete(core.name, measured, core.dimensions)
    note = "A capability is the mean of its fine dimensions, the total the mean of all fine dimensions."
    names = (core.name for core in taxonomy.capabilities)
    return _board(scores, "core-capabilities", "Core capabilities", note, names, row, tuple(warnings))


def _dimension_board(taxonomy: Taxonomy, scores: Scores) -> Board:
    names = taxonomy.dimensions

    def row(entrant: Entrant) -> tuple[BoardCell, Iterable[BoardCell]]:
        cells = scores.dimensions(entrant, names)
        return total_cell(cells, MAXIMUM), (cells.get(name, missing_cell(NOT_MEASURED)) for name in names)

    note = (
        "A dimension is the mean score of its questions in all benchmarks together (micro), the total the mean of the "
        "dimensions."
    )
    warnings = _incomplete("total", [name for name in names if name in scores.measured], names)
    return _board(scores, "fine-dimensions", "Fine dimensions", note, names, row, warnings)


def _incomplete(mean: str, measured: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """A warning if a mean leaves out columns without a score."""
    measured, names = list(measured), list(names)
    if not measured or len(measured) == len(names):
        return ()
    lacking = ", ".join(name for name in names if name not in measured)
    return (f"{mean}: a mean of {len(measured)} of {len(names)}; no agent was measured on {lacking}",)
