"""The operator's screen: the graph's messages on a web page, and the operator's presses as service calls."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from merton_interfaces.msg import (
    ActionChunk,
    Answer,
    CellState,
    ConfirmationRequest,
    DistortionInfo,
    ExperimentProgress,
    ImageQuality,
    RatingArray,
    SafetyState,
    TrialResult,
)
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from merton.errors import InputError
from merton.monitor.hub import Hub, HubFrame
from merton.monitor.motion import MotionLog
from merton.monitor.pictures import jpeg
from merton.monitor.scene import SceneView
from merton.monitor.timeline import Timeline
from merton.world.cell import load_cell
from merton.world.linkage import JOINT as LINKAGE_JOINT
from merton_nodes.monitor import monitor_views as views
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run

ARM_PERIOD_S = 0.25
MOTION_PERIOD_S = 0.02
"""Least time between two joint states that the plots of speeds are made of [s]: a simulated cell may move the arm
through a whole chunk in a tenth of a second."""
ARM_SILENT_S = 3.0
"""Silence of the joint states after which the arm on the page counts as outdated [s]; a cell at rest repeats them."""
SHOWN_RESULTS = 30


class MonitorNode(StageNode):
    """Puts the newest messages into the hub; the server does the rest in threads of its own."""

    def __init__(self, **options: Any) -> None:
        super().__init__("monitor_node", **options)

    def set_up(self) -> None:
        from merton.monitor.server import MonitorServer  # needs packages of an extra
        from merton_nodes.monitor.monitor_controls import ServiceControls
        from merton_nodes.monitor.monitor_recorder import Recorder

        cell = load_cell()
        host = self.parameter("host", "127.0.0.1", "where to listen; beyond loopback `tokens` is needed")
        port = self.parameter("port", 8090, "port of the page; 0 takes a free one", minimum=0, maximum=65535)
        tokens = self.parameter("tokens", "", "file of the operators' tokens, see docs/lab/monitor.md; empty: none")
        hosts = self.parameter("names", [""], "further host names under which the page is asked for; [''] for none")
        log = self.parameter("log", "~/.ros/merton_monitor_presses.jsonl", "file that takes every press, ~ allowed")
        folder = self.parameter("recordings", "runs/live", "folder of recordings that are begun on the page, ~ allowed")
        cameras = self.parameter("cameras", list(cell.camera_names), "the cameras to show, in order")
        rate_hz = self.parameter(
            "rate_hz", 10.0, "images of a camera and states of the arm per second, at most", minimum=0.1, maximum=60.0
        )
        self.period_s = 1 / rate_hz
        self.due_s: dict[str, float] = {}
        self.last_message_s = {names.JOINT_STATES: float("-inf")}
        self.results: deque[dict[str, Any]] = deque(maxlen=SHOWN_RESULTS)
        self.tally: dict[str, list[int]] = {}
        """Agent to its trials and successes since this node was set up."""
        self.timeline = Timeline()
        self.stopped = self.moving = False
        self.distortions: dict[str, Any] = {}
        self.qualities: dict[str, Any] = {}
        self.scene_views = {linkage: SceneView(cell.with_linkage(linkage)) for linkage in (False, True)}
        """Views by whether the gripper has the linkage of the real one: its joint is in the joint states then."""
        self.motions = {linkage: MotionLog(view.cell) for linkage, view in self.scene_views.items()}
        self.hub = Hub()
        self.hub.put("cameras", list(cameras))
        self.hub.put("cell", self.scene_views[False].still())
        self.recorder = Recorder(Path(folder).expanduser(), lambda: "recorder_node" in self.get_node_names())
        self.closing.callback(self.recorder.close)
        self.controls = ServiceControls(self.context, lambda alive: self.hub.put("stop_path", alive), self.recorder)
        self.closing.callback(self.controls.end)
        self.server = MonitorServer(
            self.hub,
            self.controls,
            Path(log).expanduser(),
            host,
            port,
            tokens=Path(tokens).expanduser() if tokens else None,
            names=[name for name in hosts if name],
        )
        self.closing.callback(self.server.stop)
        self.listen(cameras)
        self.create_timer_s(ARM_PERIOD_S, self.check)

    def listen(self, cameras: list[str]) -> None:
        for camera in cameras:
            self.subscribe_throttled(Image, names.color(camera), partial(self.on_image, f"{camera}/before"))
            self.subscribe_throttled(Image, names.distorted(camera), partial(self.on_image, f"{camera}/after"))
            self.subscribe_throttled(DistortionInfo, names.distortion_info(camera), partial(self.on_distortion, camera))
            self.subscribe_throttled(ImageQuality, names.quality(camera), partial(self.on_quality, camera))
        self.subscribe_throttled(JointState, names.JOINT_STATES, self.on_joints, MOTION_PERIOD_S)
        self.show(CellState, names.CELL_STATE, names.LATEST_QOS, "scene", views.scene)
        self.show(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS, "safety", self.with_stop)
        self.show(ExperimentProgress, names.PROGRESS, names.LATCHED_QOS, "progress", self.with_stage)
        self.show(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS, "cell_safety", views.safety)
        self.show(MarkerArray, names.ARM_MARKERS, names.RELIABLE_QOS, "path", views.path)
        self.show(ConfirmationRequest, names.AWAITING_CONFIRMATION, names.LATCHED_QOS, "waiting", views.waiting)
        self.show(ConfirmationRequest, names.AWAITING_ARRANGEMENT, names.LATCHED_QOS, "arranging", views.waiting)
        layout = names.WANTED_LAYOUT
        self.create_subscription(Image, layout, partial(self.on_image, "layout"), names.LATCHED_QOS)
        self.show(RatingArray, names.RATINGS, names.LATCHED_QOS, "ratings", views.ratings)
        self.show(String, names.LEADERBOARD, names.LATCHED_QOS, "board", lambda message: message.data)
        self.show(TrialResult, names.TRIAL_RESULTS, names.RELIABLE_QOS, "results", self.with_result)
        for which in ("reference", "distorted"):
            self.show(Answer, names.answers(which), names.RELIABLE_QOS, f"answer/{which}", views.answer)
            chunk = partial(self.with_chunk, which)
            self.show(ActionChunk, names.chunks(which), names.RELIABLE_QOS, f"chunk/{which}", chunk)

    def show(self, kind: Any, topic: str, qos: QoSProfile, section: str, view: Callable[[Any], Any]) -> None:
        """Show every message of a topic as a section; a view that is None changes nothing."""

        def on_message(message: Any) -> None:
            if (content := view(message)) is not None:
                self.hub.put(section, content)

        self.create_subscription(kind, topic, on_message, qos)

    def subscribe_throttled(
        self, kind: Any, topic: str, callback: Callable[[Any], None], period_s: float | None = None
    ) -> None:
        """Subscribe to a busy topic; a message is unpacked only if one is due and a browser is connected.

        `period_s`: least time between two that are unpacked [s]; None for that of `rate_hz`.
        """

        def on_bytes(data: bytes) -> None:
            self.last_message_s[topic] = time.monotonic()
            if self.hub.watched and self.due(topic, self.period_s if period_s is None else period_s):
                callback(deserialize_message(data, kind))

        self.create_subscription(kind, topic, on_bytes, names.LATEST_QOS, raw=True)

    def due(self, what: str, period_s: float) -> bool:
        """Whether `period_s` [s] has passed since the last time that this was true."""
        now_s = time.monotonic()
        if now_s < self.due_s.get(what, 0.0):
            return False
        self.due_s[what] = now_s + period_s
        return True

    def on_image(self, stream: str, message: Image) -> None:
        try:
            picture = jpeg(convert.color_array(message))
        except InputError as error:
            self.counters["dropped malformed frames"] += 1
            self.details["last malformed frame"] = f"{stream}: {error}"
            return
        self.hub.put_frame(HubFrame(stream, convert.nanoseconds_of(message.header.stamp), picture))
        self.counters["frames"] += 1

    def on_distortion(self, camera: str, message: DistortionInfo) -> None:
        self.distortions = {**self.distortions, camera: views.distortion(message)}
        self.hub.put("distortion", self.distortions)

    def on_quality(self, camera: str, message: ImageQuality) -> None:
        self.qualities = {**self.qualities, camera: views.quality(message)}
        self.hub.put("quality", self.qualities)

    def on_joints(self, message: JointState) -> None:
        try:
            joints_rad, opening_m = convert.joints_of(message)
            speeds_rad_s = convert.joint_values(message.name, message.velocity) if message.velocity else None
        except InputError:
            self.counters["dropped joint states"] += 1
            return
        linkage, stamp_s = LINKAGE_JOINT in message.name, convert.nanoseconds_of(message.header.stamp) / 1e9
        if speeds_rad_s is not None:
            self.motions[linkage].add(stamp_s, joints_rad, speeds_rad_s, opening_m)
        if self.due("arm", self.period_s):
            self.hub.put("arm", self.scene_views[linkage].arm(joints_rad, opening_m, stamp_s))
            self.moving = linkage

    def check(self) -> None:
        """Put values that change with time into the hub: whether joint states arrive, plots, timeline, recording."""
        self.hub.put("arm_seen", time.monotonic() - self.last_message_s[names.JOINT_STATES] < ARM_SILENT_S)
        if self.hub.watched:
            self.hub.put("motion", self.motions[self.moving].rows)
            self.hub.put("timeline", self.timeline.content())
            self.hub.put("recording", self.recorder.state())

    def with_stop(self, message: SafetyState) -> dict[str, Any]:
        """The state of the arm; a stop and its release are events of the trial."""
        shown = views.safety(message)
        if (stopped := shown["mode"] in views.STOPPED) != self.stopped:
            self.stopped = stopped
            self.timeline.event("stop" if stopped else "release", shown["message"] or shown["mode"])
        return shown

    def with_stage(self, message: ExperimentProgress) -> dict[str, Any]:
        """The progress of the experiment; its stages make the timeline."""
        if message.state == ExperimentProgress.RUNNING:
            self.timeline.stage(message.trial_id, message.stage, message.step)
        else:
            self.timeline.end()
        return views.progress(message)

    def with_chunk(self, which: str, message: ActionChunk) -> dict[str, Any]:
        """A chunk; one on the distorted images is an event of the trial."""
        shown = views.chunk(message)
        if which == "distorted":
            self.timeline.event("action", f"{shown['model']}: {shown['total']} steps")
        return shown

    def with_result(self, message: TrialResult) -> list[dict[str, Any]]:
        """The newest results, the newest first."""
        shown = views.result(message)
        self.timeline.result(message.trial_id, shown["outcome"])
        trials, successes = self.tally.get(message.agent_id, (0, 0))
        self.tally[message.agent_id] = [trials + 1, successes + (message.outcome == TrialResult.SUCCESS)]
        self.hub.put("tally", dict(self.tally))
        self.results.appendleft(shown)
        return list(self.results)

    def start(self) -> None:
        self.server.start()
        self.get_logger().info(f"the operator's page is at {self.server.address}")


def main() -> None:
    sys.exit(run(MonitorNode))
