"""A recording as a file of rerun: pictures, arm, objects, paths, speeds, scores and events on one timeline.

Ours, although rerun opens MCAP by itself: its importer shows pictures and joint angles, but a recording has no
transforms, and the scores and stages are in messages of Merton's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InfrastructureError, InputError, require
from merton.execution.kinematics import base_from_tcp
from merton.monitor.motion import tool_speed_m_s
from merton.monitor.scene import SceneView
from merton.perception.camera.decoding import file_of
from merton.recording.images import PNG
from merton.recording.messages import namespace_of, own_name, picture_topics, reading, time_ns
from merton.recording.reader import RecordingReader
from merton.world.cell import ARM_JOINTS, load_cell
from merton.world.joint_state import arm_state

ARM_PERIOD_NS = 50_000_000
"""A state of the arm for this much of the cell's clock [ns]: 20 a second, of the hundreds that are recorded."""
OUTCOMES = ("success", "failure", "emergency stop", "invalid action", "infrastructure", "abstained")
STOPPED = 2
"""Safety modes from this one on are stops."""
COLORS = {"red": 0xD5443FFF, "green": 0x3F9A57FF, "blue": 0x3F74D5FF, "yellow": 0xD9B52EFF}
GREY, GREEN, RED = 0x6D7F94FF, 0x3F9A57FF, 0xD5443FFF


_PICTURES = re.compile(r"camera/[^/]+/color/image_raw|distorted/[^/]+/image_raw")


def export(recording: Path, target: Path) -> tuple[int, str]:
    """Write what a recording holds as a file that rerun opens, with a layout of Merton's; replaces `target`.

    Args:
        recording: of recorder_node or `ros2 bag record`: a file, or the folder of a bag.
        target: the file to write, ending in ".rrd".

    Returns:
        The number of messages that are in it, and where the recording is torn, as `RecordingReader.torn`.

    Raises:
        InputError: `recording` is none, or holds a malformed message.
        InfrastructureError: `target` cannot be written.
        MissingDependencyError: the extra `rerun` is not installed.
    """
    rr = require("rerun", "rerun", "opening recordings in rerun")
    reader = RecordingReader(recording)
    stream = rr.RecordingStream("merton", recording_id=recording.stem)
    try:
        target.touch()
        stream.save(target, default_blueprint=_layout(load_cell().camera_names))
    except (OSError, RuntimeError) as error:
        raise InfrastructureError(f"cannot write {target}: {error}") from None
    exporter = _Exporter(rr, stream)
    namespace = namespace_of(reader.topics(), recording)
    pictures = picture_topics(reader.topics(), namespace, _PICTURES)
    for entry in reader.entries():
        match = pictures.get(entry.topic)
        name = own_name(entry.topic, namespace) if match is None else f"{match[0]}/compressed"
        with reading(entry):
            exporter.take(name, entry.log_time_ns, entry.decode)
    stream.disconnect()
    if not exporter.count:
        raise InputError(f"{recording} has no message that rerun could show{reader.in_brackets}")
    return exporter.count, reader.torn


class _Exporter:
    """Logs messages; `count` is how many were logged."""

    def __init__(self, rr: Any, stream: Any) -> None:
        self._rr, self._stream = rr, stream
        self._scene = {linkage: SceneView(load_cell(linkage=linkage)) for linkage in (False, True)}
        self._arm_due_ns = -(1 << 62)
        self._texts: dict[str, str] = {}
        self._takes: dict[str, Callable[[Any], None]] = {
            "joint_states": self._joints,
            "cell/state": self._objects,
            "arm/markers": self._planned_path,
            "arm/safety_state": self._safety,
            "experiment/progress": self._progress,
            "trial_results": self._result,
            "trial_evidence": self._evidence,
            **{f"experiment/answer/{side}": self._answer(side) for side in ("reference", "distorted")},
        }
        for camera in load_cell().camera_names:
            self._takes[f"camera/{camera}/color/image_raw/compressed"] = self._picture(f"cameras/{camera}/before")
            self._takes[f"distorted/{camera}/image_raw/compressed"] = self._picture(f"cameras/{camera}/after")
            self._takes[f"distorted/{camera}/info"] = self._distortion(camera)
        self.count = 0
        still = self._scene[False].still()
        boxes = {"table": [still["table"]], "walls": still["walls"], "workspace": [still["workspace"]]}
        for name, corners in boxes.items():
            if corners:
                low, high = np.array(corners).transpose(1, 0, 2)
                fill = "solid" if name == "table" else "majorwireframe"
                box = rr.Boxes3D(mins=low, sizes=high - low, colors=[GREY], fill_mode=fill)
                stream.log(f"cell/{name}", box, static=True)
        stream.log("cell", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)

    def take(self, topic: str, log_time_ns: int, decode: Callable[[], Any]) -> None:
        """A message of a topic of the graph; those of other topics are left out."""
        if topic not in self._takes:
            return
        message = decode()
        self._stream.set_time("recorded", timestamp=np.datetime64(log_time_ns, "ns"))
        if (header := getattr(message, "header", None)) is not None:
            self._stream.set_time("cell", duration=np.timedelta64(time_ns(header.stamp), "ns"))
        self._takes[topic](message)
        self.count += 1

    def _log(self, path: str, what: Any) -> None:
        self._stream.log(path, what)

    def _say(self, path: str, text: str, level: str = "INFO") -> None:
        """A line of text, unless the last one there was the same."""
        if text and self._texts.get(path) != text:
            self._texts[path] = text
            self._log(path, self._rr.TextLog(text, level=level))

    def _picture(self, path: str) -> Callable[[Any], None]:
        def log(message: Any) -> None:
            content = file_of(message)
            form = "png" if content.startswith(PNG) else "jpeg"
            self._log(path, self._rr.EncodedImage(contents=content, media_type=f"image/{form}"))

        return log

    def _distortion(self, camera: str) -> Callable[[Any], None]:
        return lambda message: self._say(f"events/distortion/{camera}", f"{message.name} {message.level:g}")

    def _joints(self, message: Any) -> None:
        stamp_ns = time_ns(message.header.stamp)
        if self._arm_due_ns - ARM_PERIOD_NS <= stamp_ns < self._arm_due_ns:
            return
        self._arm_due_ns = stamp_ns + ARM_PERIOD_NS
        state = arm_state(message.name, message.position)
        if state is None:
            return
        joints, view = state.joints_rad, self._scene[state.linkage]
        rows = np.array(view.arm(joints, state.opening_m, 0.0)["capsules"])
        self._log(
            "cell/arm",
            self._rr.LineStrips3D(rows[:, :6].reshape(-1, 2, 3), radii=rows[:, 6], colors=[GREY]),
        )
        tool = base_from_tcp(joints, view.cell)
        self._log("cell/tool", self._rr.Transform3D(translation=tool[:3, 3], mat3x3=tool[:3, :3]))
        self._log("motion/tool/height_mm", self._rr.Scalars(1e3 * tool[2, 3]))
        speeds = dict(zip(message.name, message.velocity, strict=False))
        if all(name in speeds for name in ARM_JOINTS):
            rad_s = np.array([speeds[name] for name in ARM_JOINTS])
            for name, value in zip(ARM_JOINTS, np.degrees(rad_s), strict=True):
                self._log(f"motion/joints_deg_s/{name}", self._rr.Scalars(float(value)))
            speed = tool_speed_m_s(joints, rad_s, view.cell)
            self._log("motion/tool/speed_mm_s", self._rr.Scalars(1e3 * speed))

    def _objects(self, message: Any) -> None:
        if not message.objects:
            return
        at = [[o.pose.position.x, o.pose.position.y, o.pose.position.z] for o in message.objects]
        told = [o.name for o in message.objects]
        colors = np.array([COLORS.get(name.split(" ")[0], GREY) for name in told], np.uint32)
        self._log("cell/objects", self._rr.Points3D(at, radii=0.025, labels=told, colors=colors))
        self._say("events/task", message.instruction)

    def _planned_path(self, message: Any) -> None:
        for marker in message.markers:
            if marker.ns == "path" and marker.points:
                points = [[p.x, p.y, p.z] for p in marker.points]
                color = RED if marker.color.r > marker.color.g else GREEN
                self._log("cell/planned_path", self._rr.LineStrips3D([points], radii=0.003, colors=[color]))

    def _safety(self, message: Any) -> None:
        level = "ERROR" if message.mode >= STOPPED else "INFO"
        self._say("events/safety", message.message or ("stopped" if message.mode >= STOPPED else "normal"), level)

    def _progress(self, message: Any) -> None:
        if message.stage:
            step = f", step {message.step}" if message.step else ""
            self._say("events/stage", f"{message.trial_id}: {message.stage}{step}")

    def _answer(self, side: str) -> Callable[[Any], None]:
        return lambda message: self._say(
            f"events/answer/{side}", f"{message.model_id}: {message.answer or '(no answer)'}"
        )

    def _result(self, message: Any) -> None:
        outcome = OUTCOMES[message.outcome] if message.outcome < len(OUTCOMES) else str(message.outcome)
        why = f": {message.error_msg}" if message.error_msg else ""
        self._say("events/result", f"{message.trial_id} {outcome}{why}", "INFO" if message.outcome == 0 else "WARN")
        for score, most in (("cognition", 1), ("decision", 1), ("execution", 100)):
            value = getattr(message, score)
            if np.isfinite(value):
                self._log(f"scores/{score}", self._rr.Scalars(value / most))

    def _evidence(self, message: Any) -> None:
        for name, path, color in (("path", message.path, RED), ("reference_path", message.reference_path, GREEN)):
            if path:
                points = [[p.x, p.y, p.z] for p in path]
                self._log(f"cell/{name}", self._rr.LineStrips3D([points], radii=0.002, colors=[color]))


def _layout(cameras: tuple[str, ...]) -> Any:
    """Cell and pictures above, curves and events below."""
    import rerun.blueprint as rrb

    pictures = [
        rrb.Spatial2DView(origin=f"cameras/{camera}/{which}", name=f"{camera}, {which}")
        for camera in cameras
        for which in ("before", "after")
    ]
    curves = [
        rrb.TimeSeriesView(origin="motion/joints_deg_s", name="joint speeds [deg/s]"),
        rrb.TimeSeriesView(origin="motion/tool", name="height [mm] and speed [mm/s] of the tool"),
        rrb.TimeSeriesView(origin="scores", name="scores, execution as a share of 100"),
    ]
    above = rrb.Horizontal(rrb.Spatial3DView(origin="cell", name="cell"), rrb.Grid(*pictures, grid_columns=2))
    below = rrb.Horizontal(*curves, rrb.TextLogView(origin="events", name="stages, answers, stops, results"))
    return rrb.Blueprint(rrb.Vertical(above, below, row_shares=[3, 2]), collapse_panels=True)
