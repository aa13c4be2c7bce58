"""One graph in a ROS domain, however its nodes were started and on whichever machine: the ROS graph shows the others.

A node that finds its own name taken does not start. A topic that one node alone may publish, such as `joint_states`, is
watched from then on: with two publishers each message may be of another robot.
"""

from __future__ import annotations

import os
import time

from rclpy.node import Node

from merton.errors import InfrastructureError

DISCOVERY_S, POLL_S = 1.0, 0.05
"""Time of the search for others before a node is configured, and the pause between two looks [s]. Ours: they are found
in 0.1 to 0.3 s with config/dds on an idle machine, and took 2 s where eight processes shared two cores, see
`discovery_factor`. A node that has died is never found: it answers no newcomer."""
LEAST_PATIENCE_S, PATIENCE_S = 3.0, 10.0
"""Least and most time for which a node bears another [s]; between them, for as long as it was alone before. So of two
that find each other late, as on a busy machine, the new one ends, and the one that was there first goes on. The least
is longer than `DISCOVERY_S`, and grows with it: one that has just started finds us meanwhile, and ends by itself."""


def discovery_factor() -> float:
    """Factor by which nodes may take longer to find each other than on an idle machine: 1, and 1 more for each process
    a core that wants to run. Ours, see `DISCOVERY_S`."""
    return 1.0 + os.getloadavg()[0] / (os.cpu_count() or 1)


class Uniqueness:
    """Looks for others of the name of a node, and for other publishers of a topic that its process alone may publish.

    From the call of `wait` on; a node that is not the one of its process, as in tests, is not watched.

    Args:
        node: its context has the ROS graph. It need not be spun.
        topic: as the node names it; empty for none.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self.node, self.topic = node, topic
        self.start_s: float | None = None
        """Time of the call of `wait`, on the monotonic clock [s]; None: it was not called."""
        self.second_s: float | None = None
        """Time since which there has been another, on the monotonic clock [s]; None: there is none."""

    def wait(self, limit_s: float | None = None) -> None:
        """Look before the node publishes; raises InfrastructureError if there is another.

        `limit_s`: for how long [s]; None for `DISCOVERY_S`, and longer on a busy machine.
        """
        self.start_s = time.monotonic()
        limit_s = DISCOVERY_S * discovery_factor() if limit_s is None else limit_s
        while time.monotonic() < self.start_s + limit_s:
            if other := self._namesake() or self._publishers(0):
                raise _refusal(other)
            time.sleep(POLL_S)

    def require(self) -> None:
        """Look once; raises InfrastructureError if there is another, and has been for longer than this node bears it.

        A namesake alone does not end a node that was alone for `PATIENCE_S`.
        """
        if self.start_s is None:
            return
        now_s = time.monotonic()
        alone_s = (self.second_s or now_s) - self.start_s
        other = self._publishers(1) or (self._namesake() if alone_s < PATIENCE_S else "")
        if not other:
            self.second_s = None
            return
        self.second_s = self.second_s or now_s
        if now_s - self.second_s >= max(min(alone_s, PATIENCE_S), LEAST_PATIENCE_S * discovery_factor()):
            raise _refusal(other)

    def _namesake(self) -> str:
        name = self.node.get_fully_qualified_name()
        return f"another {name} runs" if self.node.get_fully_qualified_node_names().count(name) > 1 else ""

    def _publishers(self, own: int) -> str:
        """The publishers of the topic in words, if there are more than `own`."""
        topic = self.topic and self.node.resolve_topic_name(self.topic)
        if not topic or self.node.count_publishers(topic) <= own:
            return ""
        ends = self.node.get_publishers_info_by_topic(topic)
        names = (f"{end.node_namespace.rstrip('/')}/{end.node_name}" for end in ends)
        known = sorted("another node" if "UNKNOWN" in name else name for name in names)  # a name may come later
        return f"{' and '.join(known)} publish{'es' if len(known) == 1 else ''} {topic}"


def _refusal(other: str) -> InfrastructureError:
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    return InfrastructureError(
        f"{other} in ROS domain {domain}, on this machine or another: end it, or set another ROS_DOMAIN_ID"
    )
