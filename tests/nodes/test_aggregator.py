"""The aggregator: what it acknowledges survives everything, and nobody waits for its ratings."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
from merton_interfaces.msg import RatingArray
from merton_interfaces.srv import RecordTrial
from std_msgs.msg import String

from merton.experiment.run import RunDirectory
from merton.graph.supervisor import find_executable
from merton.leaderboard.snapshot import of_trials, to_json
from merton.resources import resource
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.aggregator_node import AggregatorNode
from ros import Probe, Ros, up

LONGEST_ANSWER_S = 0.1
"""What an acknowledgement may take while ratings are made."""


def trial(number: int, agent: str = "servo") -> TrialRecord:
    score = float(np.random.default_rng((number, len(agent))).integers(0, 99))
    return TrialRecord(
        "study", agent, TestCase("pick", number, "jpeg", 1 + number % 5), Outcome.FAILURE, execution=score
    )


def request(run: Path, record: TrialRecord) -> RecordTrial.Request:
    return RecordTrial.Request(run_directory=str(run), result=convert.result_message(record))


def start() -> subprocess.Popen[bytes]:
    """The node in a process of its own, as a graph starts it, in this test's ROS domain."""
    command = [str(find_executable("merton_nodes", "aggregator_node"))]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_kill_9_loses_no_acknowledged_result(tmp_path: Path) -> None:
    """Fault 12 with the real node, five times; `test_snapshot.py` kills the writer alone a hundred times.

    Whoever got no answer sends again, as experiment_node does after a restart; ratings are those of an undisturbed run.
    """
    wanted = [trial(number, agent) for number in range(40) for agent in ("servo", "expert")]
    acknowledged: list[TrialRecord] = []
    draw = np.random.default_rng(12)
    for life in range(6):
        ros = Ros()  # one that never met the node before: to the others it is alive until its lease ends
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


def test_ratings_are_there_again_after_a_restart(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record_all(trial(number, agent) for number in range(8) for agent in ("servo", "expert"))
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
    assert "expert" in boards[-1].data


def test_the_record_says_what_run_it_is_of_and_who_the_agents_are(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, resource("merton_bringup", "config/experiments/quickstart.yaml"), "mine")
    up(ros, AggregatorNode)
    assert ros.call(probe, RecordTrial, names.RECORD, request(run.path, trial(1, "expert"))).stored
    with ResultStore(run.path, read_only=True) as store:
        assert {agent.id: agent.version for agent in store.agents()}["expert"] == "describe + expert"
        assert [about.name for about in store.about_experiments() if about.id == "mine"] == ["quickstart"]


def test_every_result_comes_into_the_shared_record(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("one", "two")]
    for run in runs:
        run.mkdir()
    shared = tmp_path / "lab.sqlite"
    up(ros, AggregatorNode, record=str(shared))
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    for run, agent in zip(runs, ("servo", "expert"), strict=True):
        assert ros.call(probe, RecordTrial, names.RECORD, request(run, trial(1, agent))).stored
    ros.until(lambda: boards and "servo" in boards[-1].data and "expert" in boards[-1].data)
    with ResultStore(shared, read_only=True) as store:
        assert [record.agent for record in store.records()] == ["expert", "servo"]


def test_a_shared_record_that_is_gone_stops_nothing(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    node = up(ros, AggregatorNode, record=str(tmp_path / "file" / "lab.sqlite"))
    boards = probe.listen(String, names.LEADERBOARD, names.LATCHED_QOS)
    assert ros.call(probe, RecordTrial, names.RECORD, request(tmp_path, trial(1))).stored
    ros.until(lambda: boards)
    assert "servo" in boards[-1].data
    assert "could not be brought up to date" in node.details["shared record"]


def test_an_answer_does_not_wait_for_the_ratings_of_a_large_record(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    """Docs have the numbers for 100,000 matches."""
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record_all(trial(number, f"agent {agent}") for number in range(2_000) for agent in range(10))
    node = up(ros, AggregatorNode, record=str(tmp_path))
    ratings = probe.listen(RatingArray, names.RATINGS, names.LATCHED_QOS)
    ros.until(lambda: node.boards.is_busy)
    client = probe.create_client(RecordTrial, names.RECORD)
    ros.until(client.service_is_ready)
    waits: list[float] = []
    while not ratings and len(waits) < 5_000:
        started = time.perf_counter()
        answer = client.call_async(request(tmp_path, trial(len(waits), "new")))
        answer.add_done_callback(lambda _, started=started: waits.append(time.perf_counter() - started))
        ros.result(answer, 20.0)
    assert len(waits) > 5
    assert np.median(waits) < LONGEST_ANSWER_S  # half of them: other programs on this machine make some wait, too
