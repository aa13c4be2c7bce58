"""arm_node with the real MoveIt, ur_driver_node and UR's controller on mock hardware: the graph of `arm:=moveit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions

from merton.execution.gate.planner import plan
from merton.execution.gate.safety import limits_of_mode
from merton.execution.trajectory import JointSpline
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.arm import moveit_planner
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.arm.moveit_planner import MoveItPlanner, Request
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up
from ros2_control import NEEDED, PLAIN, Bench

MOVEIT = ("moveit_py", "moveit_planners_ompl", "pilz_industrial_motion_planner", "moveit_kinematics")
pytestmark = [pytest.mark.needs(*NEEDED, *MOVEIT), pytest.mark.timeout(900)]
DOWN = [0.0, 0.0, -0.05, 0.0, 0.0, 0.0, 0.5]
"""A delta in `base_link` [m, rad], gripper half open."""


def test_the_controller_follows_a_chunk_on_the_paths_of_moveit(
    ros: Ros, probe: Probe, processes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moveit_planner, "START_LIMIT_S", 300.0)
    monkeypatch.setattr(moveit_planner, "ANSWER_LIMIT_S", 100.0)
    bench = Bench(ros, probe, processes, tmp_path, PLAIN)
    probe.destroy_publisher(bench.permits.states)  # arm_node alone publishes its state
    up(ros, ArmNode, planner="moveit", mode="reduced")
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    asked: list[Request] = []
    assert isinstance(arm.planner, MoveItPlanner)
    of_moveit = arm.planner.plan

    def asking(request: Request, accept: Callable[[JointSpline], Any]) -> Any:
        asked.append(request)
        return of_moveit(request, accept)

    monkeypatch.setattr(arm.planner, "plan", asking)
    ros.until(lambda: arm.arm.joints_rad is not None)
    begin = bench.joints_rad
    expected = plan(begin, [DOWN] * 3, 0.5, "base_link", load_cell(), limits_of_mode("reduced")).joints_rad[-1]
    chunk = convert.chunk_message(checked_chunk([DOWN] * 3, 0.5), 0)
    first = len(bench.raw)
    result = ros.act(probe, ExecuteActions, names.EXECUTE, ExecuteActions.Goal(chunk=chunk))
    assert (result.error_code, result.executed, result.error_msg) == (0, 3, "")
    assert asked, "MoveIt was asked"
    assert np.abs(bench.joints_rad - expected).max() < 0.02
    speeds = np.array([state.reference.velocities for state in bench.states(first)])
    assert 0.01 < np.abs(speeds).max() <= limits_of_mode("reduced").peak_joint_speed_rad_s
