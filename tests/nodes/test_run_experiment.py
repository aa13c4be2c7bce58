"""The client that has an experiment run."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import Any

import pytest
from merton_interfaces.action import RunExperiment
from merton_interfaces.msg import TrialEvidence
from rclpy.action import ActionServer, GoalResponse
from rclpy.task import Future

from merton_nodes import names, run_experiment
from merton_nodes.run_experiment import Client
from ros import Probe, Ros


def ended(node: Client, tmp_path: Path, recorded: bool = False) -> int:
    arguments = argparse.Namespace(run_directory=tmp_path, resume=False, recorded=recorded)
    return run_experiment.run(node, arguments, threading.current_thread())


@pytest.mark.parametrize("answer", [GoalResponse.ACCEPT, GoalResponse.REJECT])
def test_an_answer_that_gets_lost_is_asked_for_again(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, answer: GoalResponse
) -> None:
    """As on a busy machine while the nodes start: the experiment runs, and its client does not hear of it."""
    monkeypatch.setattr(run_experiment, "ASK_AGAIN_S", 1.0)
    begun: list[str] = []

    def execute(goal: Any) -> RunExperiment.Result:
        begun.append(goal.request.run_directory)
        goal.succeed()
        return RunExperiment.Result(trials=7)

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute, goal_callback=lambda request: answer)
    node = ros.add(Client)
    send = node.client.send_goal_async

    def unheard(*arguments: Any) -> Future:
        node.client.send_goal_async = send
        send(*arguments)
        return Future()

    node.client.send_goal_async = unheard
    try:
        code = ended(node, tmp_path)
    finally:
        server.destroy()
    if answer == GoalResponse.ACCEPT:
        assert (code, begun, node.result.trials) == (0, [str(tmp_path)], 7), "run once, and heard"
    else:
        assert (code, begun) == (1, [])
        assert "refused the goal" in capsys.readouterr().err


@pytest.mark.parametrize("comes", [True, False])
def test_a_recorded_run_begins_when_its_recorder_listens(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, comes: bool
) -> None:
    """And after a while without one: the recorder's death does not cost the run."""
    if not comes:
        monkeypatch.setattr(run_experiment, "RECORDER_LIMIT_S", 0.2)
    heard: list[int] = []

    def execute(goal: Any) -> RunExperiment.Result:
        heard.append(probe.count_subscribers(names.TRIAL_EVIDENCE))
        goal.succeed()
        return RunExperiment.Result()

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute)
    node = ros.add(Client)
    asked: list[str] = []

    def count(topic: str) -> int:
        asked.append(topic)
        if comes and len(asked) == 3:
            probe.listen(TrialEvidence, names.TRIAL_EVIDENCE, names.RELIABLE_QOS)
        return Client.count_subscribers(node, topic)

    monkeypatch.setattr(node, "count_subscribers", count)
    try:
        assert ended(node, tmp_path, recorded=True) == 0
    finally:
        server.destroy()
    assert heard == [int(comes)]
    assert ("no recorder listens after 0.2 s" in capsys.readouterr().err) == (not comes)
