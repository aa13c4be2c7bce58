"""A whole experiment on the lab's graph: the real ur-rtde and librealsense, a simulated controller, a recording."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import Image, JointState

from lab import CANNOT, DONE, LENIENT, Operator
from merton.execution.robots.homing import is_home
from merton.experiment.run import RunDirectory
from merton.graph.spec import GraphSpec, load_graph
from merton.graph.supervisor import Supervisor, environment, find_executable, last_lines
from merton.results.records import Outcome
from merton.results.store import ResultStore
from merton.study.report import write_report
from merton.world.cell import load_cell
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from patience import stretched
from ros import Probe, Ros
from simulated_ur import simulated_ur
from software_realsense import HEIGHT, RATE_HZ, WIDTH, record

pytest.importorskip("rtde_control", reason="ur-rtde has no wheel for this Python")
pytestmark = pytest.mark.timeout(600)

EXPERIMENT = """
name: lab
seed: 5
agents:
  - {id: hold, vla: hold}
  - {id: plunge, vla: plunge}
tasks: [reach]
distortions: [jpeg]
levels: [0, 5]
max_steps: 2
"""


def lab_graph(address: str, recording: Path, folder: Path) -> GraphSpec:
    """The graph `lab` as it is, but for times."""
    devices = ", ".join(f"{camera}={recording}" for camera in ("wrist", "top", "side"))
    graph = load_graph("lab").with_arguments({"robot_ip": address, "camera_serials": devices})
    changes = {
        "camera_node": {"width": WIDTH, "height": HEIGHT, "rate_hz": float(RATE_HZ)},
        "arm_node": {"latch_file": str(folder / "stop.json")},
    }
    nodes = [
        node.model_copy(
            update={"parameters": node.parameters | LENIENT.get(node.name, {}) | changes.get(node.name, {})}
        )
        for node in graph.nodes
    ]
    return graph.model_copy(update={"nodes": tuple(nodes)})


def test_a_whole_experiment_with_simulated_counterparts(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(EXPERIMENT)
    run = RunDirectory.create(tmp_path / "runs", tmp_path / "lab.yaml", "lab")
    recording = record(tmp_path / "d455.db3", 60)
    operator = Operator(probe, judge=lambda trial: CANNOT if trial.endswith("5") else DONE)
    layouts = probe.listen(Image, names.WANTED_LAYOUT, names.LATCHED_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    client = [str(find_executable("merton_nodes", "run_experiment")), str(run.path)]
    with (
        simulated_ur() as ur,
        Supervisor(lab_graph(ur.address, recording, tmp_path), run.path / "logs", environment()) as supervisor,
    ):
        supervisor.start("run_experiment", client)
        ended = supervisor.next_exit(stretched(480))
        assert ended is not None, f"asked: {operator.ids}"
        why = last_lines(ended.log, 20) + last_lines(run.path / "logs" / "experiment_node.log", 20)
        assert (ended.name, ended.code) == ("run_experiment", 0), f"{ended}, asked: {operator.ids}\n{why}"

    with ResultStore(run.database, read_only=True) as store:
        outcomes = {record.id: record.outcome for record in store.records(run.id)}
        scores = {record.id: record.execution for record in store.records(run.id)}
    assert outcomes == {
        "hold.reach.0.reference.0": Outcome.SUCCESS,
        "hold.reach.0.jpeg.5": Outcome.FAILURE,
        "plunge.reach.0.reference.0": Outcome.EMERGENCY_STOP,
        "plunge.reach.0.jpeg.5": Outcome.EMERGENCY_STOP,
    }
    assert scores["plunge.reach.0.reference.0"] == 0.0
    assert scores["plunge.reach.0.jpeg.5"] is None, "no undistorted run did this task, and a real cell has no oracle"
    assert scores["hold.reach.0.reference.0"] == 100.0
    details = json.loads((run.path / "trials" / "hold.reach.0.reference.0" / "trial.json").read_text())
    assert details["judged_by"] == "Ada"

    # four scenes were arranged; one dive ended near the table before another scene was asked for
    assert operator.ids.count("reach.0") == 4
    assert operator.ids.count("home") == 1
    assert operator.ids[operator.ids.index("home") + 1] == "reach.0", "first home, then hands in the cell"
    assert "cm ahead" in dict(operator.asked)["reach.0"]
    assert convert.color_array(layouts[-1]).std() > 10, "a blank picture"

    # what the real client made the arm do: down to the table twice, home in between
    path = [np.array(message.position[:6]) for message in joints]
    cell = load_cell()
    at_home = np.array([is_home(one, cell) for one in path])
    assert np.count_nonzero(np.diff(at_home.astype(int)) == -1) == 2, "it left home twice"
    assert not at_home[-1]
    assert write_report(run.path).stat().st_size > 50_000
