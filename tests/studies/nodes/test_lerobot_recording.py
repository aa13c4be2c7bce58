"""Demonstrations for LeRobot from a recording: each frame has what was recorded up to its time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from merton_interfaces.msg import ActionChunk, CellState, DistortionInfo, ExperimentProgress, TrialResult
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, JointState
from std_msgs.msg import Float64MultiArray, Header
from typer.testing import CliRunner

from bags import write_bag
from merton.cli.main import app
from merton.errors import InputError
from merton.perception.images import decode_image
from merton.recording.images import jpeg
from merton.recording.schemas import schema_of
from merton.recording.writer import Channel, RecordingWriter
from merton.results.records import Outcome
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS
from merton_nodes.recording.recorded_topics import type_name
from merton_nodes.ros import conversions as convert
from merton_studies.release.lerobot.from_recording import export

pytest.importorskip("mcap_ros2.decoder", reason="MCAP is not installed (the extra recording)")
av = pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dataset)")

TICK_NS = 100_000_000
"""Of stamps: a joint state and a picture at each."""
OWN, SEEN = "/lab1/camera/top/color/image_raw/compressed", "/lab1/distorted/top/image_raw/compressed"
Messages = list[tuple[str, Any]]


def stamped(tick: int) -> Header:
    return Header(stamp=Time(sec=tick // 10, nanosec=tick % 10 * TICK_NS))


def image(tick: int, grey: int) -> CompressedImage:
    picture = CompressedImage(header=stamped(tick), format="rgb8; jpeg compressed bgr8")
    picture._data = jpeg(np.full((24, 32, 3), grey, np.uint8))
    return picture


def joints(tick: int, opening_m: float = 0.1) -> tuple[str, JointState]:
    """Every joint turns by 0.01 rad a tick."""
    names = [*ARM_JOINTS, FINGER_JOINTS[0]]
    return "/lab1/joint_states", JointState(
        header=stamped(tick), name=names, position=[tick / 100] * 6 + [opening_m / 2]
    )


def trial(seed: int, first: int, ticks: int) -> Messages:
    """A trial that begins at a tick, with a command to the gripper at its third; its result is not among them."""
    name = identity(seed)
    messages: Messages = [
        ("/lab1/cell/state", CellState(header=stamped(first), scene=first, instruction=f"do {seed}")),
        joints(first),
        ("/lab1/experiment/progress", ExperimentProgress(trial_id=name, stage="decision")),
        (OWN, image(first, 200)),
        (SEEN, image(first, 40 + first)),
        ("/lab1/experiment/chunk/reference", ActionChunk(header=stamped(first))),
        ("/lab1/experiment/chunk/distorted", ActionChunk(header=stamped(first))),
        ("/lab1/experiment/progress", ExperimentProgress(trial_id=name, stage="execution")),
    ]
    for tick in range(first + 1, first + ticks + 1):
        if tick == first + 3:
            messages.append(("/lab1/gripper_controller/commands", Float64MultiArray(data=[0.0])))
        messages += [joints(tick), (SEEN, image(tick, 40 + tick)), (OWN, image(tick, 200))]
    return messages


def identity(seed: int) -> str:
    return f"arm.test-pick.{seed}.jpeg.3"


def result(seed: int, ticks: int, outcome: int = TrialResult.SUCCESS) -> tuple[str, TrialResult]:
    elapsed = Duration(sec=ticks // 10, nanosec=ticks % 10 * TICK_NS)
    distortion = DistortionInfo(name="jpeg", level=3.0)
    return "/lab1/trial_results", TrialResult(
        experiment_id="lab", trial_id=identity(seed), agent_id="arm", task="test-pick", scene_seed=seed,
        outcome=outcome, elapsed=elapsed, distortion=distortion, progress=0.5, execution=float("nan"),
    )  # fmt: skip


def write(path: Path, messages: Messages) -> Path:
    writer = RecordingWriter(path)
    for number, (topic, message) in enumerate(messages):
        writer.put(Channel(topic, type_name(type(message))), bytes(serialize_message(message)), number, number, number)
    writer.close()
    assert writer.problem == ""
    return path


def test_frames_are_what_was_recorded_up_to_their_time(tmp_path: Path) -> None:
    late = trial(5, 20, 8)
    recording = write(
        tmp_path / "a.mcap",
        # the result comes when the next trial has begun, and the arm has gone elsewhere
        [*trial(4, 5, 10), *late[:9], result(4, 10), *late[9:], result(5, 8, TrialResult.FAILURE), result(4, 10),
         result(6, 9)],
    )  # fmt: skip
    made = export(recording, tmp_path / "out", None, successful=False)
    assert (made.counts.episodes, made.counts.successes, made.counts.frames, made.counts.fps) == (2, 1, 20, 10)
    assert made.left_out == ("arm.test-pick.6.jpeg.3: its motion is not in the recording",)
    assert made.lag_s == 0
    first, second = parquet.read_table(tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert (first["trial"], first["tasks"], first["length"], first["success"]) == (identity(4), ["do 4"], 11, True)
    assert (first["scene"], first["distortion"], first["level"], first["progress"]) == ("test.4", "jpeg", 3, 0.5)
    assert (second["trial"], second["outcome"], second["execution"]) == (identity(5), "failure", None)
    table = parquet.read_table(tmp_path / "out/data/chunk-000/file-000.parquet").to_pylist()
    for row, begin in ((first, 5), (second, 20)):
        frames = table[row["dataset_from_index"] : row["dataset_to_index"]]
        state, action = (np.array([frame[key] for frame in frames]) for key in ("observation.state", "action"))
        ticks = begin + np.arange(row["length"])
        np.testing.assert_allclose(state, np.column_stack([ticks / 100] * 6 + [np.full(len(ticks), 0.1)]), atol=1e-6)
        np.testing.assert_allclose(action[:-1, :6], state[1:, :6])
        assert [frame["next.success"] for frame in frames] == [False] * (len(ticks) - 1) + [row["success"]]
        np.testing.assert_allclose(action[:, 6], [0.1, 0.1] + [0.0] * (len(ticks) - 2), atol=1e-6)
    with av.open(str(tmp_path / "out/videos/observation.images.top/chunk-000/file-001.mp4")) as opened:
        greys = [frame.to_ndarray(format="rgb24").mean() for frame in opened.decode(video=0)]
    np.testing.assert_allclose(greys, 60 + np.arange(9), atol=2), "the distorted picture of each tick"
    about = json.loads((tmp_path / "out/meta/merton.json").read_bytes())
    assert (about["source"], about["fps"], len(about["recording_sha256"])) == ("a.mcap", 10, 64)


def test_a_recording_that_breaks_off_says_so(tmp_path: Path) -> None:
    messages = [*trial(4, 5, 10), result(4, 10), *trial(5, 20, 8)]
    recording = write(tmp_path / "a.mcap", messages)
    recording.write_bytes(recording.read_bytes()[:-60])
    made = export(recording, tmp_path / "out", None, successful=False)
    assert made.torn.startswith(f"{recording} is torn or damaged near byte")
    about = json.loads((tmp_path / "out/meta/merton.json").read_bytes())
    assert about["breaks_off"].startswith("a.mcap is torn"), "the folder is nobody's business"
    told = CliRunner().invoke(app, ["export", "lerobot", str(recording), "-o", str(tmp_path / "again")])
    assert told.exit_code == 0, told.output
    assert "what can be read was used" in " ".join(told.output.split())
    cut = write(tmp_path / "b.mcap", trial(4, 5, 10))
    cut.write_bytes(cut.read_bytes()[:-60])
    with pytest.raises(InputError, match=r"no trial with its result .*is torn or damaged"):
        export(cut, tmp_path / "none", None, successful=False)


def test_a_bag_of_raw_pictures_with_the_states_of_a_controller(tmp_path: Path) -> None:
    """As of `ros2 bag record --all` beside the graph, in two parts whose seam lies within the trial."""
    pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
    messages = [*trial(4, 5, 10), result(4, 10)]
    expected = export(write(tmp_path / "a.mcap", messages), tmp_path / "one", None, successful=False)
    told: Messages = []
    for topic, message in messages:
        if topic == SEEN:
            continue
        if topic == OWN:
            pixels = decode_image(bytes(message.data))
            raw = convert.color_message(pixels, convert.nanoseconds_of(message.header.stamp), "")
            told.append((topic.removesuffix("/compressed"), raw))
            continue
        told.append((topic, message))
        if topic == "/lab1/joint_states":
            wrong = JointState(header=message.header, name=message.name, position=[9.0] * len(message.name))
            told.append(("/lab1/joint_state_broadcaster/joint_states", wrong))
    bag = write_bag(tmp_path / "bag", [packed(*one) for one in told], parts=2)
    made = export(bag, tmp_path / "two", None, successful=False)
    assert made.counts.frames == expected.counts.frames
    states = [
        parquet.read_table(tmp_path / out / "data/chunk-000/file-000.parquet").column("observation.state").to_pylist()
        for out in ("one", "two")
    ]
    assert states[0] == states[1]


def packed(topic: str, message: object) -> tuple[str, str, str, str, bytes]:
    schema = schema_of(type_name(type(message)))
    return topic, schema.name, schema.text, schema.type_hash, bytes(serialize_message(message))


def test_a_frame_after_the_end_shows_the_end_and_a_lag_is_told(tmp_path: Path) -> None:
    messages = [one for one in trial(4, 0, 12) if one[0] != SEEN]
    kept = [one for one in messages if one[0] != OWN or one[1].header.stamp.nanosec <= 5 * TICK_NS]
    kept = [one for one in kept if one[0] != OWN or one[1].header.stamp.sec == 0]
    made = export(write(tmp_path / "a.mcap", [*kept, result(4, 9)]), tmp_path / "out", 4, successful=True)
    table = parquet.read_table(tmp_path / "out/data/chunk-000/file-000.parquet")
    turned = [state[0] for state in table.column("observation.state").to_pylist()]
    np.testing.assert_allclose(turned, [0.0, 0.025, 0.05, 0.075, 0.09], atol=1e-6), "not the 0.1 rad after the end"
    assert made.lag_s == pytest.approx(0.4), "the camera ends at tick 5 of 9"


def test_recordings_that_cannot_be_exported_say_why(tmp_path: Path) -> None:
    moved = trial(4, 0, 9)
    for messages, why in (
        (moved, "has no trial with its result"),
        ([*moved, result(4, 9, TrialResult.FAILURE)], "no trial of it is a success among 1"),
        ([one for one in [*moved, result(4, 9)] if one[0] not in (OWN, SEEN)], "no pictures of a color camera"),
        ([result(4, 9), (OWN, image(0, 1)), (OWN, image(1, 1))], "4.jpeg.3: its motion is not in the recording"),
    ):
        with pytest.raises(InputError, match=why):
            export(write(tmp_path / "a.mcap", messages), tmp_path / "out", None, successful=True)
        (tmp_path / "a.mcap").unlink()
        assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="1 to 200 frames a second, got 0"):
        export(tmp_path / "a.mcap", tmp_path / "out", 0, successful=True)


def test_outcomes_have_the_numbers_of_the_message() -> None:
    for number, outcome in enumerate(Outcome):
        assert getattr(TrialResult, outcome.name) == number
