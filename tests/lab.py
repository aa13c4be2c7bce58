"""The operator, for tests: answers the lab's requests through the services that a screen would call."""

from __future__ import annotations

from collections.abc import Callable

from merton_interfaces.msg import ConfirmationRequest
from merton_interfaces.srv import ConfirmSuccess

from merton_nodes.ros import names
from ros import Probe

LENIENT: dict[str, dict[str, float]] = {
    "camera_node": {"stall_s": 5.0, "connect_timeout_s": 120.0},
    "experiment_node": {"deadline_s": 180.0},
    "ur_robot_node": {"heartbeat_timeout_s": 2.0, "connect_timeout_s": 60.0},
    "arm_node": {"camera_timeout_s": 6.0, "max_observation_age_s": 120.0, "patience_s": 60.0},
}
"""Times of the graph `lab`, by node: tests share two cores with ten processes."""
DONE, CANNOT = ConfirmSuccess.Request.SUCCESS, ConfirmSuccess.Request.FAILURE


class Operator:
    """Answers every request at once, and remembers it.

    Args:
        probe: the node to listen and call with.
        judge: verdict on a trial, by its id.
        arrange: verdict on "home" or on a scene such as "reach.0".
    """

    def __init__(
        self,
        probe: Probe,
        judge: Callable[[str], int] = lambda trial_id: DONE,
        arrange: Callable[[str], int] = lambda what: DONE,
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        for topic, service, verdict in (
            (names.AWAITING_CONFIRMATION, names.CONFIRM, judge),
            (names.AWAITING_ARRANGEMENT, names.ARRANGED, arrange),
        ):
            client = probe.create_client(ConfirmSuccess, service)

            def answer(request: ConfirmationRequest, client=client, verdict=verdict) -> None:  # type: ignore[no-untyped-def]
                if request.trial_id:
                    self.asked.append((request.trial_id, request.instruction))
                    client.call_async(
                        ConfirmSuccess.Request(
                            trial_id=request.trial_id, verdict=verdict(request.trial_id), confirmed_by="Ada"
                        )
                    )

            probe.create_subscription(ConfirmationRequest, topic, answer, names.LATCHED_QOS)

    @property
    def ids(self) -> list[str]:
        """Names of the requests, in order."""
        return [what for what, _ in self.asked]
