"""Boards by the rules of Embodied Arena (arXiv 2509.15273 and the platform's rules for its leaderboards).

With c the sum of the scores (0..1) of k questions, times 100 throughout:

- a dimension of a benchmark: S = c / k; a benchmark: A = mean of its S; a task: mean of its benchmarks' A (macro);
- a fine dimension over all benchmarks: T = sum c / sum k (micro); a core capability: mean of its T; all: mean of all T.

Our decisions where the rules are open (docs/studies/published_rules.md gives the reasons): k is the number of questions
that at least one agent has a score for; an agent that lacks one of them has a missing cell; a column without any score
is shown and is not part of a total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.board import (
    NOT_MEASURED,
    Board,
    BoardCell,
    BoardRow,
    missing_cell,
    ranked,
    share_cell,
    total_cell,
)
from merton.leaderboard.published.taxonomy import Benchmark, Task, Taxonomy, word
from merton.results.tables import name_in, number_in, read_rows

MAXIMUM = 100.0
COLUMNS = ("agent", "benchmark", "item", "dimension", "score")
ORIGINAL = "original"
"""Optional column: the benchmark's own name of the dimension."""


@dataclass(frozen=True, slots=True)
class ItemScore:
    """The score of one agent for one question.

    Attributes:
        agent, benchmark, item: each combination is in a table once.
        dimension: the fine dimension of the question.
        score: 0..1; other metrics are mapped before (`Taxonomy.metrics`).
        original: the benchmark's own name of the dimension; empty if it has none.
        where: place in a file, for error messages.
    """

    agent: str
    benchmark: str
    item: str
    dimension: str
    score: float
    original: str = ""
    where: str = field(default="the scores", compare=False)


def read_items(path: Path, taxonomy: Taxonomy) -> list[ItemScore]:
    """The scores in a table with the columns `COLUMNS` and perhaps `ORIGINAL`; see `merton.results.tables.read_rows`.

    Raises:
        InputError: as for `read_rows`; also an empty or overlong name, or a score that is not a number in 0..1.
    """
    items = []
    for where, row in read_rows(path, COLUMNS, (ORIGINAL,)):
        agent, benchmark, item, dimension = (name_in(where, row, column) for column in COLUMNS[:4])
        try:
            score = number_in(where, row, "score", 0.0, 1.0)
        except InputError as error:
            raise InputError(f"{error}{taxonomy.scale(benchmark)}") from None
        original = name_in(where, row, ORIGINAL) if row.get(ORIGINAL) else ""
        items.append(ItemScore(agent, benchmark, item, dimension, score, original, where))
    if not items:
        raise InputError(f"{path}: has no scores; every line must have: {', '.join(COLUMNS)}")
    return items


def boards(items: Iterable[ItemScore], taxonomy: Taxonomy) -> tuple[Board, ...]:
    """All boards: one for each core task, one for each benchmark with a score, core capabilities, fine dimensions.

    Raises:
        InputError: an unknown benchmark, a dimension it does not cover, a question that an agent has twice or that
            has two dimensions, or a score outside 0..1; with the place and the choices.
    """
    scores = _Scores(items, taxonomy)
    return (
        *(_task_board(task, scores) for task in taxonomy.tasks),
        *(
            _benchmark_board(benchmark, scores)
            for benchmark in taxonomy.benchmarks
            if scores.dimensions_of(benchmark.name)
        ),
        _core_board(taxonomy, scores),
        _dimension_board(taxonomy, scores),
    )


Group = tuple[str, str, str]
"""Questions of a benchmark: (benchmark, its own name of the dimension, fine dimension)."""


class _Scores:
    """The scores of a table, checked, by agent and by group of questions.

    Attributes:
        agents: names, sorted.
        size: number of questions of each group that at least one agent has a score for.
        measured: fine dimensions with a score.
        values: an agent's scores in a group.
    """

    def __init__(self, items: Iterable[ItemScore], taxonomy: Taxonomy) -> None:
        known = {benchmark.name: benchmark for benchmark in taxonomy.benchmarks}
        group_of: dict[tuple[str, str], Group] = {}
        known_items: dict[tuple[str, str, str], ItemScore] = {}
        values: defaultdict[tuple[str, Group], list[float]] = defaultdict(list)
        for item in items:
            _check(item, known, taxonomy)
            key = (item.agent, item.benchmark, item.item)
            if key in known_items:
                raise InputError(
                    f"{item.where}: {item.agent!r} has item {item.item!r} of {item.benchmark} twice, "
                    f"first in {known_items[key].where}; leave one"
                )
            known_items[key] = item
            group = (item.benchmark, item.original or item.dimension, item.dimension)
            first = group_of.setdefault((item.benchmark, item.item), group)
            if first != group:
                raise InputError(
                    f"{item.where}: item {item.item!r} of {item.benchmark} is of dimension {group[1]!r} ({group[2]}) "
                    f"here and of {first[1]!r} ({first[2]}) before; a question has one"
                )
            values[item.agent, group].append(item.score)
        self.agents = sorted({agent for agent, _ in values})
        self.size: dict[Group, int] = {}
        for group in group_of.values():
            self.size[group] = self.size.get(group, 0) + 1
        self.measured = {dimension for _, _, dimension in self.size}
        # sorted, so that the order of the rows plays no part
        self.values = {key: sorted(scores) for key, scores in values.items()}

    def dimensions_of(self, benchmark: str) -> list[str]:
        """The benchmark's own names of its dimensions that have a score, sorted."""
        return sorted({original for name, original, _ in self.size if name == benchmark})

    def cell(self, agent: str, chosen: Callable[[Group], bool]) -> BoardCell:
        """100 · sum c / sum k over the groups chosen; missing if the agent lacks a question of theirs."""
        groups = [group for group in self.size if chosen(group)]
        k = sum(self.size[group] for group in groups)
        n = sum(len(self.values.get((agent, group), ())) for group in groups)
        if n == 0:
            return missing_cell("no items" if k else NOT_MEASURED)
        if n < k:
            return missing_cell(f"{k - n} of {k} items missing", n)
        return share_cell(sorted(score for group in groups for score in self.values[agent, group]), MAXIMUM)

    def benchmark(self, agent: str, benchmark: str) -> BoardCell:
        """A of one benchmark: the mean over its own dimensions."""
        names = self.dimensions_of(benchmark)
        if names and not any((agent, group) in self.values for group in self.size if group[0] == benchmark):
            return missing_cell("no items")
        return total_cell({name: self.cell(agent, _own(benchmark, name)) for name in names}, MAXIMUM)

    def dimensions(self, agent: str, names: Iterable[str]) -> dict[str, BoardCell]:
        """T of the fine dimensions among `names` that have a score."""
        return {name: self.cell(agent, _fine(name)) for name in names if name in self.measured}


def _own(benchmark: str, original: str) -> Callable[[Group], bool]:
    return lambda group: group[:2] == (benchmark, original)


def _fine(dimension: str) -> Callable[[Group], bool]:
    return lambda group: group[2] == dimension


def _check(item: ItemScore, known: Mapping[str, Benchmark], taxonomy: Taxonomy) -> None:
    if item.benchmark not in known:
        raise InputError(f"{item.where}: {UnknownNameError('benchmark', item.benchmark, known)}")
    covered = known[item.benchmark].dimensions
    if item.dimension not in covered:
        raise InputError(
            f"{item.where}: {item.benchmark} does not cover the dimension {item.dimension!r}; "
            f"choose one of: {', '.join(covered)}"
        )
    if not 0.0 <= item.score <= 1.0:
        raise InputError(f"{item.where}: score is {item.score}; it must be from 0 to 1{taxonomy.scale(item.benchmark)}")


def _board(
    scores: _Scores,
    name: str,
    title: str,
    note: str,
    columns: Iterable[str],
    row: Callable[[str], tuple[BoardCell, Iterable[BoardCell]]],
    warnings: tuple[str, ...] = (),
) -> Board:
    """The board whose rows hold the total and the cells that `row` gives for each agent."""
    rows = []
    for agent in scores.agents:
        total, cells = row(agent)
        rows.append(BoardRow(agent, None, total, tuple(cells)))
    return Board(name, title, note, tuple(columns), ranked(rows), MAXIMUM, warnings)


def _task_board(task: Task, scores: _Scores) -> Board:
    names = [benchmark.name for benchmark in task.benchmarks]
    measured = [name for name in names if scores.dimensions_of(name)]

    def row(agent: str) -> tuple[BoardCell, Iterable[BoardCell]]:
        cells = {name: scores.benchmark(agent, name) for name in names}
        return total_cell({name: cells[name] for name in measured}, MAXIMUM), cells.values()

    note = "A benchmark is the mean of its own dimensions, the total the mean of the benchmarks (macro means)."
    warnings = _incomplete("total", measured, names)
    return _board(scores, f"task-{word(task.name)}", task.name, note, names, row, warnings)


def _benchmark_board(benchmark: Benchmark, scores: _Scores) -> Board:
    names = scores.dimensions_of(benchmark.name)

    def row(agent: str) -> tuple[BoardCell, Iterable[BoardCell]]:
        return scores.benchmark(agent, benchmark.name), (
            scores.cell(agent, _own(benchmark.name, name)) for name in names
        )

    note = "A dimension is the mean score of its questions, the total the mean of the dimensions."
    return _board(scores, f"benchmark-{word(benchmark.name)}", benchmark.name, note, names, row)


def _core_board(taxonomy: Taxonomy, scores: _Scores) -> Board:
    def row(agent: str) -> tuple[BoardCell, Iterable[BoardCell]]:
        total = total_cell(scores.dimensions(agent, taxonomy.dimensions), MAXIMUM)
        return total, (total_cell(scores.dimensions(agent, core.dimensions), MAXIMUM) for core in taxonomy.capabilities)

    warnings: list[str] = []
    for core in taxonomy.capabilities:
        measured = [name for name in core.dimensions if name in scores.measured]
        if measured:
            warnings += _incomplete(core.name, measured, core.dimensions)
    note = "A capability is the mean of its fine dimensions, the total the mean of all fine dimensions."
    names = (core.name for core in taxonomy.capabilities)
    return _board(scores, "core-capabilities", "Core capabilities", note, names, row, tuple(warnings))


def _dimension_board(taxonomy: Taxonomy, scores: _Scores) -> Board:
    names = taxonomy.dimensions

    def row(agent: str) -> tuple[BoardCell, Iterable[BoardCell]]:
        cells = scores.dimensions(agent, names)
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
