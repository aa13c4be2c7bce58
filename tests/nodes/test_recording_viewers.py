"""Recordings for other viewers: what rerun is given of one, and the layout for Foxglove."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point
from merton_interfaces.msg import CellState, ExperimentProgress, SafetyState, SceneObject, TrialEvidence, TrialResult
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import String
from typer.testing import CliRunner

pytest.importorskip("mcap_ros2.decoder", reason="MCAP is not installed (the extra recording)")

from merton.cli.main import app
from merton.errors import InputError, MissingDependencyError
from merton.execution.kinematics import base_from_tcp
from merton.monitor import rerun_export
from merton.recording.images import jpeg
from merton.recording.writer import Channel, RecordingWriter
from merton.world.cell import ARM_JOINTS, load_cell
from merton_nodes.recording.recorded_topics import type_name
from merton_nodes.ros import conversions as convert

SECOND_NS = 10**9


def write(path: Path) -> None:
    """A recording of every kind of message that viewers are given, in a namespace, and one of another kind."""
    home = np.asarray(load_cell().home_joints)
    turning = [convert.joint_state_message(ns, home, np.eye(6)[0], 0.1) for ns in (0, 10_000_000, SECOND_NS)]
    cube = SceneObject(name="blue cube")
    cube.pose.position.x = 0.4
    path_points = [Point(x=0.4, z=0.3), Point(x=0.4, z=0.1)]
    picture = CompressedImage(format="rgb8; jpeg compressed bgr8")
    picture._data = jpeg(np.full((24, 32, 3), 90, np.uint8))
    messages: list[tuple[str, Any]] = [
        *(("/lab1/joint_states", message) for message in turning),
        ("/lab1/camera/top/color/image_raw/compressed", picture),
        ("/lab1/distorted/top/image_raw/compressed", picture),
        ("/lab1/cell/state", CellState(instruction="pick it up", objects=[cube])),
        ("/lab1/arm/safety_state", SafetyState(mode=SafetyState.EMERGENCY_STOP, message="pressed by Ada")),
        ("/lab1/experiment/progress", ExperimentProgress(trial_id="t.1", stage="execution", step=2)),
        ("/lab1/experiment/progress", ExperimentProgress(trial_id="t.1", stage="execution", step=2)),
        ("/lab1/trial_evidence", TrialEvidence(trial_id="t.1", path=path_points)),
        ("/lab1/trial_results", TrialResult(trial_id="t.1", cognition=0.5, decision=np.nan, execution=80.0)),
        ("/lab1/leaderboard", String(data="a board")),
    ]
    writer = RecordingWriter(path)
    for number, (topic, message) in enumerate(messages):
        writer.put(Channel(topic, type_name(type(message))), bytes(serialize_message(message)), SECOND_NS + number)
    writer.close()
    assert writer.problem == ""


class Rerun:
    """rerun's module and stream in one: keeps what is logged, by path."""

    def __init__(self) -> None:
        self.logged: dict[str, list[Any]] = {}
        self.ViewCoordinates = SimpleNamespace(RIGHT_HAND_Z_UP="up")

    def __getattr__(self, kind: str) -> Any:
        if kind[0].isupper():
            return lambda *values, **named: self if kind == "RecordingStream" else (kind, values, named)
        return lambda *values, **named: None

    def log(self, path: str, what: Any, static: bool = False) -> None:
        self.logged.setdefault(path, []).append(what)


def test_rerun_is_given_pictures_arm_speeds_scores_and_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Rerun()
    monkeypatch.setattr(rerun_export, "require", lambda *_: fake)
    monkeypatch.setattr(rerun_export, "_layout", lambda _: None)
    write(tmp_path / "recording.mcap")
    assert rerun_export.export(tmp_path / "recording.mcap", tmp_path / "out.rrd") == (11, "")
    logged = fake.logged
    home = np.asarray(load_cell().home_joints)
    assert len(logged["cell/arm"]) == 2, "20 states a second of the cell's clock"
    tool = base_from_tcp(home, load_cell())
    np.testing.assert_allclose(logged["cell/tool"][0][2]["translation"], tool[:3, 3])
    speeds = [logged[f"motion/joints_deg_s/{name}"][0][1][0] for name in ARM_JOINTS]
    np.testing.assert_allclose(speeds, [np.degrees(1), 0, 0, 0, 0, 0])
    assert logged["motion/tool/speed_mm_s"][0][1][0] == pytest.approx(1e3 * np.hypot(*tool[:2, 3]), rel=1e-3)
    for which in ("before", "after"):
        assert logged[f"cameras/top/{which}"][0][2]["contents"][:2] == b"\xff\xd8"
    assert logged["cell/objects"][0][2]["labels"] == ["blue cube"]
    assert logged["cell/path"][0][1][0] == [[[0.4, 0.0, 0.3], [0.4, 0.0, 0.1]]]
    assert [logged[f"scores/{score}"][0][1] for score in ("cognition", "execution")] == [(0.5,), (0.8,)]
    assert "scores/decision" not in logged, "a score that is not known is no point of a curve"
    assert logged["events/safety"][0][1:] == (("pressed by Ada",), {"level": "ERROR"})
    assert [line[1][0] for line in logged["events/stage"]] == ["t.1: execution, step 2"], "the same line once"
    assert logged["events/result"][0][1] == ("t.1 success",)


def test_rerun_is_given_raw_pictures_of_a_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of `ros2 bag record --all`; of a picture that is there compressed, too, once."""
    fake = Rerun()
    monkeypatch.setattr(rerun_export, "require", lambda *_: fake)
    monkeypatch.setattr(rerun_export, "_layout", lambda _: None)
    raw = convert.color_message(np.full((4, 6, 3), 9, np.uint8), 0, "")
    writer = RecordingWriter(tmp_path / "raw.mcap")
    writer.put(Channel("/camera/top/color/image_raw", "sensor_msgs/msg/Image"), bytes(serialize_message(raw)), 1)
    writer.close()
    assert rerun_export.export(tmp_path / "raw.mcap", tmp_path / "out.rrd") == (1, "")
    assert fake.logged["cameras/top/before"][0][2]["contents"][:4] == b"\x89PNG"


def test_rerun_reads_the_file_that_is_written_for_it(tmp_path: Path) -> None:
    chunks = pytest.importorskip("rerun.chunk", reason="rerun is not installed (the extra rerun)")
    write(tmp_path / "recording.mcap")
    target = tmp_path / "recording.rrd"
    rerun_export.export(tmp_path / "recording.mcap", target)
    paths = {str(chunk.entity_path) for chunk in chunks.RrdReader(str(target)).stream()}
    assert {"/cell/arm", "/cell/table", "/cameras/top/after", "/scores/execution", "/events/stage"} <= paths


def test_a_recording_without_anything_to_show_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun_export, "require", lambda *_: Rerun())
    monkeypatch.setattr(rerun_export, "_layout", lambda _: None)
    RecordingWriter(tmp_path / "empty.mcap").close()
    with pytest.raises(InputError, match="no message that rerun could show"):
        rerun_export.export(tmp_path / "empty.mcap", tmp_path / "out.rrd")
    monkeypatch.setattr(rerun_export, "require", lambda *_: (_ for _ in ()).throw(MissingDependencyError("no rerun")))
    with pytest.raises(MissingDependencyError):
        rerun_export.export(tmp_path / "empty.mcap", tmp_path / "out.rrd")


def test_foxglove_gets_a_layout_for_the_topics_of_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    write(tmp_path / "recording.mcap")
    ended = CliRunner().invoke(app, ["recording", "view", str(tmp_path / "recording.mcap"), "--in", "foxglove"])
    assert ended.exit_code == 0, ended.output
    layout = json.loads((tmp_path / "recording.foxglove.json").read_text(encoding="utf-8"))
    topics = [one["imageMode"]["imageTopic"] for one in layout["configById"].values() if "imageMode" in one]
    assert len(topics) == 6
    assert all(topic.endswith("/image_raw/compressed") for topic in topics)
