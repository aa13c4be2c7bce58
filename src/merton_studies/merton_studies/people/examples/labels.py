"""Questions about drawn tables with the dimensions that they need, as the folder of a curated benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from merton.perception.dataset.layout import write
from merton.perception.images import encode_image
from merton_studies.curation.assignment import Assignment, write_assignment
from merton_studies.curation.pool import MEDIA, Pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Medium, Question
from merton_studies.curation.taxonomy import Dimension, Taxonomy
from merton_studies.people.examples.drawing import colors, table

SOURCE = BenchmarkSource(name="example", description="Questions about drawn tables.", licence="Apache-2.0")
TAXONOMY = Taxonomy(
    name="example",
    origin="drawn with merton people new",
    dimensions=(
        Dimension(
            name="Counting", title="Counting", definition="The answer is a number of things that must be counted."
        ),
        Dimension(name="Color", title="Color", definition="The answer depends on telling colors apart."),
        Dimension(name="Place", title="Place", definition="The answer depends on where things are to each other."),
    ),
)
SCENES = 6

_TEXTS: dict[str, Callable[[list[str]], str]] = {
    "Counting": lambda found: "How many blocks are on the table?",
    "Color": lambda found: f"Is one of the blocks {found[0]}?",
    "Place": lambda found: f"Is the {found[1]} block nearer to the bowl than the {found[2]} one?",
}


def write_labels(folder: Path) -> None:
    """Write pool.yaml, questions.parquet, assignments.parquet and the pictures into a new folder.

    Raises:
        InfrastructureError: it cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    questions = []
    for seed in range(SCENES):
        name = f"{MEDIA}/{seed:02d}.png"
        medium = Medium(path=name, sha256=write(folder / name, encode_image(table(seed))))
        questions += [
            Question(id=f"{dimension.lower()}-{seed:02d}", source=SOURCE.name, text=text(colors(seed)),
                     answer_kind="free_text", media=(medium,), scene=f"table-{seed:02d}", dimension=dimension)
            for dimension, text in _TEXTS.items()
        ]  # fmt: skip
    pool = Pool.of(questions, [SOURCE], folder)
    write_pool(pool, folder)
    found = tuple(question.dimension for question in pool.questions)
    nothing = np.zeros(len(found), np.bool_)
    ids = tuple(question.id for question in pool.questions)
    votes = tuple((dimension,) for dimension in found)
    empty: tuple[tuple[str | None, ...], ...] = ((),) * len(found)
    assignment = Assignment(TAXONOMY, ("example",), ids, votes, empty, found, np.ones(len(found)), nothing, nothing)
    write_assignment(assignment, folder / "assignments.parquet")
