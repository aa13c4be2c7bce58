"""Ways to sample compared on one pool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton_studies.curation import embedding
from merton_studies.curation.ablation import THINNED, Ablated, ablate
from merton_studies.curation.assignment import Assignment, write_assignment
from merton_studies.curation.embedding import Embeddings
from merton_studies.curation.pool import Pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Medium, Question
from merton_studies.curation.sampling import STRATEGIES, sample
from merton_studies.curation.taxonomy import Dimension, Taxonomy

COUNT = 60
ASSIGNED = ["A"] * 40 + ["B"] * 16 + ["Other"] * 4


def pool(pictures: bool) -> Pool:
    """Of every ten questions the last two repeat the first two."""
    asked = []
    for index in range(COUNT):
        twin = f"{index - 8:02}" if index % 10 > 7 else ""
        media = (Medium(path="media/a.png", sha256="a" * 64),) if pictures else ()
        asked.append(
            Question(
                id=f"{index:02}", source="xy"[index % 2], text=f"text {index // 10} {index % 8}",
                answer=f"{index // 10} {index % 8}", answer_kind="free_text", media=media, twin_of=twin,
            )
        )  # fmt: skip
    return Pool.of(asked, [BenchmarkSource(name="x"), BenchmarkSource(name="y")])


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    """Questions of one ten are alike, and twins nearly the same."""
    rng = np.random.default_rng(0)
    tens, own = rng.normal(size=(6, 10)), rng.normal(size=(COUNT, 10))
    rows = np.array([tens[index // 10] + 0.5 * own[index - 8 * (index % 10 > 7)] for index in range(COUNT)])
    rows += 1e-3 * rng.normal(size=rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def table(vectors: NDArray[np.float32]) -> dict[str, Ablated]:
    rng = np.random.default_rng(1)
    scores = (rng.random((6, COUNT)) < np.linspace(0.2, 0.9, 6)[:, None]).astype(float)
    scores[2, 5] = np.nan
    found = ablate(pool(True), Embeddings(vectors, 10, {}), ASSIGNED, 12, 4, scores)
    return {row.name: row for row in found}


def test_every_strategy_has_a_row(table: dict[str, Ablated], vectors: NDArray[np.float32]) -> None:
    assert list(table) == [*STRATEGIES, THINNED]
    assert {row.kept.mean for name, row in table.items() if name != THINNED} == {24}
    assert table["facility_location"].draws == 1
    assert table["facility_location"].distance.interval is None
    assert table["dimension"].entropy.mean == 1.0
    assert table["random"].entropy.mean < 1.0
    rows, dimension = vectors.astype(float), np.array(ASSIGNED)
    expected = []
    for seed in range(4):
        kept = [each.index for each in sample(ASSIGNED, vectors, 12, seed)]
        near = np.sqrt(np.maximum(2 - 2 * rows @ rows.T, 0))
        np.fill_diagonal(near, 0)
        means = [near[np.ix_(dimension == name, [i for i in kept if dimension[i] == name])] for name in "AB"]
        expected.append(np.mean([part.min(axis=1).mean() for part in means]))
    assert table["diverse"].distance.mean == pytest.approx(np.mean(expected), abs=1e-5)


def test_covering_strategies_are_nearer_and_keep_twins_apart(table: dict[str, Ablated]) -> None:
    means = {name: row.distance.mean or 0.0 for name, row in table.items()}
    assert max(means["facility_location"], means["diverse"]) < means["dimension"]
    assert table["diverse"].better == 1.0
    assert table["dimension"].better == 0.0
    assert table[THINNED].apart.mean == 1.0
    assert 0.0 < (table["random"].apart.mean or 0.0) < 1.0


def test_a_sample_ranks_models_as_the_pool_does_if_all_is_kept(vectors: NDArray[np.float32]) -> None:
    scores = np.random.default_rng(1).random((7, COUNT))
    (diverse, *_, uniform, _) = ablate(pool(False), Embeddings(vectors, 10, {}), ASSIGNED, COUNT, 1, scores)
    assert diverse.like_dimensions.mean == 1.0
    assert uniform.name == "random"
    assert uniform.like_questions.mean == 1.0
    assert diverse.distance.mean == 0.0


def test_bad_input_is_named(vectors: NDArray[np.float32]) -> None:
    with pytest.raises(InputError, match="at least one seed"):
        ablate(pool(False), Embeddings(vectors, 10, {}), ASSIGNED, 5, 0)
    with pytest.raises(InputError, match="60 questions are assigned, but 3 have scores"):
        ablate(pool(False), Embeddings(vectors, 10, {}), ASSIGNED, 5, 1, np.zeros((2, 3)))


class Hashed:
    """A sentence model that takes no time."""

    made = {"model": "hashed"}  # noqa: RUF012

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[len(text), *map(ord, text[-6:])] for text in texts], float)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_the_command_prints_the_table_and_names_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "text_embedder", Hashed)
    questions = pool(False)
    write_pool(questions, tmp_path)
    ids = tuple(question.id for question in questions.questions)
    taxonomy = Taxonomy(name="t", dimensions=tuple(Dimension(name=name, definition="?") for name in "AB"))
    votes, no = tuple((name,) for name in ASSIGNED), np.zeros(COUNT, bool)
    assignment = Assignment(taxonomy, ("v",), ids, votes, ((),) * COUNT, tuple(ASSIGNED), np.ones(COUNT), no, no)
    write_assignment(assignment, tmp_path / "assignments.parquet")
    scores = {"agent": ["one", "two", "three"]} | {name: [0.1, 0.5, float(name) / 60] for name in ids}
    pyarrow.parquet.write_table(pyarrow.table(scores), tmp_path / "scores.parquet")
    words = ["curate", "ablation", str(tmp_path), "--assignments", str(tmp_path / "assignments.parquet")]
    words += ["--keep", "5", "--seeds", "2", "--out", str(tmp_path / "ablation.json")]
    result = CliRunner().invoke(app, [*words, "--scores", str(tmp_path / "scores.parquet")], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "3 models: one, two, three" in result.output
    found = json.loads((tmp_path / "ablation.json").read_text())
    assert set(found["strategies"]) == {*STRATEGIES, THINNED}
    assert found["made"]["embedding"]["text"] == {"model": "hashed"}
    pyarrow.parquet.write_table(pyarrow.table({"agent": ["one"], "00": [1.0]}), tmp_path / "scores.parquet")
    with pytest.raises(InputError, match="no column '01', and 58 more"):
        CliRunner().invoke(app, [*words, "--scores", str(tmp_path / "scores.parquet")], catch_exceptions=False)
