"""Conversions of the 2F-140."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from merton.errors import InputError
from merton.execution.robots.gripper import FORCE_RANGE_N, SPEED_RANGE_M_S, Grip, Gripper
from merton.world.cell import cell_file, load_cell

GRIPPER = Gripper()


@pytest.mark.parametrize(("gripper_open", "opening_m", "joint_m", "register"), [(0, 0, 0, 230), (1, 0.140, 0.070, 13)])
def test_end_points(gripper_open: float, opening_m: float, joint_m: float, register: int) -> None:
    """Robotiq: a 2F-140 reads 13 open (manual, example of an opening) and about 230 closed (article on bytes)."""
    assert GRIPPER.opening_m(gripper_open) == pytest.approx(opening_m)
    assert GRIPPER.finger_joint_m(gripper_open) == pytest.approx(joint_m)
    assert GRIPPER.register(gripper_open) == register


def test_conversions_come_back() -> None:
    for value in np.linspace(0, 1, 57):
        assert GRIPPER.gripper_open(GRIPPER.opening_m(value)) == pytest.approx(value)
        assert GRIPPER.gripper_open(2 * GRIPPER.finger_joint_m(value)) == pytest.approx(value)
        assert GRIPPER.gripper_open_of_register(GRIPPER.register(value)) == pytest.approx(value, abs=0.5 / 217 + 1e-12)
    for register in range(256):
        assert GRIPPER.register(GRIPPER.gripper_open_of_register(register)) == min(max(register, 13), 230)


def test_a_cube_between_the_fingers_has_its_width() -> None:
    """45 mm of 140 mm are 45 / 140 of the 217 counts from closed: 230 - 69.75 = 160.25."""
    assert GRIPPER.register(GRIPPER.gripper_open(0.045)) == 160
    assert GRIPPER.opening_m(GRIPPER.gripper_open_of_register(160)) == pytest.approx(0.045, abs=0.140 / 217)
    closed = GRIPPER.opening_m(GRIPPER.gripper_open_of_register(230))
    assert not GRIPPER.reading(0.0, closed, moving=False).holds, "closed on nothing holds nothing"


def test_the_ends_are_those_of_the_cells_file(tmp_path: Path) -> None:
    """Another gripper: Robotiq's article has a 2F-85, 85 mm, that reads 3 open and 231 closed."""
    own = cell_file().read_text("utf-8")
    other = own.replace("register_open: 13 ", "register_open: 3 ").replace(
        "register_closed: 230", "register_closed: 231"
    )
    (tmp_path / "cell.yaml").write_text(other.replace("stroke: 0.140", "stroke: 0.085"), encoding="utf-8")
    gripper = Gripper.from_cell(load_cell(tmp_path / "cell.yaml"))
    assert [gripper.register(share) for share in (1.0, 0.5, 0.0)] == [3, 117, 231]
    assert gripper.opening_m(gripper.gripper_open_of_register(117)) == pytest.approx(0.0425)
    without = "\n".join(line for line in own.splitlines() if "register_" not in line)
    (tmp_path / "cell.yaml").write_text(without, encoding="utf-8")
    assert Gripper.from_cell(load_cell(tmp_path / "cell.yaml")) == Gripper.from_cell(load_cell()) == Gripper()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("register_open: 240 ", "register_open 240 must be below register_closed 230"),
        ("register_open: -1 ", "register_open: must be at least 0"),
        ("register_opened: 13 ", "gripper.register_opened: unknown key; did you mean 'register_open'"),
    ],
)
def test_ends_that_cannot_be_are_refused(tmp_path: Path, line: str, sentence: str) -> None:
    own = cell_file().read_text("utf-8").replace("register_open: 13 ", line)
    (tmp_path / "cell.yaml").write_text(own, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        load_cell(tmp_path / "cell.yaml")
    for ends in ((230, 13), (-1, 230), (13, 256)):
        with pytest.raises(InputError, match=r"smaller open than closed and in 0 \.\. 255"):
            Gripper(register_open=ends[0], register_closed=ends[1])


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
