"""The RTDE robot: the real ur-rtde client against a simulated controller in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from merton.errors import InfrastructureError, InputError
from merton.execution.robots import rtde_driver, safety_status
from merton.execution.robots.rtde import RobotReading, RtdeRobot
from merton.execution.robots.rtde_driver import CONTROLLER, RtdeDriver
from merton.execution.robots.watchdog import Watchdog
from merton.execution.trajectory import JointSpline
from merton.world.arms import ARMS
from patience import stretched, until
from simulated_ur import SimulatedUr, free_address, simulated_ur

pytest.importorskip("rtde_control", reason="ur-rtde has no wheel for this Python")
pytestmark = pytest.mark.timeout(120)

ARM = ARMS["UR5"]
TIMEOUT_S = 2.0  # of heartbeats: a busy machine must not look like a dead commander


@pytest.fixture
def ur() -> Iterator[SimulatedUr]:
    with simulated_ur() as simulated:
        yield simulated


@pytest.fixture
def robot(ur: SimulatedUr) -> Iterator[RtdeRobot]:
    robot = RtdeRobot(ur.address, ARM, TIMEOUT_S)
    robot.connect(stretched(30.0))
    try:
        yield robot
    finally:
        robot.close()


def reading(robot: RtdeRobot) -> RobotReading:
    found = robot.reading
    assert found is not None
    return found


def end_of(robot: RtdeRobot, number: int) -> str:
    """Why a motion is over, with heartbeats meanwhile."""
    return str(until(lambda: robot.result_of(number), meanwhile=robot.beat))


def begin(robot: RtdeRobot, turn_rad: float = 0.5, duration_s: float = 20.0) -> int:
    """A long motion, seen to have begun."""
    here = reading(robot).joints_rad
    number = robot.follow([0.0, duration_s], [here, here + turn_rad])
    until(lambda: np.abs(reading(robot).joints_rad - here).max() > 1e-3, meanwhile=robot.beat)
    return number


def step(robot: RtdeRobot) -> str:
    """A short motion from where the arm is, and how it ended."""
    here = reading(robot).joints_rad
    return end_of(robot, robot.follow([0.0, 0.5], [here, here + 0.05]))


def stands_still(robot: RtdeRobot) -> None:
    """The arm does not move for a tenth of a second of the controller's clock."""
    first = until(lambda: robot.reading)
    until(lambda: reading(robot).time_s > first.time_s + 0.1)
    assert np.array_equal(reading(robot).joints_rad, first.joints_rad)


# The client by itself -------------------------------------------------------------------------------------------------


def test_the_unmodified_client_moves_and_sees_stops(ur: SimulatedUr) -> None:
    from dashboard_client import DashboardClient
    from rtde_control import RTDEControlInterface
    from rtde_receive import RTDEReceiveInterface

    receive = RTDEReceiveInterface(ur.address)
    control = RTDEControlInterface(ur.address)
    dashboard = DashboardClient(ur.address)
    dashboard.connect()
    try:
        goal = (np.array(receive.getActualQ()) + 0.1).tolist()
        assert control.isJointsWithinSafetyLimits(goal)
        assert control.moveJ(goal, 1.0, 5.0)
        assert np.allclose(receive.getActualQ(), goal, atol=1e-6)
        assert dashboard.running()

        ur.fault("protective_stop")
        until(receive.isProtectiveStopped)
        began_s = time.monotonic()
        assert control.moveJ(goal) is False, "and no exception"
        assert time.monotonic() - began_s < stretched(10.0)
        assert dashboard.safetymode() == "Safetymode: PROTECTIVE_STOP"
        dashboard.unlockProtectiveStop()
        until(lambda: not receive.isProtectiveStopped())
        assert control.reuploadScript()
        until(control.isProgramRunning)
        assert control.moveJ((np.array(goal) - 0.05).tolist(), 1.0, 5.0)

        ur.fault("emergency_stop")
        until(receive.isEmergencyStopped)
        assert receive.getRobotMode() == 3
        assert control.moveJ(goal) is False
        with pytest.raises(Exception, match="Unlock protective stop failure"):
            dashboard.unlockProtectiveStop()
    finally:
        dashboard.disconnect()
        control.disconnect()
        receive.disconnect()


def test_a_protective_stop_is_locked_for_a_while() -> None:
    with simulated_ur("--unlock-delay", "600") as ur:
        robot = RtdeRobot(ur.address, ARM, TIMEOUT_S)
        robot.connect(stretched(30.0))
        ur.fault("protective_stop")
        until(lambda: reading(robot).stopped)
        with pytest.raises(InfrastructureError, match="5s after occurrence"):
            robot.unlock_protective_stop()
        robot.close()


# Motions --------------------------------------------------------------------------------------------------------------


def test_it_servos_for_ten_seconds_at_125_hz(ur: SimulatedUr) -> None:
    readings: list[tuple[float, RobotReading]] = []
    robot = RtdeRobot(
        ur.address, ARM, TIMEOUT_S, lambda reading: reading and readings.append((time.monotonic(), reading))
    )
    robot.connect(stretched(30.0))
    start = reading(robot).joints_rad
    direction = np.array([1.0, -0.5, 0.4, 0.3, -0.2, 0.8])
    times = np.linspace(0.0, 10.0, 101)
    travel = 0.3 * (1 - np.cos(2 * np.pi * times / 5.0))
    path = start + travel[:, None] * direction
    begun_s = time.monotonic()
    assert end_of(robot, robot.follow(times, path)) == "reached"
    result = reading(robot)
    robot.close()
    print(
        f"\n{result.setpoints} set points in {result.elapsed_s:.3f} s: {result.setpoints / result.elapsed_s:.2f} Hz, "
        f"late by {1e3 * result.late_p99_s:.2f} ms (p99), {1e3 * result.late_max_s:.2f} ms (max)"
    )
    # a machine that keeps the driver from running makes it miss cycles; 125 Hz it must not exceed
    starved = result.late_p99_s > 0.004 or result.late_max_s > 0.03
    assert (0.2 if starved else 0.95) * 1250 < result.setpoints <= 125.5 * result.elapsed_s
    assert np.abs(result.joints_rad - path[-1]).max() < 1e-3

    moving = [(stamp_s - begun_s, state) for stamp_s, state in readings if state.moving]
    stamps, joints = np.array([stamp_s for stamp_s, _ in moving]), np.array([s.joints_rad for _, s in moving])
    clock = np.array([state.time_s for _, state in moving])
    along = (joints - start) @ direction / (direction @ direction)
    # after a set point that is far away it catches up, and the joints do so one by one
    off_path = 0.3 * result.late_max_s if starved else 1e-6
    assert np.abs(joints - start - along[:, None] * direction).max() < off_path, "it stays on its path"
    fastest = max(ARM.joint_speeds_rad_s) if starved else 1.5 * 0.3 * 2 * np.pi / 5
    assert np.abs(np.diff(along)).max() <= fastest * max(0.008, np.diff(clock).max()) + 0.01, "it never jumps"
    spline = JointSpline(times, path)
    lag = np.median([abs((spline.at(t - 0.07)[0] - q) @ direction) for t, q in zip(stamps, joints, strict=True)])
    assert lag < (0.5 if starved else 0.05), "it follows about 70 ms behind"


def test_a_stop_takes_effect_in_the_middle_of_a_motion(robot: RtdeRobot) -> None:
    number = begin(robot, turn_rad=6.0, duration_s=20.0)
    robot.stop()
    assert end_of(robot, number) == "stopped by request"
    stands_still(robot)
    assert step(robot) == "reached", "a stop is no latch: that is the stop node's"


def test_an_arm_without_heartbeat_is_held(ur: SimulatedUr) -> None:
    robot = RtdeRobot(ur.address, ARM, 1.0)
    robot.connect(stretched(30.0))
    try:
        number = begin(robot)
        assert until(lambda: robot.result_of(number)) == "held: no heartbeat for 1 s"
        stands_still(robot)
    finally:
        robot.close()


def test_a_new_trajectory_replaces_the_old_one_without_a_jump(robot: RtdeRobot) -> None:
    first = begin(robot, turn_rad=1.0, duration_s=4.0)
    here = reading(robot).joints_rad
    second = robot.follow([1.5], [here + 0.3])  # a first time above zero: from wherever the set point is
    assert end_of(robot, second) == "reached"
    assert robot.result_of(first) == "replaced by another motion"
    assert np.allclose(reading(robot).joints_rad, here + 0.3, atol=2e-3)


def test_an_impossible_trajectory_is_refused(robot: RtdeRobot) -> None:
    here = reading(robot).joints_rad
    for times, joints in (([0, 1], [here]), ([1, 0], [here, here]), ([0, 1], [here, here + np.nan]), ([], [])):
        with pytest.raises(InputError):
            robot.follow(times, joints)
    with pytest.raises(InputError, match=r"turns \w+_joint at .* rad/s, that of a UR5 can do 3\.14"):
        robot.follow([0.0, 0.1], [here, here + 1.0])
    number = robot.follow([0.0, 1.0], [here + 0.5, here])
    assert "starts 0.500 rad from where the arm is" in end_of(robot, number)
    assert np.array_equal(reading(robot).joints_rad, here)


# Stops and faults -----------------------------------------------------------------------------------------------------


def test_it_sees_a_protective_stop_and_recovers(ur: SimulatedUr, robot: RtdeRobot) -> None:
    number = begin(robot)
    ur.fault("protective_stop")
    assert end_of(robot, number) == "protective stop"
    with pytest.raises(InfrastructureError, match="the robot is in protective stop"):
        robot.follow([1.0], [reading(robot).joints_rad])
    robot.unlock_protective_stop()
    stands_still(robot)
    assert step(robot) == "reached"
    with pytest.raises(InfrastructureError, match="no protective stop"):
        robot.unlock_protective_stop()


def test_an_emergency_stop_is_not_unlocked_from_here(ur: SimulatedUr, robot: RtdeRobot) -> None:
    number = begin(robot)
    ur.fault("emergency_stop")
    assert "emergency stop" in end_of(robot, number)
    with pytest.raises(InfrastructureError, match="which a person releases at the robot"):
        robot.unlock_protective_stop()
    ur.fault("unlock")
    until(lambda: not reading(robot).stopped)
    stands_still(robot)
    assert step(robot) == "reached"


@pytest.mark.parametrize("fault", ["drop_connections", "stall 4"])
def test_it_survives_a_lost_connection(ur: SimulatedUr, fault: str) -> None:
    robot = RtdeRobot(ur.address, ARM, 1.0)
    robot.connect(stretched(30.0))
    try:
        number = begin(robot)
        goal = reading(robot).joints_rad + 0.5
        ur.fault(fault)
        until(lambda: robot.result_of(number), meanwhile=robot.beat)
        assert robot.result_of(number).startswith("connection lost")
        with pytest.raises(InfrastructureError, match="no connection"):
            robot.follow([1.0], [goal])
        until(lambda: robot.connections == 2 and robot.reading)
        assert robot.result_of(number).startswith("connection lost"), "for good"
        until(lambda: not reading(robot).velocities_rad_s.any())
        stands_still(robot)
        old = robot.follow([0.0, 1.0], [goal, goal])
        assert end_of(robot, old).startswith("refused"), "what began elsewhere is no motion any more"
        assert step(robot) == "reached"
    finally:
        robot.close()


def test_the_controller_holds_the_arm_if_the_driver_dies(ur: SimulatedUr) -> None:
    robot = RtdeRobot(ur.address, ARM, 1.0)
    robot.connect(stretched(30.0))
    try:
        number = begin(robot, turn_rad=5.0)
        assert robot.driver_pid is not None
        os.kill(robot.driver_pid, signal.SIGKILL)
        until(lambda: robot.result_of(number))
        until(lambda: robot.connections == 2 and robot.reading)
        until(lambda: not reading(robot).velocities_rad_s.any())
        stands_still(robot)
        assert step(robot) == "reached"
    finally:
        robot.close()


def test_the_driver_stops_the_arm_if_its_parent_dies(ur: SimulatedUr) -> None:
    robot = RtdeRobot(ur.address, ARM, 0)  # no watchdog anywhere: nothing else would stop it
    robot.connect(stretched(30.0))
    try:
        number = begin(robot, turn_rad=5.0)
        assert robot._driver._link is not None
        robot._driver._link.close()  # what the end of this process would do
        until(lambda: robot.result_of(number))
        until(lambda: robot.connections == 2 and robot.reading)
        until(lambda: not reading(robot).velocities_rad_s.any())
        stands_still(robot)
    finally:
        robot.close()


def test_a_delayed_driver_does_not_take_its_delay_for_the_controllers_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Client:
        def getTimestamp(self) -> float:
            return 1.0

        def getActualQ(self) -> list[float]:
            return [0.0] * 6

        getActualQd = getActualQ

        def getSafetyStatusBits(self) -> int:
            return 1

        def isConnected(self) -> bool:
            return True

    now_s = 100.0
    monkeypatch.setattr(rtde_driver, "time", SimpleNamespace(monotonic=lambda: now_s))
    here, there = multiprocessing.Pipe()
    with here, there:
        driver = RtdeDriver.__new__(RtdeDriver)
        driver.control = driver.receive = Client()
        driver.link, driver.controller_s, driver.controller_watchdog = there, 0.0, Watchdog([CONTROLLER], 0.2)
        driver.motion, driver.motion_number, driver.result, driver.statistics = None, 0, "", (0, 0.0, 0.0, 0.0)
        driver.read()
        now_s += 1.0
        for _ in range(10):
            driver.read()
            now_s += 0.008
        now_s += 0.05
        driver.read()
        now_s += 0.05
        with pytest.raises(InfrastructureError, match=r"the controller has been silent for 0\.2 s"):
            driver.read()


def test_an_absent_controller_is_one_clear_error() -> None:
    robot = RtdeRobot(free_address(), ARM)
    with pytest.raises(InfrastructureError, match="no connection to the UR controller at 127"):
        robot.connect(2.0)
    robot.close()


def test_a_controller_that_accepts_and_stays_silent_blocks_nothing() -> None:
    """The client's constructor would wait for ever, holding the global lock: hence the process of its own."""
    address = free_address()
    with socket.create_server((address, 30004)), socket.create_server((address, 29999)):
        robot = RtdeRobot(address, ARM)
        with pytest.raises(InfrastructureError, match="no connection"):
            robot.connect(1.0)
        began_s = time.monotonic()
        robot.close()
        assert time.monotonic() - began_s < stretched(8.0)
    assert not [thread for thread in threading.enumerate() if thread.name == "rtde"]


def test_every_stop_bit_has_a_name() -> None:
    assert safety_status.describe(0b1) == safety_status.describe(0b11) == ""
    for bit in range(2, 11):
        assert 1 << bit & safety_status.STOP_BITS
        assert safety_status.describe(1 << bit | 1) == safety_status.NAMES[bit]
    assert safety_status.describe(1 << 2 | 1 << 10) == "protective stop"
