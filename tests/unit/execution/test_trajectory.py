"""The joint spline: the same curve as scipy's and the planner's, and nothing that is no trajectory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from merton.errors import InputError
from merton.execution.gate import peaks as planner
from merton.execution.trajectory import JointSpline


def random_spline(seed: int) -> JointSpline:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.05, 1.0, 12)) - 0.05
    return JointSpline(times - times[0], rng.uniform(-1, 1, (12, 6)), rng.uniform(-1, 1, (12, 6)))


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_cubic_hermite_spline_of_scipy(seed: int) -> None:
    spline = random_spline(seed)
    reference = CubicHermiteSpline(spline.times_s, spline.joints_rad, spline.velocities_rad_s)
    moments = np.linspace(1e-6, spline.duration_s - 1e-6, 400)
    joints, speeds = zip(*(spline.at(moment) for moment in moments), strict=True)
    assert np.allclose(joints, reference(moments), atol=1e-12)
    assert np.allclose(speeds, reference.derivative()(moments), atol=1e-9)
    at_once = spline.sampled(np.append(moments, spline.duration_s))
    assert np.allclose(at_once[0], reference(np.append(moments, spline.duration_s)), atol=1e-14)
    assert np.allclose(at_once[1], reference(np.append(moments, spline.duration_s), 1), atol=1e-12)
    sampled = np.abs(reference.derivative()(np.linspace(0, spline.duration_s, 20_000))).max()
    assert sampled - 1e-9 <= spline.peak_speeds_rad_s().max() <= sampled * 1.001


def test_it_is_where_the_planner_looked_for_collisions() -> None:
    rng = np.random.default_rng(3)
    joints, step_s = rng.uniform(-1, 1, (8, 6)), 0.2
    speeds = planner.velocities(joints, np.ones(8), step_s)
    piece, phase = np.repeat(np.arange(7), 9), np.tile(np.linspace(0.05, 0.95, 9), 7)
    spline = JointSpline(np.arange(8) * step_s, joints, speeds)
    followed = np.array([spline.at((p + u) * step_s)[0] for p, u in zip(piece, phase, strict=True)])
    assert np.allclose(followed, planner.positions(joints, speeds, step_s, piece, phase), atol=1e-12)


def test_outside_its_times_the_joints_rest_at_its_ends() -> None:
    spline = random_spline(9)
    for moment, end in ((-1.0, 0), (0.0, 0), (spline.duration_s, -1), (1e9, -1)):
        joints, speeds = spline.at(moment)
        assert np.array_equal(joints, spline.joints_rad[end])
        assert not speeds.any()


def test_a_later_first_time_is_approached_from_here() -> None:
    spline = JointSpline([2.0], [np.ones(6)])
    approached = spline.starting_from(np.zeros(6), np.full(6, 0.1))
    assert approached.times_s.tolist() == [0.0, 2.0]
    assert np.allclose(approached.at(1e-9)[1], 0.1, atol=1e-6)
    assert approached.starting_from(np.ones(6), np.ones(6)) is approached


def test_without_velocities_a_trajectory_starts_and_ends_at_rest() -> None:
    spline = JointSpline([0, 1, 2], np.outer([0, 1, 2], np.ones(6)))
    assert np.allclose(spline.velocities_rad_s, np.outer([0, 1, 0], np.ones(6)))
    assert spline.peak_speeds_rad_s().max() == pytest.approx(4 / 3), "a piece from rest to 1 rad/s peaks inside"


@pytest.mark.parametrize(
    ("times", "joints", "velocities"),
    [
        ([], [], None),
        ([0.0], [[0.0] * 5], None),
        ([0.0, 0.0], np.zeros((2, 6)), None),
        ([-1.0, 0.0], np.zeros((2, 6)), None),
        ([0.0, np.nan], np.zeros((2, 6)), None),
        ([0.0, 1.0], np.full((2, 6), np.inf), None),
        ([0.0, 1.0], np.zeros((2, 6)), np.zeros((1, 6))),
        ([0.0, 1.0], [[0.0] * 6, [0.0] * 5], None),
        (["soon"], np.zeros((1, 6)), None),
    ],
)
def test_what_is_no_trajectory_is_refused(times: object, joints: object, velocities: object) -> None:
    with pytest.raises(InputError, match=r"trajectory|velocities"):
        JointSpline(times, joints, velocities)  # type: ignore[arg-type]
