"""The buttons of the operator's page as service calls, and whether the stop path is alive."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from merton_interfaces.srv import ConfirmSuccess
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from merton.errors import InfrastructureError
from merton.execution.robots.watchdog import CHECKS_PER_TIMEOUT, Watchdog
from merton.monitor.buttons import PressReply
from merton_nodes.monitor.monitor_recorder import Recorder
from merton_nodes.ros import names
from merton_nodes.ros.runtime import Spinner

SILENT_S = 0.5
"""Silence after which the heartbeat, 20 times a second, counts as lost [s]."""
VERDICTS = {
    "success": ConfirmSuccess.Request.SUCCESS,
    "failure": ConfirmSuccess.Request.FAILURE,
    "unclear": ConfirmSuccess.Request.UNDECIDABLE,
}


class ServiceControls(Node):
    """Sends requests from the caller's thread; another thread, with an executor, only receives the answers.

    So neither the conversion of an image nor its way to a browser can delay a stop or the check of the heartbeat.

    Args:
        context: of this node.
        on_stop_path: called several times a second, from that thread, with whether the stop path is alive.
        recorder: begins and ends recordings.
    """

    def __init__(self, context: Context, on_stop_path: Callable[[bool], None], recorder: Recorder) -> None:
        super().__init__("monitor_controls", context=context)
        self.stop_client = self.create_client(Trigger, names.STOP)
        self.reset_client = self.create_client(Trigger, names.RESET_STOP)
        self.arranged_client = self.create_client(ConfirmSuccess, names.ARRANGED)
        self.confirm_client = self.create_client(ConfirmSuccess, names.CONFIRM)
        self.on_stop_path = on_stop_path
        self.recorder = recorder
        self.heartbeat = Watchdog([names.HEARTBEAT], SILENT_S)
        self.has_heartbeat = False
        self.create_subscription(Header, names.HEARTBEAT, self.on_heartbeat, names.LATEST_QOS, raw=True)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(SILENT_S / CHECKS_PER_TIMEOUT, self.check_stop_path, clock=steady)
        self.spinner = Spinner(context)
        self.spinner.executor.add_node(self)
        self.spinner.start("controls")

    def on_heartbeat(self, _: bytes) -> None:
        self.has_heartbeat = True
        self.heartbeat.feed(names.HEARTBEAT)

    def check_stop_path(self) -> None:
        """Report whether a stop would arrive."""
        alive = self.heartbeat.silence(time.monotonic()) is None and self.has_heartbeat
        self.on_stop_path(alive and self.stop_client.service_is_ready())

    def end(self) -> None:
        """Stop listening."""
        self.spinner.end()
        self.destroy_node()

    def stop(self) -> Future[PressReply]:
        return self.send(self.stop_client, Trigger.Request())

    def reset(self) -> Future[PressReply]:
        return self.send(self.reset_client, Trigger.Request())

    def confirm(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        return self.send(self.confirm_client, reply(trial_id, verdict, who))

    def arranged(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        return self.send(self.arranged_client, reply(trial_id, verdict, who))

    def record(self, wanted: bool) -> Future[PressReply]:
        return self.recorder.record(wanted)

    def send(self, client: Client, request: Any) -> Future[PressReply]:
        """Send a request before this returns; the future is resolved in this node's thread."""
        pending: Future[PressReply] = Future()

        def on_answer(answered: Any) -> None:
            try:
                response = answered.result()
                accepted = response.success if hasattr(response, "success") else response.accepted
                outcome = PressReply(accepted, response.message)
            except Exception as error:
                pending.set_exception(InfrastructureError(f"{client.srv_name} failed: {error}"))
                return
            with contextlib.suppress(Exception):  # the caller has given up
                pending.set_result(outcome)

        if not client.service_is_ready():
            pending.set_exception(InfrastructureError(f"no node offers {client.srv_name}: nothing was sent"))
            return pending
        client.call_async(request).add_done_callback(on_answer)
        return pending


def reply(trial_id: str, verdict: str, who: str) -> ConfirmSuccess.Request:
    """The request that tells the verdict of a person on a trial."""
    return ConfirmSuccess.Request(trial_id=trial_id, verdict=VERDICTS[verdict], confirmed_by=who)
