"""Boards while results come in: every run is merged into the shared record."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from postgres import new_database

from merton.leaderboard.snapshot import live
from merton.leaderboard.snapshot import store as snapshot
from merton.leaderboard.snapshot.live import CORE_SHARE, PERIOD_S, LiveBoard, LiveBoards, board_of
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from patience import LIMIT_S, until


def run_with(folder: Path, *agents: str) -> str:
    """The record of a run named like its folder; gives its path."""
    with ResultStore(folder / "results.sqlite") as store:
        store.record_all(
            TrialRecord(folder.name, agent, TestCase("pick", scene, "jpeg", 3), Outcome.FAILURE, execution=20.0 + scene)
            for agent in agents
            for scene in range(4)
        )
    return str(folder / "results.sqlite")


def next_board(boards: LiveBoards) -> LiveBoard:
    board = until(boards.poll)
    assert board.problem == board.shown.problem
    return board.shown


def slowly(board: LiveBoard) -> LiveBoard:
    """The board, after 0.3 s of processor time."""
    end_s = time.process_time() + 0.3
    while time.process_time() < end_s:
        pass
    return board


def test_the_period_grows_with_the_processor_time_of_a_board(tmp_path: Path) -> None:
    boards = LiveBoards(show=slowly)
    assert boards.period_s == PERIOD_S
    boards.changed(run := run_with(tmp_path / "one", "servo", "oracle"))
    next_board(boards)
    assert boards.period_s > 0.3 / CORE_SHARE
    boards.changed(run)
    assert boards.poll() is None
    assert not boards.is_busy
    boards.close()


def test_the_last_board_has_every_result_and_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LAST_LIMIT_S", LIMIT_S)
    boards = LiveBoards(show=slowly)
    boards.changed(run := run_with(tmp_path / "one", "servo", "oracle"))
    boards.poll()
    run_with(tmp_path / "one", "hold")
    boards.changed(run)
    board = boards.last()
    assert board is not None
    assert {line.id for line in board.shown.agents} == {"servo", "oracle", "hold"}
    assert boards.last() is None
    boards.close()


def test_runs_meet_in_a_postgresql_record_and_its_bytes_are_those_of_sqlite(tmp_path: Path) -> None:
    runs = (run_with(tmp_path / "one", "servo", "oracle"), run_with(tmp_path / "two", "servo", "hold"))
    url, file = new_database(), str(tmp_path / "lab.sqlite")
    snapshots = []
    for shared, order in ((url, runs), (file, runs[::-1])):
        board = board_of(order, shared)
        assert (board.problem, board.experiment, [line.id for line in board.agents].count("servo")) == ("", "", 1)
        assert {line.id for line in board.agents} == {"servo", "oracle", "hold"}
        assert next(line.matches for line in board.agents if line.id == "servo") == 8
        with ResultStore(shared) as store:
            snapshots.append(snapshot.to_json(snapshot.take(store)))
            assert snapshot.store_snapshot(store, snapshot.from_json(snapshots[-1])) is True
            assert snapshot.verify(store, snapshots[0]) == ()
    assert snapshots[0] == snapshots[1]


def test_without_a_shared_record_the_board_is_that_of_the_last_run(tmp_path: Path) -> None:
    runs = (run_with(tmp_path / "one", "servo"), run_with(tmp_path / "two", "hold"))
    board = board_of(runs)
    assert (board.experiment, [line.id for line in board.agents]) == ("two", ["hold"])
    assert board_of(()) == LiveBoard()


def test_a_run_that_could_not_be_merged_is_merged_later(tmp_path: Path) -> None:
    run, place = run_with(tmp_path / "one", "servo"), tmp_path / "place"
    place.write_text("in the way")
    boards = LiveBoards(str(place / "lab.sqlite"))
    boards.changed(run)
    board = next_board(boards)
    assert "could not be brought up to date" in board.problem
    assert [line.id for line in board.agents] == ["servo"]
    place.unlink()
    assert boards.close() == ""
    with ResultStore(place / "lab.sqlite", read_only=True) as store:
        assert store.experiments() == ["one"]


def test_closing_does_not_wait_for_a_board_and_merges_every_run(tmp_path: Path) -> None:
    shared = str(tmp_path / "lab.sqlite")
    boards = LiveBoards(shared)
    boards.changed(run_with(tmp_path / "one", "servo"))
    assert boards.poll() is None
    assert boards.is_busy
    boards.changed(run_with(tmp_path / "two", "hold"))
    assert boards.close() == ""
    with ResultStore(shared, read_only=True) as store:
        assert store.experiments() == ["one", "two"]
