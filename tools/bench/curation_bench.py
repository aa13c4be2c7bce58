"""Time and memory of curating a pool of A2Eval's size with synthetic embeddings: one JSON object on standard output.

Run by tools/bench/bench.py in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from merton_studies.curation.assignment import assign
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.sampling import PER_DIMENSION, Vectors, sample, select
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy

COUNTS = {
    "PercepObj": 6218,
    "SceneAct": 1864,
    "SpatGeo": 10565,
    "QuantNum": 3185,
    "AffdFunc": 773,
    "PhysCaus": 366,
    "DecPlan": 1104,
    "DynScene": 425,
    OTHER: 19,
}
"""Questions of each dimension in the paper's Table 2."""
WIDTH = 896
"""Of all-MiniLM-L6-v2 and CLIP side by side."""
VOTERS = 5


class Near:
    """A voter that looks which dimension's centre is nearest, and errs in its own way.

    Args:
        name: of the voter; its errors depend on it.
        vectors: id of a question to its vector.
        centers: dimension to its centre.
    """

    def __init__(self, name: str, vectors: dict[str, Any], centers: dict[str, Any]) -> None:
        self.name, self._vectors, self._centers = name, vectors, centers

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """The nearest of the named dimensions and "Other"."""
        names = [*taxonomy.names, OTHER]
        rng = np.random.default_rng([ord(self.name[-1]), len(questions)])
        likeness = (
            np.stack([self._vectors[question.id] for question in questions])
            @ np.stack([self._centers[name] for name in names]).T
        )
        return [names[best] for best in (likeness + rng.normal(0, 0.1, likeness.shape)).argmax(axis=1)]


def synthetic(rng: np.random.Generator) -> tuple[Vectors, dict[str, Any]]:
    """Vectors of all questions about 2,000 subjects, each of one dimension; and the dimensions' centres."""
    centers = {name: rng.normal(size=WIDTH).astype(np.float32) for name in COUNTS}
    parts = []
    for name, count in COUNTS.items():
        subjects = rng.normal(size=(max(1, 2000 * count // sum(COUNTS.values())), WIDTH)).astype(np.float32)
        own = rng.normal(size=(count, WIDTH)).astype(np.float32)
        parts.append(centers[name] + subjects[rng.integers(0, len(subjects), count)] + 0.7 * own)
    vectors = np.vstack(parts)
    unit = {name: center / np.linalg.norm(center) for name, center in centers.items()}
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32), unit


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and the result."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def measure() -> dict[str, float]:
    """Everything once: a call takes up to a minute."""
    vectors, centers = synthetic(np.random.default_rng(0))
    names = [name for name, count in COUNTS.items() for _ in range(count)]
    largest = vectors[[name == "SpatGeo" for name in names]]
    asked = (Question(id=f"{i:05}", source="s", text="?", answer_kind="free_text") for i in range(len(names)))
    pool = Pool.of(asked, [BenchmarkSource(name="s")])
    by_id = {question.id: row for question, row in zip(pool.questions, vectors, strict=True)}
    taxonomy = Taxonomy(name="t", dimensions=tuple(Dimension(name=n, definition="?") for n in COUNTS if n != OTHER))
    voters = [Near(f"voter {number}", by_id, centers) for number in range(VOTERS)]
    assigned_s, assignment = timed(lambda: assign(pool, taxonomy, voters))
    sampled_s, kept = timed(lambda: sample(assignment.dimension, vectors))
    with threadpool_limits(1):  # as ours: the sums of several threads have no fixed order
        kmeans_s, _ = timed(lambda: KMeans(n_clusters=PER_DIMENSION, n_init=1, random_state=0).fit(largest))
    largest_s, _ = timed(lambda: select(largest))
    return {
        "questions": len(names),
        "assigned_s": assigned_s,
        "sampled_s": sampled_s,
        "kept": len(kept),
        "largest_dimension": len(largest),
        "largest_dimension_sampled_s": largest_s,
        "largest_dimension_kmeans_alone_s": kmeans_s,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
