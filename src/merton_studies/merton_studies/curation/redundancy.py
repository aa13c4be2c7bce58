"""Repetition in a pool, and coverage of the pool by a sample of it (A2Eval, appendix A: Table 8 and Figure 4).

The paper speaks of "up to 92 % sample similarity" and shows a matrix of benchmarks without saying what either is. Ours:

- Two questions are near-duplicates if the cosine of their vectors is at least .92.
- Two questions restate each other if they show the same pictures, have the same kind of answer, the same choices in any
  order and the same answer, and the cosine of their texts is at least .5. A question without pictures, or without a
  known answer, restates none. It is stricter in what must be the same, and so laxer in words: a twin in another
  benchmark is framed by other sentences. The .5 was chosen on one pool of 200 questions of the cell (seed 0).
- The similarity of two sources is the mean cosine of a question of one and a question of the other, and beside it the
  mean cosine of a question of one and the nearest question of the other.
- Coverage of a dimension is the mean distance of its dropped questions to the nearest kept one, beside that of uniform
  samples of the same size.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.files import write_file
from merton.progress import OnProgress, Step, quiet, unseen
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, middle
from merton_studies.curation.embedding import Embeddings, unit
from merton_studies.curation.maps import maps
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.sampling import Integers, Vectors, by_content, one_thread, pair_distances
from merton_studies.curation.taxonomy import OTHER

NEAR = 0.92
"""Least cosine of near-duplicates."""
RESTATED = 0.5
"""Least cosine of the texts of questions that restate each other."""
SEEDS = 50
"""Uniform samples that a coverage is compared with."""
LISTED, PAIRS = 100, 1000
"""Most pairs that are listed: of any two sources, and in all."""
_BLOCK = 512
"""Rows compared with all others at once: 50 MB for 24,519 questions."""
_DIGITS = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Neighbours:
    """Similarity of the questions of a pool to each other.

    Attributes:
        nearest: (n, sources) cosine to the nearest other question of each source; -1 where it has no other.
        pairs: near-duplicates (row, later row, cosine), of any two sources the nearest `LISTED`.
        count: all pairs with a cosine of at least `NEAR`.
    """

    nearest: Floats
    pairs: tuple[tuple[int, int, float], ...]
    count: int


@dataclass(frozen=True)
class Coverage:
    """Distance of the dropped questions of a dimension to the kept ones.

    Attributes:
        dropped: how many.
        distance: mean distance of a dropped question to the nearest kept one, 0..2.
        uniform: the same for uniform samples of that size, the mean over seeds.
        ratio: of the two; below 1 is better than uniform.
        interval: the middle 95 % of the ratios to each uniform sample.
        better: share of the uniform samples with a larger distance.
        seeds: how many those are.
    """

    dropped: int
    distance: float
    uniform: float
    ratio: float
    interval: Interval
    better: float
    seeds: int


@dataclass(frozen=True)
class Planted:
    """Pairs of a question and its planted twin (`Question.twin_of`).

    Attributes:
        pairs: with both in the pool.
        both_kept: of these.
        avoided: share of the pairs that are not both kept; None without pairs.
        interval: 95 %, of that share, by scenes.
    """

    pairs: int
    both_kept: int
    avoided: float | None
    interval: Interval | None


def neighbours(vectors: Vectors, sources: Sequence[str], on_progress: OnProgress = unseen) -> Neighbours:
    """Compare all questions with all, block by block.

    Args:
        vectors: (n, d) rows of norm 1.
        sources: (n,) benchmark of each.
        on_progress: called with (done, total) in rows.
    """
    names, source = np.unique(np.asarray(sources, str), return_inverse=True)
    order = np.argsort(source, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    starts = np.searchsorted(source[order], np.arange(len(names)))
    columns = np.ascontiguousarray(vectors[order].T)
    nearest = np.full((len(vectors), len(names)), -1.0)
    listed, count = np.zeros((0, 4)), 0
    with one_thread():
        for start in range(0, len(vectors), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(vectors)))
            cosine = vectors[rows] @ columns
            cosine[np.arange(len(rows)), place[rows]] = -1.0  # itself
            nearest[rows] = np.maximum.reduceat(cosine, starts, axis=1)
            one, column = np.nonzero(cosine >= NEAR)
            first, second = rows[one], order[column]
            new = first < second
            count += int(new.sum())
            first, second = first[new], second[new]
            ends = np.sort(np.stack([source[first], source[second]]), axis=0)
            found = np.column_stack([ends[0] * len(names) + ends[1], -cosine[one[new], column[new]], first, second])
            listed = _nearest_of_each(np.vstack([listed, found]))
            on_progress(int(rows[-1]) + 1, len(vectors))
    pairs = tuple((int(row[2]), int(row[3]), round(float(-row[1]), _DIGITS)) for row in listed)
    return Neighbours(np.round(np.minimum(nearest, 1.0), _DIGITS), pairs, count)


def _nearest_of_each(pairs: Floats) -> Floats:
    """Of rows (two sources, -cosine, row, row) the first `LISTED` of each two sources."""
    ordered = pairs[np.lexsort(pairs.T[::-1])]
    starts = np.searchsorted(ordered[:, 0], ordered[:, 0])
    return np.asarray(ordered[np.arange(len(ordered)) - starts < LISTED])


def mean_cosines(vectors: Vectors, sources: Sequence[str]) -> tuple[list[str], Floats]:
    """Names of the sources, and (sources, sources) mean cosine of two different questions, one of each.

    A source of one question is as like itself as can be: 1.
    """
    names, source = np.unique(np.asarray(sources, str), return_inverse=True)
    rows = [vectors[source == index].astype(np.float64) for index in range(len(names))]
    sums = np.array([part.sum(axis=0) for part in rows])
    products = sums @ sums.T - np.diag([float((part**2).sum()) for part in rows])  # no question with itself
    counts = np.array([len(part) for part in rows], float)
    pairs = np.outer(counts, counts) - np.diag(counts)
    return names.tolist(), np.divide(products, pairs, out=np.ones(pairs.shape), where=pairs > 0)


def restatements(pool: Pool, embeddings: Embeddings) -> list[tuple[int, int, float]]:
    """Pairs of questions that restate each other (row, later row, cosine of the texts); see the top of this file."""
    texts = unit(embeddings.vectors[:, : embeddings.text]).astype(np.float64)
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, question in enumerate(pool.questions):
        if question.media and question.answer:
            alike[_asked(question)].append(index)
    return [
        (one, other, round(cosine, _DIGITS))
        for group in alike.values()
        for place, other in enumerate(group)
        for one in group[:place]
        if (cosine := float(texts[one] @ texts[other])) >= RESTATED
    ]


def _asked(question: Question) -> tuple[object, ...]:
    """Common part of two questions that restate each other: pictures, kind of answer, answer, unit and choices."""
    pictures = tuple(sorted(medium.sha256 for medium in question.media))
    return pictures, question.answer_kind, question.answer, question.unit, tuple(sorted(question.choices))


def without_restatements(pool: Pool, embeddings: Embeddings) -> Integers:
    """The rows of the questions that stay when of two that restate each other the one with the later id goes.

    Ours, and a step of its own before equation 5: that equation keeps both of a pair wherever a dimension has no more
    than K questions.
    """
    gone: set[int] = set()
    for one, other, _ in sorted(restatements(pool, embeddings), key=lambda pair: (pair[1], pair[0])):
        if one not in gone:
            gone.add(other)
    return np.array([index for index in range(len(pool.questions)) if index not in gone], np.intp)


def planted(pool: Pool, kept: Collection[int]) -> Planted:
    """Number of planted pairs, and of those that are both kept, with the share avoided; `kept` are rows of the pool."""
    row = {question.id: index for index, question in enumerate(pool.questions)}
    pairs = [(row[one.twin_of], index) for index, one in enumerate(pool.questions) if one.twin_of in row]
    if not pairs:
        return Planted(0, 0, None, None)
    kept = set(kept)
    apart = [float(not (one in kept and other in kept)) for one, other in pairs]
    scenes = [pool.questions[other].unit_of_intervals for _, other in pairs]
    return Planted(len(pairs), int(len(pairs) - sum(apart)), float(np.mean(apart)), mean_interval(apart, scenes))


def distance_to_kept(rows: Floats, kept: NDArray[np.bool_]) -> float:
    """Mean distance of the dropped rows to the nearest kept one; NaN if none is dropped.

    Args:
        rows: (n, d) of norm 1.
        kept: (n,) at least one.
    """
    dropped, total = rows[~kept], 0.0
    for start in range(0, len(dropped), _BLOCK):
        total += float(pair_distances(dropped[start : start + _BLOCK], rows[kept]).min(axis=1).sum())
    return total / len(dropped) if len(dropped) else float("nan")


def coverage(
    assigned: Sequence[str],
    vectors: Vectors,
    kept: Collection[int],
    seeds: int = SEEDS,
    on_progress: OnProgress = unseen,
) -> dict[str, Coverage]:
    """Coverage of each dimension that keeps some and drops some, but not "Other".

    Args:
        assigned: (n,) dimension of each question; "Other" for those that could not be kept.
        vectors: (n, d) rows of norm 1.
        kept: rows.
        seeds: uniform samples to compare with.
        on_progress: called with (done, total) in dimensions.
    """
    is_kept = np.zeros(len(vectors), bool)
    is_kept[list(kept)] = True
    found = {}
    names = sorted(set(assigned) - {OTHER})
    with one_thread():
        for done, name in enumerate(names):
            own = np.flatnonzero(np.asarray(assigned) == name)
            own = own[by_content(vectors[own])]
            if is_kept[own].any() and not is_kept[own].all():
                found[name] = _covered(vectors[own].astype(np.float64), is_kept[own], name, seeds)
            on_progress(done + 1, len(names))
    return found


def _covered(rows: Floats, kept: NDArray[np.bool_], name: str, seeds: int) -> Coverage:
    ours = distance_to_kept(rows, kept)
    uniform = np.empty(seeds)
    for seed in range(seeds):
        drawn = np.zeros(len(rows), bool)
        drawn[generator("coverage", name, seed).permutation(len(rows))[: int(kept.sum())]] = True
        uniform[seed] = distance_to_kept(rows, drawn)
    ratios = np.divide(ours, uniform, out=np.ones(seeds), where=uniform > 0)
    mean = float(uniform.mean())
    return Coverage(
        int((~kept).sum()), ours, mean, ours / mean if mean else 1.0, middle(ratios),
        float((uniform > ours).mean()), seeds,
    )  # fmt: skip


def measure(
    pool: Pool,
    embeddings: Embeddings,
    assigned: Sequence[str],
    kept: Collection[int],
    seeds: int = SEEDS,
    step: Step = quiet,
) -> dict[str, Any]:
    """The content of redundancy.json.

    Args:
        pool: that was sampled from.
        embeddings: of it.
        assigned: (n,) dimension of each question.
        kept: rows that are kept.
        seeds: uniform samples that coverage is compared with.
        step: shows the progress of comparing and of covering.
    """
    sources = [question.source for question in pool.questions]
    with step("comparing questions") as on_progress:
        near = neighbours(embeddings.vectors, sources, on_progress)
    with step("measuring coverage") as on_progress:
        covered = coverage(assigned, embeddings.vectors, kept, seeds, on_progress)
    names, cosines = mean_cosines(embeddings.vectors, sources)
    source = np.array([names.index(one) for one in sources])
    ids = [question.id for question in pool.questions]
    restated = restatements(pool, embeddings)
    twins = planted(pool, kept)
    has_neighbour = near.nearest.max(axis=1) >= NEAR if ids else np.zeros(0)
    return {
        "form": "merton redundancy 1",
        "questions": len(ids),
        "least_cosine": NEAR,
        "pair_count": near.count,
        "share_with_near_duplicate": round(float(has_neighbour.mean()), _DIGITS) if ids else None,
        "pairs": [
            {"one": ids[one], "other": ids[other], "cosine": cosine} for one, other, cosine in _in_turn(near, sources)
        ],
        "restated": {
            "least_cosine_of_texts": RESTATED,
            "pair_count": len(restated),
            "share": round(len({index for pair in restated for index in pair[:2]}) / max(len(ids), 1), _DIGITS),
            "pairs": [{"one": ids[a], "other": ids[b], "cosine": cosine} for a, b, cosine in restated[:PAIRS]],
        },
        "planted": vars(twins) if twins.pairs else None,
        "similarity": {
            "sources": names,
            "cosine": _rounded(cosines),
            "nearest": _rounded(np.stack([near.nearest[source == i].mean(axis=0) for i in range(len(names))])),
        },
        "coverage": {name: _told(one) for name, one in covered.items()},
        "maps": maps(assigned, embeddings.vectors, kept),
    }


def write_redundancy(found: dict[str, Any], path: Path) -> None:
    """Write redundancy.json; same content, same bytes. Raises InfrastructureError if it cannot be written."""
    write_file(path, (json.dumps(found, indent=1, sort_keys=True) + "\n").encode())


def _in_turn(near: Neighbours, sources: Sequence[str]) -> list[tuple[int, int, float]]:
    """The listed pairs, each two different sources in turn and then those of one source, the nearest first."""
    groups: dict[tuple[str, ...], list[tuple[int, int, float]]] = defaultdict(list)
    for pair in near.pairs:
        groups[tuple(sorted({sources[pair[0]], sources[pair[1]]}))].append(pair)
    ranked = sorted(
        (len(group) == 1, place, -pair[2], pair) for group, pairs in groups.items() for place, pair in enumerate(pairs)
    )
    return [pair for *_, pair in ranked][:PAIRS]


def _rounded(matrix: Floats) -> list[list[float]]:
    found: list[list[float]] = matrix.round(_DIGITS).tolist()
    return found


def _told(one: Coverage) -> dict[str, Any]:
    values = {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in vars(one).items()}
    return values | {"interval": [round(end, _DIGITS) for end in one.interval]}
