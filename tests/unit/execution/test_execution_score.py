"""The Execution score's rules (Embodied-IQA, section 3.5)."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton.execution.score import angle_rad, path_deviation_m, position_distance_m, score
from merton.results.records import Outcome
from merton.world.geometry import from_rpy


@pytest.mark.parametrize(
    ("outcome", "distance_m", "expected"),
    [
        ("success", None, 100),
        ("success", 0.7, 100),
        ("failure", 0.0, 100),
        ("failure", 0.125, 87.5),
        ("failure", 1.0, 0),
        ("failure", 3.0, 0),
        ("emergency_stop", 0.01, 0),
        ("invalid_action", None, 0),
        ("infrastructure", 0.01, None),
    ],
)
def test_score(outcome: str, distance_m: float | None, expected: float | None) -> None:
    assert score(outcome, distance_m) == (None if expected is None else pytest.approx(expected))
    assert score(Outcome(outcome), distance_m) == score(outcome, distance_m)


@pytest.mark.parametrize("distance_m", [None, np.nan, np.inf, -0.1])
def test_a_failure_needs_a_distance(distance_m: float | None) -> None:
    with pytest.raises(InputError, match="distance"):
        score("failure", distance_m)


def test_unknown_outcomes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="emergency_stop, failure"):
        score("victory")


def test_distance_ignores_orientation() -> None:
    one, other = from_rpy((0.1, 0.2, 0.3), (0, 0, 0)), from_rpy((0.1, 0.5, 0.7), (1.0, 0.5, -2.0))
    assert position_distance_m(one, other) == pytest.approx(0.5)
    assert position_distance_m(other, one) == pytest.approx(0.5)


def walk(seed: int, steps: int = 80) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.02, (steps, 3)).cumsum(axis=0)


def test_the_deviation_of_paths_is_a_distance() -> None:
    """0 for the same path however it is sampled, symmetric, and within the triangle inequality."""
    one, two, three = walk(1), walk(2), walk(3)
    finer = np.sort(np.r_[np.arange(80.0), np.arange(0, 79, 0.25)])
    sampled = np.column_stack([np.interp(finer, np.arange(80.0), axis) for axis in one.T])
    assert path_deviation_m(one, one) == 0.0
    assert path_deviation_m(one, np.repeat(one, 3, axis=0)) == 0.0, "a pause is no deviation"
    assert path_deviation_m(one, sampled) < 1e-8
    assert path_deviation_m(one, two) == path_deviation_m(two, one) > 0
    assert path_deviation_m(one, three) <= path_deviation_m(one, two) + path_deviation_m(two, three) + 0.02
    assert path_deviation_m(one, one + np.array([0, 0, 0.03])) <= 0.03 + 1e-12


def test_the_deviation_of_paths_by_hand() -> None:
    corner = [(0, 0, 0), (1, 0, 0), (1, 1, 0)]
    assert path_deviation_m(corner, [(0, 0, 0), (1, 1, 0)]) == pytest.approx(np.sqrt(0.5)), "it cut the corner"
    assert path_deviation_m(corner, corner[:2]) == 1.0, "it left out the second half"
    assert path_deviation_m(corner, [(0, 0, 0)]) == pytest.approx(np.sqrt(2)), "it never moved"
    assert path_deviation_m(corner, [*corner, (1, 1.25, 0)]) == 0.25, "it went on"
    assert path_deviation_m([(0, 0, 0)], [(0, 3, 4)]) == 5.0


def test_long_paths_are_compared_in_parts() -> None:
    """More pairs of points than are compared at once, with the same result."""
    one, two = walk(4, 900), walk(5, 900)
    here = np.array([np.linalg.norm(nearest(point, two) - point) for point in one]).max()
    there = np.array([np.linalg.norm(nearest(point, one) - point) for point in two]).max()
    assert path_deviation_m(one, two) == pytest.approx(max(here, there), abs=1e-12)


def nearest(point: np.ndarray, line: np.ndarray) -> np.ndarray:
    """The point of a line through points that is nearest to a point."""
    start, along = line[:-1], np.diff(line, axis=0)
    share = np.clip(np.einsum("ij,ij->i", point - start, along) / (along**2).sum(axis=1), 0, 1)
    candidates = start + share[:, None] * along
    return candidates[np.linalg.norm(candidates - point, axis=1).argmin()]


def test_angles_between_orientations() -> None:
    here = from_rpy((0, 0, 0), (0.2, -0.4, 1.0))
    assert angle_rad(here, here) == pytest.approx(0, abs=1e-15)
    for angle in (1e-9, 1e-3, 1.0, 3.0, np.pi):
        turned = here @ from_rpy((1, 2, 3), (0, 0, angle))
        assert angle_rad(here, turned) == pytest.approx(angle, rel=1e-7, abs=1e-15)
        assert angle_rad(turned, here) == pytest.approx(angle, rel=1e-7, abs=1e-15)
        assert angle_rad(here, turned) <= np.pi
