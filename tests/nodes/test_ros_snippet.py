"""The client of docs/lab/ros.md: it says which trial it ran, and why there are no scores if there are none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from merton_interfaces.action import RunTrial
from merton_interfaces.msg import TrialResult
from rclpy.action import ActionServer, GoalResponse

from merton_nodes.ros import names, trial_messages
from patience import stretched
from ros import Probe, Ros

PAGE = Path(__file__).parents[2] / "docs" / "lab" / "ros.md"
SCORED = TrialResult(outcome=TrialResult.SUCCESS, cognition=0.25, decision=0.5, execution=100.0)


@pytest.mark.parametrize(
    ("answer", "ends", "result", "code", "said"),
    [
        (GoalResponse.ACCEPT, "succeed", SCORED, 0, "success: cognition 0.25, decision 0.50, execution 100.0"),
        (GoalResponse.REJECT, "succeed", SCORED, 1, "experiment_node refused the goal: it is busy with another trial"),
        (GoalResponse.ACCEPT, "abort", TrialResult(), 1, "the trial has no scores: "),
        (
            GoalResponse.ACCEPT,
            "succeed",
            trial_messages.fault_message(400, "no node offers vla/predict"),
            1,
            "the trial has no scores: no node offers vla/predict",
        ),
    ],
    ids=["scored", "busy", "aborted", "fault"],
)
def test_it_says_why_there_are_no_scores(
    ros: Ros, probe: Probe, answer: GoalResponse, ends: str, result: TrialResult, code: int, said: str
) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None

    def execute(goal: Any) -> RunTrial.Result:
        getattr(goal, ends)()
        return RunTrial.Result(result=result)

    server = ActionServer(probe, RunTrial, names.RUN_TRIAL, execute, goal_callback=lambda request: answer)
    command = [sys.executable, "-c", found.group(1)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        ros.until(lambda: client.poll() is not None, 60)
        assert client.stdout is not None
        assert said in client.stdout.read()
        assert client.returncode == code
    finally:
        client.kill()
        client.communicate(timeout=stretched(10))
        server.destroy()
