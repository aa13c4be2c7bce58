"""The buttons of the operator's page as service calls, and whether a stop would be heard; nothing else of ROS."""

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
from merton_nodes.ros import names
from merton_nodes.ros.runtime import Spinner

SILENT_S = 0.5
"""A heartbeat 20 times a second that was not heard for so long has ceased [s]."""
VERDICTS = {
    "success": ConfirmSuccess.Request.SUCCESS,
    "failure": ConfirmSuccess.Request.FAILURE,
    "unclear": ConfirmSuccess.Request.UNDECIDABLE,
}


class ServiceControls(Node):
    """Sends requests from the caller's thread; its own executor and thread take the answers, and do nothing else.

    So neither an image that is being converted nor one on its way to a browser can delay a stop, or the heartbeat that
    tells that it would be heard.

    Args:
        context: ROS, in which this node lives.
        on_stop_path: told several times a second, from that thread, whether a stop would be heard.
    """

    def __init__(self, context: Context, on_stop_path: Callable[[bool], None]) -> None:
        super().__init__("monitor_controls", context=context)
        self.stopping = self.create_client(Trigger, names.STOP)
        self.resetting = self.create_client(Trigger, names.RESET_STOP)
        self.arranging = self.create_client(ConfirmSuccess, names.ARRANGED)
        self.confirming = self.create_client(ConfirmSuccess, names.CONFIRM)
        self.on_stop_path = on_stop_path
        self.heartbeat = Watchdog([names.HEARTBEAT], SILENT_S)
        self.heard = False
        self.create_subscription(Header, names.HEARTBEAT, self.on_heartbeat, names.LATEST_QOS, raw=True)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(SILENT_S / CHECKS_PER_TIMEOUT, self.look_at_stop_path, clock=steady)
        self.spinner = Spinner(context)
        self.spinner.executor.add_node(self)
        self.spinner.start("controls")

    def on_heartbeat(self, _: bytes) -> None:
        """The stop path is alive."""
        self.heard = True
        self.heartbeat.feed(names.HEARTBEAT)

    def look_at_stop_path(self) -> None:
        """Say whether a stop would be heard."""
        alive = self.heartbeat.silence(time.monotonic()) is None and self.heard
        self.on_stop_path(alive and self.stopping.service_is_ready())

    def end(self) -> None:
        """Stop listening."""
        self.spinner.end()
        self.destroy_node()

    def stop(self) -> Future[PressReply]:
        """Stop the arm."""
        return self.send(self.stopping, Trigger.Request())

    def reset(self) -> Future[PressReply]:
        """Release the stop."""
        return self.send(self.resetting, Trigger.Request())

    def confirm(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        """Judge the trial that waits."""
        return self.send(self.confirming, reply(trial_id, verdict, who))

    def arranged(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        """Say that what the cell asked for is done, or cannot be done."""
        return self.send(self.arranging, reply(trial_id, verdict, who))

    def send(self, client: Client, request: Any) -> Future[PressReply]:
        """The request is sent when this returns; the answer comes from this node's thread."""
        pending: Future[PressReply] = Future()

        def on_answer(answered: Any) -> None:
            try:
                response = answered.result()
                accepted = response.success if hasattr(response, "success") else response.accepted
                outcome = PressReply(accepted, response.message)
            except Exception as error:
                pending.set_exception(InfrastructureError(f"{client.srv_name} failed: {error}"))
                return
            with contextlib.suppress(Exception):  # whoever asked has given up
                pending.set_result(outcome)

        if not client.service_is_ready():
            pending.set_exception(InfrastructureError(f"no node offers {client.srv_name}: nothing was sent"))
            return pending
        client.call_async(request).add_done_callback(on_answer)
        return pending


def reply(trial_id: str, verdict: str, who: str) -> ConfirmSuccess.Request:
    """The operator's answer as a request."""
    return ConfirmSuccess.Request(trial_id=trial_id, verdict=VERDICTS[verdict], confirmed_by=who)
