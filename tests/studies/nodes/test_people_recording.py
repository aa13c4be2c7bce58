"""Trials of a recording as items of a people's project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import CellState, TrialResult
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage

pytest.importorskip("mcap_ros2.decoder", reason="MCAP is not installed (the extra recording)")

from merton.errors import ErrorCode, InputError
from merton.perception.images import decode_image
from merton.recording.images import jpeg
from merton.recording.writer import Channel, RecordingWriter
from merton_nodes.recording.recorded_topics import type_name
from merton_studies.people.item import Item
from merton_studies.people.media.reel import frames_of
from merton_studies.people.project import read_project
from merton_studies.people.sources import items_of

TICK_NS = 200_000_000
"""Of the messages: one picture at the rate of the source."""


def image(grey: int) -> CompressedImage:
    picture = CompressedImage(format="rgb8; jpeg compressed bgr8")
    picture._data = jpeg(np.full((24, 32, 3), grey, np.uint8))
    return picture


def result(trial: str, outcome: int, error_code: int = 0) -> TrialResult:
    return TrialResult(experiment_id="lab", trial_id=trial, agent_id="arm", task="test-pick", scene_seed=4,
                       outcome=outcome, error_code=error_code)  # fmt: skip


def write(path: Path, messages: list[tuple[str, Any]]) -> None:
    writer = RecordingWriter(path)
    for number, (topic, message) in enumerate(messages):
        writer.put(Channel(topic, type_name(type(message))), bytes(serialize_message(message)), number * TICK_NS)
    writer.close()
    assert writer.problem == ""


def items(folder: Path, camera: str = "") -> tuple[Item, ...]:
    file = folder / "project.yaml"
    file.write_text(
        f"name: test\ntitle: Test\nprotocol: trials\nraters: 3\nitems: {{recording: {{file: run.mcap{camera}}}}}\n"
    )
    return items_of(read_project(file))


def greys(item: Item) -> list[int]:
    frames = frames_of(item.media["video"].file)
    return [round(float(decode_image(frame).mean())) for frame in frames]


TOP, SIDE = (f"/lab1/camera/{name}/color/image_raw/compressed" for name in ("top", "side"))


def test_a_trial_is_between_its_scene_and_its_result(tmp_path: Path) -> None:
    write(
        tmp_path / "run.mcap",
        [
            ("/lab1/cell/state", CellState(scene=1, instruction="pick it up")),
            (TOP, image(10)),  # before the scene of the trial
            ("/lab1/cell/state", CellState(scene=2, instruction="pick it up")),
            (TOP, image(50)),
            (SIDE, image(60)),
            (TOP, image(70)),
            ("/lab1/trial_results", result("one", TrialResult.SUCCESS)),
            ("/lab1/trial_results", result("one", TrialResult.SUCCESS)),  # as a latched topic repeats it
            (TOP, image(90)),
            ("/lab1/trial_results", result("stopped", TrialResult.EMERGENCY_STOP)),
            (TOP, image(110)),
            ("/lab1/trial_results", result("open", TrialResult.INFRASTRUCTURE, int(ErrorCode.NOT_JUDGED))),
        ],
    )
    first, second = items(tmp_path)
    assert (first.id, first.scene, first.texts["instruction"]) == ("one", "test.4", "pick it up")
    assert first.facts == {"run": "lab", "trial": "one", "agent": "arm", "task": "test-pick", "recorded": "success"}
    assert greys(first) == [50, 50, 70]  # two ticks apart: a picture stands until the next
    assert (second.id, second.facts["recorded"], greys(second)) == ("open", "", [110])
    (side,) = items(tmp_path, ", camera: side")
    assert greys(side) == [60]
    with pytest.raises(InputError, match="unknown camera 'rear'; choose one of: side, top"):
        items(tmp_path, ", camera: rear")


def test_a_recording_without_trials_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "run.mcap", [(TOP, image(10))])
    with pytest.raises(InputError, match="has no trial with its result and pictures"):
        items(tmp_path)
    (tmp_path / "run.mcap").write_bytes(b"none")
    with pytest.raises(InputError, match="is no recording"):
        items(tmp_path)
