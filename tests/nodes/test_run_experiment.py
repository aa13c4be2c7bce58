"""The client of the action that runs an experiment."""

from __future__ import annotations

import argparse
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from merton_interfaces.action import RunExperiment, RunTrial
from merton_interfaces.msg import TrialEvidence
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from rich.console import Console
from rich.progress import Progress

from merton.errors import InputError
from merton_nodes.experiment import run_experiment
from merton_nodes.experiment.experiment_node import one_trial
from merton_nodes.experiment.run_experiment import Client
from merton_nodes.ros import names
from ros import Probe, Ros


def ended(node: Client, tmp_path: Path, recorded: bool = False) -> int:
    arguments = argparse.Namespace(
        run_directory=tmp_path, resume=False, recorded=recorded, logs=None, nodes=[], loading=""
    )
    return run_experiment.run(node, arguments, threading.current_thread())


@pytest.mark.parametrize("answer", [GoalResponse.ACCEPT, GoalResponse.REJECT])
def test_a_goal_whose_answer_is_lost_is_sent_again(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, answer: GoalResponse
) -> None:
    """As on a busy machine while the nodes start: the experiment runs, but the answer does not reach the client."""
    monkeypatch.setattr(run_experiment, "RESEND_PERIOD_S", 1.0)
    begun: list[str] = []

    def execute(goal: Any) -> RunExperiment.Result:
        begun.append(goal.request.run_directory)
        goal.succeed()
        return RunExperiment.Result(trials=7)

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute, goal_callback=lambda request: answer)
    node = ros.add(Client)
    send = node.client.send_goal_async

    def lossy(*arguments: Any) -> Future:
        node.client.send_goal_async = send
        send(*arguments)
        return Future()

    node.client.send_goal_async = lossy
    try:
        code = ended(node, tmp_path)
    finally:
        server.destroy()
    if answer == GoalResponse.ACCEPT:
        assert (code, begun, node.result.trials) == (0, [str(tmp_path)], 7), "run once, and answered"
    else:
        assert (code, begun) == (1, [])
        assert "refused the goal" in capsys.readouterr().err


@pytest.mark.parametrize("comes", [True, False])
def test_a_recorded_run_begins_when_its_recorder_subscribes(
    ros: Ros, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, comes: bool
) -> None:
    """Or after a timeout without one: a run does not depend on its recorder."""
    if not comes:
        monkeypatch.setattr(run_experiment, "RECORDER_LIMIT_S", 0.2)
    subscribers: list[int] = []

    def execute(goal: Any) -> RunExperiment.Result:
        subscribers.append(probe.count_subscribers(names.TRIAL_EVIDENCE))
        goal.succeed()
        return RunExperiment.Result()

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute)
    node = ros.add(Client)
    counted: list[str] = []

    def count(topic: str) -> int:
        counted.append(topic)
        if comes and len(counted) == 3:
            probe.listen(TrialEvidence, names.TRIAL_EVIDENCE, names.RELIABLE_QOS)
        return Client.count_subscribers(node, topic)

    monkeypatch.setattr(node, "count_subscribers", count)
    try:
        assert ended(node, tmp_path, recorded=True) == 0
    finally:
        server.destroy()
    assert subscribers == [int(comes)]
    assert ("no recorder listens after 0.2 s" in capsys.readouterr().err) == (not comes)


def test_an_interrupted_client_cancels_its_goal(ros: Ros, probe: Probe) -> None:
    cancelled = Future()

    async def execute(goal: Any) -> RunExperiment.Result:
        await cancelled
        goal.canceled()
        return RunExperiment.Result()

    def on_cancel(_: Any) -> CancelResponse:
        cancelled.set_result(None)
        return CancelResponse.ACCEPT

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute, cancel_callback=on_cancel)
    node = ros.add(Client)
    try:
        ros.until(node.client.server_is_ready)
        node.sender(RunExperiment.Goal(), Progress(disable=True))()
        ros.until(lambda: node.goal)
        node.cancel()
        ros.until(node.finished.is_set)
    finally:
        server.destroy()
    assert node.status == GoalStatus.STATUS_CANCELED


def test_the_client_says_why_a_trial_is_repeated(ros: Ros, probe: Probe) -> None:
    goals, over = [], Future()

    async def execute(goal: Any) -> RunExperiment.Result:
        goals.append(goal)
        await over
        goal.succeed()
        return RunExperiment.Result()

    server = ActionServer(probe, RunExperiment, names.RUN_EXPERIMENT, execute)
    node, screen = ros.add(Client), StringIO()
    try:
        ros.until(node.client.server_is_ready)
        node.sender(RunExperiment.Goal(), Progress(console=Console(file=screen, width=200)))()
        ros.until(lambda: node.goal and goals)
        why = "servo.reach.0.jpeg.5: arm/execute did not answer within 376 s; trying again (1 of 2)"
        goals[0].publish_feedback(RunExperiment.Feedback(stage=why))
        ros.until(lambda: why in screen.getvalue())
        ros.executor.create_task(over.set_result, None)
        ros.until(node.finished.is_set)
    finally:
        server.destroy()


@pytest.mark.parametrize(
    ("goal", "sentence"), [({}, "^vla_id is empty"), ({"vla_id": "servo", "task": "reach", "agent_id": "A B"}, "^id: ")]
)
def test_the_error_of_a_trial_names_the_wrong_field(goal: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        one_trial(RunTrial.Goal(**goal))
