"""Peaks of the spline between waypoints, against dense samples of scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from merton.execution.gate.peaks import BETWEEN_SAMPLES, peaks, positions, velocities
from merton.execution.kinematics import base_from_tcp
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Array


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


def waypoints(cell: CellConfig, seed: int, count: int = 7) -> Array:
    return cell.home_joints + np.random.default_rng(seed).normal(0, 0.15, (count, 6)).cumsum(axis=0)


def test_positions_are_scipys(cell: CellConfig) -> None:
    joints = waypoints(cell, 0)
    speeds = velocities(joints, np.ones(7), 0.2)
    piece, phase = np.repeat(np.arange(6), 5), np.tile(np.linspace(0, 1, 5), 6)
    expected = CubicHermiteSpline(np.arange(7) * 0.2, joints, speeds)((piece + phase) * 0.2)
    assert positions(joints, speeds, 0.2, piece, phase) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("step_s", [0.01, 0.2, 3.0])
def test_peaks_agree_with_dense_samples(cell: CellConfig, seed: int, step_s: float) -> None:
    joints = waypoints(cell, seed)
    if seed == 3:
        joints[2::2] = joints[0]  # to and fro
    speeds = velocities(joints, np.ones(7), step_s)
    found = peaks(joints, speeds, step_s, cell)
    spline = CubicHermiteSpline(np.arange(7) * step_s, joints, speeds)
    for index in range(6):
        # Within the piece: at its ends the acceleration jumps.
        times = (index + np.linspace(1e-9, 1 - 1e-9, 4001)) * step_s
        assert np.abs(spline(times, 1)).max() == pytest.approx(found.joint_speed[index], rel=1e-6)
        assert np.abs(spline(times, 2)).max() == pytest.approx(found.joint_acceleration[index], rel=1e-6)
        tcp = base_from_tcp(spline(times), cell)[:, :3, 3]
        speed = np.gradient(tcp, times, axis=0)
        tool_speed = np.linalg.norm(speed[1:-1], axis=1).max()
        tool_acceleration = np.linalg.norm(np.gradient(speed, times, axis=0)[2:-2], axis=1).max()
        for bound, sampled in (
            (found.tcp_speed[index], tool_speed),
            (found.tcp_acceleration[index], tool_acceleration),
        ):
            assert sampled * (1 - 2e-3) <= bound + 1e-9 <= BETWEEN_SAMPLES * sampled * (1 + 2e-3) + 2e-9


def test_golden_from_rest_into_a_steady_motion(cell: CellConfig) -> None:
    # By hand: from rest into steps of d each h the cubic begins with 4 d/h^2; from rest to rest, 6 d/h^2 and 1.5 d/h.
    joints = cell.home_joints + np.arange(4)[:, None] * np.eye(6)[0] * 0.1
    found = peaks(joints, velocities(joints, np.ones(4), 0.2), 0.2, cell)
    assert found.joint_acceleration == pytest.approx([10.0, 0.0, 10.0], abs=1e-9)
    alone = peaks(joints[:2], np.zeros((2, 6)), 0.2, cell)
    assert alone.joint_acceleration == pytest.approx([15.0])
    assert alone.joint_speed == pytest.approx([0.75])


def test_slower_by_a_factor_is_the_same_path(cell: CellConfig) -> None:
    joints = waypoints(cell, 1)
    piece, phase = np.repeat(np.arange(6), 9), np.tile(np.linspace(0, 1, 9), 6)
    fast, slow = (
        positions(joints, velocities(joints, np.ones(7), step_s), step_s, piece, phase) for step_s in (0.2, 0.74)
    )
    assert slow == pytest.approx(fast, abs=1e-12)
    one, other = (peaks(joints, velocities(joints, np.ones(7), step_s), step_s, cell) for step_s in (0.2, 0.4))
    assert other.tcp_speed == pytest.approx(one.tcp_speed / 2)
    assert other.tcp_acceleration == pytest.approx(one.tcp_acceleration / 4, rel=1e-5)


def test_no_joint_goes_beyond_the_waypoints_it_passes_between() -> None:
    """Random waypoints, some almost the same: a delta that hardly moves must not make the arm swing back."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200, 6)) * rng.choice([1e-4, 0.01, 0.1], size=(200, 1))
    joints = np.cumsum(steps, axis=0)
    speeds = velocities(joints, np.ones(len(joints)), 0.2)
    for phase in np.linspace(0.05, 0.95, 19):
        piece = np.arange(len(joints) - 1)
        between = positions(joints, speeds, 0.2, piece, np.full(len(piece), phase))
        assert (between >= np.minimum(joints[:-1], joints[1:]) - 1e-12).all()
        assert (between <= np.maximum(joints[:-1], joints[1:]) + 1e-12).all()


def test_a_steady_motion_keeps_its_speed() -> None:
    joints = np.arange(6.0)[:, None] * np.linspace(-0.03, 0.05, 6)
    speeds = velocities(joints, np.ones(6), 0.2)
    assert speeds[1:-1] == pytest.approx(np.tile(np.linspace(-0.03, 0.05, 6) / 0.2, (4, 1)))
    assert not speeds[[0, -1]].any()
