"""The drop on boards: the report's own number, for every order of the trials, or a reason in its place."""

from __future__ import annotations

import csv
import hashlib
import io
import random
from datetime import datetime, timezone
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from merton.cli.main import app
from merton.leaderboard.serve import create_app
from merton.leaderboard.site import write_site
from merton.leaderboard.site.downloads import write_downloads
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.contents import AgentRow, Drop
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.store import of_trials, take, to_json
from merton.leaderboard.snapshot.terminal import render_snapshot
from merton.leaderboard.submissions import rules
from merton.leaderboard.submissions.packing import make_submission
from merton.results.export import DROPS, export
from merton.results.losses import by_agent
from merton.results.records import ForeignScore, Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore

FIRST_WINDOW = datetime(2024, 1, 2, tzinfo=timezone.utc)


def trial(agent: str, seed: int, level: int, does: bool, task: str = "pick", experiment: str = "e") -> TrialRecord:
    case = TestCase(task, seed, "jpeg" if level else "reference", level)
    outcome = Outcome.SUCCESS if does else Outcome.FAILURE
    return TrialRecord(experiment, agent, case, outcome, 0.5, 0.5, 100.0 if does else 40.0, progress=float(does))


def study(scenes: int = 4) -> list[TrialRecord]:
    """The oracle does all, servo loses half of what it does undistorted, hold does nothing."""
    does = {"oracle": lambda seed, level: True, "servo": lambda seed, level: seed and (not level or seed % 2)}
    return [
        trial(agent, seed, level, bool(does.get(agent, lambda seed, level: False)(seed, level)), task)
        for agent in ("oracle", "servo", "hold")
        for task in ("pick", "push")
        for seed in range(scenes)
        for level in (0, 3, 5)
    ]


def row(records: list[TrialRecord], agent: str, **more: list[ForeignScore]) -> AgentRow:
    return next(item for item in compute(Inputs(records, **more), "test", 1, checks=False).agents if item.id == agent)


def test_the_drop_of_a_board_is_that_of_the_report() -> None:
    records = study()
    losses = by_agent(records)
    for agent in of_trials(records).agents:
        loss, drop = losses[agent.id], agent.drop
        assert drop is not None
        assert (drop.undistorted, drop.distorted) == (loss.before, loss.after)
        assert drop.points == pytest.approx(loss.points, abs=1e-6)
        assert drop.interval == pytest.approx(loss.interval, abs=1e-6)
        assert (drop.trials, drop.scenes, agent.no_drop) == (16, 8, "")
    servo = next(item for item in of_trials(records).agents if item.id == "servo").drop
    assert servo is not None
    assert (servo.undistorted, servo.distorted, servo.points) == (0.75, 0.5, 0.25)


def test_the_order_of_trials_that_were_run_again_changes_no_byte() -> None:
    """Two experiments with other outcomes of the same cases: a distorted trial is paired with their mean."""
    again = [trial("servo", seed, 0, not seed, experiment="later") for seed in range(4)]
    records = [*study(), *again]
    expected = to_json(of_trials(records))
    for order in range(3):
        random.Random(order).shuffle(records)
        assert to_json(of_trials(records)) == expected


@pytest.mark.parametrize(
    ("records", "scores", "reason"),
    [
        ([trial("a", 0, 3, True)], [], "no undistorted trials"),
        ([trial("a", 0, 0, True)], [], "no distorted trials"),
        ([trial("a", 0, 0, True), trial("a", 1, 3, True)], [], "undistorted trials of other scenes"),
        ([], [ForeignScore("m", "a", "m/x", 0.5)], "no undistorted trials"),
    ],
    ids=["distorted", "undistorted", "other scenes", "imported"],
)
def test_an_agent_without_a_drop_says_why(
    records: list[TrialRecord], scores: list[ForeignScore], reason: str, tmp_path: Path
) -> None:
    found = row(records, "a", scores=scores)
    assert (found.drop, found.no_drop) == (None, reason)
    board = compute(Inputs(records, scores), "test", 1, checks=False)
    assert (reason in render_snapshot(board)) == bool(records), "a matrix alone has no column of drops"
    write_downloads(board, tmp_path)
    (line,) = csv.DictReader(io.StringIO((tmp_path / "board.csv").read_text()))
    assert (line["drop"], line["no_drop"]) == ("", reason)


def test_the_terminal_shows_one_table_with_the_drop_and_one_line_of_remarks() -> None:
    lines = render_snapshot(of_trials(study())).rstrip().splitlines()
    headings = " ".join(lines[2].split() + lines[3].split())
    assert headings.index("undistorted -> distorted") < headings.index("[95 %]") < headings.index("scenes")
    servo = next(line.split() for line in lines if " servo " in line)
    assert servo[servo.index("->") - 1 : servo.index("->") + 3] == ["75", "->", "50", "25"]
    assert sum("(floor)" in line for line in lines) == 1
    assert lines[-1] == "3 remarks and more tables: --all"
    assert sum("#" in line for line in lines) == 1, "one table"


def test_one_agent_has_one_total_on_all_boards_of_trials() -> None:
    board = of_trials([*study(), *(trial(agent, 9, 3, True, "push") for agent in ("oracle", "servo", "hold"))])
    totals = {table.name: [line.total.score for line in table.rows] for table in board.boards}
    assert set(totals) == {"task", "distortion", "level"}
    assert totals["task"] == totals["distortion"] == totals["level"]
    by_level = next(table for table in board.boards if table.name == "level")
    assert by_level.columns == ("undistorted", "level 3", "level 5")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record with a submission on the board, whose window began long ago."""
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record_all(study(3))
        (tmp_path / "mine.zip").write_bytes(make_submission(store, "servo", "Acme", "1.0", "none"))
        rules.submit(store.database, tmp_path / "mine.zip", now=FIRST_WINDOW)
    return tmp_path / "r.sqlite"


def test_a_submission_brings_no_mean_score_onto_a_board_of_success(record: Path, tmp_path: Path) -> None:
    """It has a drop and no trials: its page leads with the drop, and pooled success is nowhere."""
    with ResultStore(record, read_only=True) as store:
        index = write_site(take(store), tmp_path / "site", store)
    assert "mean score" not in index.read_text()
    (page,) = (index.parent / "agents").glob("servo-*.html")
    text = page.read_text()
    assert "the drop is over" in text
    assert '<th scope="row">mean score' not in text
    assert "over the distorted cases it met" in text
    assert "all trials</th>" not in text


def test_a_record_without_distorted_trials_speaks_of_none(tmp_path: Path) -> None:
    records = [item for item in study() if item.case.is_reference]
    board = of_trials(records)
    assert {table.name: table.note for table in board.boards} == dict.fromkeys(
        ("task", "distortion", "level"), "The total is the mean of all undistorted trials: none is distorted."
    )
    folder = write_site(board, tmp_path / "site").parent
    assert "distorted cameras" not in (folder / "index.html").read_text()
    assert "of distorted trials" not in (folder / "boards" / "task.html").read_text()
    page = (folder / "agents" / "servo.html").read_text()
    assert "all distorted" not in page
    assert 'aria-label="Scores by task"' in page
    assert "By task: mean score, 0 to 100, over the cases it met" in page


def test_a_matrix_alone_has_no_word_of_a_drop(tmp_path: Path) -> None:
    board = compute(Inputs([], [ForeignScore("m", agent, "m/x", 0.5) for agent in ("a", "b")]), "test", 1, checks=False)
    assert "undistorted" not in render_snapshot(board)
    index = write_site(board, tmp_path / "site")
    assert "drop, points" not in index.read_text()
    page = (index.parent / "agents" / "a.html").read_text()
    assert "No drop of success" not in page
    assert "over the cases it met" in page


@pytest.mark.parametrize("metric", ["success", "execution"])
def test_show_build_and_serve_give_the_same_bytes(record: Path, tmp_path: Path, metric: str) -> None:
    def command(*words: str) -> None:
        done = CliRunner().invoke(app, ["leaderboard", *words, "--metric", metric])
        assert done.exit_code == 0, done.output

    command("show", str(record), "--out", str(tmp_path / "shown.json"))
    command("build", str(record), "--out", str(tmp_path / "site"))
    shown = (tmp_path / "shown.json").read_bytes()
    asking = TestClient(create_app(record, metric=metric), base_url="http://localhost:8080")
    assert (tmp_path / "site" / "board.json").read_bytes() == shown
    assert asking.get("/board.json").content == shown
    answer = asking.get("/api/board").json()
    assert (answer["snapshot_sha256"], answer["metric"]) == (hashlib.sha256(shown).hexdigest(), metric)
    drops = {agent["id"]: agent["drop"] for agent in answer["agents"]}
    assert drops["servo 1.0 (Acme)"] == drops["servo"] is not None
    assert set(drops["servo"]) == set(Drop.__dataclass_fields__)


def test_the_drops_of_a_record_are_a_table_of_an_export(record: Path, tmp_path: Path) -> None:
    with ResultStore(record) as store:
        assert export(store, tmp_path / "drops.csv", "drops") == 3
        losses = by_agent(store.records())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "drops.csv").read_text())))
    assert list(rows[0]) == list(DROPS)
    assert {line["agent"]: float(line["drop"]) for line in rows} == {name: loss.points for name, loss in losses.items()}
