"""The cameras without whose frames nothing moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sensor_msgs.msg import CameraInfo

from merton.errors import ErrorCode
from merton.execution.gate.safety import Verdict
from merton.execution.robots.watchdog import Watchdog
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

CHECK_PERIOD_S = 0.02
"""Period of the check for silent cameras [s]."""


class CameraWatch:
    """Listens to the cameras that the parameters of `node` name, and calls `check` often if there are any.

    Args:
        node: declares the parameters, and gets the subscriptions.
        camera_names: the cameras to choose from.
        check: called every `CHECK_PERIOD_S`.
    """

    def __init__(self, node: StageNode, camera_names: Sequence[str], check: Callable[[], None]) -> None:
        meaning = "cameras without whose frames nothing moves; [''] for none"
        watched = node.parameter("watch_cameras", [""], meaning, choices=camera_names)
        meaning = "silence of a watched camera after which a motion is halted [s]"
        timeout_s = node.parameter("camera_timeout_s", 0.2, meaning, minimum=0.05, maximum=60.0)
        cameras = [name for name in watched if name]
        self.watchdog = Watchdog(cameras, timeout_s)
        for camera in cameras:
            self._subscribe(node, camera)
        if cameras:
            node.create_timer_s(CHECK_PERIOD_S, check)

    def _subscribe(self, node: StageNode, camera: str) -> None:
        def on_info(_: CameraInfo) -> None:
            self.watchdog.feed(camera)

        node.create_subscription(CameraInfo, names.color_info(camera), on_info, names.SENSOR_QOS)

    def silence(self) -> Verdict | None:
        """The verdict on a silent camera, None if there is none."""
        camera = self.watchdog.silence(time.monotonic())
        if camera is None:
            return None
        return Verdict(ErrorCode.STALE, f"camera {camera!r} has sent no frame for {self.watchdog.timeout_s:g} s")
