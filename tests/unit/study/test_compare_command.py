"""`merton compare`: what it prints, where its page lies, its exit codes, and mistakes in its use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner, Result

from merton.cli.main import app
from merton.errors import InputError
from merton.results.comparison import compare
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a` and `b` of two designs, and `again`, which is `a` under another name."""
    folder = tmp_path_factory.mktemp("runs")
    make_fake_run(folder / "a", agents=("servo", "hold"), distortions=("jpeg",), tasks=("pick",))
    make_fake_run(folder / "b", agents=("servo", "blobs"), distortions=("jpeg", "white_noise"), tasks=("pick",))
    shutil.copytree(folder / "a", folder / "again")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)


def refused(*arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        run(*arguments)
    return str(caught.value)


def test_the_finding_is_the_first_line_and_the_page_lies_beside_the_second(made: Path) -> None:
    result = run(made / "a", made / "b")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith(("No outcome differs", "Not resolved", "servo is")), lines[0]
    assert lines[1].split()[:3] == ["agent", "A", "B"]
    assert "Only in A: 1 agent (hold)." in lines
    assert "Only in B: 1 agent (blobs)." in lines
    page = made / "b" / "compare-with-a.html"
    assert lines[-1].endswith(str(page))
    assert lines[0].split(",")[0] in page.read_text(encoding="utf-8")


def test_json_is_all_that_is_printed(made: Path) -> None:
    values = json.loads(run(made / "a", made / "b", "--json").stdout)
    assert [row["first"] for row in values["agents"]] == ["servo"]
    assert (values["only_first"], values["only_second"]) == (["hold"], ["blobs"])


def test_a_page_is_written_where_out_says(made: Path, tmp_path: Path) -> None:
    assert run(made / "a", made / "a" / "results.sqlite", "--out", tmp_path / "x" / "p.html").exit_code == 0
    assert (tmp_path / "x" / "p.html").is_file()


def test_agents_of_other_names_are_compared_when_they_are_named(made: Path) -> None:
    values = json.loads(run(made / "a", made / "b", "--agents", "hold=blobs", "--json").stdout)
    assert [(row["first"], row["second"]) for row in values["agents"]] == [("hold", "blobs")]


def test_equal_runs_are_identical(made: Path) -> None:
    result = run(made / "a", made / "again", "--identical")
    assert result.exit_code == 0
    assert result.stdout.startswith("identical: ")


def test_two_designs_are_one_line(made: Path) -> None:
    result = run(made / "a", made / "b", "--identical")
    assert result.exit_code == 1
    first, last = result.stdout.splitlines()
    assert first.startswith("not the same trials: ")
    assert first.count("hold.") == 3
    assert " only in the second (blobs." in first
    assert last.startswith("Not identical; side by side: ")


def test_one_other_score_is_named() -> None:
    case = TestCase("pick", 0, "reference", 0)
    one = [TrialRecord("x", "servo", case, Outcome.SUCCESS, wall_s=1.0)]
    assert compare(one, [TrialRecord("y", "servo", case, Outcome.SUCCESS, wall_s=2.0)]) == []
    found = compare(one, [TrialRecord("y", "servo", case, Outcome.FAILURE)])
    assert found == ["servo.pick.0.reference.0: outcome success against failure"]


def test_a_record_of_several_runs_is_matched_by_run_and_trial() -> None:
    case = TestCase("pick", 0, "reference", 0)
    merged = [TrialRecord(name, "servo", case, Outcome.SUCCESS) for name in ("x", "y")]
    assert compare(merged, merged) == []
    assert compare(merged, merged[:1]) == [
        "not the same trials: 1 in both; 1 only in the first (y/servo.pick.0.reference.0)"
    ]


def test_a_run_that_lacks_trials_says_so(made: Path, tmp_path: Path) -> None:
    from merton.experiment.run import RunDirectory

    experiment = "name: x\nagents: [{id: servo, vla: servo}]\ntasks: [pick]\ndistortions: [jpeg]\nlevels: [0, 5]\n"
    (tmp_path / "x.yaml").write_text(experiment + "scenes: 40\n", encoding="utf-8")
    short = RunDirectory.create(tmp_path, tmp_path / "x.yaml", "short")
    cases = [TestCase("pick", scene, *view) for scene in range(4) for view in (("reference", 0), ("jpeg", 5))]
    with ResultStore(short.database) as store:
        short.register(store)
        store.record_all([TrialRecord("short", "servo", case, Outcome.SUCCESS) for case in cases])
    assert "A is unfinished: 8 of 80 trials so far" in run(short.path, made / "b").stdout
    assert "Settings that differ:" in run(short.path, made / "b").stdout


def test_mistakes_are_one_sentence(made: Path, tmp_path: Path) -> None:
    matrix = tmp_path / "scores.csv"
    matrix.touch()
    with ResultStore(tmp_path / "empty.sqlite"):
        pass
    assert "scores.csv is a response matrix" in str(
        CliRunner().invoke(app, ["compare", str(matrix), str(matrix)]).exception
    )
    assert "has no results" in refused(made / "a", tmp_path / "empty.sqlite")
    assert "has no results" in refused(made / "a", tmp_path / "empty.sqlite", "--identical")
    assert "--identical takes no other option" in refused(made / "a", made / "b", "--identical", "--json")
    assert "--json writes no page" in refused(made / "a", made / "b", "--out", "x.html", "--json")
    assert "--agents takes a=b" in refused(made / "a", made / "b", "--agents", "servo=")
    assert "A has no agent 'serv'; did you mean 'servo'" in refused(made / "a", made / "b", "--agents", "serv=servo")
