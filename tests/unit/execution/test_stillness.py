"""The arm is at rest: one rule for every program that waits for it."""

from __future__ import annotations

import numpy as np
import pytest

from merton.execution.stillness import STILL_RAD, Stillness, is_still

HERE = np.array([0.0, -1.2, 1.8, 0.3, 0.0, 0.0])


def moved(angle_rad: float) -> np.ndarray:
    return HERE + angle_rad * np.eye(6)[2]


@pytest.mark.parametrize(("angle_rad", "still"), [(0.9 * STILL_RAD, True), (-1.1 * STILL_RAD, False), (np.nan, False)])
def test_one_joint_decides(angle_rad: float, still: bool) -> None:
    assert is_still(HERE, moved(angle_rad)) is still


def test_the_time_at_rest_counts_on_both_clocks() -> None:
    stillness = Stillness()
    stillness.update(HERE, 1_000_000_000, 50.0)
    assert (stillness.duration_s, stillness.clock_duration_s) == (0.0, 0.0)
    stillness.update(moved(0.5 * STILL_RAD), 1_200_000_000, 50.5)
    assert (stillness.duration_s, stillness.clock_duration_s) == (0.2, 0.5)
    stillness.restart()
    assert (stillness.duration_s, stillness.clock_duration_s) == (0.0, 0.0)


def test_a_slow_drift_is_a_movement() -> None:
    stillness = Stillness()
    for index in range(10):
        stillness.update(moved(0.6 * index * STILL_RAD), index * 10_000_000)
    assert stillness.duration_s == pytest.approx(0.01), "it restarts each time the drift adds up to the threshold"
