"""Content of the folder of a curation, read for its card and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.config import validated
from merton.errors import InputError
from merton.results.tables import json_object
from merton_studies.curation.agents import Balance, Round
from merton_studies.curation.assignment import Assignment, entropy, read_assignment
from merton_studies.curation.induction import read_memory
from merton_studies.curation.pool import Pool, read_pool
from merton_studies.curation.question import BenchmarkSource
from merton_studies.curation.taxonomy import Dimension, Taxonomy, read_taxonomy

TAXONOMY, MEMORY, ASSIGNMENTS, BALANCE = "taxonomy.yaml", "memory.jsonl", "assignments.parquet", "balance.json"
REDUNDANCY, CURATION, CARD, PAGE = "redundancy.json", "curation.json", "README.md", "index.html"


@dataclass(frozen=True)
class DimensionRow:
    """A dimension of a curated benchmark.

    Attributes:
        dimension: with its definition.
        assigned: questions of the pool.
        kept: of these.
        share: mean share of the votes for it, 0..1, over its questions; None without any.
        contested: its questions without a majority in the first round.
    """

    dimension: Dimension
    assigned: int
    kept: int
    share: float | None
    contested: int


@dataclass(frozen=True)
class Curated:
    """A curated benchmark and how it came about.

    Attributes:
        folder: of it.
        pool: the kept questions.
        taxonomy: its dimensions.
        assignment: of every question of the pool that was sampled from.
        balance: counts before and after.
        rounds: of induction; empty if the taxonomy was given.
        redundancy: redundancy.json; empty if there is none.
        made: curation.json: settings, seeds, versions, hashes.
    """

    folder: Path
    pool: Pool
    taxonomy: Taxonomy
    assignment: Assignment
    balance: Balance
    rounds: tuple[Round, ...]
    redundancy: Mapping[str, Any]
    made: Mapping[str, Any]

    @property
    def rows(self) -> list[DimensionRow]:
        """Each dimension in the order of the taxonomy."""
        dimension, found = np.array(self.assignment.dimension), []
        for one in self.taxonomy.dimensions:
            own = dimension == one.name
            share = float(self.assignment.share[own].mean()) if own.any() else None
            contested = int(self.assignment.contested[own].sum())
            found.append(
                DimensionRow(
                    one, self.balance.assigned.get(one.name, 0), self.balance.kept.get(one.name, 0), share, contested
                )
            )
        return found

    @property
    def total(self) -> int:
        """Questions of the pool that was sampled from."""
        return len(self.assignment.ids)

    @property
    def entropy_kept(self) -> float:
        """As `Balance.entropy`, of the kept questions."""
        return entropy(list(self.balance.kept.values()))

    @property
    def unlicensed(self) -> list[BenchmarkSource]:
        """Sources of pictures without a licence."""
        pictured = {question.source for question in self.pool.questions if question.media}
        return [source for name, source in self.pool.sources.items() if name in pictured and not source.licence]


def read_curated(folder: Path) -> Curated:
    """The curated benchmark in a folder.

    Raises:
        InputError: a file is missing or damaged; the sentence names it.
        MissingDependencyError: pyarrow is not installed.
    """
    for name in (TAXONOMY, ASSIGNMENTS, BALANCE, CURATION):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} is no curated benchmark: it has no {name}; run `merton curate build` to its end"
            )
    assignment = read_assignment(folder / ASSIGNMENTS)
    return Curated(
        folder,
        read_pool(folder),
        read_taxonomy(str(folder / TAXONOMY)),
        assignment,
        validated(Balance, (folder / BALANCE).read_bytes(), str(folder / BALANCE)),
        read_memory(folder / MEMORY) if (folder / MEMORY).is_file() else (),
        json_object(folder / REDUNDANCY) if (folder / REDUNDANCY).is_file() else {},
        json_object(folder / CURATION),
    )
