"""Boards by the rules of Embodied Arena (arXiv 2509.15273 and the platform's rules for its leaderboards).

With c the sum of the scores (0..1) of k questions, times 100 throughout:

- a dimension of a benchmark: S = c / k; a benchmark: A = mean of its S; a task: mean of its benchmarks' A (macro);
- a fine dimension over all benchmarks: T = sum c / sum k (micro); a core capability: mean of its T; all: mean of all T.

Open there, decided here (docs/published_rules.md says why): k is the number of all questions anybody has a score for;
who lacks one has a missing cell; what nobody has a score for counts for nothing and is shown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from merton.config import Model, load
from merton.errors import InputError, UnknownNameError
from merton.files import resource
from merton.leaderboard.board import PublishedBoard, PublishedCell, PublishedRow, absent, mean_of, ordered, share
from merton.results.tables import name_in, number_in, read_rows

MAXIMUM = 100.0
COLUMNS = ("agent", "benchmark", "item", "dimension", "score")
ORIGINAL = "original"
"""Optional column: the benchmark's own name of the dimension."""


class Capability(Model):
    """A core capability and its fine dimensions."""

    name: str
    dimensions: tuple[str, ...]


class Benchmark(Model):
    """A benchmark: its metrics, the fine dimensions it covers, and who says so (its page on the platform, or us)."""

    name: str
    metrics: tuple[str, ...]
    dimensions: tuple[str, ...]
    source: Literal["page", "ours"]


class Task(Model):
    """A core task and its benchmarks."""

    name: str
    benchmarks: tuple[Benchmark, ...]


class Taxonomy(Model):
    """What the boards are about; `metrics` says how each metric comes to lie in 0..1."""

    metrics: dict[str, str]
    capabilities: tuple[Capability, ...]
    tasks: tuple[Task, ...]

    @model_validator(mode="after")
    def _names_exist_once(self) -> Taxonomy:
        for kind, names in (
            ("dimension", self.dimensions),
            ("capability", tuple(item.name for item in self.capabilities)),
            ("benchmark", tuple(item.name for item in self.benchmarks)),
            ("task", tuple(item.name for item in self.tasks)),
        ):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the {kind} {twice!r} stands twice")
        for benchmark in self.benchmarks:
            for name, known, kind in (
                *((name, self.dimensions, "dimension") for name in benchmark.dimensions),
                *((name, tuple(self.metrics), "metric") for name in benchmark.metrics),
            ):
                if name not in known:
                    raise ValueError(f"{benchmark.name}: unknown {kind} {name!r}; choose from: {', '.join(known)}")
        return self

    @property
    def dimensions(self) -> tuple[str, ...]:
        """All fine dimensions, capability by capability."""
        return tuple(name for capability in self.capabilities for name in capability.dimensions)

    @property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """All benchmarks, task by task."""
        return tuple(benchmark for task in self.tasks for benchmark in task.benchmarks)


@dataclass(frozen=True, slots=True)
class ItemScore:
    """What one agent has for one question.

    Attributes:
        agent, benchmark, item: who answered what; together they stand once.
        dimension: the fine dimension the question is about.
        score: 0..1; other metrics are mapped before (`Taxonomy.metrics`).
        original: the benchmark's own name of the dimension, where that is finer or other; empty if it is not.
        where: place in a file, for error texts.
    """

    agent: str
    benchmark: str
    item: str
    dimension: str
    score: float
    original: str = ""
    where: str = field(default="the scores", compare=False)


def load_taxonomy() -> Taxonomy:
    """The taxonomy in config/leaderboards/embodied_arena.yaml: 7 core capabilities, 25 dimensions, 22 benchmarks."""
    return load(resource("merton_bringup", "config/leaderboards/embodied_arena.yaml"), Taxonomy)


def read_items(path: Path, taxonomy: Taxonomy) -> list[ItemScore]:
    """The scores in a table with the columns `COLUMNS` and perhaps `ORIGINAL`; see `merton.results.tables.read_rows`.

    Raises:
        InputError: what `read_rows` refuses, an empty or overlong name, or a score that is no number in 0..1.
    """
    items = []
    for where, row in read_rows(path, COLUMNS, (ORIGINAL,)):
        agent, benchmark, item, dimension = (name_in(where, row, column) for column in COLUMNS[:4])
        try:
            score = number_in(where, row, "score", 0.0, 1.0)
        except InputError as error:
            raise InputError(f"{error}{_mapping(benchmark, taxonomy)}") from None
        original = name_in(where, row, ORIGINAL) if row.get(ORIGINAL) else ""
        items.append(ItemScore(agent, benchmark, item, dimension, score, original, where))
    if not items:
        raise InputError(f"{path}: has no scores; every line must have: {', '.join(COLUMNS)}")
    return items


def boards(items: Iterable[ItemScore], taxonomy: Taxonomy) -> tuple[PublishedBoard, ...]:
    """All boards: one a core task, one a benchmark anybody has scores of, core capabilities, fine dimensions.

    Raises:
        InputError: an unknown benchmark, a dimension it does not cover, a question that stands twice for an agent or
            has two dimensions, or a score outside 0..1; with the place and the choices.
    """
    scores = _Scores(items, taxonomy)
    return (
        *(_task_board(task, scores) for task in taxonomy.tasks),
        *(_benchmark_board(benchmark, scores) for benchmark in taxonomy.benchmarks if scores.cells_of(benchmark.name)),
        _core_board(taxonomy, scores),
        _dimension_board(taxonomy, scores),
    )


class _Scores:
    """The scores of a table, checked, by agent and by what they are about.

    A group is (benchmark, the dimension's original name, fine dimension). `size` is the number of questions of a group
    that anybody has a score for; `points` and `counts` are those of an agent.
    """

    def __init__(self, items: Iterable[ItemScore], taxonomy: Taxonomy) -> None:
        known = {benchmark.name: benchmark for benchmark in taxonomy.benchmarks}
        group_of: dict[tuple[str, str], tuple[str, str, str]] = {}
        seen: dict[tuple[str, str, str], ItemScore] = {}
        values: defaultdict[tuple[str, tuple[str, str, str]], list[float]] = defaultdict(list)
        for item in items:
            _check(item, known, taxonomy)
            key = (item.agent, item.benchmark, item.item)
            if key in seen:
                raise InputError(
                    f"{item.where}: {item.agent!r} has item {item.item!r} of {item.benchmark} twice, "
                    f"first in {seen[key].where}; leave one"
                )
            seen[key] = item
            group = (item.benchmark, item.original or item.dimension, item.dimension)
            first = group_of.setdefault((item.benchmark, item.item), group)
            if first != group:
                raise InputError(
                    f"{item.where}: item {item.item!r} of {item.benchmark} is of dimension {group[1]!r} ({group[2]}) "
                    f"here and of {first[1]!r} ({first[2]}) before; a question has one"
                )
            values[item.agent, group].append(item.score)
        self.agents = sorted({agent for agent, _ in values})
        self.size: dict[tuple[str, str, str], int] = {}
        for group in group_of.values():
            self.size[group] = self.size.get(group, 0) + 1
        self.measured = {dimension for _, _, dimension in self.size}
        # fsum is exact, so the order of the rows plays no part.
        self.points = {key: math.fsum(scores) for key, scores in values.items()}
        self.counts = {key: len(scores) for key, scores in values.items()}

    def cells_of(self, benchmark: str) -> list[str]:
        """Original names of the dimensions that anybody has scores of in the benchmark, in order of the alphabet."""
        return sorted({original for name, original, _ in self.size if name == benchmark})

    def cell(self, agent: str, chosen: Callable[[tuple[str, str, str]], bool]) -> PublishedCell:
        """100 · sum c / sum k over the groups chosen; missing if the agent lacks a question of theirs."""
        groups = [group for group in self.size if chosen(group)]
        k = sum(self.size[group] for group in groups)
        n = sum(self.counts.get((agent, group), 0) for group in groups)
        if n == 0:
            return absent("no items" if k else "nobody has items")
        if n < k:
            return absent(f"{k - n} of {k} items missing", n)
        return share(min(float(k), math.fsum(self.points[agent, group] for group in groups)), k, MAXIMUM)

    def benchmark(self, agent: str, benchmark: str) -> PublishedCell:
        """A of one benchmark: the mean over its own dimensions."""
        names = self.cells_of(benchmark)
        if names and not any((agent, group) in self.counts for group in self.size if group[0] == benchmark):
            return absent("no items")
        return mean_of({name: self.cell(agent, _own(benchmark, name)) for name in names}, MAXIMUM)

    def dimensions(self, agent: str, names: Iterable[str]) -> dict[str, PublishedCell]:
        """T of those of the fine dimensions that anybody has scores of."""
        return {name: self.cell(agent, _fine(name)) for name in names if name in self.measured}


def _own(benchmark: str, original: str) -> Callable[[tuple[str, str, str]], bool]:
    return lambda group: group[:2] == (benchmark, original)


def _fine(dimension: str) -> Callable[[tuple[str, str, str]], bool]:
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
        raise InputError(
            f"{item.where}: score is {item.score}; it must be from 0 to 1{_mapping(item.benchmark, taxonomy)}"
        )


def _mapping(benchmark: str, taxonomy: Taxonomy) -> str:
    """How the metrics of a benchmark are brought to 0..1, for an error text."""
    for entry in taxonomy.benchmarks:
        if entry.name == benchmark:
            return " (" + "; ".join(f"{name}: {taxonomy.metrics[name]}" for name in entry.metrics) + ")"
    return ""


def _task_board(task: Task, scores: _Scores) -> PublishedBoard:
    names = [benchmark.name for benchmark in task.benchmarks]
    measured = [name for name in names if scores.cells_of(name)]
    rows = []
    for agent in scores.agents:
        cells = {
            name: scores.benchmark(agent, name) if name in measured else absent("nobody has items") for name in names
        }
        total = mean_of({name: cells[name] for name in measured}, MAXIMUM)
        rows.append(PublishedRow(agent, total, tuple(cells.values())))
    return PublishedBoard(
        f"task-{_word(task.name)}",
        task.name,
        "A benchmark is the mean of its own dimensions, the total the mean of the benchmarks (macro means).",
        MAXIMUM,
        tuple(names),
        ordered(rows),
        _incomplete("total", measured, names),
    )


def _benchmark_board(benchmark: Benchmark, scores: _Scores) -> PublishedBoard:
    names = scores.cells_of(benchmark.name)
    rows = [
        PublishedRow(
            agent,
            scores.benchmark(agent, benchmark.name),
            tuple(scores.cell(agent, _own(benchmark.name, name)) for name in names),
        )
        for agent in scores.agents
    ]
    note = "A dimension is the mean score of its questions, the total the mean of the dimensions."
    return PublishedBoard(
        f"benchmark-{_word(benchmark.name)}", benchmark.name, note, MAXIMUM, tuple(names), ordered(rows)
    )


def _core_board(taxonomy: Taxonomy, scores: _Scores) -> PublishedBoard:
    rows = []
    warnings: list[str] = []
    for agent in scores.agents:
        cells = [mean_of(scores.dimensions(agent, core.dimensions), MAXIMUM) for core in taxonomy.capabilities]
        rows.append(PublishedRow(agent, mean_of(scores.dimensions(agent, taxonomy.dimensions), MAXIMUM), tuple(cells)))
    for core in taxonomy.capabilities:
        measured = [name for name in core.dimensions if name in scores.measured]
        if measured:
            warnings += _incomplete(core.name, measured, core.dimensions)
    return PublishedBoard(
        "core-capabilities",
        "Core capabilities",
        "A capability is the mean of its fine dimensions, the total the mean of all fine dimensions.",
        MAXIMUM,
        tuple(core.name for core in taxonomy.capabilities),
        ordered(rows),
        tuple(warnings),
    )


def _dimension_board(taxonomy: Taxonomy, scores: _Scores) -> PublishedBoard:
    names = taxonomy.dimensions
    rows = []
    for agent in scores.agents:
        cells = scores.dimensions(agent, names)
        shown = tuple(cells.get(name, absent("nobody has items")) for name in names)
        rows.append(PublishedRow(agent, mean_of(cells, MAXIMUM), shown))
    return PublishedBoard(
        "fine-dimensions",
        "Fine dimensions",
        "A dimension is the mean score of its questions in all benchmarks together (micro), the total the mean of the "
        "dimensions.",
        MAXIMUM,
        names,
        ordered(rows),
        _incomplete("total", [name for name in names if name in scores.measured], names),
    )


def _incomplete(what: str, measured: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """A warning if something is a mean of fewer columns than there are."""
    measured, names = list(measured), list(names)
    if not measured or len(measured) == len(names):
        return ()
    lacking = ", ".join(name for name in names if name not in measured)
    return (f"{what}: a mean of {len(measured)} of {len(names)}; nobody has items of {lacking}",)


def _word(name: str) -> str:
    """A name as a word for addresses."""
    return "".join(character if character.isalnum() else "-" for character in name.lower())
