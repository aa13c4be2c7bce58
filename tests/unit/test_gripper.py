"""Conversions of the 2F-140."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError
from merton.execution.robots.gripper import FORCE_RANGE_N, SPEED_RANGE_M_S, Grip, Gripper

GRIPPER = Gripper()


@pytest.mark.parametrize(("gripper_open", "opening_m", "joint_m", "register"), [(0, 0, 0, 255), (1, 0.140, 0.070, 0)])
def test_end_points(gripper_open: float, opening_m: float, joint_m: float, register: int) -> None:
    # Robotiq's 2F-140: 0 is open (140 mm), 255 closed.
    assert GRIPPER.opening_m(gripper_open) == pytest.approx(opening_m)
    assert GRIPPER.finger_joint_m(gripper_open) == pytest.approx(joint_m)
    assert GRIPPER.register(gripper_open) == register


def test_conversions_come_back() -> None:
    for value in np.linspace(0, 1, 57):
        assert GRIPPER.gripper_open(GRIPPER.opening_m(value)) == pytest.approx(value)
        assert GRIPPER.gripper_open(2 * GRIPPER.finger_joint_m(value)) == pytest.approx(value)
        assert GRIPPER.gripper_open_of_register(GRIPPER.register(value)) == pytest.approx(value, abs=0.5 / 255 + 1e-12)
    for register in range(256):
        assert GRIPPER.register(GRIPPER.gripper_open_of_register(register)) == register


def test_measured_openings_are_clipped() -> None:
    assert GRIPPER.gripper_open(-1e-4) == 0
    assert GRIPPER.gripper_open(0.1402) == 1


def test_the_time_to_wait_is_that_of_a_full_stroke() -> None:
    """140 mm at 150 mm/s and 0.2 s to settle, wherever the fingers are."""
    assert GRIPPER.travel_time_s == pytest.approx(0.140 / 0.15 + 0.2)


@pytest.mark.parametrize("value", [-0.01, 1.01, np.nan, np.inf])
def test_values_outside_are_refused(value: float) -> None:
    for convert in (GRIPPER.opening_m, GRIPPER.finger_joint_m, GRIPPER.register):
        with pytest.raises(InputError, match=r"0 \(closed\) \.\. 1 \(open\)"):
            convert(value)
    with pytest.raises(InputError):
        GRIPPER.gripper_open(np.nan)
    with pytest.raises(InputError, match="255"):
        GRIPPER.gripper_open_of_register(256)
    with pytest.raises(InputError):
        Gripper(stroke_m=value * 0 - 1)


def test_speed_and_force_registers_span_the_range_of_the_gripper() -> None:
    for convert, (low, high) in (
        (GRIPPER.speed_register, SPEED_RANGE_M_S),
        (GRIPPER.force_register, FORCE_RANGE_N),
    ):
        assert [convert(low), convert(high), convert(low / 2), convert(high * 2)] == [0, 255, 0, 255]
        assert convert((low + high) / 2) == 128
        for value in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(InputError, match="positive"):
                convert(value)


@pytest.mark.parametrize(
    ("commanded_m", "measured_m", "moving", "grip"),
    [
        (0.0, 0.045, False, Grip.OBJECT_INSIDE),
        (0.140, 0.080, False, Grip.OBJECT_OUTSIDE),
        (0.070, 0.071, False, Grip.AT_POSITION),
        (0.0, 0.045, True, Grip.MOVING),
    ],
)
def test_resting_fingers_away_from_their_goal_mean_an_object(
    commanded_m: float, measured_m: float, moving: bool, grip: Grip
) -> None:
    reading = GRIPPER.reading(commanded_m, measured_m, moving)
    assert reading.grip is grip
    assert reading.holds is (grip is Grip.OBJECT_INSIDE)
    assert reading.gripper_open == pytest.approx(measured_m / 0.140)
