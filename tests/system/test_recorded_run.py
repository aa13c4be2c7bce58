"""A recorded run: rescored to the same numbers, and unharmed by the death of its recorder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from merton_interfaces.msg import TrialResult
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image

from merton.experiment.run import RunDirectory
from merton.recording.reader import RecordingReader
from merton.recording.writer import Channel, RecordingWriter
from merton.results.comparison import compare
from merton_nodes.recording.rescore_recording import rescored
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names, trial_messages
from patience import stretched, until
from ros import Probe, Ros
from runs import records

EXPERIMENT = """
name: recorded
seed: 5
agents:
  - {id: oracle, vla: oracle}
  - {id: servo, vla: servo}
tasks: [reach]
distortions: [white_noise]
levels: [0, 5]
"""
TRIALS = 4
CAMERAS = ("wrist", "top", "side")


def start(*arguments: object) -> subprocess.Popen[str]:
    variables = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    return subprocess.Popen(
        [sys.executable, "-m", "merton", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        start_new_session=True,
    )


def merton(*arguments: object) -> tuple[int, str]:
    process = start(*arguments)
    output, _ = process.communicate(timeout=stretched(180))
    return process.returncode, output


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run through the real graph, with --record."""
    folder = tmp_path_factory.mktemp("recorded")
    file = folder / "recorded.yaml"
    file.write_text(EXPERIMENT)
    code, output = merton("run", file, "--record", "--runs", folder, "--name", "run")
    assert code == 0, output
    return RunDirectory(folder / "run")


@pytest.fixture(scope="module")
def killed(recorded: RunDirectory) -> Iterator[tuple[RunDirectory, str, int, int]]:
    """The same run, whose recorder is killed in its midst: the run, its output, its exit code, when [ns since 1970]."""
    folder = recorded.path.parent
    process = start("run", folder / "recorded.yaml", "--record", "--runs", folder, "--name", "killed")
    try:
        path = folder / "killed" / "recording.mcap"
        until(lambda: has_a_result(path), 120, pause_s=0.1)
        os.kill(process_of("recorder_node", process.pid), signal.SIGKILL)
        killed_ns = time.time_ns()
        output, _ = process.communicate(timeout=stretched(120))
        yield RunDirectory(folder / "killed"), output, process.returncode, killed_ns
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=stretched(30))


def has_a_result(path: Path) -> bool:
    """Whether a recording, which may be growing, has a trial with its evidence."""
    wanted = {"/trial_results", "/trial_evidence"}
    if not path.is_file() or path.stat().st_size <= 8:
        return False
    return {entry.topic for entry in RecordingReader(path).entries(wanted)} == wanted


def process_of(node: str, parent: int) -> int:
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (task / "children").read_text().split():
            if f"/{node}\0" in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
    raise AssertionError(f"{node} does not run")


def test_the_recording_has_the_whole_run_for_both_readers(recorded: RunDirectory) -> None:
    from mcap.reader import make_reader
    from rosbags.rosbag2 import Reader

    path = recorded.path / "recording.mcap"
    with Reader(path) as bag:
        counts = {connection.topic: connection.msgcount for connection in bag.connections}
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    by_mcap = {c.topic: summary.statistics.channel_message_counts[c.id] for c in summary.channels.values()}
    assert counts == by_mcap == Counter(entry.topic for entry in RecordingReader(path).entries())
    assert all(c.metadata["topic_type_hash"].startswith("RIHS01_") for c in summary.channels.values())
    assert counts["/trial_results"] == counts["/trial_evidence"] == TRIALS
    assert counts["/experiment/answer/reference"] == counts["/experiment/answer/distorted"] == TRIALS
    assert "/robot_description" in counts, "latched before the recorder came, maybe"
    for camera in CAMERAS:
        for topic in (f"/camera/{camera}/color/image_raw/compressed", f"/distorted/{camera}/image_raw/compressed"):
            assert counts[topic] >= TRIALS, topic


def test_it_is_rescored_to_the_same_numbers(recorded: RunDirectory) -> None:
    code, output = merton("recording", "rescore", recorded.path / "recording.mcap")
    assert (code, f"identical: {TRIALS} trials, all scores" in output) == (0, True), output
    found = rescored(recorded.path / "recording.mcap")
    assert set(found.checked) == {record.id for record in records(recorded)}
    assert (found.unchecked, found.torn) == ((), "")
    in_file = [
        trial_messages.record_of(entry.decode())
        for entry in RecordingReader(recorded.path / "recording.mcap").entries(["/trial_results"])
    ]
    assert compare(in_file, records(recorded)) == []


def test_a_score_that_does_not_follow_from_its_evidence_is_shown(recorded: RunDirectory, tmp_path: Path) -> None:
    """The last digits of a cognition score are changed: by less than the tolerance, then by more."""
    for change, code_wanted in ((1e-13, 0), (1e-9, 1)):
        path = tmp_path / f"changed{change}.mcap"
        writer, changed = RecordingWriter(path), ""
        for entry in RecordingReader(recorded.path / "recording.mcap").entries(["/trial_results", "/trial_evidence"]):
            data = entry.data
            if entry.topic == "/trial_results" and not changed:
                message = deserialize_message(data, TrialResult)
                message.cognition += change
                changed, data = message.trial_id, serialize_message(message)
            writer.put(Channel(entry.topic, entry.type_name), data, entry.log_time_ns)
        writer.close()
        code, output = merton("recording", "rescore", path)
        assert code == code_wanted, output
        assert (changed in output, "cognition" in output) == ((True, True) if code else (False, False)), output


def test_the_death_of_the_recorder_does_not_cost_the_run(
    recorded: RunDirectory, killed: tuple[RunDirectory, str, int, int]
) -> None:
    run, output, code, _ = killed
    assert code == 0, output
    assert "recorder_node was ended by SIGKILL; the others go on without it" in output
    assert compare(records(run), records(recorded)) == []


def test_the_file_of_a_killed_recorder_is_read_up_to_its_tear(
    killed: tuple[RunDirectory, str, int, int], tmp_path: Path
) -> None:
    from rosbags.rosbag2 import Reader

    run, _, _, killed_ns = killed
    path = run.path / "recording.mcap"
    reader = RecordingReader(path)
    stamps = [entry.log_time_ns for entry in reader.entries()]
    assert "torn" in reader.torn
    assert killed_ns - max(stamps) < 20e9, "it was flushed on the way; a niced recorder may be seconds behind"
    code, output = merton("recording", "rescore", path)
    assert (code, "what can be read was used" in output, "identical: " in output) == (0, True, True), output
    code, output = merton("recording", "repair", path, "--out", tmp_path / "whole.mcap")
    assert (code, f"{len(stamps)} messages" in output) == (0, True), output
    with Reader(tmp_path / "whole.mcap") as bag:
        assert bag.message_count == len(stamps)


def test_its_cameras_are_played_on_their_topics(recorded: RunDirectory, ros: Ros, probe: Probe) -> None:
    images = probe.listen(Image, names.color("top"), names.SENSOR_QOS)
    command = [sys.executable, "-m", "merton", "recording", "play", str(recorded.path / "recording.mcap")]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ros.until(lambda: len(images) >= 3)
        assert convert.color_array(images[0]).shape == (240, 424, 3)
        assert convert.color_array(images[0]).std() > 10, "a blank picture"
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(stretched(30))


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot read the recording"), (b"no MCAP at all", "is no recording"), (b"\x89MCAP0\r\n", "no trial")],
)
def test_a_file_that_is_no_recording_is_one_sentence(content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    if content is not None:
        path.write_bytes(content)
    code, output = merton("recording", "rescore", path)
    assert code in (1, 2)
    assert says in output
    assert "Traceback" not in output
