"""The curated benchmark: the kept questions as a pool with their pictures, what kept them, and a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import merton
from merton.errors import InputError
from merton.files import write_file
from merton.progress import OnProgress, unseen
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton_studies.curation.importing.importers import copy_medium
from merton_studies.curation.pool import Pool, media_file, write_pool

KEPT = "kept.parquet"
ASSIGNED = "assigned"
"""Key of `Question.meta` with the dimension that a kept question was assigned to."""


class Kept(Protocol):
    """A question that sampling kept; `merton_studies.curation.sampling` makes these.

    Attributes:
        index: of the question in `Pool.questions`, 0 or more.
        dimension: it was assigned to.
        cluster: number of its cluster in the dimension, 0 or more; None where the strategy has no clusters.
        distance: of its vector to the cluster's centroid; None where there are no clusters.
    """

    @property
    def index(self) -> int: ...

    @property
    def dimension(self) -> str: ...

    @property
    def cluster(self) -> int | None: ...

    @property
    def distance(self) -> float | None: ...


def write_benchmark(
    pool: Pool,
    kept: Sequence[Kept],
    out: Path,
    made: Mapping[str, Any],
    on_progress: OnProgress = unseen,
) -> Pool:
    """Write pool.yaml, questions.parquet, media/ and kept.parquet of a curated benchmark; same input, same bytes.

    Args:
        pool: that was sampled from.
        kept: none twice.
        out: folder of the curation; pictures that are there already are not copied again.
        made: settings, seeds, versions and hashes, for `Pool.made`.
        on_progress: called with the number of pictures copied, and their total.

    Returns:
        The kept questions as a pool, with `meta["assigned"]`.

    Raises:
        InputError: a question that is kept twice, or a picture that is missing.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    by_index = {one.index: one for one in kept}
    if len(by_index) < len(kept):
        raise InputError("a question is kept twice")
    questions = [
        pool.questions[index].model_copy(
            update={"meta": {**pool.questions[index].meta, ASSIGNED: by_index[index].dimension}}
        )
        for index in by_index
    ]
    paths = sorted({medium.path for question in questions for medium in question.media})
    for number, path in enumerate(paths, 1):
        copy_medium(media_file(pool.folder, path), out / path)
        on_progress(number, len(paths))
    used = {question.source for question in questions}
    sources = [source for name, source in pool.sources.items() if name in used]
    curated = Pool.of(questions, sources, out, **{"merton": merton.__version__, **made})
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / KEPT, _table(pool, sorted(kept, key=lambda one: pool.questions[one.index].id)))
    write_pool(curated, out)
    return curated


def _table(pool: Pool, kept: Sequence[Kept]) -> bytes:
    pyarrow = require_pyarrow()
    table = pyarrow.table(
        {
            "id": pyarrow.array([pool.questions[one.index].id for one in kept], pyarrow.string()),
            "dimension": pyarrow.array([one.dimension for one in kept], pyarrow.string()),
            "cluster": pyarrow.array([one.cluster for one in kept], pyarrow.int32()),
            "distance": pyarrow.array([one.distance for one in kept], pyarrow.float64()),
        }
    )
    return parquet_bytes(table)
