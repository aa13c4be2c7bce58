"""Finds a Gazebo whose simulated time stands still though it should pass."""

from __future__ import annotations

import time as wall

from merton.graph.supervisor import RENEW_CODE
from merton_nodes.cell.lockstep import Lockstep
from merton_nodes.ros.runtime import StageNode

CHECK_PERIOD_S = 1.0


class GazeboWatch:
    """Ends the node, with `RENEW_CODE`, once time should pass and has stood still for `patience_s` of wall time.

    Ours: such a Gazebo can only be killed, which is its launch's part, and a node that starts anew with the next one
    has nothing to forget.

    Args:
        node: gets the timer.
        time: of the simulator; held, it waits for frames, which may fail to come as well.
        patience_s: wall time [s].
    """

    def __init__(self, node: StageNode, time: Lockstep, patience_s: float) -> None:
        self.node, self.time, self.patience_s = node, time, patience_s
        self._stamp_ns: int | None = None
        self._since_s = wall.monotonic()
        node.create_timer_s(CHECK_PERIOD_S, self.check)

    def check(self) -> None:
        """Compare the simulated instant with that of the last check."""
        awaited = self.time.engaged and (self.time.held or not self.time.stands)
        stamp_ns = self.time.stamp_ns if awaited else None
        if stamp_ns is None or stamp_ns != self._stamp_ns:
            self._stamp_ns, self._since_s = stamp_ns, wall.monotonic()
        elif wall.monotonic() - self._since_s > self.patience_s:
            self.node.get_logger().fatal(f"simulated time has stood still for {self.patience_s:g} s: Gazebo hangs")
            self.node.exit_code = RENEW_CODE
            self.node.context.try_shutdown()
