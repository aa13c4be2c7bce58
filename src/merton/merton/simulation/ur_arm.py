"""State of the simulated UR controller: joints, registers, the control program and the safety state.

A stand-in for an arm on a controller of the CB3 series, not a model of one: the joints follow their targets with a lag
and within speed limits, without mass and without contacts. The program is that of the package ur-rtde: it takes a
command number from input register 0 and answers in output register 0.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from merton.world.arms import Arm
from merton.world.geometry import Array

CYCLE_S = 0.008
"""One control cycle of a CB3 controller: 125 Hz."""

JOINT_ACCELERATION_RAD_S2 = 40.0
"""Ours: the most that the ur-rtde client allows; it also brakes the arm in a protective or an emergency stop."""

JOINT_LIMIT_RAD = 2 * np.pi
"""Every joint turns 360 degrees either way, the elbow too: the manuals."""

REGISTERS = 48

READY, DONE = 1, 2
"""Values of output register 0: the program waits for a command, or has done one and waits for it to be cleared."""

MOVE_JOINTS, SERVO_JOINTS, SERVO_STOP, PROTECTIVE_STOP, STOP_JOINTS = 1, 11, 16, 31, 34
SET_WATCHDOG, JOINTS_ARE_SAFE, STOP_PROGRAM = 35, 37, 255


class Safety(Enum):
    """Safety state: (safety mode of RTDE, its name on the dashboard, set bits of `safety_status_bits`)."""

    NORMAL = (1, "NORMAL", (0,))
    PROTECTIVE_STOP = (3, "PROTECTIVE_STOP", (2, 10))
    EMERGENCY_STOP = (7, "ROBOT_EMERGENCY_STOP", (6, 7, 10))

    @property
    def mode(self) -> int:
        """Number of the safety mode."""
        return self.value[0]

    @property
    def title(self) -> str:
        """Name of the safety mode."""
        return self.value[1]

    @property
    def bits(self) -> int:
        """Value of `safety_status_bits`."""
        return sum(1 << bit for bit in self.value[2])


class UrArm:
    """The state of the controller, advanced one cycle at a time.

    Args:
        arm: with the speeds of whose joints it moves.
        joints_rad: (6,) at the start.
        unlock_delay_s: time after a protective stop before it can be unlocked; 5 s on real controllers.
    """

    def __init__(self, arm: Arm, joints_rad: Array, unlock_delay_s: float = 5.0) -> None:
        self.arm = arm
        self.joints_rad = np.array(joints_rad, dtype=np.float64)
        self.velocities_rad_s = np.zeros(6)
        self.target_rad = self.joints_rad.copy()
        self.time_s = 0.0
        self.safety = Safety.NORMAL
        self.program_running = False
        self.input_int, self.output_int = [0] * REGISTERS, [0] * REGISTERS
        self.input_double, self.output_double = [0.0] * REGISTERS, [0.0] * REGISTERS
        self._fastest = np.array(arm.joint_speeds_rad_s)
        self._unlock_delay_s = unlock_delay_s
        self._stopped_at_s = 0.0
        self._input_time_s = 0.0
        self._watchdog_s = 0.0
        self._executing = False
        self._motion = "brake"
        self._lookahead_s = 0.1
        self._speed, self._acceleration = 1.0, JOINT_ACCELERATION_RAD_S2

    # Commands from outside --------------------------------------------------------------------------------------------

    def start_program(self) -> None:
        """A program arrived. It runs only in normal mode, as on a real controller."""
        if self.safety is not Safety.NORMAL:
            return
        self.stop_program()
        self.program_running = True
        self._input_time_s = self.time_s

    def stop_program(self) -> None:
        """End the program; the arm brakes."""
        self.program_running = self._executing = False
        self._watchdog_s = 0.0
        self.output_int[0] = 0
        self._brake(JOINT_ACCELERATION_RAD_S2)

    def feed_watchdog(self) -> None:
        """An input package came in."""
        self._input_time_s = self.time_s

    def trip(self, safety: Safety) -> None:
        """A protective or an emergency stop. An emergency stop is never weakened to a protective one."""
        if self.safety is not Safety.EMERGENCY_STOP:
            self.safety = safety
        self._stopped_at_s = self.time_s
        self.stop_program()

    def unlock(self) -> bool:
        """Unlock a protective stop as the dashboard does: not too soon, and never an emergency stop."""
        if self.safety is Safety.EMERGENCY_STOP or self.time_s - self._stopped_at_s < self._unlock_delay_s:
            return False
        self.safety = Safety.NORMAL
        return True

    def clear(self) -> None:
        """Clear a stop as a person does at the robot: pull the button out, power the arm, release the brakes."""
        self.safety = Safety.NORMAL

    # One cycle --------------------------------------------------------------------------------------------------------

    def cycle(self) -> None:
        """Advance by `CYCLE_S`."""
        self.time_s += CYCLE_S
        if self.program_running:
            if self._watchdog_s and self.time_s - self._input_time_s > self._watchdog_s:
                self.stop_program()
            else:
                self._program()
        self._move()

    def _program(self) -> None:
        command = self.input_int[0]
        if command == SERVO_JOINTS:  # taken anew every cycle, never answered
            self._motion = "servo"
            self.target_rad = np.array(self.input_double[:6])
            self._lookahead_s = max(self.input_double[9], CYCLE_S)
            self.output_int[0] = READY
        elif command == 0:
            self._executing = False
            self.output_int[0] = READY
        elif not self._executing:
            self._executing = True
            self.output_int[0] = 0
            self._begin(command)
        if self._executing and self._at_rest(command):
            self.output_int[0] = DONE

    def _begin(self, command: int) -> None:
        if command == MOVE_JOINTS:
            self._motion = "move"
            self.target_rad = np.array(self.input_double[:6])
            self._speed, self._acceleration = self.input_double[6:8]
        elif command in (SERVO_STOP, STOP_JOINTS):
            self._brake(self.input_double[0])
        elif command == SET_WATCHDOG:
            self._watchdog_s = 1 / self.input_double[0] if self.input_double[0] > 0 else 0.0
        elif command == JOINTS_ARE_SAFE:
            self.output_int[1] = int((np.abs(self.input_double[:6]) <= JOINT_LIMIT_RAD).all())
        elif command == PROTECTIVE_STOP:
            self.trip(Safety.PROTECTIVE_STOP)
        else:  # an unknown command too: a program with an error ends
            if command != STOP_PROGRAM:
                print(f"command {command} is not simulated", flush=True)
            self.stop_program()

    def _at_rest(self, command: int) -> bool:
        """Whether the program is done with a command; with an asynchronous motion as soon as it has begun."""
        if command == MOVE_JOINTS and not self.input_int[1]:
            return self._motion != "move"
        return command not in (SERVO_STOP, STOP_JOINTS) or not self.velocities_rad_s.any()

    def _brake(self, deceleration: float) -> None:
        self._motion, self._acceleration = "brake", max(deceleration, 0.1)

    def _move(self) -> None:
        remaining = self.target_rad - self.joints_rad
        lead = float(np.abs(remaining).max())
        if self._motion == "servo":
            limit = JOINT_ACCELERATION_RAD_S2 * CYCLE_S
            change = np.clip(remaining / self._lookahead_s - self.velocities_rad_s, -limit, limit)
            wanted = self.velocities_rad_s + change
        elif self._motion == "move" and lead > 1e-9:
            speed = float(np.abs(self.velocities_rad_s).max()) + self._acceleration * CYCLE_S
            speed = min(speed, self._speed, np.sqrt(2 * self._acceleration * lead), lead / CYCLE_S)
            wanted = remaining * speed / lead
        elif self._motion == "move":
            wanted = np.zeros(6)
            self._motion = "brake"
        else:
            limit = self._acceleration * CYCLE_S
            wanted = self.velocities_rad_s - np.clip(self.velocities_rad_s, -limit, limit)
        self.velocities_rad_s = np.clip(wanted, -self._fastest, self._fastest)
        self.joints_rad = np.clip(self.joints_rad + self.velocities_rad_s * CYCLE_S, -JOINT_LIMIT_RAD, JOINT_LIMIT_RAD)
        if self._motion == "brake":
            self.target_rad = self.joints_rad.copy()
