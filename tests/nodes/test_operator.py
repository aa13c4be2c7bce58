"""The person at the robot judges a trial, over ROS; the rest of the world is a stand-in."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import RunTrial
from merton_interfaces.msg import ConfirmationRequest, TrialResult
from merton_interfaces.srv import ConfirmSuccess
from rclpy.parameter import Parameter

from merton.cognition.models.base import Answer
from merton.experiment.ports import CellView, Execution
from merton.experiment.runner import Runner
from merton.experiment.scoring import score
from merton.experiment.trial import TrialReport
from merton.world.action import checked_chunk
from merton_nodes.experiment.experiment_node import ExperimentNode, one_trial
from merton_nodes.ros import names
from ros import Probe, Ros, up

SUCCESS, FAILURE, UNDECIDABLE = (
    ConfirmSuccess.Request.SUCCESS,
    ConfirmSuccess.Request.FAILURE,
    ConfirmSuccess.Request.UNDECIDABLE,
)
TRIAL = "hold.reach.0.reference.0"


def stand_in(ports: Any) -> None:
    """A world in which nothing happens, and whose cell cannot judge the task."""
    views = {
        name: SimpleNamespace(color=np.zeros((4, 4, 3), np.uint8), depth_m=None) for name in ("top", "wrist", "side")
    }
    view = CellView(0, views, views, np.zeros(6), np.eye(4), 1.0, False)
    ports.set_distortion = lambda name, level, seed: None
    ports.reset = lambda task, scene: "reach the red cube"
    ports.view = lambda color=None, depth=None: view
    ports.answer = lambda model, image, question, side: Answer("nothing")
    ports.act = lambda *arguments: checked_chunk([[0, 0, 0, 0, 0, 0, 1.0]], 0.2, done=True)
    ports.execute = lambda chunk, view, stop_rule: Execution(1, ())
    ports.score = score


class Loop:
    """An experiment_node whose trials wait for an operator."""

    def __init__(self, ros: Ros, probe: Probe, limit_s: float) -> None:
        self.ros, self.probe = ros, probe
        ros.action_client(probe, RunTrial, names.RUN_TRIAL)
        self.waiting = probe.listen(ConfirmationRequest, names.AWAITING_CONFIRMATION, names.LATCHED_QOS)
        self.service = probe.create_client(ConfirmSuccess, names.CONFIRM)
        self.node = up(ros, ExperimentNode, success="operator", confirmation_limit_s=limit_s)
        stand_in(self.node.ports)
        ros.until(self.service.service_is_ready)

    def start(self) -> list[TrialResult]:
        """A trial of an agent that does nothing; its result appears in the list."""
        results: list[TrialResult] = []
        goal = RunTrial.Goal(vla_id="hold", task="reach", max_steps=1)

        def run() -> None:
            results.append(self.ros.act(self.probe, RunTrial, names.RUN_TRIAL, goal).result)

        self.waiting.clear()
        threading.Thread(target=run, daemon=True).start()
        return results

    def asked(self) -> ConfirmationRequest:
        """What the operator is asked."""
        return self.ros.until(lambda: next((request for request in self.waiting if request.trial_id), None))

    def confirm(self, verdict: int, trial_id: str = TRIAL, who: str = "Ada") -> ConfirmSuccess.Response:
        request = ConfirmSuccess.Request(trial_id=trial_id, verdict=verdict, confirmed_by=who)
        return self.ros.result(self.service.call_async(request))


def test_the_operator_judges_and_only_the_trial_that_waits(ros: Ros, probe: Probe) -> None:
    loop = Loop(ros, probe, limit_s=60.0)
    assert not loop.confirm(SUCCESS).accepted, "nothing waits yet"
    results = loop.start()
    request = loop.asked()
    assert (request.trial_id, request.instruction, request.limit) == (TRIAL, "reach the red cube", 60.0)
    wrong = loop.confirm(SUCCESS, trial_id="hold.reach.1.reference.0")
    assert (wrong.accepted, f"{TRIAL!r} does" in wrong.message) == (False, True)
    assert "confirmed_by" in loop.confirm(SUCCESS, who=" ").message
    assert "choose one of" in loop.confirm(9).message
    assert not results
    assert loop.confirm(SUCCESS).accepted
    result = ros.until(lambda: results)[0]
    assert (result.outcome, result.execution) == (TrialResult.SUCCESS, 100.0), "the cell would have said otherwise"
    ros.until(lambda: loop.waiting[-1].trial_id == "")
    assert not loop.confirm(FAILURE).accepted, "too late"


def test_the_file_of_a_trial_names_its_judge(ros: Ros, probe: Probe) -> None:
    loop = Loop(ros, probe, limit_s=60.0)
    spec, trial = one_trial(RunTrial.Goal(vla_id="hold", task="reach", max_steps=1))
    reports: list[TrialReport] = []
    runner = Runner(spec, "e", loop.node.ports)
    threading.Thread(target=lambda: reports.append(runner.run(trial)), daemon=True).start()
    assert loop.confirm(SUCCESS, trial_id=loop.asked().trial_id).accepted
    details = ros.until(lambda: reports)[0].details
    assert (details["success"], details["judged_by"]) == (True, "Ada")


def test_an_undecidable_trial_has_no_score(ros: Ros, probe: Probe) -> None:
    loop = Loop(ros, probe, limit_s=60.0)
    for verdict, outcome in ((FAILURE, TrialResult.FAILURE), (UNDECIDABLE, TrialResult.INFRASTRUCTURE)):
        results = loop.start()
        loop.asked()
        assert loop.confirm(verdict).accepted
        result = ros.until(lambda results=results: results)[0]
        assert result.outcome == outcome
    assert (result.error_code, result.error_msg) == (403, "Ada could not tell whether the task was done")
    assert np.isnan(result.execution)


def test_an_absent_operator_costs_the_trial_and_not_the_agent(ros: Ros, probe: Probe) -> None:
    results = Loop(ros, probe, limit_s=0.3).start()
    result = ros.until(lambda: results)[0]
    assert result.outcome == TrialResult.INFRASTRUCTURE
    assert (result.error_code, result.error_msg) == (403, "no operator judged the trial within 0.3 s")
    assert np.isnan(result.execution)


def test_a_judge_that_does_not_exist_is_named(ros: Ros, capfd: pytest.CaptureFixture[str]) -> None:
    node = ros.add(ExperimentNode, parameter_overrides=[Parameter("success", value="sage")])
    assert node.trigger_configure().name == "FAILURE"
    assert "choose one of: cell, operator" in capfd.readouterr().err
