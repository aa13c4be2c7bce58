"""The study of models: means by level, rank correlations, and where the tables come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_run import make_fake_run
from scipy import stats

from merton.errors import InputError
from merton.results.records import TestCase
from merton.results.store import ResultStore
from merton.study import figures, models, outputs
from merton.study.models import ScoreTable, TableCell


def table(rows: list[tuple[str, str, str, str, int, float]]) -> ScoreTable:
    """Each image of a task is of a scene of its own."""
    model, image, task, dimension, level, score = zip(*rows, strict=True)
    scene = [f"{row[2]}.{row[1]}" for row in rows]
    return ScoreTable(*(np.array(c) for c in (model, scene, image, task, dimension, level, score)))


def random_rows(model: str, seed: int, images: int = 20) -> list[tuple[str, str, str, str, int, float]]:
    rng = np.random.default_rng(seed)
    return [
        (model, f"i{image}", task, "bleu", level, float(rng.uniform()))
        for image in range(images)
        for task in ("pick", "push")
        for level in range(6)
    ]


def test_means_by_level() -> None:
    rows = [
        ("b", "x", "pick", "bleu", 0, 1.0),
        ("b", "x", "pick", "bleu", 2, 0.5),
        ("b", "y", "pick", "bleu", 2, 0.7),
        ("b", "y", "pick", "bleu", 5, 0.0),
        ("a", "x", "pick", "bleu", 1, 0.2),
        ("b", "x", "pick", "rouge_l", 2, 0.9),
    ]
    first, second = models.profiles(table(rows), "bleu")
    assert (first.model, second.model) == ("a", "b")
    assert second.levels == (TableCell(1.0, 1), None, TableCell(pytest.approx(0.6), 2), None, None, TableCell(0.0, 1))
    assert second.distorted == TableCell(pytest.approx(0.4), 3)  # the undistorted image does not count
    assert models.profiles(table(rows), "position") == []
    assert models.stages(table(rows)) == {"cognition": ("bleu", "rouge_l")}


def test_correlations_are_scipys_over_the_images_both_saw() -> None:
    one, other = random_rows("one", 1), random_rows("other", 2)
    shared = {row[1:5]: row[5] for row in other[30:]}
    pairs = [(row[5], shared[row[1:5]]) for row in one if row[1:5] in shared and row[4] > 0]
    rows = one + other[30:]
    np.random.default_rng(0).shuffle(rows)  # the order of rows is of no account
    found = models.correlation(table(rows), "bleu")
    assert found.models == ("one", "other")
    assert found.matrix[0, 1] == found.matrix[1, 0] == pytest.approx(stats.spearmanr(*zip(*pairs, strict=True))[0])
    assert np.diag(found.matrix) == pytest.approx([1, 1])
    assert found.average == found.matrix[0, 1]
    assert found.scenes == 40
    (pair,) = found.pairs
    assert pair[3] is not None
    assert pair == ("one", "other", found.matrix[0, 1], tuple(found.intervals[0, 1]))


def test_rank_correlation_knows_only_the_order() -> None:
    one = random_rows("one", 1)
    rows = one + [("up", *row[1:5], row[5] ** 3) for row in one] + [("down", *row[1:5], 1 - row[5]) for row in one]
    found = models.correlation(table(rows), "bleu")
    assert found.models == ("down", "one", "up")
    np.testing.assert_allclose(found.matrix, [[1, -1, -1], [-1, 1, 1], [-1, 1, 1]], atol=1e-12)
    assert found.average == pytest.approx(-1 / 3)


def test_a_constant_correlates_with_nothing() -> None:
    one = random_rows("one", 1)
    jitter = np.random.default_rng(3).choice([1.0, 1.0 - 1e-15], len(one))
    rows = one + [("still", *row[1:5], float(value)) for row, value in zip(one, jitter, strict=True)]
    found = models.correlation(table(rows), "bleu")
    assert np.isnan(found.matrix[1]).all()
    assert np.isnan(found.average)
    assert np.isnan(models.correlation(table(one[:3] + random_rows("two", 2)[:3]), "bleu").matrix[0, 1])  # two shared
    assert models.correlation(table(one), "position").models == ()


def test_the_table_of_a_run(tmp_path: Path) -> None:
    records = make_fake_run(tmp_path / "run", agents=("servo", "hold"), distortions=("jpeg",), tasks=("pick",))
    kept = outputs.read(tmp_path / "run", records)
    assert len(kept) == len([record for record in records if record.cognition is not None])
    found = models.from_outputs(kept)
    assert set(found.model.tolist()) == {"servo", "hold"}  # this run does not say which models the agents use
    assert set(found.dimension.tolist()) == {
        *("cognition", "bleu", "rouge_l", "cider"),
        *("decision", "position", "rotation", "state"),
    }
    with ResultStore(tmp_path / "run" / "results.sqlite", read_only=True) as store:
        (record,) = (r for r in store.records("quickstart") if (r.agent, r.case.level) == ("servo", 3))
    row = (found.model == "servo") & (found.level == 3)
    scores = dict(zip(found.dimension[row].tolist(), found.score[row].tolist(), strict=True))
    assert scores["cognition"] == record.cognition
    assert scores["cider"] == pytest.approx(record.cognition)  # as a share of 10
    assert set(found.image[row].tolist()) == {"0.jpeg"}
    assert set(found.scene[row].tolist()) == {"pick.0"}
    assert models.from_outputs([]).score.shape == (0,)
    assert models.stages(models.from_outputs([])) == {}


def test_agents_that_share_a_model_are_one_model() -> None:
    case = TestCase("pick", 0, "jpeg", 3)
    shared = [
        outputs.Output(agent, {"cognition": "describe", "decision": agent}, case, None, None, scores)
        for agent in ("a", "b")
        for scores in [{"cognition": {"bleu": 0.5}, "decision": {"state": 1.0}}]
    ]
    found = models.from_outputs(shared)
    assert [profile.model for profile in models.profiles(found, "bleu")] == ["describe"]
    assert [profile.model for profile in models.profiles(found, "state")] == ["a", "b"]


def test_junk_in_a_trial_is_passed_over(tmp_path: Path) -> None:
    records = make_fake_run(tmp_path / "run", agents=("servo",), distortions=("jpeg",), tasks=("pick",))
    junk: list[Any] = [
        "{",
        '{"answers": 3, "decision": [], "vlm": 7}',
        '{"answers": {"reference": 1, "distorted": "x"}, "decision": {"position": NaN, "rotation": 7, "state": true}}',
        '{"decision": {"reference": {"deltas": "x"}, "distorted": {"deltas": [[1, 2]], "step_s": "y"}}}',
    ]
    for record, text in zip(records, junk, strict=False):
        (tmp_path / "run" / "trials" / record.id / "trial.json").write_text(text)
    read = outputs.read(tmp_path / "run", records[: len(junk)])
    assert len(read) == 3  # the first is no JSON
    for item in read:
        assert (item.answers, item.chunks, item.models) == (None, None, {"cognition": "servo", "decision": "servo"})
        assert set(item.scores["decision"]) <= {"decision"}


def test_the_table_of_a_parquet_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = table(random_rows("one", 1))
    columns = {name: getattr(rows, name).tolist() for name in models.COLUMNS}
    parquet.write_table(pyarrow.table({**columns, "more": list(columns["level"])}), tmp_path / "s.parquet")
    found = models.from_parquet(tmp_path / "s.parquet")
    np.testing.assert_array_equal(found.score, columns["score"])
    assert [profile.model for profile in models.profiles(found, "bleu")] == ["one"]
    for wrong, message in (
        ({**columns, "score": [7.0] * len(columns["score"])}, r"scores must be in 0 \.\. 1"),
        ({**columns, "level": [21] * len(columns["score"])}, r"levels must be 0 \.\. 20"),
        ({name: columns[name] for name in models.COLUMNS[:-1]}, "column 'score' is missing"),
    ):
        parquet.write_table(pyarrow.table(wrong), tmp_path / "w.parquet")
        with pytest.raises(InputError, match=message):
            models.from_parquet(tmp_path / "w.parquet")
    (tmp_path / "no.parquet").write_text("no")
    (tmp_path / "folder").mkdir()
    for path, message in (("no", "is no Parquet table"), ("nowhere", "cannot read"), ("folder", r"no \.parquet file")):
        with pytest.raises(InputError, match=message):
            models.from_parquet(tmp_path / (path if path == "folder" else f"{path}.parquet"))
    parquet.write_table(pyarrow.table(columns), tmp_path / "folder" / "a.parquet")
    parquet.write_table(pyarrow.table(columns), tmp_path / "folder" / "b.parquet")
    np.testing.assert_array_equal(models.from_parquet(tmp_path / "folder").score, 2 * columns["score"])
    assert models.from_parquet(tmp_path / "s.parquet").scene.tolist() == columns["scene"]


def test_the_paper_normalisation_spans_the_run(tmp_path: Path) -> None:
    records = make_fake_run(tmp_path / "run", agents=("servo", "hold"), distortions=("jpeg",), tasks=("pick",))
    kept = outputs.read(tmp_path / "run", records)
    changed = [
        outputs.Output(o.agent, o.models, o.case, o.answers, (o.chunks[0], kept[0].chunks[0]), o.scores)  # type: ignore[index]
        for o in kept
    ]
    found = dict(models.decision_by_study_range(changed))
    assert set(found) == {"servo", "hold"}
    for values in found.values():
        assert values["decision"] == pytest.approx((values["position"] + values["rotation"] + values["state"]) / 3)
        assert all(0 <= value <= 1 for value in values.values())
    assert models.decision_by_study_range([]) == []


def test_a_correlation_matrix_shows_undefined_cells() -> None:
    matrix = np.array([[1.0, np.nan], [np.nan, 1.0]])
    intervals = np.full((2, 2, 2), np.nan)
    svg = figures.correlation_matrix(["one", "<b>"], matrix, intervals, "title")
    assert svg.count("<rect") == 4
    assert svg.count("undefined") == 2
    assert "<b>" not in svg
    assert "nan" not in svg.lower()
    assert figures.correlation_matrix([], np.zeros((0, 0)), np.zeros((0, 0, 2)), "none").count("rect") == 0
    known = figures.correlation_matrix(["one", "two"], np.full((2, 2), 0.4), np.full((2, 2, 2), [-0.1, 0.7]), "title")
    assert "one and two: 0.40 [−0.10, 0.70]" in known
    many = figures.correlation_matrix([str(i) for i in range(28)], np.eye(28), np.full((28, 28, 2), np.nan), "many")
    assert ">aa  26<" in many
    assert ">ab  27<" in many
