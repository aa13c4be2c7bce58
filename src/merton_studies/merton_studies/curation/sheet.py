"""The sheet on which people say whether questions need dimensions: blind and balanced (A2Eval, appendix D.3).

For each dimension as many questions that are assigned to it as others, in random order. A question stands under a
`sheet_id`, since ids often name the benchmark, and nothing on the sheet tells its source or assignment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from merton.errors import InputError
from merton.results.csv_writer import write_csv
from merton.seeding import generator
from merton_studies.curation.assignment import Assignment
from merton_studies.curation.pool import Pool

SHOWN = ("title", "definition", "situation", "question", "choices", "pictures")
"""Columns for the reader."""
_HEADER = ("question_id", "dimension", "rater", "verdict", *SHOWN)


def sheet_id(question: str) -> str:
    """The name of a question on a sheet: 16 hexadecimal digits of the SHA-256 of its id."""
    return hashlib.sha256(question.encode()).hexdigest()[:16]


def draw(assignment: Assignment, ids: Sequence[str], per_dimension: int, seed: int) -> list[tuple[str, str]]:
    """(id, dimension) of each row of a sheet.

    Half of a dimension's questions are drawn from those that are assigned to it, half from all others; where there are
    fewer of one kind, as few of the other. Ours: the paper says "balanced" and "candidate", not more.

    Args:
        assignment: of all questions.
        ids: of those to draw from.
        per_dimension: at least 2.
        seed: of the draw and of the order.

    Raises:
        InputError: fewer than 2 a dimension, a question that is not assigned, or nothing to draw from.
    """
    if per_dimension < 2:
        raise InputError(f"a balanced sheet needs at least 2 questions of a dimension, not {per_dimension}")
    assigned = dict(zip(assignment.ids, assignment.dimension, strict=True))
    stray = [name for name in ids if name not in assigned]
    if stray:
        raise InputError(f"question {stray[0]!r} is not in the assignment")
    rows = []
    for dimension in assignment.taxonomy.names:
        own = sorted(name for name in ids if assigned[name] == dimension)
        others = sorted(name for name in ids if assigned[name] != dimension)
        each = min(per_dimension // 2, len(own), len(others))
        rng = generator("sheet", seed, dimension)
        for names in (own, others):
            rows += [(names[place], dimension) for place in rng.choice(len(names), each, replace=False)]
    if not rows:
        raise InputError("there is nothing to draw from: no dimension has a question, and another that is not its own")
    order = generator("order of a sheet", seed).permutation(len(rows))
    return [rows[place] for place in order]


def write_sheet(rows: Sequence[tuple[str, str]], pool: Pool, assignment: Assignment, path: Path) -> None:
    """Write a sheet as CSV, with blank columns `rater` and `verdict`; same rows, same bytes.

    Args:
        rows: of `draw`.
        pool: has the questions.
        assignment: has the taxonomy.

    Raises:
        InputError: the file is there already: it may hold answers.
        InfrastructureError: the file cannot be written.
    """
    if path.exists():
        raise InputError(f"{path} is there already and may hold verdicts: choose another name")
    questions = {question.id: question for question in pool.questions}
    dimensions = {dimension.name: dimension for dimension in assignment.taxonomy.dimensions}
    table = []
    for name, dimension in rows:
        question, about = questions[name], dimensions[dimension]
        choices = " / ".join(question.choices)
        pictures = " ".join(medium.path for medium in question.media)
        shown = (about.title, about.definition, question.situation, question.text, choices, pictures)
        table.append((sheet_id(name), dimension, "", "", *shown))
    write_csv(path, _HEADER, table)
