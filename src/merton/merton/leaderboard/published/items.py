"""The score of every question, as the boards of an Arena read it from tables, checked and grouped by dimension."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.board import NOT_MEASURED, BoardCell, missing_cell, share_cell, total_cell
from merton.leaderboard.published.taxonomy import Benchmark, Taxonomy
from merton.results.tables import name_in, number_in, plain_number, read_rows

MAXIMUM = 100.0
COLUMNS = ("agent", "benchmark", "item", "dimension", "score")
ORIGINAL = "original"
"""Optional column: the benchmark's own name of the dimension."""
TYPE, SOURCE = "type", "source"
"""Optional columns of the agent: `TYPES`; who measured the score, as `SELF_REPORTED`, `BY_THE_HOST` or another text."""
COUNTS = ("tp", "fp", "fn")
"""Optional columns of a question scored by micro-F1: its true positives, false positives, false negatives."""
OPTIONAL = (ORIGINAL, TYPE, SOURCE, *COUNTS)

TYPES = {"general": "general large model", "embodied": "embodied AI model"}
"""The types of models of Embodied Arena's rules, and each in words."""
SELF_REPORTED, BY_THE_HOST = "self-reported", "evaluated by the host"

ROUNDING = 5e-4
"""Most difference between a score and the F1 of its counts [ours]: scores may be rounded to three decimals."""


class Counts(NamedTuple):
    """True positives, false positives and false negatives of a question."""

    tp: int
    fp: int
    fn: int

    @property
    def f1(self) -> float:
        """2 tp / (2 tp + fp + fn); 1 where there was nothing to find and nothing was said [ours]."""
        size = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / size if size else 1.0


@dataclass(frozen=True, slots=True)
class ItemScore:
    """The score of one agent for one question.

    Attributes:
        agent, source, benchmark, item: each combination is in a table once.
        dimension: the fine dimension of the question.
        score: 0..1; other metrics are mapped before (`Taxonomy.metrics`).
        original: the benchmark's own name of the dimension; empty if it has none.
        where: place in a file, for error messages.
        type: of the agent, a key of `TYPES`; empty if it is not stated.
        source: who measured it; empty if it is not stated.
        counts: of a question scored by micro-F1; `score` is their F1.
    """

    agent: str
    benchmark: str
    item: str
    dimension: str
    score: float
    original: str = ""
    where: str = field(default="the scores", compare=False)
    type: str = ""
    source: str = ""
    counts: Counts | None = None


class Entrant(NamedTuple):
    """One line of a board: an agent, by one source."""

    agent: str
    source: str


def read_items(path: Path, taxonomy: Taxonomy) -> list[ItemScore]:
    """The scores in a table with `COLUMNS` and perhaps some of `OPTIONAL`; see `merton.results.tables.read_rows`.

    Raises:
        InputError: as for `read_rows`; also an empty or overlong name, a score that is not a number in 0..1, an unknown
            type, or counts that are no whole numbers, not all three, or have another F1 than the score.
    """
    items = []
    for where, row in read_rows(path, COLUMNS, OPTIONAL):
        agent, benchmark, item, dimension = (name_in(where, row, column) for column in COLUMNS[:4])
        try:
            score = number_in(where, row, "score", 0.0, 1.0)
        except InputError as error:
            raise InputError(f"{error}{taxonomy.scale(benchmark)}") from None
        original, kind, source = optional_names(where, row)
        counts = _counts(where, row)
        if counts is not None and abs(score - counts.f1) > ROUNDING:
            raise InputError(f"{where}: score is {score:g}, but 2 tp / (2 tp + fp + fn) is {counts.f1:.6g}")
        items.append(ItemScore(agent, benchmark, item, dimension, score, original, where, kind, source, counts))
    if not items:
        raise InputError(f"{path}: has no scores; every line must have: {', '.join(COLUMNS)}")
    return items


def optional_names(where: str, row: dict[str, object]) -> tuple[str, str, str]:
    """The columns `ORIGINAL`, `TYPE` and `SOURCE` of a row, "" where one is absent or empty.

    Raises:
        InputError: an overlong name, or a type that is none of `TYPES`.
    """
    names = (name_in(where, row, column) if row.get(column) else "" for column in (ORIGINAL, TYPE, SOURCE))
    original, kind, source = names
    if kind and kind not in TYPES:
        raise InputError(f"{where}: {UnknownNameError('type', kind, TYPES)}")
    return original, kind, source


def _counts(where: str, row: Mapping[str, object]) -> Counts | None:
    cells = [row.get(column) for column in COUNTS]
    numbers = [None if cell in (None, "") else plain_number(cell) for cell in cells]
    if all(cell in (None, "") for cell in cells):
        return None
    for column, cell, number in zip(COUNTS, cells, numbers, strict=True):
        if number is None or not 0 <= number <= 1e9 or number != int(number):
            shown = "nothing" if cell in (None, "") else repr(cell)[:40]
            raise InputError(f"{where}: {column} is {shown}; tp, fp and fn stand together, whole numbers from 0")
    return Counts(*(int(number or 0) for number in numbers))


Group = tuple[str, str, str]
"""Questions of a benchmark: (benchmark, its own name of the dimension, fine dimension)."""


class Scores:
    """The scores of a table, checked, by entrant and by group of questions.

    Attributes:
        entrants: sorted.
        types: agent to type; "" where none is stated.
        size: number of questions of each group that at least one agent has a score for.
        measured: fine dimensions with a score.

    Raises:
        InputError: an unknown benchmark, a dimension that it does not cover, a question that an entrant has twice, that
            has two dimensions, or is counted for one agent alone, an agent of two types, or a score outside 0..1; with
            the place and the choices.
    """

    def __init__(self, items: Iterable[ItemScore], taxonomy: Taxonomy) -> None:
        known = {benchmark.name: benchmark for benchmark in taxonomy.benchmarks}
        question_of: dict[tuple[str, str], tuple[Group, ItemScore]] = {}
        first_of: dict[tuple[str, str, str, str], ItemScore] = {}
        typed: dict[str, ItemScore] = {}
        values: defaultdict[tuple[Entrant, Group], list[float]] = defaultdict(list)
        counted: defaultdict[tuple[Entrant, Group], list[Counts]] = defaultdict(list)
        for item in items:
            _check(item, known, taxonomy)
            first = first_of.setdefault((item.agent, item.source, item.benchmark, item.item), item)
            if first is not item:
                raise InputError(
                    f"{item.where}: {item.agent!r} has item {item.item!r} of {item.benchmark} twice, "
                    f"first in {first.where}; leave one{'' if item.source else f', or name their {SOURCE}'}"
                )
            group = (item.benchmark, item.original or item.dimension, item.dimension)
            _check_question(item, group, *question_of.setdefault((item.benchmark, item.item), (group, item)))
            if item.type and (other := typed.setdefault(item.agent, item)).type != item.type:
                raise InputError(
                    f"{item.where}: {item.agent!r} is of type {item.type!r} here and of type {other.type!r} in "
                    f"{other.where}; an agent has one"
                )
            if item.counts is None:
                values[Entrant(item.agent, item.source), group].append(item.score)
            else:
                counted[Entrant(item.agent, item.source), group].append(item.counts)
        self.entrants = sorted({entrant for entrant, _ in (*values, *counted)})
        self.types = {entrant.agent: "" for entrant in self.entrants} | {name: one.type for name, one in typed.items()}
        self.size: dict[Group, int] = {}
        for group, _ in question_of.values():
            self.size[group] = self.size.get(group, 0) + 1
        self.measured = {dimension for _, _, dimension in self.size}
        self._values, self._counted = dict(values), dict(counted)

    def dimensions_of(self, benchmark: str) -> list[str]:
        """The benchmark's own names of its dimensions that have a score, sorted."""
        return sorted({original for name, original, _ in self.size if name == benchmark})

    def cell(self, entrant: Entrant, chosen: Callable[[Group], bool]) -> BoardCell:
        """100 · sum c / sum k over the groups chosen; missing if the entrant lacks a question of theirs.

        The k questions of a benchmark that are scored by micro-F1 count as c = k times their micro-F1, which is made of
        the sums of their counts.
        """
        groups = [group for group in self.size if chosen(group)]
        k = sum(self.size[group] for group in groups)
        scores = [score for group in groups for score in self._values.get((entrant, group), ())]
        for benchmark in sorted({name for name, _, _ in groups}):
            own = [group for group in groups if group[0] == benchmark]
            scores += micro_f1_parts([one for group in own for one in self._counted.get((entrant, group), ())])
        if not scores:
            return missing_cell("no items" if k else NOT_MEASURED)
        if len(scores) < k:
            return missing_cell(f"{k - len(scores)} of {k} items missing", len(scores))
        return share_cell(sorted(scores), MAXIMUM)  # sorted, so that the order of the rows plays no part

    def benchmark(self, entrant: Entrant, benchmark: str) -> BoardCell:
        """A of one benchmark on the boards of tasks: the mean over its own dimensions."""
        names = self.dimensions_of(benchmark)
        has_any = any(
            (entrant, group) in table
            for table in (self._values, self._counted)
            for group in self.size
            if group[0] == benchmark
        )
        if names and not has_any:
            return missing_cell("no items")
        return total_cell({name: self.cell(entrant, own(benchmark, name)) for name in names}, MAXIMUM)

    def dimensions(self, entrant: Entrant, names: Iterable[str], benchmark: str = "") -> dict[str, BoardCell]:
        """T of the fine dimensions among `names` that have a score; with a benchmark, S of that one alone."""
        found = {group[2] for group in self.size if group[0] == benchmark} if benchmark else self.measured
        return {name: self.cell(entrant, fine(name, benchmark)) for name in names if name in found}


def micro_f1_parts(counts: Sequence[Counts]) -> list[float]:
    """A value for each question whose mean is the micro-F1 of all: 2 sum tp / sum (2 tp + fp + fn).

    The values scatter as the ratio does over samples of questions (linearised; Cochran 1977, section 6.4), so that
    intervals are made of them as of scores; a single one may lie outside 0..1.
    """
    ordered = sorted(counts)
    sizes = [2 * one.tp + one.fp + one.fn for one in ordered]
    size = math.fsum(sizes)
    if not size:
        return [1.0] * len(ordered)
    ratio = 2 * math.fsum(one.tp for one in ordered) / size
    return [ratio + len(ordered) * (2 * one.tp - ratio * own) / size for one, own in zip(ordered, sizes, strict=True)]


def own(benchmark: str, original: str) -> Callable[[Group], bool]:
    """Whether a group is the benchmark's own dimension."""
    return lambda group: group[:2] == (benchmark, original)


def fine(dimension: str, benchmark: str = "") -> Callable[[Group], bool]:
    """Whether a group is of the fine dimension, and of the benchmark if one is named."""
    return lambda group: group[2] == dimension and benchmark in ("", group[0])


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


def _check_question(item: ItemScore, group: Group, first: Group, before: ItemScore) -> None:
    if first != group:
        raise InputError(
            f"{item.where}: item {item.item!r} of {item.benchmark} is of dimension {group[1]!r} ({group[2]}) "
            f"here and of {first[1]!r} ({first[2]}) before; a question has one"
        )
    if (item.counts is None) != (before.counts is None):
        has, lacks = (before, item) if item.counts is None else (item, before)
        raise InputError(
            f"{lacks.where}: item {item.item!r} of {item.benchmark} has no tp, fp and fn here and has them in "
            f"{has.where}; a question is scored by one metric"
        )
