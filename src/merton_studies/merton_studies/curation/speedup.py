"""The time of a benchmark by that of the pool it was sampled from, for each model (A2Eval, Table 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError
from merton.results.csv_writer import write_csv
from merton.results.tables import json_object

COST, TABLE = "cost.json", "speedup.csv"
COLUMNS = ("model", "pool_questions", "pool_s", "benchmark_questions", "benchmark_s", "speedup")
TOTAL = "total"


@dataclass(frozen=True)
class SpeedUp:
    """A row of the table.

    Attributes:
        model: its name, or `TOTAL`.
        pool_questions, benchmark_questions: numbers of questions.
        pool_s, benchmark_s: times of one run without a cache, programs and answers one after the other [s].
    """

    model: str
    pool_questions: int
    pool_s: float
    benchmark_questions: int
    benchmark_s: float

    @property
    def ratio(self) -> float | None:
        """How many times faster the benchmark is; None where it took no time."""
        return self.pool_s / self.benchmark_s if self.benchmark_s > 0 else None


def speed_ups(pool: Path, benchmark: Path) -> list[SpeedUp]:
    """A row for each model with times of both, and `TOTAL` of them; nothing where no model has.

    Args:
        pool, benchmark: folders of `merton curate evaluate`.

    Raises:
        InputError: a folder has no cost.json, or one without seconds.
    """
    full, small = (_times(folder) for folder in (pool, benchmark))
    rows = [SpeedUp(name, *full[name], *small[name]) for name in full if name in small]
    if not rows:
        return []
    columns = zip(
        *((row.pool_questions, row.pool_s, row.benchmark_questions, row.benchmark_s) for row in rows), strict=True
    )
    return [*rows, SpeedUp(TOTAL, *(sum(column) for column in columns))]


def _times(folder: Path) -> dict[str, tuple[int, float]]:
    """Model to its questions and seconds, of those with times."""
    found = json_object(folder / COST).get("answerers")
    if not isinstance(found, dict) or not all(isinstance(one, dict) and "seconds" in one for one in found.values()):
        raise InputError(f"{folder / COST} has no seconds by model: run `merton curate evaluate` again")
    return {name: (one["questions"], one["seconds"]) for name, one in found.items() if one["seconds"] is not None}


def write_speed_ups(rows: Sequence[SpeedUp], out: Path) -> Path:
    """Write speedup.csv into a folder; raises InfrastructureError if it cannot be written."""
    table = [
        (row.model, row.pool_questions, row.pool_s, row.benchmark_questions, row.benchmark_s, row.ratio) for row in rows
    ]
    return write_csv(out / TABLE, COLUMNS, table)
