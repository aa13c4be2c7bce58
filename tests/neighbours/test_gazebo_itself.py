"""Gazebo itself: the oracle solves the tasks of its world, stops stop, and things look as in the embedded cell."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from merton_interfaces.msg import CellState, SafetyState
from merton_interfaces.srv import ResetCell
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from merton.execution.gate.permit import permit_text
from merton.experiment.local import LocalPorts
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.files import resource
from merton.models.blobs import find_blobs
from merton.results.records import Outcome
from merton.results.store import ResultStore
from merton.simulation.cameras import SceneCameras
from merton.world.cell import load_cell
from merton.world.tasks import COLORS
from merton_nodes.cell.messages import arm_state_of, motion_to
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import marked
from patience import until
from ros import Probe
from runs import records
from sessions import Processes

pytestmark = [
    pytest.mark.needs(
        "ros2launch", "ros_gz_sim", "ros_gz_bridge", "gz_ros2_control", "controller_manager", programs=("ros2", "gz")
    ),
    pytest.mark.timeout(1800),
]
LIMIT_S = 600.0
"""Wall time of a launch; it took 109 and 119 s on two busy cores."""
EXPERIMENT = """
name: in-gazebo
seed: 2026
agents:
{agents}
tasks: [{tasks}]
distortions: [gaussian_blur]
levels: [0]
max_steps: 6
"""
ORACLE, PLUNGE = "  - {id: oracle, vla: oracle}", "  - {id: plunge, vla: plunge}"
OURS = re.compile(r"^\[\w+_node-\d+\] .*\[(?:WARN|ERROR|FATAL)\].*$", re.MULTILINE)
APART_PX = 6.0
REST_S = 0.3
"""From the contact on, simulated: 0.18 s of braking, and the messages."""


def test_the_oracle_solves_the_tasks_and_a_planned_collision_stops(processes: Processes, tmp_path: Path) -> None:
    file, run, output = carried_out(processes, tmp_path, "reach, push, pick, place, move", ORACLE, PLUNGE)
    outcomes = {record.id: record.outcome for record in records(run)}
    wanted = {"oracle": Outcome.SUCCESS, "plunge": Outcome.EMERGENCY_STOP}
    assert outcomes == {name: wanted[name.split(".")[0]] for name in outcomes}
    assert len(outcomes) == 10
    stops = [line for line in OURS.findall(output) if "emergency stop: delta 5 would bring" in line]
    assert len(stops) == 5
    assert set(OURS.findall(output)) == set(stops), "no other warning of ours"
    check_pictures(run, embedded_run(file, tmp_path / "embedded"))


def test_the_oracle_solves_the_tasks_with_props(processes: Processes, tmp_path: Path) -> None:
    file, run, output = carried_out(processes, tmp_path, "press, pull, twist, cover, insert", ORACLE)
    assert [record.outcome for record in records(run)] == [Outcome.SUCCESS] * 5
    assert not OURS.findall(output), "no warning of ours"
    check_pictures(run, embedded_run(file, tmp_path / "embedded"))


def test_the_oracle_solves_tasks_with_the_linkage(processes: Processes, tmp_path: Path) -> None:
    tasks = "reach, push, pick, place, move"
    _, run, output = carried_out(processes, tmp_path, tasks, ORACLE, linkage="true")
    assert [record.outcome for record in records(run)] == [Outcome.SUCCESS] * 5
    assert not OURS.findall(output), "no warning of ours"


def test_a_run_goes_on_in_another_gazebo_when_one_hangs(
    processes: Processes, ros: Any, probe: Probe, tmp_path: Path
) -> None:
    """In mid-trial: the stopped server's time stands, and it answers nothing."""
    parameters = resource("merton_bringup", "config/nodes/gazebo.yaml").read_text()
    impatient = tmp_path / "share/merton_bringup/config/nodes/gazebo.yaml"
    impatient.parent.mkdir(parents=True)
    impatient.write_text(parameters.replace("patience_s: 120.0", "patience_s: 20.0"))
    file = tmp_path / "in_gazebo.yaml"
    file.write_text(EXPERIMENT.format(tasks="press, pick", agents=ORACLE))
    states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    launch = processes.start(
        *("ros2", "launch", "merton_bringup", "gazebo.launch.py", f"experiment:={file}", f"runs:={tmp_path / 'runs'}"),
        AMENT_PREFIX_PATH=os.pathsep.join((str(tmp_path), os.environ["AMENT_PREFIX_PATH"])),
    )
    ros.until(lambda: launch.check() or states, 180.0)
    begun_ns = convert.nanoseconds_of(states[0].header.stamp)
    ros.until(lambda: convert.nanoseconds_of(joints[-1].header.stamp) > begun_ns, 60.0)
    (server,) = [process for process, command in launch.session().items() if "sim -s" in command]
    os.kill(server, signal.SIGSTOP)
    assert launch.wait(LIMIT_S) == 0, launch.output
    (run,) = (tmp_path / "runs").iterdir()
    assert [record.outcome for record in records(RunDirectory(run))] == [Outcome.SUCCESS] * 2
    assert launch.output.count("Gazebo hangs: it is killed, and another one takes its place") == 1
    assert not launch.session()


def carried_out(
    processes: Processes, folder: Path, tasks: str, *agents: str, linkage: str = "false"
) -> tuple[Path, RunDirectory, str]:
    """An experiment, its finished run in Gazebo, and what the launch has printed."""
    file = folder / "in_gazebo.yaml"
    file.write_text(EXPERIMENT.format(tasks=tasks, agents="\n".join(agents)))
    arguments = (f"experiment:={file}", f"runs:={folder / 'gazebo'}", f"gripper_linkage:={linkage}")
    launch = processes.start("ros2", "launch", "merton_bringup", "gazebo.launch.py", *arguments)
    assert launch.wait(LIMIT_S) == 0, launch.output
    assert not launch.session(), "its server too has ended"
    (run,) = (folder / "gazebo").iterdir()
    return file, RunDirectory(run), launch.output


def embedded_run(file: Path, runs: Path) -> RunDirectory:
    """The same experiment in the embedded cell."""
    run = RunDirectory.create(runs, file)
    with ResultStore(run.database) as store:
        runner = Runner(run.spec, run.id, LocalPorts(), run.reference_run)
        run_all(runner, run, {}, store.record, on_trial=lambda *_: None, on_fault=pytest.fail)
    return run


def check_pictures(gazebo: RunDirectory, embedded: RunDirectory) -> None:
    """The first picture of every trial has things of the same colours in the same places."""
    compared = 0
    for there in sorted(embedded.path.glob("trials/*/00_*_reference.jpg")):
        here = gazebo.path / there.relative_to(embedded.path)
        things, seen = blobs(there), blobs(here)
        assert [color for color, _ in things] == [color for color, _ in seen], here
        for (_, there_px), (_, here_px) in zip(things, seen, strict=True):
            assert np.linalg.norm(np.subtract(there_px, here_px)) < APART_PX, here
            compared += 1
    assert compared >= 15


def blobs(picture: Path) -> list[tuple[str, tuple[float, float]]]:
    """Colour and place of the things of a picture."""
    image = cv2.cvtColor(cv2.imread(str(picture)), cv2.COLOR_BGR2RGB)
    return [(color, blob.centroid_px) for color in COLORS for blob in find_blobs(image, color)]


def test_every_camera_sees_what_the_embedded_cell_s_camera_sees(processes: Processes, ros: Any) -> None:
    """Patches of the things' colours, in the very first picture too."""
    tool, cameras = load_tool("gazebo_cameras"), SceneCameras()
    launch = processes.start("ros2", "launch", "merton_bringup", "gazebo.launch.py")
    taker = ros.add(tool.GazeboCameras)
    for task in ("place", "insert"):
        here, there = taker.take(task, tool.SEED), tool.embedded(task, tool.SEED, cameras)
        pairs, alone = tool.compare(task, here, there)
        assert {pair.camera for pair in pairs} == set(tool.CAMERAS)
        assert len(pairs) >= 8, alone
        assert not alone
        assert max(pair.apart_px for pair in pairs) < 1.0
        assert max(pair.apart_levels for pair in pairs) < 40
    cameras.close()
    launch.end()


def load_tool(name: str) -> ModuleType:
    """A program of tools/ as a module."""
    path = Path(__file__).parents[2] / "tools" / "studies" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("linkage", ["false", "true"])
def test_a_contact_stops_the_arm(processes: Processes, ros: Any, probe: Probe, linkage: str) -> None:
    """A motion into the table that the gate has not seen, with its permit: only the contact can stop it."""
    launch = processes.start("ros2", "launch", "merton_bringup", "gazebo.launch.py", f"gripper_linkage:={linkage}")
    safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
    permits = probe.listen(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    commands = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    reset = probe.create_client(ResetCell, names.CELL_RESET)
    until(lambda: reset.service_is_ready() and permits, 120.0, meanwhile=launch.check)
    until(commands.get_subscription_count, 30.0, meanwhile=launch.check)
    answer = ros.result(reset.call_async(ResetCell.Request(task="reach", seed=0)), 300.0)
    assert answer.error_code == 0, answer.error_msg
    down = load_cell().home_joints + np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    commands.publish(permitted(motion_to(down, 1.5), permits[-1]))
    stop = ros.until(lambda: next((s for s in safety if s.mode == SafetyState.COLLISION_STOP), None), 120.0)
    assert stop.link_b == "table"
    stop_ns = convert.nanoseconds_of(stop.header.stamp)
    states = ros.until(lambda: after(joints, stop_ns, 0.5), 120.0)
    launch.end()
    times_s, joints_rad, speeds_rad_s = states
    moving = times_s[np.abs(speeds_rad_s).max(axis=1) > 0.01]
    turned_rad = np.abs(joints_rad[-1] - joints_rad[0]).max()
    peak_rad_s2 = np.abs(np.diff(speeds_rad_s, axis=0) / np.diff(times_s)[:, None]).max()
    print(f"{stop.message}: at rest after {moving[-1]:.2f} s, {turned_rad:.4f} rad, {peak_rad_s2:.1f} rad/s2")
    assert moving[-1] <= REST_S
    assert turned_rad <= np.abs(speeds_rad_s[0]).max() * REST_S
    assert load_cell().home_joints[1] < joints_rad[-1][1] < down[1] - 0.1, "it stopped on its way"


def permitted(motion: JointTrajectory, state: SafetyState) -> JointTrajectory:
    """The motion with the permit of a safety state of arm_node."""
    return marked(motion, permit_text(convert.nanoseconds_of(state.header.stamp)))


def after(states: list[JointState], since_ns: int, span_s: float) -> tuple[Any, Any, Any] | None:
    """Times (n,) [s], joints (n, 6) [rad], speeds (n, 6) [rad/s] of a span from an instant on; None until it ends."""
    times_s = [(convert.nanoseconds_of(state.header.stamp) - since_ns) / 1e9 for state in states]
    if times_s[-1] < span_s:
        return None
    within = [index for index, time_s in enumerate(times_s) if 0 <= time_s <= span_s]
    joints_rad, speeds_rad_s = zip(*(arm_state_of(states[index]) for index in within), strict=True)
    return np.array(times_s)[within], np.array(joints_rad), np.array(speeds_rad_s)
