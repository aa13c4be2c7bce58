"""Every metric maps a trial to a match score in one place; boards by each of them, and what doing nothing earns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.by_metric import metric_table
from merton.results.metrics import METRICS, match_scores
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.statistics.means import mean_interval


def trial(agent: str, scene: int, outcome: Outcome, execution: float, progress: float, level: int = 3) -> TrialRecord:
    case = TestCase("push", scene, "jpeg" if level else "reference", level)
    return TrialRecord("study", agent, case, outcome, execution=execution, progress=progress)


NEAR = trial("near", 0, Outcome.FAILURE, 99.9, 0.99)
RECORDS = [
    trial("hold", 0, Outcome.FAILURE, 70.0, 0.0),
    trial("hold", 1, Outcome.FAILURE, 80.0, 0.0),
    trial("hold", 1, Outcome.FAILURE, 0.0, 0.0, level=0),
    NEAR,
    trial("near", 1, Outcome.FAILURE, 99.9, 0.99),
    trial("done", 0, Outcome.SUCCESS, 100.0, 1.0),
    trial("done", 1, Outcome.EMERGENCY_STOP, 0.0, 0.0),
]


def scores(metric: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for agent, _, score in match_scores(RECORDS, metric):
        found.setdefault(agent, []).append(score)
    return found


def test_each_metric_by_hand() -> None:
    """The floor is hold's mean under distortion: 0.75."""
    assert scores("success") == {"hold": [0, 0, 0], "near": [0, 0], "done": [1, 0]}
    assert scores("progress") == {"hold": [0, 0, 0], "near": [0.99, 0.99], "done": [1, 0]}
    assert scores("execution")["near"] == pytest.approx([0.999, 0.999])
    above = scores("above_floor")
    assert above["hold"] == pytest.approx([0.0, 0.2, 0.0]), "never below nothing"
    assert above["near"] == pytest.approx([0.996, 0.996])
    assert above["done"] == [1.0, 0.0]


def test_a_failure_by_a_millimetre_is_no_success_and_nearly_all_progress() -> None:
    assert match_scores([NEAR], "success")[0][2] == 0.0
    assert 0.9 < match_scores([NEAR], "progress")[0][2] < 1.0
    assert match_scores([NEAR], "execution")[0][2] == pytest.approx(0.999)


def test_trials_without_a_score_are_left_out() -> None:
    case = TestCase("push", 0, "jpeg", 3)
    lost = TrialRecord("study", "a", case, Outcome.INFRASTRUCTURE)
    unmeasured = TrialRecord("study", "b", case, Outcome.FAILURE)
    assert match_scores([lost, unmeasured], "success") == [("b", case.id, 0.0)]
    assert match_scores([lost, NEAR], "progress") == [("near", NEAR.case.id, 0.99)]
    with pytest.raises(InputError, match=r"the progress of 1 failures is not known"):
        match_scores([lost, unmeasured, NEAR], "progress")
    solved = [trial("hold", 0, Outcome.SUCCESS, 100.0, 1.0), NEAR]
    assert match_scores(solved, "above_floor") == [], "doing nothing solves this task"


def test_unknown_metrics_and_missing_floors_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown metric 'speed'; choose one of: .*progress"):
        match_scores(RECORDS, "speed")
    with pytest.raises(InputError, match=r"above_floor needs distorted trials of 'hold'.*none of push"):
        match_scores([NEAR], "above_floor")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record_all(RECORDS)
    return tmp_path / "results.sqlite"


def test_a_board_by_each_metric(record: Path) -> None:
    """The nearly successful agent leads by the paper's score, and not by success."""
    first = {}
    with ResultStore(record) as store:
        for metric in METRICS:
            taken = snapshots.take(store, metric=metric)
            assert taken.metric == metric
            assert taken.method.startswith(f"Trials are rated by {metric}. ")
            assert taken.name == ("leaderboard" if metric == "success" else f"leaderboard-{metric}")
            assert {board.title for board in taken.boards} >= {f"{metric.replace('_', ' ').capitalize()} by task"}
            assert snapshots.verify(store, snapshots.to_json(taken)) == ()
            mean = {row.id: row.score for row in taken.agents}
            first[metric] = max(mean, key=lambda agent: mean[agent] or 0.0)
            by_metric = {row.id: {item.metric: item.mean for item in row.metrics} for row in taken.agents}
            assert by_metric["hold"] == pytest.approx(
                {"success": 0.0, "progress": 0.0, "above_floor": 0.2 / 3, "execution": 0.5}, abs=1e-6
            )
            for agent, means in by_metric.items():
                assert mean[agent] == pytest.approx(means[metric])
    assert first == {"success": "done", "progress": "near", "above_floor": "near", "execution": "near"}


def test_the_table_by_every_metric_says_how_places_change_and_what_doing_nothing_earns() -> None:
    table = metric_table(snapshots.of_trials(RECORDS).agents)
    assert table.columns == tuple(METRICS)
    assert table.remarks == (
        "2 of 3 agents have another place by success than by execution, the paper's score: done 1, not 2; "
        "near 2, not 1.",
        "Doing nothing (hold) earns success 0.0 % (place 2), progress 0.0 % (place 3), above floor 6.7 % (place 3), "
        "execution 50.0 % (place 2).",
    )
    by_metric = {row.id: {item.metric: item for item in row.metrics} for row in table.rows}
    done = by_metric["done"]["success"]
    assert done.interval == pytest.approx(mean_interval([1, 0], ["push.0", "push.1"]), abs=1e-6)
    assert (done.mean, done.trials, done.scenes) == (0.5, 2, 2)


def test_a_metric_that_the_record_does_not_allow_is_left_out_with_its_reason() -> None:
    old = [replace(record, progress=None) for record in RECORDS if record.agent != "hold"]
    table = metric_table(snapshots.of_trials(old).agents)
    assert table.columns == ("success", "execution")
    assert [remark.split(":")[0] for remark in table.remarks[1:]] == ["No progress", "No above floor"]
    assert "needs distorted trials of hold" in table.remarks[2]
    solved = metric_table(snapshots.of_trials([trial("hold", 0, Outcome.SUCCESS, 100.0, 1.0), RECORDS[5]]).agents)
    assert [item.mean for item in solved.rows[0].metrics] == [1.0, 1.0, None, 1.0], "doing nothing solves the task"
    assert solved.remarks[0] == "Both agents have the same place by success as by execution, the paper's score."
    several = [replace(RECORDS[5], agent=name) for name in ("a", "b", "c")]
    assert metric_table(snapshots.of_trials(several).agents).remarks[0].startswith("All 3 agents have the same place")
    assert "place" not in metric_table(snapshots.of_trials(several[:1]).agents).remarks[0], "it is the only one"
    assert metric_table(()).columns == ()


def test_rate_shows_how_places_change_and_what_doing_nothing_earns(record: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["leaderboard", "show", str(record), "--metric", "success", "--all"])
    assert shown.exit_code == 0, shown.output
    assert "Trials are rated by success." in shown.output
    table = shown.output[shown.output.index("By every metric") :]
    lines = {line.split()[0]: line.split()[1:] for line in table.splitlines() if line.split()}
    assert [word for word in lines["hold"] if not word.endswith((",", "]"))][:4] == ["0.0", "(2)", "0.0", "(3)"]
    assert [word for word in lines["done"] if not word.endswith((",", "]"))][:4] == ["50.0", "(1)", "50.0", "(2)"]
    assert "2 of 3 agents have another place by success than by execution" in " ".join(shown.output.split())
    unknown = CliRunner().invoke(app, ["leaderboard", "show", str(record), "--metric", "speed"])
    assert isinstance(unknown.exception, UnknownNameError)
    (tmp_path / "matrix.csv").write_text("agent,a,b\nx,0.5,1\ny,0,1\n")
    refused = CliRunner().invoke(app, ["leaderboard", "show", str(tmp_path / "matrix.csv"), "--metric", "success"])
    assert "--metric success is for records of trials" in str(refused.exception)
