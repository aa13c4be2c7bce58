"""The aggregator: acknowledged results survive every crash, and no acknowledgement waits for ratings."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import Rating, RatingArray
from merton_interfaces.srv import RecordTrial
from std_msgs.msg import String

from merton.experiment.run import RunDirectory
from merton.files import resource
from merton.graph.supervisor import find_executable
from merton.leaderboard.snapshot import live
from merton.leaderboard.snapshot.live import LiveBoard, RatedPlayer
from merton.leaderboard.snapshot.store import of_trials, to_json
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_nodes.experiment import aggregator_node
from merton_nodes.experiment.aggregator_node import AggregatorNode, messages
from merton_nodes.ros import names, trial_messages
from ros import Probe, Ros, up


def trial(number: int, agent: str = "servo") -> TrialRecord:
    score = float(np.random.default_rng((number, len(agent))).integers(0, 99))
    case, succeeds = TestCase("pick", number, "jpeg", 1 + number % 5), score > 50
    outcome = Outcome.SUCCESS if succeeds else Outcome.FAILURE
    return TrialRecord("study", agent, case, outcome, execution=100.0 if succeeds else score)


def request(run: Path, record: TrialRecord) -> RecordTrial.Request:
    return RecordTrial.Request(run_directory=str(run), result=trial_messages.result_message(record))


def start() -> subprocess.Popen[bytes]:
    """The node in a process of its own, as a graph starts it, in this test's ROS domain."""
    command = [str(find_executable("merton_nodes", "aggregator_node"))]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_kill_9_loses_no_acknowledged_result(tmp_path: Path) -> None:
    """Fault 12 with the real node, five times; `test_snapshot.py` kills the writer alone a hundred times.

    A result without an acknowledgement is sent again, as experiment_node does after a restart; the ratings are those of
    an undisturbed run.
    """
    wanted = [trial(number, agent) for number in range(40) for agent in ("servo", "oracle")]
    acknowledged: list[TrialRecord] = []
    draw = np.random.default_rng(12)
    for life in range(6):
        ros = Ros()  # new: an earlier participant takes the killed node for alive until its lease ends
        node = start()
        try:
            client = ros.add(Probe).create_client(RecordTrial, names.RECORD)
            ros.until(client.service_is_ready)
            left = wanted[len(acknowledged) :]
            until_kill = int(draw.integers(5, 14)) if life < 5 else len(left)
            for record in left[:until_kill]:
                assert ros.ask(client, request(tmp_path, record)).error_code == 0
                acknowledged.append(record)
            if life < 5:  # die while the next ones are written
                for record in left[until_kill : until_kill + 4]:
                    client.call_async(request(tmp_path, record))
        finally:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()
            ros.close()
        with ResultStore(tmp_path, read_only=True) as store:
            stored = store.records("study")
        assert set(acknowledged) <= set(stored) <= set(wanted)
    assert to_json(of_trials(stored)) == to_json(of_trials(wanted))


def test_ratings_are_published_again_after_a_restart(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record_all(trial(number, agent) for number in range(8) for agent in ("servo", "oracle"))
        records = store.records("study")
    ratings = probe.listen(RatingArray, names.RATINGS, names.LATCHED_QOS)
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    up(ros, AggregatorNode, record=str(tmp_path))
    ros.until(lambda: ratings and boards)
    taken = of_trials(records)
    assert ratings[-1].experiment_id == "study"
    sent = {(rating.kind, rating.id): rating.mean for rating in ratings[-1].ratings}
    expected = {(0, row.id): row.likelihood.mean for row in taken.agents if row.likelihood}
    expected |= {(1, row.id): row.likelihood.mean for row in taken.cases if row.likelihood}
    assert sent == expected
    assert "oracle" in boards[-1].data


def test_the_record_names_its_experiment_and_the_versions_of_its_agents(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, resource("merton_bringup", "config/experiments/quickstart.yaml"), "mine")
    up(ros, AggregatorNode)
    assert ros.call(probe, RecordTrial, names.RECORD, request(run.path, trial(1, "oracle"))).stored
    with ResultStore(run.path, read_only=True) as store:
        assert {agent.id: agent.version for agent in store.agents()}["oracle"] == "describe + oracle"
        assert [about.name for about in store.experiment_records() if about.id == "mine"] == ["quickstart"]


def test_every_result_is_merged_into_the_shared_record(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("one", "two")]
    for run in runs:
        run.mkdir()
    shared = tmp_path / "lab.sqlite"
    up(ros, AggregatorNode, record=str(shared))
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    for run, agent in zip(runs, ("servo", "oracle"), strict=True):
        assert ros.call(probe, RecordTrial, names.RECORD, request(run, trial(1, agent))).stored
    ros.until(lambda: boards and "servo" in boards[-1].data and "oracle" in boards[-1].data)
    with ResultStore(shared, read_only=True) as store:
        assert [record.agent for record in store.records()] == ["oracle", "servo"]


def test_results_are_stored_without_the_shared_record(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    node = up(ros, AggregatorNode, record=str(tmp_path / "file" / "lab.sqlite"))
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    assert ros.call(probe, RecordTrial, names.RECORD, request(tmp_path, trial(1))).stored
    ros.until(lambda: boards)
    assert "servo" in boards[-1].data
    assert "could not be brought up to date" in node.details["shared record"]


def test_the_board_of_all_results_is_published_when_the_node_ends(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAST_LIMIT_S", 60.0)
    node = up(ros, AggregatorNode)
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    ros.until(lambda: node.count_subscribers(names.LEADERBOARD))
    for number, agent in enumerate(("servo", "oracle", "hold")):
        assert ros.call(probe, RecordTrial, names.RECORD, request(tmp_path, trial(number, agent))).stored
    node.closing.close()
    ros.until(lambda: boards and all(agent in boards[-1].data for agent in ("servo", "oracle", "hold")))


def delayed_messages(board: LiveBoard, sec: int, nanosec: int) -> Any:
    """`messages` of an invented board, once the file exists; runs in the process that rates."""
    while not Path(os.environ["MERTON_TEST_GO"]).exists():
        time.sleep(0.01)
    lines = (RatedPlayer("servo", 1500.0, 30.0, 3),), (RatedPlayer("pick.1.jpeg.2", 1600.0, 40.0, 1),)
    return messages(LiveBoard("study", *lines, "the board"), sec, nanosec)


def test_an_acknowledgement_waits_neither_for_ratings_nor_for_their_messages(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that rates and makes the messages is delayed until ten results have been acknowledged.

    docs/use/leaderboards.md has the time of an acknowledgement while 100,000 matches are rated.
    """
    monkeypatch.setenv("MERTON_TEST_GO", str(tmp_path / "go"))
    monkeypatch.setattr(aggregator_node, "messages", delayed_messages)
    node = up(ros, AggregatorNode)
    ratings = probe.listen(RatingArray, names.RATINGS, names.LATCHED_QOS)
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    client = probe.create_client(RecordTrial, names.RECORD)
    ros.until(client.service_is_ready)
    assert ros.ask(client, request(tmp_path, trial(0))).stored
    ros.until(lambda: node.boards.is_busy)
    for number in range(1, 11):
        assert ros.result(client.call_async(request(tmp_path, trial(number)))).stored
    assert node.boards.is_busy
    assert not ratings
    (tmp_path / "go").touch()
    ros.until(lambda: ratings and boards)
    assert [(item.kind, item.id, item.mean, item.matches) for item in ratings[0].ratings] == [
        (Rating.AGENT, "servo", 1500.0, 3),
        (Rating.TEST_CASE, "pick.1.jpeg.2", 1600.0, 1),
    ]
    assert ratings[0].header.stamp.sec > 0
    assert boards[0].data == "the board"
