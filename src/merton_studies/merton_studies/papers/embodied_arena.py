"""The rules of Embodied Arena's leaderboards (arXiv 2509.15273), against Merton's taxonomy and boards.

The names and numbers of the rules, in `config/published/embodied_arena.csv`. Its table "metrics" lists which benchmark
is scored by which metric, "formulas" the printed formulas, "VSI-Bench" rows of a board that the simple mean of a
benchmark's dimensions must reproduce.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from merton.leaderboard.board import Board
from merton.leaderboard.published.arena import MAXIMUM, ItemScore, boards
from merton.leaderboard.published.taxonomy import Taxonomy, load_taxonomy
from merton_studies.opinions.published import Claim
from merton_studies.papers.facts import Cells, Fact, NumberVerdict, Recomputed, rows

VSI_DIMENSIONS = {
    "object count": "Object Count",
    "absolute distance": "Spatial Distance",
    "object size": "Spatial Size",
    "room size": "Spatial Size",
    "relative distance": "Spatial Distance",
    "relative direction": "Spatial Relationship",
    "route plan": "Spatial Reference Planning",
    "appearance order": "Temporal Order",
}
"""Question type of VSI-Bench to the fine dimension."""
QUESTIONS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "OpenEQA": {"Object Type": (1, 2), "Object State": (3, 4)},
    "UniEQA": {"Object Type": (1, 4)},
}
"""An example for the formulas: benchmark and dimension to right answers and questions."""

SHARES = {"S": "c / k x 100", "T": "sum c / sum k x 100"}
"""Symbol to the formula of a share in percent."""
MEAN = re.compile(r"1/(?P<divisor>\w+) sum over (?P<index>\w) = 1\.\.(?P<last>\w+) of \w_(?P<term>\w)")
"""The formula of a mean, as it is written in the data file."""


def recompute(cells: Cells, facts: Sequence[Fact]) -> Iterator[Recomputed]:
    """Numbers and verdicts that follow from the lists, from Merton's taxonomy and from its boards."""
    taxonomy = load_taxonomy()
    metrics = {benchmark.name: benchmark.metrics for benchmark in taxonomy.benchmarks}
    listed = [fact for fact in facts if fact.table == "metrics"]
    for fact in listed:
        known = fact.row in metrics.get(fact.printed, ())
        how = "Merton's taxonomy names the metric" if known else "Merton's taxonomy does not name the metric"
        yield Recomputed(fact.key, None, how, verdict="equal" if known else "misprint")
    names = {fact.printed for fact in listed}
    yield Recomputed(("rules", "benchmarks", "different ones"), float(len(names)), "the lists together")
    yield Recomputed(
        ("rules", "benchmarks", "in Merton's taxonomy"), float(len(names & set(metrics))), "names that it has"
    )
    yield Recomputed(("rules", "tasks", "types of core tasks"), float(len(taxonomy.tasks)), "Merton's taxonomy")
    perfect = _total(_named(boards(_items({"ERQA": {"Object Type": (3, 3)}}), taxonomy), "fine-dimensions"))
    yield Recomputed(("rules", "scores", "highest"), perfect, "Merton's board, all answers right")
    for fact in facts:
        if fact.table == "formulas":
            how = "its letters: a mean has one and the same limit and divisor, and the index in its term"
            yield Recomputed(fact.key, None, how, verdict=formula_verdict(fact.row, fact.printed))
    yield from _vsi_bench(cells, taxonomy)


def claims() -> tuple[Claim, ...]:
    """The formulas, in exact fractions, against Merton's boards."""
    made = boards(_items(QUESTIONS), load_taxonomy())
    macro = 100 * _mean(_mean(Fraction(c, k) for c, k in dimensions.values()) for dimensions in QUESTIONS.values())
    pooled: dict[str, list[tuple[int, int]]] = {}
    for dimensions in QUESTIONS.values():
        for name, counts in dimensions.items():
            pooled.setdefault(name, []).append(counts)
    micro = 100 * _mean(Fraction(sum(c for c, _ in found), sum(k for _, k in found)) for found in pooled.values())
    told = "; ".join(
        f"{benchmark}, {name}: {c} of {k}"
        for benchmark, dimensions in QUESTIONS.items()
        for name, (c, k) in dimensions.items()
    )
    return tuple(
        Claim(
            text,
            f"{told}. By the formula {exact} = {float(exact):.4f}; Merton's board {ours:.4f}",
            "holds" if abs(ours - float(exact)) < 1e-9 else "does not hold",
        )
        for text, exact, ours in (
            (
                "Task leaderboards: the mean over benchmarks of the mean over dimensions of 100 c / k",
                macro,
                _total(_named(made, "task-embodied-question-answering")),
            ),
            (
                "Capability leaderboards: the mean over dimensions of 100 sum c / sum k over benchmarks",
                micro,
                _total(_named(made, "fine-dimensions")),
            ),
        )
    )


def formula_verdict(symbol: str, printed: str) -> NumberVerdict:
    """Whether a printed formula is a share or a mean, to the letter; `claims` computes with what is meant."""
    if symbol in SHARES:  # a question has a score in [0, 1], so "answered correctly" is a sum of scores
        return "equal after a reading" if printed == SHARES[symbol] else "misprint"
    parts = MEAN.fullmatch(printed)
    is_mean = parts and parts["divisor"] == parts["last"] and parts["index"] == parts["term"]
    return "equal" if is_mean else "misprint"


def _vsi_bench(cells: Cells, taxonomy: Taxonomy) -> Iterator[Recomputed]:
    entries = [
        ItemScore(model, "VSI-Bench", column, fine, cells["VSI-Bench", model, column] / MAXIMUM, column)
        for model in rows(cells, "VSI-Bench")
        for column, fine in VSI_DIMENSIONS.items()
    ]
    for row in _named(boards(entries, taxonomy), "benchmark-vsi-bench").rows:
        for column in ("total", "total, printed elsewhere"):
            yield Recomputed(
                ("VSI-Bench", str(row.agent), column), row.total.score, "mean of the eight question types", slack=0.05
            )


def _items(questions: Mapping[str, Mapping[str, tuple[int, int]]]) -> list[ItemScore]:
    return [
        ItemScore("agent", benchmark, f"{name} {place}", name, float(place < right))
        for benchmark, dimensions in questions.items()
        for name, (right, all_) in dimensions.items()
        for place in range(all_)
    ]


def _mean(values: Iterable[Fraction]) -> Fraction:
    found = list(values)
    return sum(found, Fraction()) / len(found)


def _named(found: Iterable[Board], name: str) -> Board:
    return next(board for board in found if board.name == name)


def _total(board: Board) -> float:
    score = board.rows[0].total.score
    assert score is not None
    return score
