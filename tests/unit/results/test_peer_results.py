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
        "wikitext is scored by nothing that is known to be better when it is higher; left out: word_perplexity,none.",
    )


def of_lm_eval(folder: Path, task: dict[str, Any], better: dict[str, Any] | None = None) -> tuple[Any, str]:
    """Cells and remarks of a file with the tasks "arc", of these values, and "sure", which scores 1."""
    content = {
        "results": {"arc": task, "sure": {"acc,none": 1.0}},
        "higher_is_better": {"arc": better or {}},
        "model_name": "m",
    }
    matrix = read_matrix(written(folder / "results.json", content))
    return [cell[1:] for cell in matrix.cells if cell[1] == "arc"], " ".join(matrix.remarks)


def test_what_stands_beside_the_metrics_of_lm_eval_is_no_score(tmp_path: Path) -> None:
    """A metric's key is NAME,FILTER (lm-eval 0.4); the number of questions was read as the score 1."""
    for questions in (1, 100):
        task = {"name": "arc", "alias": " - arc", "sample_len": questions, "acc,none": 0.0, "acc_stderr,none": 0.5}
        assert of_lm_eval(tmp_path, task) == ([("arc", 0.0)], "")
    assert of_lm_eval(tmp_path, {"exact_match,strict-match": 0.25, "exact_match_stderr,strict-match": 0.5})[0] == [
        ("arc", 0.25)
    ]


def test_a_metric_without_a_value_is_not_replaced_by_the_next(tmp_path: Path) -> None:
    task = {"alias": "arc", "acc,none": float("nan"), "acc_norm,none": 0.5}
    assert of_lm_eval(tmp_path, task) == (
        [],
        "arc is scored by acc,none, which has no value, so it has no score; left out: acc_norm,none.",
    )
    assert of_lm_eval(tmp_path, {"acc,none": "N/A"})[0] == []


def test_a_metric_of_unknown_direction_is_no_score(tmp_path: Path) -> None:
    found, remark = of_lm_eval(tmp_path, {"word_perplexity,none": 0.9})
    assert (found, "word_perplexity,none" in remark) == ([], True)
    assert of_lm_eval(tmp_path, {"brier_score,none": 0.9, "acc,none": 0.5})[0] == [("arc", 0.5)]
    assert of_lm_eval(tmp_path, {"rouge,none": 0.9}, {"rouge": True})[0] == [("arc", 0.9)]
    assert of_lm_eval(tmp_path, {"rouge,none": 0.9}, {"rouge": None})[0] == []


def test_a_folder_of_mteb(tmp_path: Path) -> None:
    """A split without a score, as NaN, is none; the subsets of a split are averaged."""
    for name, test in (("one", 0.5), ("two", 0.25)):
        written(tmp_path / name / "v1" / "model_meta.json", {"name": f"lab/{name}", "revision": "v1"})
        content = mteb(test=[float("nan")], validation=[test, 0.75])
        written(tmp_path / name / "v1" / "AFQMC.json", content)
    written(tmp_path / "one" / "v1" / "Both.json", {**mteb(test=[1.0], dev=[0.0]), "task_name": "Both"})
    assert sorted(read_matrix(tmp_path).cells) == [
        ("lab/one", "AFQMC/validation", 0.625),
        ("lab/one", "Both/dev", 0.0),
        ("lab/one", "Both/test", 1.0),
        ("lab/two", "AFQMC/validation", 0.5),
    ]


def test_a_case_of_mteb_has_one_name_for_all_models(tmp_path: Path) -> None:
    """The splits that a file names decide, so that a split without a score renames no other."""
    for name, dev in (("one", 0.5), ("two", float("nan"))):
        written(tmp_path / name / "model_meta.json", {"name": name})
        written(tmp_path / name / "T.json", mteb(test=[0.25], dev=[dev]))
    matrix = read_matrix(tmp_path)
    assert sorted(matrix.cells) == [
        ("one", "AFQMC/dev", 0.5),
        ("one", "AFQMC/test", 0.25),
        ("two", "AFQMC/test", 0.25),
    ]
    assert matrix.remarks == ("AFQMC/dev of two is left out: not all of its subsets have a score.",)


def test_samples_of_inspect(tmp_path: Path) -> None:
    matrix = read_matrix(written(tmp_path / "log.json", INSPECT))
    assert matrix.cells == (("openai/small", "reach/1", 0.5), ("openai/small", "reach/two", 0.25))
    two = [{"id": 1, "scores": {"match": {"value": "C"}, "judge": {"value": "P"}}}]
    assert read_matrix(written(tmp_path / "log.json", {**INSPECT, "samples": two})).cells == (
        ("openai/small", "reach/1/match", 1.0),
        ("openai/small", "reach/1/judge", 0.5),
    )


def of_inspect(folder: Path, *samples: dict[str, Any]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Case to score, and remarks, of a log with these samples."""
    matrix = read_matrix(written(folder / "log.json", {**INSPECT, "samples": samples}))
    return {case: score for _, case, score in matrix.cells}, matrix.remarks


def test_samples_of_inspect_are_told_apart_by_their_whole_ids(tmp_path: Path) -> None:
    """Ids that differ after 80 characters were averaged into one case."""
    long = "x" * 90
    samples = [{"id": f"{long}{end}", "scores": {"s": {"value": value}}} for end, value in (("1", "C"), ("2", "I"))]
    assert of_inspect(tmp_path, *samples)[0] == {f"reach/{long}1": 1.0, f"reach/{long}2": 0.0}
    for sample, sentence in (
        ({"id": "x" * 201}, "sample 1 has an id of 201 characters; at most 200 are possible"),
        ({"id": None}, "sample 1 has a score and no id"),
        ({}, "sample 1 has a score and no id"),
    ):
        with pytest.raises(InputError, match=sentence):
            of_inspect(tmp_path, {**sample, "scores": {"s": {"value": "C"}}})


def test_values_of_inspect_are_read_as_it_reads_them_or_counted(tmp_path: Path) -> None:
    """Inspect's value_to_float: yes and true are 1, no and false 0, in any letters; it warns of other texts."""
    values = ["yes", "No", "true", False, "0.5", "weird", "odd"]
    samples = [{"id": at, "scores": {"s": {"value": value}}} for at, value in enumerate(values)]
    assert of_inspect(tmp_path, *samples) == (
        {"reach/0": 1.0, "reach/1": 0.0, "reach/2": 1.0, "reach/3": 0.0, "reach/4": 0.5},
        ("reach of openai/small: 2 values are left out as no score, such as 'weird'.",),
    )


def test_a_case_of_inspect_names_its_scorer_where_the_log_names_several(tmp_path: Path) -> None:
    """Whether the other scorer gave a score or not: the case of another model has the same name."""
    for other in ("C", None):
        scores = {"match": {"value": "C"}, "judge": {"value": other}}
        assert "reach/1/match" in of_inspect(tmp_path, {"id": 1, "scores": scores})[0]


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
        ([], "is not a JSON object"),
        ({**LM_EVAL, "model_name": None}, "has no text under 'model_name'"),
        (mteb(test=[0.5]), "does not name its model, and there is no model_meta.json beside it"),
        ({**INSPECT, "samples": [{"id": 1, "scores": {"x": {"value": {"a": 1}}}}]}, "gives several values a sample"),
        (
            {**LM_EVAL, "results": {"wmt": {"bleu,none": 27.5}}, "higher_is_better": {"wmt": {"bleu": True}}},
            "r.json, task wmt, metric bleu,none: the score 27.5 is not in 0 .. 1",
        ),
        ({**LM_EVAL, "results": {"wmt": {"ter,none": 0.5}}}, "holds no results .* that are scores: wmt is scored by"),
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
