"""`ros2 launch` of Merton's own launch files."""

from __future__ import annotations

from pathlib import Path

import pytest

from merton.experiment.run import RunDirectory
from merton.results.records import Outcome
from runs import records

pytestmark = pytest.mark.needs("ros2launch", "launch_ros", programs=("ros2",))

EXPERIMENT = """
name: launched
seed: 5
agents:
  - {id: expert, vla: expert}
tasks: [reach]
distortions: [jpeg]
levels: [5]
"""


def test_an_experiment_runs_to_its_end(processes, tmp_path: Path) -> None:
    file = tmp_path / "launched.yaml"
    file.write_text(EXPERIMENT)
    launch = processes.start(
        "ros2", "launch", "merton_bringup", "sim.launch.py", f"experiment:={file}", f"runs:={tmp_path / 'runs'}"
    )
    assert launch.wait(180) == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert {record.outcome for record in records(RunDirectory(run))} == {Outcome.SUCCESS}
    assert f"merton report {run}" in launch.output
    assert not launch.session()
