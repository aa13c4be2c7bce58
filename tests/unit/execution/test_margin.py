"""The stopping margin is not spent in small change."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import ErrorCode
from merton.execution.gate.collision import Guard
from merton.execution.gate.planner import plan
from merton.execution.gate.prediction import margins_m
from merton.execution.gate.safety import Limits
from merton.world.cell import load_cell

MARGIN_M = Limits().stopping_margin_m


@pytest.mark.parametrize("delta_m", [0.0001, 0.00045, 0.002])
def test_many_small_chunks_come_no_nearer_than_one(delta_m: float) -> None:
    cell = load_cell()
    guard, joints = Guard(cell), np.array(cell.home_joints)
    down = [[0.0, 0.0, -0.01, 0, 0, 0, 1.0]] * 60
    joints = plan(joints, down, 0.2, "base_link", cell, start_gripper=1.0).joints_rad[-1]
    for _ in range(150):
        motion = plan(joints, [[0.0, 0.0, -delta_m, 0, 0, 0, 1.0]], 0.2, "base_link", cell, start_gripper=1.0)
        joints = motion.joints_rad[-1]
        if not motion.verdict.ok:
            break
    assert motion.verdict.code is ErrorCode.COLLISION
    assert guard.clearance(joints, cell.gripper.stroke).distance_m >= 0.9 * MARGIN_M - 1e-9


@pytest.mark.parametrize(
    ("distance_m", "on_the_way_m", "at_rest_m"),
    [
        (0.1, MARGIN_M, MARGIN_M),
        (MARGIN_M, 0.9 * MARGIN_M, 0.9 * MARGIN_M),
        (0.92 * MARGIN_M, 0.9 * MARGIN_M, 0.9 * MARGIN_M),  # no further from there
        (0.002, 0.0015, 0.0019),
        (1e-5, 0.0, 0.0),  # not into the obstacle before it
        (-0.002, -0.002, -0.002),  # nor deeper
    ],
)
def test_who_is_too_close_may_leave_and_not_press(distance_m: float, on_the_way_m: float, at_rest_m: float) -> None:
    assert margins_m(MARGIN_M, distance_m) == pytest.approx((on_the_way_m, at_rest_m))
