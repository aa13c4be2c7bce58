"""Metrics trained on one kind of opinions and tested on others (Embodied-IQA, section 5.3 and Table 8a).

The paper trains on robots' decisions and tests on people's opinions and on cognition. The reverse, from people to
robots, is ours: the same function with source and tests exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.perception.dataset.databases import Database
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.learned.weights import read_card
from merton.perception.quality.pairs import ImagePair
from merton.progress import OnProgress, Step, quiet, unseen
from merton.results.csv_writer import csv_text
from merton.statistics.coefficients import krcc, plcc, plcc_after_logistic, srcc
from merton_studies.iqa.judged import JudgedImages, pairs_of
from merton_studies.iqa.published_iqa import published
from merton_studies.opinions.human import read_human
from merton_studies.opinions.splits import split

SEED = 0
PREPARED = "prepared"


@dataclass(frozen=True)
class ScoredImages:
    """Images with scores to train on and to test on.

    Attributes:
        name: "decision", "cognition", "human", or a database of people's opinions.
        pairs: all images.
        scores: (n,) higher is better.
        train, test: indices. Of a judged dataset the parts of its reference split, the same for all labels, so that no
            scene is in both; of a database of people all images, whether trained on or tested on.
        remarks: sentences that a reader should know.
    """

    name: str
    pairs: tuple[ImagePair, ...]
    scores: NDArray[np.float64]
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tested:
    """Coefficients of a trained metric on one source; `published` are the paper's for its metrics, SRCC and PLCC."""

    name: str
    n: int
    srcc: float
    krcc: float
    plcc: float
    plcc_logistic: float

    @property
    def published(self) -> dict[str, tuple[float, float]]:
        """Metric to SRCC and PLCC in Table 8a; empty for a source that it does not have."""
        return {row.metric: (row.srcc, row.plcc) for row in published("cross") if row.column == self.name}


def of_people(database: Database) -> ScoredImages:
    """A database of people's opinions as a source."""
    every = np.arange(len(database.pairs))
    return ScoredImages(database.name, database.pairs, database.scores, every, every, database.warnings)


def of_raters(dataset: Path, human: Path) -> ScoredImages:
    """Images of a dataset as people judged them in a study of one's own (`merton people`).

    Raises:
        InputError: no finished dataset, no table of opinions, or an image that the dataset does not have.
    """
    people = read_human(human)
    every = np.arange(len(people))
    return ScoredImages("human", pairs_of(dataset, list(people)), np.array(list(people.values())), every, every)


def of_robots(judged: JudgedImages) -> ScoredImages:
    """A judged dataset as a source: the opinions of its stage."""
    train, test = split("reference", judged.columns, SEED)
    return ScoredImages(judged.stage, judged.pairs, judged.labels, train, test, judged.remarks)


def train_on(
    metric: str,
    source: ScoredImages,
    out: Path,
    epochs: int | None = None,
    step: Step = quiet,
) -> Path:
    """Train a metric on a source; after a kill the same call goes on. Returns the file of weights.

    Raises as `TrainableMetric.train`.
    """
    pairs = [source.pairs[row] for row in source.train]
    folder = out / f"{metric}-{source.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with step("prepare the images") as on_progress:
        TRAINABLE[metric].prepare(pairs, out / PREPARED, on_progress)
    with step("train") as on_progress:
        return TRAINABLE[metric].train(
            pairs, source.scores[source.train], SEED, folder, epochs, on_progress, out / PREPARED
        )


def cross(weights: Path, sources: Sequence[ScoredImages], out: Path, on_progress: OnProgress = unseen) -> list[Tested]:
    """Test a trained metric on the test part of each source.

    Args:
        weights: of any metric of `TRAINABLE`.
        sources: what to test on.
        out: folder for what is prepared of the images.
        on_progress: called with (sources done, sources in all).

    Raises:
        InputError: no weights of a metric, or of another version; an image that cannot be read.
    """
    metric = TRAINABLE[read_card(weights).metric]
    found = []
    for source in sources:
        pairs, scores = [source.pairs[row] for row in source.test], source.scores[source.test]
        metric.prepare(pairs, out / PREPARED)
        guess = metric.predict(weights, pairs, out / PREPARED)
        values = (srcc(guess, scores), krcc(guess, scores), plcc(guess, scores), plcc_after_logistic(guess, scores))
        found.append(Tested(source.name, len(pairs), *values))
        on_progress(len(found), len(sources))
    return found


def as_csv(metric: str, trained_on: str, found: Sequence[Tested]) -> str:
    """A row for each source, and one for each published value of it, for which KRCC and PLCC* are not printed."""
    rows: list[tuple[object, ...]] = []
    for item in found:
        values = (round(value, 8) for value in (item.srcc, item.krcc, item.plcc, item.plcc_logistic))
        rows.append((metric, trained_on, item.name, item.n, *values, "ours"))
        for name, (rank, line) in item.published.items():
            rows.append((name, "decision", item.name, "", rank, "", line, "", "Embodied-IQA, Table 8a"))
    header = ("metric", "trained_on", "tested_on", "n", "srcc", "krcc", "plcc", "plcc_logistic", "origin")
    return csv_text(header, rows)
