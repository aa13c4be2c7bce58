"""The demonstration, on one page: a pool of the cell, its dimensions, a small benchmark, and models run on it.

Every part keeps what it has made in the folder of the demonstration, so that the same call goes on after a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from merton.errors import InputError
from merton.files import locked_folder
from merton.progress import Step, about
from merton.statistics.ranking import RankAgreement, agreements, score_draws
from merton.statistics.raters import RaterAgreement, cohen_kappa
from merton_studies.curation.cell import make_cell_pool
from merton_studies.curation.curate import Wanted, curate
from merton_studies.curation.curated import Curated
from merton_studies.curation.importing.importers import import_pool, join
from merton_studies.curation.page import write_page
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.harness.answerers import answerers
from merton_studies.harness.evaluation import Evaluation, evaluate
from merton_studies.harness.sandbox import Sandbox

CELL, POOL, BENCHMARK, SCORES, LADDER = "cell", "pool", "benchmark", "scores", "ladder"
"""Folders of the demonstration: the cell's pool, that with published questions, the small benchmark in the paper's
dimensions, scores of the models on it, and of graded oracles on it and the pool."""
TAXONOMY, SHOTS = "a2eval", 10
"""Dimensions of the benchmark, and labelled questions of each that teach its voters. Without them, and without an LLM,
voters agree less with people (docs/studies/curation.md)."""
OWN = {"openeqa": "open_eqa.jsonl", "sqa3d": "sqa3d_test.jsonl"}
"""Form to file, of a folder with published questions."""
KEEP = 150
"""Most questions of a dimension: a few minutes of models instead of the paper's days."""
MODELS = ("oracle-0.70", "gaze", "describe", "blind", "majority", "chance")
"""A ceiling with mistakes, two VLMs, and three floors."""


@dataclass(frozen=True)
class CurationDemo:
    """Everything that the demonstration found.

    Attributes:
        pool: that was curated.
        curated: the small benchmark.
        kappa: Cohen's, of the benchmark's voters and the maker of the cell's questions, on scenes without a shot.
        models: on it.
        full, small: the graded oracles on the pool's questions of the cell, and on the small benchmark.
        agreement: of their scores on both, one for each coefficient.
    """

    pool: Pool
    curated: Curated
    kappa: RaterAgreement
    models: Evaluation
    full: Evaluation
    small: Evaluation
    agreement: Sequence[RankAgreement]

    @property
    def time_ratio(self) -> float:
        """Time of the graded oracles on the pool by that on the small benchmark."""
        full, small = (
            sum(one["seconds"] for one in found.cost["answerers"].values()) for found in (self.full, self.small)
        )
        return float(full / small)


def demonstrate(
    out: Path, step: Step, questions: Path | None = None, count: int = 3000, keep: int = KEEP
) -> CurationDemo:
    """Make, or go on making, everything that the page shows.

    Args:
        out: folder, new or begun by an earlier call.
        step: shows the progress.
        questions: folder with `OWN`, whose questions join the cell's; None: the cell's alone.
        count: of the cell's questions.
        keep: most questions of a dimension.

    Raises:
        InputError: the folder holds something else, or the other has no such file.
        InfrastructureError: the folder cannot be written, or a worker was killed.
        MissingDependencyError: a package of the extra `curation`, the simulator or a sandbox is missing.
    """
    sandbox = Sandbox()  # a machine without one is told so before minutes of work
    with locked_folder(out, "merton curate demo"):
        with step("render questions") as on_progress:
            pool = make_cell_pool(out / CELL, count, on_progress=on_progress)
        if questions:
            pool = _joined(out, questions, step)
        wanted = Wanted(TAXONOMY, keep, SHOTS)
        curated = curate(pool, out / BENCHMARK, wanted, step=about(step, BENCHMARK))
        found = []
        for folder, asked, names in (
            (SCORES, curated.pool, MODELS),
            (f"{LADDER}/{POOL}", pool, ("graded",)),
            (f"{LADDER}/{BENCHMARK}", curated.pool, ("graded",)),
        ):
            with about(step, folder)("run answerers") as on_progress:
                made = answerers(names, asked)
                found.append(evaluate(asked, made, out / folder, sandbox=sandbox, on_progress=on_progress))
        write_page(out / BENCHMARK, pool, out / SCORES, (out / LADDER / POOL, out / LADDER / BENCHMARK))
        models, full, small = found
        agreed = _agreement(full, small)
        return CurationDemo(pool, curated, _kappa(pool, curated), models, full, small, agreed)


def _joined(out: Path, questions: Path, step: Step) -> Pool:
    """The cell's pool with the published questions of a folder."""
    folders = [out / CELL]
    for form, name in OWN.items():
        if not (questions / name).is_file():
            raise InputError(f"{questions} has no {name}; it needs {' and '.join(OWN.values())}")
        with about(step, name)("read questions") as on_progress:
            import_pool(form, questions / name, out / form, on_progress=on_progress)
        folders.append(out / form)
    with step("join the pools") as on_progress:
        return join(folders, out / POOL, on_progress)


def _assigned(pool: Pool, curated: Curated) -> list[tuple[Question, str]]:
    """The questions of the cell with their assigned dimension."""
    pairs = zip(pool.questions, curated.assignment.dimension, strict=True)
    return [(question, name) for question, name in pairs if "family" in question.meta]


def _kappa(pool: Pool, curated: Curated) -> RaterAgreement:
    taught = set(curated.made["shots"])
    scenes = {question.unit_of_intervals for question in pool.questions if question.id in taught}
    judged = [pair for pair in _assigned(pool, curated) if pair[0].unit_of_intervals not in scenes]
    truth = [question.dimension for question, _ in judged]
    return cohen_kappa([name for _, name in judged], truth, [question.unit_of_intervals for question, _ in judged])


def _agreement(full: Evaluation, small: Evaluation) -> list[RankAgreement]:
    """Of the mean score over all questions of the pool, as benchmarks are scored today, with the mean over dimensions
    of the small one; scenes are drawn for both alike."""
    ids = [row.question.id for row in full.rows if row.answerer == full.rows[0].answerer]
    scenes = [row.question.unit_of_intervals for row in full.rows[: len(ids)]]
    dimension = {row.question.id: row.dimension for row in small.rows}
    names = list(full.scores.overall)
    wide = _matrix(full, names, ids)
    narrow = _matrix(small, names, ids)
    draws = (
        score_draws(wide, scenes),
        score_draws(narrow, scenes, [dimension.get(name, "") for name in ids]),
    )
    return agreements(draws[0][0], draws[1][0], draws)


def _matrix(found: Evaluation, names: Sequence[str], ids: Sequence[str]) -> np.ndarray:
    """(answerers, questions) scores; NaN where a question was not asked."""
    place = {name: index for index, name in enumerate(ids)}
    scores = np.full((len(names), len(ids)), np.nan)
    for row in found.rows:
        if row.score is not None:
            scores[names.index(row.answerer), place[row.question.id]] = row.score
    return scores
