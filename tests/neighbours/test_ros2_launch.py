"""`ros2 launch` of Merton's own launch files."""

from __future__ import annotations

import os
import pty
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from rclpy.node import Node

from merton.experiment.run import RunDirectory
from merton.graph.spec import load_graph
from merton.graph.supervisor import claim_domain
from merton.results.records import Outcome
from patience import until
from runs import records
from sessions import Processes, processes_of_session

pytestmark = pytest.mark.needs("ros2launch", "launch_ros", programs=("ros2",))

DOCKER_STOP_S = 10.0
"""Between the first signal of `docker stop` and its SIGKILL."""


def test_an_experiment_runs_to_its_end(processes, experiment: Path, tmp_path: Path) -> None:
    launch = processes.start(
        "ros2", "launch", "merton_bringup", "sim.launch.py", f"experiment:={experiment}", f"runs:={tmp_path / 'runs'}"
    )
    assert launch.wait(180) == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert {record.outcome for record in records(RunDirectory(run))} == {Outcome.SUCCESS}
    assert f"merton report {run}" in launch.output
    assert not launch.session()


@pytest.fixture
def replay(tmp_path: Path) -> list[str]:
    """The command that launches the smallest graph."""
    assert cv2.imwrite(str(tmp_path / "grey.png"), np.full((48, 64, 3), 128, np.uint8))
    return ["ros2", "launch", "merton_bringup", "replay.launch.py", f"folder:={tmp_path}"]


def wait_for_nodes(ros: Any, graph: str, check: Callable[[], None] = lambda: None) -> None:
    """Until every node of a graph is seen; `check` fails if it never will be."""
    observer = ros.add(Node, "observer")
    expected = {spec.name for spec in load_graph(graph).nodes}
    ros.until(lambda: check() or expected <= set(observer.get_node_names()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_process_is_left_after_any_signal(number: signal.Signals, replay, processes, ros) -> None:
    launch = processes.start(*replay)
    wait_for_nodes(ros, "replay", launch.check)
    launch.process.send_signal(number)
    launch.wait()
    launch.wait_for_session(20)
    assert "Traceback" not in launch.output


def test_no_process_is_left_when_the_terminal_is_closed(processes, ros) -> None:
    """As a closed ssh does it: everything in it gets SIGHUP, and all output fails from then on."""
    launcher, terminal = pty.fork()
    if launcher == 0:
        os.execvp("ros2", ["ros2", "launch", "merton_bringup", "sim.launch.py"])
    wait_for_nodes(ros, "sim")
    sessions = processes_of_session(launcher)
    assert len(sessions) > len(load_graph("sim").nodes)
    os.close(terminal)
    os.waitpid(launcher, 0)
    until(lambda: not processes_of_session(launcher), 20)


def test_two_graphs_in_one_domain_notice_each_other(replay, processes, ros) -> None:
    launch = processes.start(*replay)
    wait_for_nodes(ros, "replay", launch.check)
    folder = replay[-1].removeprefix("folder:=")
    for second in (replay, [sys.executable, "-m", "merton", "up", "replay", "--set", f"folder={folder}"]):
        refused = processes.start(*second)
        assert refused.wait() == 1
        assert f"another Merton runs in ROS domain {os.environ['ROS_DOMAIN_ID']} of this machine" in refused.output
        assert "process started" not in refused.output
    assert launch.process.poll() is None
    launch.end()
    _, claim = claim_domain(int(os.environ["ROS_DOMAIN_ID"]))
    with claim:
        refused = processes.start(*replay)
        assert refused.wait() == 1
        assert "another Merton runs" in refused.output


@pytest.mark.needs("ros_gz_sim", "ros_gz_bridge", "gz_ros2_control", "controller_manager", programs=("gz",))
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "moment",
    [
        "Requesting list of world names",
        "Waiting RM to load",
        "Activating controllers: [ arm_controller ]",
        "Passing message from ROS std_msgs/msg/Bool",
    ],
)
def test_gazebo_s_server_ends_with_its_launch(processes: Processes, moment: str, number: signal.Signals) -> None:
    """Before the robot is there, when it waits for its description, amid the start of a controller, at work."""
    launch = processes.start("ros2", "launch", "merton_bringup", "gazebo.launch.py")
    launch.wait_for(moment, 120.0)
    until(lambda: any("sim -s" in command for command in launch.session().values()), meanwhile=launch.check)
    launch.process.send_signal(number)
    launch.wait()
    launch.wait_for_session(20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_deaf_to_signals_is_killed_with_its_launch(
    processes: Processes, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "deaf.launch.py"
    file.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import ExecuteProcess\n"
        "from merton_nodes.ros.launching import end_with_launch, killed_with_launch\n"
        "def generate_launch_description():\n"
        "    deaf = \"trap '' INT TERM; echo deaf; while true; do sleep 1; done\"\n"
        "    process = ExecuteProcess(cmd=['sh', '-c', deaf], output='screen', **killed_with_launch())\n"
        "    return LaunchDescription([end_with_launch(), process])\n"
    )
    launch = processes.start("ros2", "launch", str(file))
    launch.wait_for("] deaf")
    launch.process.send_signal(number)
    launch.wait()
    launch.wait_for_session(20)
    if number == signal.SIGINT:  # the only signal that launch passes on
        (limit_s,) = re.findall(r"failed to terminate '(\S+)' seconds after receiving 'SIGTERM'", launch.output)
        assert float(limit_s) < DOCKER_STOP_S


@pytest.mark.parametrize("hangs", [1, 99])
def test_a_simulator_that_hangs_is_replaced_with_its_node(processes: Processes, tmp_path: Path, hangs: int) -> None:
    """The second one works, or none does."""
    from merton_nodes.ros.launching import RENEWALS  # needs launch

    file = tmp_path / "hangs.launch.py"
    file.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import ExecuteProcess, LogInfo\n"
        "from merton.graph.supervisor import RENEW_CODE\n"
        "from merton_nodes.ros.launching import end_with_launch, killed_with_launch, renewed\n"
        "def make(number):\n"
        "    deaf = f\"trap '' INT TERM; echo simulator {number}; while true; do sleep 1; done\"\n"
        f"    finds = f'exit {{RENEW_CODE}}' if number < {hangs} else 'echo works with {{number}}; exec sleep 600'\n"
        "    node = ExecuteProcess(cmd=['sh', '-c', f'sleep 0.2; {finds}'.replace('{number}', str(number))],"
        " output='screen')\n"
        "    simulator = ExecuteProcess(cmd=['sh', '-c', deaf], output='screen', **killed_with_launch())\n"
        "    return node, simulator, [LogInfo(msg=f'start {number}')]\n"
        "def generate_launch_description():\n"
        "    return LaunchDescription([end_with_launch(), *renewed(make, 'the simulator')])\n"
    )
    launch = processes.start("ros2", "launch", str(file))
    if hangs == 1:
        launch.wait_for("works with 1")
        until(lambda: sum("trap" in command for command in launch.session().values()) == 1)
        assert "start 1" in launch.output
        launch.process.send_signal(signal.SIGINT)
    assert launch.wait() == (0 if hangs == 1 else 1)
    assert launch.output.count("another one takes its place") == (1 if hangs == 1 else RENEWALS)
    launch.wait_for_session(20)


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_has_to_succeed_ends_the_launch_if_it_fails(
    processes: Processes, tmp_path: Path, code: int
) -> None:
    file = tmp_path / "one.launch.py"
    file.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import ExecuteProcess, LogInfo, Shutdown\n"
        "from merton_nodes.ros.launching import required\n"
        "def generate_launch_description():\n"
        f"    process = ExecuteProcess(cmd=['sh', '-c', 'exit {code}'], output='screen')\n"
        "    return LaunchDescription(required(process, 'the first', [LogInfo(msg='the next'), Shutdown()]))\n"
    )
    launch = processes.start("ros2", "launch", str(file))
    assert launch.wait() == (1 if code else 0)
    assert ("the next" in launch.output) == (not code)
    assert ("the first has failed with exit code 3, and with it the launch" in launch.output) == bool(code)


def test_a_program_that_ends_with_the_launch_is_not_reported(processes: Processes, tmp_path: Path) -> None:
    """Also one that the others could go on without: they end, too."""
    file = tmp_path / "one.launch.py"
    file.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import ExecuteProcess\n"
        "from merton_nodes.ros.launching import supervised\n"
        "def generate_launch_description():\n"
        "    process = ExecuteProcess(cmd=['sh', '-c', 'echo begun; exec sleep 600'], output='screen')\n"
        "    return LaunchDescription(supervised(process, 'the optional one', optional=True))\n"
    )
    launch = processes.start("ros2", "launch", str(file))
    launch.wait_for("begun")
    launch.process.send_signal(signal.SIGINT)
    assert launch.wait() == 0
    assert "the optional one" not in launch.output
