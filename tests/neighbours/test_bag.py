"""`ros2 bag`: a run that Merton has recorded is described, played, and recorded again."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from patience import until
from sessions import Processes

pytestmark = pytest.mark.needs("ros2launch", "ros2bag", "rosbag2_storage_mcap", programs=("ros2",))

PLAYED = ("/trial_evidence", "/trial_results", "/arm/safety_state", "/joint_states", "/camera/top/color/camera_info")


@pytest.fixture(scope="module")
def recording(domain: int, experiment: Path) -> Path:
    """The recording of a run, which its recorder has closed."""
    folder = experiment.parent
    file = folder / "recording.mcap"
    processes = Processes(folder)
    try:
        launch = processes.start(
            "ros2",
            "launch",
            "merton_bringup",
            "sim.launch.py",
            f"experiment:={experiment}",
            f"runs:={folder / 'runs'}",
            f"recording:={file}",
        )
        assert launch.wait(180) == 0, launch.output
    finally:
        processes.end()
    return file


def counts(processes: Processes, bag: Path) -> dict[str, int]:
    """Messages by topic, as `ros2 bag info` says them."""
    info = processes.start("ros2", "bag", "info", bag)
    assert info.wait() == 0, info.output
    lines = [line.split(" | ") for line in info.output.splitlines() if "Count: " in line]
    return {line[0].split("Topic: ")[1].strip(): int(line[2].removeprefix("Count: ")) for line in lines}


def test_a_recording_is_played_and_recorded_again_without_overrides_of_its_qos(
    recording: Path, processes: Processes, tmp_path: Path
) -> None:
    """What was latched is latched again: the second recording has all results, and their scores are the same."""
    recorded = counts(processes, recording)
    assert set(PLAYED) < set(recorded)
    bag = tmp_path / "again"
    record = processes.start("ros2", "bag", "record", "--storage", "mcap", "-o", bag, "--topics", *PLAYED)
    record.wait_for("Listening for topics")
    play = processes.start("ros2", "bag", "play", recording, "--rate", "5", "--delay", "2", "--topics", *PLAYED)
    assert play.wait(120) == 0, play.output
    record.process.send_signal(signal.SIGINT)
    assert record.wait() == 0, record.output
    for command in (play, record):
        assert not any(word in command.output.lower() for word in ("warn", "error", "incompatible")), command.output
    again = counts(processes, bag)
    kept = ("/trial_evidence", "/trial_results")
    assert {topic: again[topic] for topic in kept} == {topic: recorded[topic] for topic in kept}
    assert again["/joint_states"] > 0.5 * recorded["/joint_states"]
    (file,) = bag.glob("*.mcap")
    until(lambda: file.stat().st_size)
    replay = processes.start(sys.executable, "-m", "merton", "recording", "rescore", file)
    assert replay.wait() == 0, replay.output
    assert "identical: " in replay.output
