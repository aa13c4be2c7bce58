"""What repeats itself in a pool, and what a sample of it covers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from merton_studies.curation import redundancy
from merton_studies.curation.embedding import Embeddings
from merton_studies.curation.maps import maps
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Medium, Question
from merton_studies.curation.redundancy import (
    NEAR,
    coverage,
    mean_cosines,
    measure,
    neighbours,
    planted,
    restatements,
    without_restatements,
    write_redundancy,
)
from merton_studies.curation.sampling import sample

Vectors = NDArray[np.float32]


def unit(rows: NDArray[np.float64]) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    """Forty of different directions, and ten that are nearly the first ten."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 12))
    return unit(np.vstack([rows, rows[:10] + 0.01 * rng.normal(size=(10, 12))]))


SOURCES = ["a"] * 25 + ["b"] * 20 + ["c"] * 5


@pytest.mark.parametrize("block", [7, 512])
def test_neighbours_are_those_of_the_whole_matrix(
    vectors: Vectors, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redundancy, "_BLOCK", block)
    found = neighbours(vectors, SOURCES)
    cosine = vectors.astype(float) @ vectors.T.astype(float)
    np.fill_diagonal(cosine, -1)
    expected = np.stack([cosine[:, np.array(SOURCES) == name].max(axis=1) for name in "abc"], axis=1)
    np.testing.assert_allclose(found.nearest, expected, atol=2e-6)
    pairs = {(one, other) for one, other in np.argwhere(cosine >= NEAR).tolist() if one < other}
    assert {pair[:2] for pair in found.pairs} == pairs >= {(index, 40 + index) for index in range(10)}
    assert found.count == len(pairs)


def test_of_two_sources_only_the_nearest_pairs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of copies has a pair for any two questions."""
    monkeypatch.setattr(redundancy, "LISTED", 3)
    monkeypatch.setattr(redundancy, "_BLOCK", 4)
    found = neighbours(unit(np.ones((12, 3))), ["a"] * 6 + ["b"] * 6)
    assert found.count == 12 * 11 // 2
    assert [pair[:2] for pair in found.pairs] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 6),
        (0, 7),
        (0, 8),
        (6, 7),
        (6, 8),
        (6, 9),
    ]


def test_mean_cosines_are_those_of_all_pairs(vectors: Vectors) -> None:
    names, found = mean_cosines(vectors, [*SOURCES[:-1], "d"])
    cosine, source = vectors.astype(float) @ vectors.T.astype(float), np.array([*SOURCES[:-1], "d"])
    assert names == ["a", "b", "c", "d"]
    assert found[0, 1] == pytest.approx(cosine[source == "a"][:, source == "b"].mean())
    inner = cosine[source == "a"][:, source == "a"]
    assert found[0, 0] == pytest.approx(inner[~np.eye(25, dtype=bool)].mean())
    assert found[3, 3] == 1.0


def asked(name: str, picture: str, answer: str = "", choices: tuple[str, ...] = (), twin_of: str = "") -> Question:
    media = (Medium(path=f"media/{picture}.png", sha256=picture * 64),) if picture else ()
    kind = "choice" if choices else "free_text"
    return Question(
        id=name, source="ab"[int(name) % 2], text="?", answer_kind=kind, answer=answer, choices=choices, media=media,
        scene=picture, twin_of=twin_of,
    )  # fmt: skip


def pool_of(*questions: Question) -> Pool:
    return Pool.of(questions, [BenchmarkSource(name="a"), BenchmarkSource(name="b")])


def same(count: int) -> Embeddings:
    return Embeddings(unit(np.ones((count, 4))), 2, {})


def test_a_restatement_asks_the_same_of_the_same_picture() -> None:
    pool = pool_of(
        asked("1", "a", "red", ("red", "blue")),
        asked("2", "a", "red", ("blue", "red"), twin_of="1"),
        asked("3", "a", "blue", ("red", "blue")),
        asked("4", "b", "red", ("red", "blue")),
        asked("5", "a", "red", ("red", "blue", "green")),
        asked("6", "a"),
        asked("7", "a"),
        asked("8", "", "yes"),
        asked("9", "", "yes"),
    )
    assert [pair[:2] for pair in restatements(pool, same(9))] == [(0, 1)]
    apart = Embeddings(unit(np.array([[1.0, 0, 1], [0, 1, 1], *[[1, 1, 1]] * 7])), 2, {})
    assert restatements(pool, apart) == []
    assert without_restatements(pool, same(9)).tolist() == [0, 2, 3, 4, 5, 6, 7, 8]
    assert planted(pool, {0, 1, 2}).both_kept == 1
    assert planted(pool, {0, 2}).avoided == 1.0
    assert planted(pool_of(asked("1", "a")), {0}).avoided is None


def test_what_restates_a_question_that_went_stays() -> None:
    """The middle one is like both ends, which are not alike."""
    pool = pool_of(*(asked(str(number), "a", "red") for number in (1, 2, 3)))
    angles = np.array([0.0, 0.9, 1.8])
    vectors = unit(np.column_stack([np.cos(angles), np.sin(angles), np.ones(3)]))
    assert without_restatements(pool, Embeddings(vectors, 2, {})).tolist() == [0, 2]


def test_coverage_of_a_sample_by_centroids_is_better_than_of_a_uniform_one(vectors: Vectors) -> None:
    assigned = ["A"] * 45 + ["B"] * 3 + ["Other"] * 2
    kept = {each.index for each in sample(assigned, vectors, 20)}
    found = coverage(assigned, vectors, kept)
    assert list(found) == ["A"]
    one = found["A"]
    between = np.sqrt(np.maximum(2 - 2 * vectors[:45].astype(float) @ vectors[:45].T.astype(float), 0))
    own = sorted(index for index in kept if index < 45)
    rest = [index for index in range(45) if index not in kept]
    assert one.distance == pytest.approx(between[np.ix_(rest, own)].min(axis=1).mean(), abs=1e-4)
    assert (one.dropped, one.seeds) == (25, 50)
    assert one.ratio < 1
    assert one.interval[0] <= one.ratio <= one.interval[1]
    worst = [index for index in range(45) if index not in set(np.argsort(between.mean(axis=1)[:45])[-20:].tolist())]
    assert coverage(assigned, vectors, set(worst[:3]))["A"].distance > one.distance


def test_the_report_is_complete_and_has_the_same_bytes(vectors: Vectors, tmp_path: Path) -> None:
    questions = [
        asked(f"{index:02}", "ef"[index % 2], "red", twin_of=f"{index - 40:02}" if index >= 40 else "")
        for index in range(50)
    ]
    pool, assigned = pool_of(*questions), ["A"] * 30 + ["B"] * 20
    kept = [each.index for each in sample(assigned, vectors, 5)]
    texts = []
    for number in range(2):
        file = tmp_path / f"{number}.json"
        write_redundancy(measure(pool, Embeddings(vectors, 12, {}), assigned, kept, seeds=5), file)
        texts.append(file.read_bytes())
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    assert found["planted"]["pairs"] == 10
    assert found["share_with_near_duplicate"] >= 20 / 50
    assert set(found["coverage"]) == set(found["maps"]) == {"A", "B"}
    sources = ["ab"[int(pair["one"]) % 2] + "ab"[int(pair["other"]) % 2] for pair in found["pairs"]]
    across = [name in ("ab", "ba") for name in sources]
    assert across == sorted(across, reverse=True)


def test_a_map_shows_the_two_largest_directions_and_marks_the_kept() -> None:
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(30, 2)) * (0.3, 0.1)
    rows = unit(np.column_stack([np.ones(30), spread, 0.001 * rng.normal(size=30)]))
    found = maps(["A"] * 30 + ["B"], np.vstack([rows, rows[:1]]), {0, 1, 30})
    assert found["A"]["method"] == "PCA"
    assert found["A"]["explained"] == pytest.approx([0.92, 0.06], abs=0.01)
    assert found["A"]["kept"] == [False] * 28 + [True] * 2
    assert abs(np.corrcoef(sorted(found["A"]["x"]), sorted(rows[:, 1]))[0, 1]) > 0.97
    assert found["B"] == {"method": "PCA", "explained": [0.0, 0.0], "x": [0.0], "y": [0.0], "kept": [True]}
