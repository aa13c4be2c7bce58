"""Benchmarks' own scorers and scores as the reference: planted differences are found, failures are no scores."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from unguarded import Unguarded

from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton_studies.cli.curate_evaluate import tell_unknown_models
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.harness.logs import Logged
from merton_studies.harness.own_fidelity import FILE, TABLE, OwnFidelity, own_fidelity, refuse_shared
from merton_studies.harness.own_scorers import Reference, read_reference_scores, read_scorer
from merton_studies.harness.sandbox import Sandbox
from merton_studies.harness.scores import ScoredAnswer

SCORER = """
def score(question, prediction):
    if question["id"] == "vsi/9":
        raise ValueError("no rule for nine")
    return prediction.lower() in (question["answer"], *question["also"])
"""
SAID = ("jar", "Jar", "the jar", "cup", "cup", "jar", "the jar", "jar", "cup", "jar")
MERTON = (1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0)


def pool() -> Pool:
    made = [
        Question(
            id=f"{source}/{number}",
            source=source,
            text=f"Which, {number}?",
            answer_kind="free_text",
            answer="jar",
            also=("pot",),
            scene=f"s{number % 5}",
        )
        for source in ("vsi", "erqa")
        for number in range(10)
    ]
    return Pool.of(made, [BenchmarkSource(name="vsi"), BenchmarkSource(name="erqa")])


def rows(answerer: str = "qwen") -> list[ScoredAnswer]:
    """Merton's scores of ten answers to vsi; of two "the jar" the benchmark thinks otherwise."""
    asked = [question for question in pool().questions if question.source == "vsi"]
    return [
        ScoredAnswer(answerer, question, "D", said, score)
        for question, said, score in zip(asked, SAID, MERTON, strict=True)
    ]


def scorer(folder: Path, program: str = SCORER, given: str = "vsi={}:score") -> Reference:
    (folder / "vsi.py").write_text(program)
    return read_scorer(given.format(folder / "vsi.py"), pool())


def compared(folder: Path, reference: Reference) -> OwnFidelity:
    (found,) = own_fidelity(rows(), [reference], Unguarded(), folder / "out").found
    return found


def test_planted_differences_are_found_and_a_failure_is_no_score(tmp_path: Path) -> None:
    """By hand: 9 scored by both, 7 alike; means 6/9 - vsi/9 failed - and 4/9; by chance 6/9 4/9 + 3/9 5/9 = 39/81."""
    found = compared(tmp_path, scorer(tmp_path))
    assert (found.n, found.scenes, found.differ, found.failed, found.missing) == (9, 5, 2, 1, 0)
    assert found.agreement == pytest.approx(7 / 9)
    assert (found.merton, found.reference) == (pytest.approx(6 / 9), pytest.approx(4 / 9))
    assert found.fidelity == pytest.approx(1 - 2 / 4)
    assert found.floor == pytest.approx(39 / 81)
    assert found.interval is not None
    assert found.interval[0] < 7 / 9 < found.interval[1]
    assert found.first_error == "ValueError: no rule for nine"
    with (tmp_path / "out" / TABLE).open(newline="") as table:
        told = {row["id"]: (row["score"], row["reference"], row["error"]) for row in csv.DictReader(table)}
    assert told == {
        "vsi/2": ("1.0", "0.0", ""),
        "vsi/6": ("1.0", "0.0", ""),
        "vsi/9": ("1.0", "", "ValueError: no rule for nine"),
    }
    about = json.loads((tmp_path / "out" / FILE).read_text())["references"]["vsi"]
    assert (about["whose"], about["file"], about["function"]) == ("the benchmark's own scorer", "vsi.py", "score")


def test_scores_of_a_scorer_are_kept_for_the_same_command(tmp_path: Path) -> None:
    sandbox, reference = Unguarded(), scorer(tmp_path)
    own_fidelity(rows(), [reference], sandbox, tmp_path / "out")
    before = [(tmp_path / "out" / name).read_bytes() for name in (FILE, TABLE)]
    own_fidelity(rows(), [reference], sandbox, tmp_path / "out")
    assert sandbox.runs == 1
    assert [(tmp_path / "out" / name).read_bytes() for name in (FILE, TABLE)] == before


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("return 1.7", "score returned 1.7, which is not in 0..1"),
        ("return 'A'", "score returned str, not a number"),
        ("import numpy_of_the_benchmark", "No module named 'numpy_of_the_benchmark'"),
        ("import os; os._exit(3)", "the process ended with exit code 3 before the case was done"),
    ],
    ids=["too large", "a text", "a package", "ends the process"],
)
def test_a_scorer_that_gives_no_score_has_none(tmp_path: Path, body: str, error: str) -> None:
    found = compared(tmp_path, scorer(tmp_path, f"def score(question, prediction):\n    {body}\n"))
    assert (found.n, found.agreement, found.failed) == (0, None, 10)
    assert error in found.first_error


def test_a_scorer_runs_shut_in(tmp_path: Path) -> None:
    try:
        sandbox = Sandbox()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    body = "from pathlib import Path\ndef score(question, prediction):\n    return Path('/etc/hostname').exists()\n"
    (found,) = own_fidelity(rows(), [scorer(tmp_path, body)], sandbox, tmp_path / "out").found
    assert (found.n, found.reference) == (10, 0.0), "no file of this machine is there"


def test_a_table_of_scores_is_a_reference(tmp_path: Path) -> None:
    """By hand: 1, 1 and 0.5 beside Merton's 1, 1, 1, the other seven questions without a score."""
    table = tmp_path / "scores.csv"
    table.write_text("item,model,score,benchmark\n0,qwen,1,vsi\nvsi/1,qwen,1.0,\n2,qwen,0.5,vsi\n3,other,1,vsi\n")
    found = compared(tmp_path, read_reference_scores(table, pool()))
    assert (found.n, found.differ, found.missing) == (3, 1, 7)
    assert found.reference == pytest.approx(2.5 / 3)


def test_a_model_of_the_table_that_is_not_evaluated_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.csv").write_text("item,model,score\nvsi/1,qwem,1\nvsi/2,qwen,1\n")
    log = Logged("qwen", {}, {}, {})
    tell_unknown_models([read_reference_scores(tmp_path / "s.csv", pool())], [log])
    assert "s.csv has scores of qwem, which is not evaluated here; evaluated: qwen" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("item,model,score\nvsi/1,qwen,70\n", "line 2: score is '70'; it must be a number from 0 to 1"),
        ("item,model,score\nvsi/1,qwen,1\nvsi/1,qwen,1\n", "line 3: qwen has a score for vsi/1 already"),
        ("item,model,score\n1,qwen,1\n", "'1' is a question of several benchmarks: erqa, vsi"),
        ("item,model,score\nx,qwen,1\n", "none of its rows is about a question of the benchmark, such as 'erqa/0'"),
        ("item,model,score,benchmark\n1,qwen,1,mm\n", "line 2: unknown benchmark 'mm'"),
    ],
    ids=["percent", "twice", "two benchmarks", "other ids", "no benchmark"],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "scores.csv").write_text(content)
    with pytest.raises(InputError) as caught:
        read_reference_scores(tmp_path / "scores.csv", pool())
    assert fault in str(caught.value)


def test_a_scorer_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"write BENCHMARK=FILE.py:function"):
        scorer(tmp_path, given="vsi={}")
    with pytest.raises(UnknownNameError, match="unknown benchmark 'mm'"):
        scorer(tmp_path, given="mm={}:score")
    with pytest.raises(InputError, match="defines no function 'hit', only: score"):
        scorer(tmp_path, given="vsi={}:hit")
    with pytest.raises(InputError, match="is no program of Python"):
        scorer(tmp_path, "def score(:\n")
    one = scorer(tmp_path)
    with pytest.raises(InputError, match="vsi has 2 references"):
        refuse_shared([one, one])
