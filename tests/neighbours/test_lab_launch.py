"""`ros2 launch` of the lab, with a simulated controller and cameras that librealsense plays from a recording."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from merton_interfaces.action import RunTrial
from merton_interfaces.msg import TrialResult
from ruamel.yaml import YAML

from lab import LENIENT, Operator
from merton.files import resource
from merton_nodes.ros import names
from patience import until
from ros import Probe, Ros
from sessions import Processes
from simulated_ur import simulated_ur
from software_realsense import HEIGHT, RATE_HZ, WIDTH, record

pytest.importorskip("rtde_control", reason="ur-rtde has no wheel for this Python")
pytestmark = [pytest.mark.needs("ros2launch", "launch_ros", programs=("ros2",)), pytest.mark.timeout(600)]


def overlay(folder: Path) -> str:
    """AMENT_PREFIX_PATH with a prefix before it that has the lab's parameters, for a busy machine and these cameras."""
    yaml = YAML(typ="safe", pure=True)
    parameters = yaml.load(resource("merton_bringup", "config/nodes/lab.yaml"))
    changes = LENIENT | {
        "camera_node": LENIENT["camera_node"] | {"width": WIDTH, "height": HEIGHT, "rate_hz": float(RATE_HZ)},
        "arm_node": LENIENT["arm_node"] | {"latch_file": str(folder / "stop.json")},
    }
    for node, values in changes.items():
        parameters[f"/**/{node}"]["ros__parameters"] |= values
    file = folder / "share" / "merton_bringup" / "config" / "nodes" / "lab.yaml"
    file.parent.mkdir(parents=True)
    yaml.dump(parameters, file)
    return f"{folder}{os.pathsep}{os.environ['AMENT_PREFIX_PATH']}"


def test_a_trial_is_carried_out_in_the_launched_lab_and_nothing_is_left(
    ros: Ros, probe: Probe, processes: Processes, tmp_path: Path
) -> None:
    recording = record(tmp_path / "d455.db3", 60)
    operator = Operator(probe)
    ros.action_client(probe, RunTrial, names.RUN_TRIAL)
    with simulated_ur() as ur:
        launch = processes.start(
            "ros2",
            "launch",
            "merton_bringup",
            "lab.launch.py",
            f"robot_ip:={ur.address}",
            "camera_serials:=" + ", ".join(f"{camera}={recording}" for camera in ("wrist", "top", "side")),
            AMENT_PREFIX_PATH=overlay(tmp_path / "overlay"),
        )
        client = ros.action_client(probe, RunTrial, names.RUN_TRIAL)
        until(client.server_is_ready, 240, meanwhile=launch.check)
        goal = RunTrial.Goal(vla_id="hold", task="reach", distortion="jpeg", level=5, max_steps=1)
        result = ros.act(probe, RunTrial, names.RUN_TRIAL, goal).result
        assert (result.outcome, result.execution, result.error_msg) == (TrialResult.SUCCESS, 100.0, "")
        assert operator.ids.count("reach.0") == 2, "the reference and the trial"
        launch.check()
        launch.process.send_signal(signal.SIGINT)
        assert launch.wait() == 0, launch.output
        launch.wait_for_session()
        assert "Traceback" not in launch.output
