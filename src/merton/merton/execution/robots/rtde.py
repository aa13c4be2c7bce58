"""An arm of UR's through RTDE: joint trajectories streamed at 125 Hz, with stops, heartbeats and reconnection.

    robot = RtdeRobot("192.0.2.10", load_cell().arm)
    robot.connect()
    number = robot.follow(times_s, joints_rad)
    while not robot.result_of(number): robot.beat()

The client (package `ur-rtde`, extra `lab`) runs in a separate process: see `rtde_driver`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InfrastructureError, InputError, MertonError, missing
from merton.execution.robots.rtde_driver import child_main
from merton.execution.robots.safety_status import EMERGENCY_BITS, PROTECTIVE_STOP_BIT, STOP_BITS, describe
from merton.execution.trajectory import JointSpline
from merton.processes import SupervisedDriver
from merton.world.arms import Arm
from merton.world.cell import ARM_JOINTS
from merton.world.geometry import Array

CONNECT_S = 10.0
"""Longest time until a connection is there, before it is given up [s]."""
RECONNECT_S = 0.5
"""Pause between two attempts."""
UNLOCK_S = 3.0
"""Longest time until the controller has left a protective stop [s]."""
CLOSE_S = 2.0
"""Longest time until the driver has stopped the arm and ended [s]."""
SILENCE_S = 5.0
"""A driver silent for so long hangs, and is replaced. The client waits 3 s for another program to end."""


@dataclass(frozen=True)
class RobotReading:
    """State of the robot, 125 times a second.

    Attributes:
        time_s: the controller's clock [s].
        joints_rad: (6,) shoulder pan .. wrist 3.
        velocities_rad_s: (6,).
        safety_bits: as `merton.execution.robots.safety_status` names them.
        moving: whether a motion is under way.
        motion: number of the last motion that began, 0 if none.
        result: "reached", or the reason of an earlier end; empty while it runs.
        setpoints: set points sent for the last trajectory that is over.
        elapsed_s: time they took [s].
        late_p99_s, late_max_s: how late they were against the 8 ms grid [s].
    """

    time_s: float
    joints_rad: Array
    velocities_rad_s: Array
    safety_bits: int
    moving: bool
    motion: int
    result: str
    setpoints: int = 0
    elapsed_s: float = 0.0
    late_p99_s: float = 0.0
    late_max_s: float = 0.0

    @property
    def stopped(self) -> str:
        """The safety stop that the robot is in; empty if in none."""
        return describe(self.safety_bits)


class RtdeRobot:
    """Commands and state of one arm. Methods return at once, from any thread.

    A lost connection is made again. After that nothing moves until a new motion is commanded, which has to start where
    the arm is.

    Args:
        hostname: address of the controller.
        arm: which no trajectory may ask to turn faster than it can.
        command_timeout_s: time without `beat` after which the driver holds a motion, and silence of the driver after
            which the controller holds the arm [s]; 0 switches both off.
        on_reading: called after each reading, and with None after a lost connection, from a thread of this object.
    """

    def __init__(
        self,
        hostname: str,
        arm: Arm,
        command_timeout_s: float = 0.2,
        on_reading: Callable[[RobotReading | None], None] | None = None,
    ) -> None:
        if importlib.util.find_spec("rtde_control") is None:
            raise missing("ur-rtde (Python 3.10 to 3.12)", "lab", "a UR robot")
        if not 0 <= command_timeout_s < np.inf:
            raise InputError(f"command_timeout_s must be 0 or more seconds, got {command_timeout_s!r}")
        self.hostname, self.arm, self.command_timeout_s = hostname, arm, command_timeout_s
        self.reading: RobotReading | None = None
        """The newest state; None while there is no connection."""
        self.error = "not connected yet"
        """The reason why there is no connection."""
        self.connections = 0
        """Number of connections that were made."""
        self._on_reading = on_reading or (lambda reading: None)
        self._numbering = threading.Lock()
        self._motions = self._lost_motions = 0
        self._connected = threading.Event()
        self._driver = SupervisedDriver(
            "rtde",
            child_main,
            (hostname, command_timeout_s),
            CONNECT_S,
            "it did not answer in time",
            self._on_message,
            self._on_end,
        )

    @property
    def driver_pid(self) -> int | None:
        """The process that holds the connection."""
        return self._driver.pid

    def connect(self, limit_s: float = CONNECT_S) -> None:
        """Start connecting, and wait for the first reading. Attempts go on after a failure, until `close`.

        Raises:
            InfrastructureError: no reading within `limit_s`.
        """
        self._driver.start()
        if not self._connected.wait(limit_s):
            raise self._not_connected()

    def close(self) -> None:
        """Stop the arm and end the connection."""
        connected = self.reading is not None
        with contextlib.suppress(InfrastructureError):
            self._send("close")
        self._driver.close(CLOSE_S if connected else 0.0)

    def follow(self, times_s: ArrayLike, joints_rad: ArrayLike, velocities_rad_s: ArrayLike | None = None) -> int:
        """Follow a trajectory, see `JointSpline`; replaces the motion under way. Returns the motion's number.

        A first time > 0 is approached from where the arm is. Whether it got there: `result_of`.

        Raises:
            InputError: no usable trajectory, or one on which a joint turns faster than it can.
            InfrastructureError: no connection, or a safety stop.
        """
        spline = JointSpline(times_s, joints_rad, velocities_rad_s)
        for joint, peak, limit in zip(ARM_JOINTS, spline.peak_speeds_rad_s(), self.arm.joint_speeds_rad_s, strict=True):
            if peak > limit:
                raise InputError(
                    f"the trajectory turns {joint} at {peak:.2f} rad/s, that of a {self.arm.name} can do {limit:.3g}"
                )
        reading = self.reading
        if reading is not None and reading.safety_bits & STOP_BITS:
            raise InfrastructureError(f"the robot is in {reading.stopped}")
        with self._numbering:
            self._motions += 1
            self._send("follow", self._motions, spline.times_s, spline.joints_rad, spline.velocities_rad_s)
            return self._motions

    def result_of(self, number: int) -> str:
        """The end of a motion: "reached", or the reason of an earlier end; empty while it runs or waits."""
        reading = self.reading
        if reading is None or number <= self._lost_motions:
            return f"connection lost: {self.error}"
        if reading.motion > number:
            return "replaced by another motion"
        return reading.result if reading.motion == number else ""

    def stop(self) -> None:
        """Brake now. Without a connection nothing is sent: the controller's watchdog stops the arm."""
        with contextlib.suppress(InfrastructureError):
            self._send("stop")

    def beat(self) -> None:
        """Heartbeat: the commander is alive."""
        with contextlib.suppress(InfrastructureError):
            self._send("beat", wait=False)

    def unlock_protective_stop(self) -> None:
        """Unlock a protective stop through the dashboard, and wait for it. A person must have inspected the robot.

        Raises:
            InfrastructureError: there is none, another stop is in force, or the controller refused (it does for 5 s).
        """
        from dashboard_client import DashboardClient

        reading = self.reading
        if reading is None:
            raise self._not_connected()
        if reading.safety_bits & EMERGENCY_BITS or not reading.safety_bits & PROTECTIVE_STOP_BIT:
            raise InfrastructureError(
                f"the robot is in {reading.stopped}, which a person releases at the robot"
                if reading.stopped
                else "the robot is in no protective stop"
            )
        dashboard = DashboardClient(self.hostname)
        try:
            dashboard.connect(2000)
            dashboard.closeSafetyPopup()
            dashboard.unlockProtectiveStop()
            dashboard.disconnect()
        except Exception as error:  # the client's C++ raises several types
            raise InfrastructureError(f"the dashboard did not unlock the robot: {str(error).strip()}") from error
        pause, end_s = threading.Event(), time.monotonic() + UNLOCK_S
        while self.reading is not None and self.reading.safety_bits & PROTECTIVE_STOP_BIT:
            if time.monotonic() > end_s:
                raise InfrastructureError(f"the robot is still in protective stop {UNLOCK_S:g} s after it was unlocked")
            pause.wait(0.01)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _send(self, *message: Any, wait: bool = True) -> None:
        if self.reading is None:
            raise self._not_connected()
        try:
            self._driver.send(message, wait=wait)
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}: that of the UR controller at {self.hostname}") from None

    def _not_connected(self) -> InfrastructureError:
        return InfrastructureError(f"no connection to the UR controller at {self.hostname}: {self.error}")

    def _on_message(self, message: Any) -> float | InfrastructureError:
        if isinstance(message, str):
            return InfrastructureError(message)
        time_s, joints, velocities, *state, statistics = message
        first = self.reading is None
        self.reading = reading = RobotReading(time_s, np.array(joints), np.array(velocities), *state, *statistics)
        if first:
            self.connections += 1
            self._connected.set()
        self._on_reading(reading)
        return SILENCE_S

    def _on_end(self, error: MertonError | None) -> float:
        self.error = "closed" if error is None else str(error)
        with self._numbering:
            self.reading = None
            self._lost_motions = self._motions
        self._connected.clear()
        if error is not None:
            self._on_reading(None)
        return RECONNECT_S
