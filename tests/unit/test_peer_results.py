"""Results of lm-eval, mteb and Inspect become the cells of a matrix; the forms are those that their programs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from merton.cli import results as commands
from merton.errors import InputError
from merton.results.matrix import read_matrix
from merton.results.store import ResultStore

LM_EVAL: dict[str, Any] = {
    "results": {
        "arc_easy": {
            "alias": "arc_easy",
            "acc,none": 0.75,
            "acc_stderr,none": 0.01,
            "acc_norm,none": 0.5,
            "acc_norm_stderr,none": "N/A",
        },
        "mmlu": {"alias": "mmlu", "acc,none": 0.4},
        "mmlu_law": {"alias": " - law", "acc,none": 0.4},
        "wikitext": {"alias": "wikitext", "word_perplexity,none": 12.5},
    },
    "group_subtasks": {"mmlu": ["mmlu_law"], "arc_easy": []},
    "higher_is_better": {"wikitext": {"word_perplexity": False}, "arc_easy": {"acc": True}},
    "model_name": "lab/small",
}
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "reach", "model": "openai/small"},
    "samples": [
        {"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}},
        {"id": 1, "epoch": 2, "scores": {"match": {"value": "I"}}},
        {"id": "two", "epoch": 1, "scores": {"match": {"value": 0.25}}},
        {"id": 3, "epoch": 1, "scores": {"match": {"value": float("nan")}}},
        {"id": 4, "epoch": 1, "scores": None, "error": {"message": "broken"}},
    ],
}


def mteb(**splits: list[float]) -> dict[str, Any]:
    """Of one task."""
    scores = {
        name: [{"hf_subset": "default", "main_score": value} for value in found] for name, found in splits.items()
    }
    return {"task_name": "AFQMC", "mteb_version": "1.12.41", "scores": scores}


def written(file: Path, content: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def test_tasks_of_lm_eval(tmp_path: Path) -> None:
    matrix = read_matrix(written(tmp_path / "results_2026-01-01.json", LM_EVAL))
    assert matrix.cells == (("lab/small", "arc_easy", 0.75), ("lab/small", "mmlu_law", 0.4))
    assert matrix.remarks == (
        "arc_easy is scored by acc,none; left out: acc_norm,none.",
        "mmlu sums up its tasks and is left out.",
        "wikitext is scored by nothing; left out: word_perplexity,none.",
    )


def test_a_folder_of_mteb(tmp_path: Path) -> None:
    """A split without a score, as NaN, is none; the subsets of a split are averaged."""
    for name, test in (("one", 0.5), ("two", 0.25)):
        written(tmp_path / name / "v1" / "model_meta.json", {"name": f"lab/{name}", "revision": "v1"})
        content = mteb(test=[float("nan")], validation=[test, 0.75])
        written(tmp_path / name / "v1" / "AFQMC.json", content)
    written(tmp_path / "one" / "v1" / "Both.json", {**mteb(test=[1.0], dev=[0.0]), "task_name": "Both"})
    assert sorted(read_matrix(tmp_path).cells) == [
        ("lab/one", "AFQMC", 0.625),
        ("lab/one", "Both/dev", 0.0),
        ("lab/one", "Both/test", 1.0),
        ("lab/two", "AFQMC", 0.5),
    ]


def test_samples_of_inspect(tmp_path: Path) -> None:
    matrix = read_matrix(written(tmp_path / "log.json", INSPECT))
    assert matrix.cells == (("openai/small", "reach/1", 0.5), ("openai/small", "reach/two", 0.25))
    two = [{"id": 1, "scores": {"match": {"value": "C"}, "judge": {"value": "P"}}}]
    assert read_matrix(written(tmp_path / "log.json", {**INSPECT, "samples": two})).cells == (
        ("openai/small", "reach/1/match", 1.0),
        ("openai/small", "reach/1/judge", 0.5),
    )


def test_models_are_imported_one_by_one_under_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("small", "large"):
        written(tmp_path / f"{name}.json", {**LM_EVAL, "model_name": f"lab/{name}"})
        result = CliRunner().invoke(commands.app, ["import", "r.sqlite", f"{name}.json", "--source", "lm-eval"])
        assert result.exit_code == 0, result.output
    with ResultStore(tmp_path / "r.sqlite") as store:
        assert len(store.scores()) == 4


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"what": 1}, "is none of: results_.*.json of lm-eval, .*columns model, task and score"),
        ([], "is no JSON object"),
        ({**LM_EVAL, "model_name": None}, "has no text under 'model_name'"),
        (mteb(test=[0.5]), "does not name its model, and there is no model_meta.json beside it"),
        ({**INSPECT, "samples": [{"id": 1, "scores": {"x": {"value": {"a": 1}}}}]}, "gives several values a sample"),
        ({**LM_EVAL, "results": {"bleu": {"bleu,none": 27.5}}}, "the score 27.5 is not in 0 .. 1"),
    ],
)
def test_other_files_are_refused(content: object, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        read_matrix(written(tmp_path / "r.json", content))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from([LM_EVAL, INSPECT, mteb(test=[0.5])]),
    st.sampled_from(["results", "group_subtasks", "higher_is_better", "eval", "samples", "scores", "task_name"]),
    JSON,
)
def test_any_json_is_read_or_refused(tmp_path: Path, content: dict[str, Any], key: str, value: Any) -> None:
    written(tmp_path / "model_meta.json", {"name": "x"})
    said = ""
    try:
        read_matrix(written(tmp_path / "r.json", {**content, key: value}))
    except InputError as refused:
        said = str(refused)
    assert len(said) < 700
