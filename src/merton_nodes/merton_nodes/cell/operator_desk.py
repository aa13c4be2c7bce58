"""Requests to the person at the robot: to judge whether a task was done, or to arrange a scene."""

from __future__ import annotations

import threading

from merton_interfaces.msg import ConfirmationRequest
from merton_interfaces.srv import ConfirmSuccess
from rclpy.node import Node

from merton.experiment.ports import Judgement
from merton_nodes.ros import names

VERDICTS = {
    ConfirmSuccess.Request.SUCCESS: True,
    ConfirmSuccess.Request.FAILURE: False,
    ConfirmSuccess.Request.UNDECIDABLE: None,
}


class OperatorDesk:
    """A latched topic with the trial (or the scene) that waits, and the service through which the operator answers.

    `ask` is called from a worker thread while an executor spins the node.

    Args:
        node: gets the topic and the service.
        limit_s: how long the operator may take [s].
        topic, service: their names.
    """

    def __init__(
        self, node: Node, limit_s: float, topic: str = names.AWAITING_CONFIRMATION, service: str = names.CONFIRM
    ) -> None:
        self.node, self.limit_s = node, limit_s
        self.lock = threading.Lock()
        self.trial_id = ""
        self.judgement: Judgement | None = None
        self.answered = threading.Event()
        self.requests = node.create_publisher(ConfirmationRequest, topic, names.LATCHED_QOS)
        self.service = node.create_service(ConfirmSuccess, service, self.on_confirm)

    def ask(self, trial_id: str, instruction: str) -> Judgement:
        """The operator's judgement of a trial; one without a judge after `limit_s`."""
        with self.lock:
            self.trial_id, self.judgement = trial_id, None
            self.answered.clear()
        self.publish(trial_id, instruction, self.limit_s)
        self.answered.wait(self.limit_s)
        with self.lock:
            self.trial_id, judgement = "", self.judgement
        self.publish()
        return judgement or Judgement(None, "", f"no operator judged the trial within {self.limit_s:g} s")

    def on_confirm(self, request: ConfirmSuccess.Request, response: ConfirmSuccess.Response) -> ConfirmSuccess.Response:
        """Service: the operator's answer; refused if it is not about the trial that waits, or incomplete."""
        with self.lock:
            if not self.trial_id or request.trial_id != self.trial_id:
                waiting = f"{self.trial_id!r} does" if self.trial_id else "none does"
                response.message = f"trial {request.trial_id!r} does not wait for a judgement, {waiting}"
            elif request.verdict not in VERDICTS:
                response.message = f"unknown verdict {request.verdict}; choose one of: 0 unclear, 1 success, 2 failure"
            elif not request.confirmed_by.strip():
                response.message = "confirmed_by must name the judge"
            elif self.judgement is not None:
                response.message = f"{self.judgement.judge} has judged it already"
            else:
                success, judge = VERDICTS[request.verdict], request.confirmed_by.strip()
                message = f"{judge} could not tell whether the task was done" if success is None else ""
                self.judgement = Judgement(success, judge, message)
                self.answered.set()
                response.accepted, response.message = True, "noted"
        return response

    def publish(self, trial_id: str = "", instruction: str = "", limit_s: float = 0.0) -> None:
        """Publish the trial that waits; none if empty."""
        message = ConfirmationRequest(trial_id=trial_id, instruction=instruction, limit=limit_s)
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.requests.publish(message)
