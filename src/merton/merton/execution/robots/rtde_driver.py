"""The process that holds the connection to a UR controller: one loop at 125 Hz around the ur-rtde client.

It is a separate process for two reasons, both measured with ur-rtde 1.6.5: the client's constructors hold Python's
global lock until the controller answers, without a time limit; and after a dropped connection its control interface
reconnects over and over and cannot be ended, while a process can.

Three things stop the arm: this loop, on request, without a heartbeat, or when the parent is gone; the controller's
watchdog of the control program, if this process dies or hangs; and the controller's safety system in any case.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from merton.errors import InfrastructureError, InputError
from merton.execution.robots.safety_status import STOP_BITS, describe
from merton.execution.robots.watchdog import Watchdog
from merton.execution.trajectory import JointSpline
from merton.world.geometry import Array

CYCLE_S = 0.008
"""125 Hz: the control cycle of a CB3 controller; one of the e-Series, whose own is 500 Hz, takes set points so, too."""

LOOKAHEAD_S, GAIN = 0.05, 500.0
"""servoJ smooths over this time (0.03 .. 0.2) with this gain (100 .. 2000). Ours: half the default lag, the gain in the
lower half of the range, since a higher one makes a real arm hum."""

SERVO_DECELERATION_M_S2 = 10.0
"""servoStop: the client's default; a tool at 0.6 m/s rests after 60 ms."""

IGNORED = 3.14
"""Speed and acceleration of servoJ, which the controller ignores; the client refuses greater ones."""

START_TOLERANCE_RAD = 0.02
"""A trajectory must start this close to where the arm is. Ours: a centimetre at half the arm's reach."""

SETTLED_RAD, SETTLED_RAD_S, SETTLE_S = 0.001, 0.01, 1.0
"""A trajectory is over when the joints are this near its end and this slow, or are not after this time, in which its
end is the set point of every cycle: cycles that a busy machine misses hold no arm at its end, and do not count."""

STOP_REPORT_S = 0.5
"""Longest time from the effect of a safety stop to its report [s]; nothing moves meanwhile. Ours."""
PROGRAM_START_S = 3.0
"""Longest time until the control program has started on the controller [s]."""

HEARTBEAT, CONTROLLER = "heartbeat", "the controller"
VARIABLES = ["timestamp", "actual_q", "actual_qd", "safety_status_bits", "robot_status_bits", "runtime_state"]


@dataclass
class Motion:
    """A trajectory under way, the set point (6,) that was sent last, and how many cycles sent its end."""

    spline: JointSpline
    begin_s: float
    setpoint_rad: Array
    speed_rad_s: Array
    late_s: list[float] = field(default_factory=list)
    cycles_at_end: int = 0


class RtdeDriver:
    """The loop. All calls of the client are made in its one thread.

    Args:
        hostname: address of the controller; ports are fixed.
        timeout_s: heartbeat and connection time limit [s]; 0 switches the heartbeats off, here and on the controller.
        link: pipe to the parent: commands in, readings out.
    """

    def __init__(self, hostname: str, timeout_s: float, link: Connection) -> None:
        from rtde_control import RTDEControlInterface
        from rtde_receive import RTDEReceiveInterface

        self.link, self.timeout_s = link, timeout_s
        self.receive = RTDEReceiveInterface(hostname, 1 / CYCLE_S, VARIABLES)
        # without the control program, which is uploaded on the first motion: connecting does not end a running program
        self.control = RTDEControlInterface(hostname, 1 / CYCLE_S, RTDEControlInterface.FLAG_NO_WAIT)
        self.motion: Motion | None = None
        self.motion_number, self.result = 0, ""
        self.statistics = (0, 0.0, 0.0, 0.0)
        self.watchdog = Watchdog([HEARTBEAT], timeout_s) if timeout_s else None
        self.controller_watchdog = Watchdog([CONTROLLER], timeout_s or 1.0)
        self.controller_s = 0.0
        self.program_is_ours = False
        self.due_s = time.monotonic()

    def run(self) -> None:
        """Cycle after cycle, until "close" or the connection is lost."""
        while True:
            self.read()
            self.advance()
            self.due_s += CYCLE_S
            now = time.monotonic()
            if now - self.due_s > CYCLE_S:
                self.due_s = now  # cycles that were missed are gone
            while (left_s := self.due_s - time.monotonic()) > 0:
                # waiting on the pipe is only good to a millisecond
                if not self.link.poll(max(0.0, left_s - 0.0015)):
                    time.sleep(max(0.0, self.due_s - time.monotonic()))
                elif not self.execute(*self.link.recv()):
                    return
            while self.link.poll():
                if not self.execute(*self.link.recv()):
                    return

    def read(self) -> None:
        """Take the newest state of the controller and send it to the parent."""
        controller_s = self.receive.getTimestamp()
        if controller_s != self.controller_s:
            self.controller_s = controller_s
            self.controller_watchdog.feed(CONTROLLER)
        if self.controller_watchdog.silence(time.monotonic()):
            raise InfrastructureError(f"the controller has been silent for {self.controller_watchdog.timeout_s:g} s")
        if not (self.receive.isConnected() and self.control.isConnected()):
            raise InfrastructureError("the controller closed the connection")
        joints, velocities = self.receive.getActualQ(), self.receive.getActualQd()
        self.joints, self.velocities = np.array(joints), np.array(velocities)
        self.safety_bits = int(self.receive.getSafetyStatusBits())
        motion = self.motion is not None, self.motion_number, self.result
        self.link.send((self.controller_s, joints, velocities, self.safety_bits, *motion, self.statistics))

    def execute(self, command: str, *arguments: Any) -> bool:
        """Carry out one command of the parent; False ends the loop."""
        if command == "beat":
            if self.watchdog is not None:
                self.watchdog.feed(HEARTBEAT)
        elif command == "stop":
            self.end("stopped by request")
        elif command == "close":
            self.end("closed")
            if self.program_runs():
                self.control.stopScript()
            return False
        else:
            self.begin_motion(*arguments)
        return True

    def begin_motion(self, number: int, *trajectory: Array) -> None:
        """Follow a trajectory (the arguments of `JointSpline`), or record why not."""
        self.motion_number, self.result = number, ""
        try:
            self.follow(JointSpline(*trajectory))
        except (InputError, InfrastructureError) as error:
            self.end("stopped for a motion that was refused")
            self.result = f"refused: {error}"

    def follow(self, spline: JointSpline) -> None:
        """Stream a trajectory, from the set point if one is being followed, else from where the arm is."""
        before = self.motion
        here, speed = (before.setpoint_rad, before.speed_rad_s) if before is not None else (self.joints, np.zeros(6))
        spline = spline.starting_from(here, speed)
        away = np.abs(spline.at(0.0)[0] - here).max()
        if away > START_TOLERANCE_RAD:
            raise InputError(f"the trajectory starts {away:.3f} rad from where the arm is")
        self.start_program()
        self.motion = Motion(spline, time.monotonic(), here, speed)
        if self.watchdog is not None:
            self.watchdog.start()  # the first heartbeat has the whole time limit

    def start_program(self) -> None:
        """Send the control program unless it runs, and set the controller's own watchdog.

        A program that runs already but is not ours, such as one an earlier driver left behind, is replaced.

        Raises:
            InfrastructureError: a safety stop, or a program that does not start.
        """
        if self.safety_bits & STOP_BITS:
            raise InfrastructureError(f"the robot is in {describe(self.safety_bits)}")
        if self.program_runs():
            return
        limit_s = time.monotonic() + PROGRAM_START_S
        sent = self.control.reuploadScript()
        while not (sent and self.control.isProgramRunning()):
            if time.monotonic() > limit_s:
                raise InfrastructureError("the controller did not start the control program")
            time.sleep(CYCLE_S)
            self.read()
        if self.timeout_s and not self.control.setWatchdog(1 / self.timeout_s):
            raise InfrastructureError("the controller did not accept the watchdog")
        self.program_is_ours = True
        self.due_s = time.monotonic()

    def program_runs(self) -> bool:
        """Whether a control program of this driver's runs. Programs of others are neither kept alive nor stopped."""
        self.program_is_ours = self.program_is_ours and self.control.isProgramRunning()
        return self.program_is_ours

    def advance(self) -> None:
        """One cycle of the motion under way, if there is one."""
        motion, now = self.motion, time.monotonic()
        if self.safety_bits & STOP_BITS:
            if motion is not None:
                self.finish(describe(self.safety_bits))
            return
        if motion is None:
            if self.program_runs():
                self.control.kickWatchdog()
            return
        if not self.program_runs():
            self.finish(self.safety_stop() or "the control program ended on the controller")
        elif self.watchdog is not None and self.watchdog.silence(now):
            self.end(f"held: no heartbeat for {self.timeout_s:g} s")
        else:
            self.servo(motion, now)

    def servo(self, motion: Motion, now: float) -> None:
        """Send the set point of this moment; stop servoing once the arm has settled at the end."""
        elapsed_s, goal_rad = now - motion.begin_s, motion.spline.joints_rad[-1]
        motion.setpoint_rad, motion.speed_rad_s = motion.spline.at(elapsed_s)
        motion.late_s.append(now - self.due_s)
        if not self.control.servoJ(motion.setpoint_rad.tolist(), IGNORED, IGNORED, CYCLE_S, LOOKAHEAD_S, GAIN):
            self.finish(self.safety_stop() or "the controller refused a set point")
        elif elapsed_s >= motion.spline.duration_s:
            motion.cycles_at_end += 1
            if self.near(goal_rad):
                self.end("reached")
            elif motion.cycles_at_end * CYCLE_S > SETTLE_S:
                self.end(f"did not settle: {np.abs(self.joints - goal_rad).max():.4f} rad from the end")

    def safety_stop(self) -> str:
        """The safety stop that ended a motion, empty if none did: it may be reported a moment after its effect."""
        limit_s = time.monotonic() + STOP_REPORT_S
        while not self.safety_bits & STOP_BITS and time.monotonic() < limit_s:
            time.sleep(CYCLE_S)
            self.read()
        return describe(self.safety_bits) if self.safety_bits & STOP_BITS else ""

    def near(self, goal_rad: Array) -> bool:
        """Whether the arm rests at joint angles."""
        return bool(
            np.abs(self.joints - goal_rad).max() < SETTLED_RAD and np.abs(self.velocities).max() < SETTLED_RAD_S
        )

    def end(self, why: str) -> None:
        """Brake if a motion is under way, and record its end."""
        if self.motion is None:
            return
        if not self.control.servoStop(SERVO_DECELERATION_M_S2) and self.control.isProgramRunning():
            self.control.stopScript()  # the arm brakes when the program ends
        self.finish(why)

    def finish(self, why: str) -> None:
        """The motion is over."""
        motion, self.motion, self.result = self.motion, None, why
        if motion is not None and motion.late_s:
            late = np.array(motion.late_s)
            elapsed_s = time.monotonic() - motion.begin_s
            self.statistics = (len(late), elapsed_s, float(np.percentile(late, 99)), float(late.max()))


def child_main(hostname: str, timeout_s: float, link: Connection) -> None:
    """Main function of the process: ends on "close", with its parent, or with the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent as well, which closes this process
    code, driver = 0, None
    try:
        driver = RtdeDriver(hostname, timeout_s, link)  # kept until the end: its destructor may never return
        driver.run()
    except (EOFError, ConnectionError):  # the parent is gone
        if driver is not None:
            with contextlib.suppress(Exception):
                driver.end("the parent process ended")
    except Exception as error:
        code = 1
        with contextlib.suppress(OSError):
            link.send(f"{error}" if isinstance(error, InfrastructureError) else f"{type(error).__name__}: {error}")
    os._exit(code)  # without waiting for the client's threads
