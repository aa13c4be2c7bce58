"""Fidelity of Merton's scores to a benchmark's own, by benchmark and answerer (A2Eval, section 4.6).

benchmark_fidelity.json  whose the references are, and their agreement with Merton's scores
disagreements.csv        every question on which the two differ, and every one that the scorer failed on
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.files import locked_folder, write_file
from merton.results.csv_writer import write_csv
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton_studies.harness.fidelity import relative_fidelity
from merton_studies.harness.own_scorers import Marks, Reference
from merton_studies.harness.running import Runner
from merton_studies.harness.scores import ScoredAnswer

FILE, TABLE, PIECES = "benchmark_fidelity.json", "disagreements.csv", "pieces"
SAME = 0.005
"""Largest difference of two scores that are the same. Ours: tables print two decimals."""
COLUMNS = ("benchmark", "answerer", "id", "question", "right", "prediction", "score", "reference", "error")


@dataclass(frozen=True)
class OwnFidelity:
    """Agreement of Merton's scores of one answerer on one benchmark with the benchmark's own.

    Attributes:
        source, answerer: names.
        n, scenes: questions that both scored, and their scenes.
        agreement: share of these with the same score; None without any.
        interval: 95 % of it, clustered by scene.
        floor: share that would be the same if each score were drawn from its own column, by chance.
        merton, reference: mean scores.
        fidelity: 1 - |merton - reference| / reference; None where only the reference is 0.
        differ: questions with different scores.
        failed: questions that the scorer failed on; they have no score of it.
        missing: questions that the reference says nothing about.
        first_error: of the failures; "" without any.
    """

    source: str
    answerer: str
    n: int
    scenes: int
    agreement: float | None
    interval: Interval | None
    floor: float | None
    merton: float | None
    reference: float | None
    fidelity: float | None
    differ: int
    failed: int
    missing: int
    first_error: str


@dataclass(frozen=True)
class OwnFidelities:
    """All comparisons, and benchmark to its reference's `about`."""

    found: tuple[OwnFidelity, ...]
    about: dict[str, dict[str, Any]]


def refuse_shared(references: Sequence[Reference]) -> None:
    """Raise InputError where two references are of one benchmark: which is meant would be a guess."""
    for source, times in Counter(source for one in references for source in one.sources).items():
        if times > 1:
            raise InputError(f"{source} has {times} references: give it one --scorer, or one --reference-scores")


def own_fidelity(
    rows: Sequence[ScoredAnswer], references: Sequence[Reference], sandbox: Runner, out: Path
) -> OwnFidelities:
    """Compare the scores of an evaluation with those of benchmarks themselves, and write both files.

    Args:
        rows: of the evaluation; those without a score have nothing to compare.
        references: of different benchmarks.
        sandbox: where scorers run.
        out: folder of the evaluation.

    Raises:
        InputError: two references of one benchmark, or another command is at work in the folder.
        InfrastructureError: the sandbox or the disk failed.
    """
    refuse_shared(references)
    scored = [row for row in rows if row.score is not None]
    found: list[OwnFidelity] = []
    table: list[tuple[Any, ...]] = []
    about: dict[str, dict[str, Any]] = {}
    with locked_folder(out, "merton curate evaluate"):
        (out / PIECES).mkdir(exist_ok=True)
        for reference in references:
            about |= dict.fromkeys(reference.sources, reference.about)
            own = [row for row in scored if row.question.source in reference.sources]
            marks = reference.marks(own, sandbox, out / PIECES)
            for source in reference.sources:
                for name in dict.fromkeys(row.answerer for row in rows):
                    mine = [row for row in own if (row.answerer, row.question.source) == (name, source)]
                    found.append(_compared(source, name, mine, marks))
            table += [line for row in own if (line := _line(row, marks))]
        told = {"form": "merton benchmark fidelity 1", "references": about, "compared": [asdict(one) for one in found]}
        write_file(out / FILE, (json.dumps(told, indent=1) + "\n").encode())
        write_csv(out / TABLE, COLUMNS, table)
    return OwnFidelities(tuple(found), about)


def _compared(source: str, name: str, rows: Sequence[ScoredAnswer], marks: Marks) -> OwnFidelity:
    keys = [(row.answerer, row.question.id) for row in rows]
    errors = [marks.errors[key] for key in keys if key in marks.errors]
    first = errors[0].splitlines()[-1] if errors else ""
    both = [(row, marks.scores[key]) for row, key in zip(rows, keys, strict=True) if key in marks.scores]
    missing = len(rows) - len(both) - len(errors)
    if not both:
        return OwnFidelity(source, name, 0, 0, None, None, None, None, None, None, 0, len(errors), missing, first)
    merton = np.array([row.score for row, _ in both], float)
    reference = np.array([mark for _, mark in both], float)
    same = np.abs(merton - reference) <= SAME
    scenes = np.array([row.question.unit_of_intervals for row, _ in both])
    means = float(merton.mean()), float(reference.mean())
    return OwnFidelity(
        source,
        name,
        len(both),
        len(np.unique(scenes)),
        float(same.mean()),
        mean_interval(same.astype(float), scenes),
        _by_chance(merton, reference),
        *means,
        relative_fidelity(*means),
        int((~same).sum()),
        len(errors),
        missing,
        first,
    )


def _by_chance(one: np.ndarray, other: np.ndarray) -> float:
    """The share of all pairs of a score of one column and one of the other that are the same."""
    ordered = np.sort(other)
    up_to = np.searchsorted(ordered, one + SAME, "right")
    return float((up_to - np.searchsorted(ordered, one - SAME, "left")).mean() / len(ordered))


def _line(row: ScoredAnswer, marks: Marks) -> tuple[Any, ...] | None:
    key = (row.answerer, row.question.id)
    error, mark = marks.errors.get(key, ""), marks.scores.get(key)
    if not error and (mark is None or row.score is None or abs(row.score - mark) <= SAME):
        return None
    question = row.question
    told = error.splitlines()[-1] if error else ""
    shown = (question.source, row.answerer, question.id, question.text, question.answer, row.prediction)
    return (*shown, row.score, "" if mark is None else mark, told)
