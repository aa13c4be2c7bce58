"""A stop of the arm, measured in the reference of the controller that carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from merton.execution.braking import BRAKE_S, DELAY_ERROR_S
from merton.execution.gate.safety import Limits
from merton.world.cell import ARM_JOINTS

UNSEEN_CYCLES = 1.5
"""Time between two states [cycles] from which on a cycle was left out, by the controller or by its publisher."""


def seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)


class MeasuredStop:
    """From the last state before the request to rest, every cycle in it: also that in which the stop is taken over.

    Args:
        states: control_msgs/JointTrajectoryControllerState, from one before the request on until after rest.
        asked_s: when the stop was asked for, by the clock of the stamps [s].
        rate_hz: of the controller.

    Attributes:
        peak_rad_s2: highest acceleration of any joint, of the reference itself and by the steps of its speed.
        gap_rad: largest step of a joint's position that its speed does not explain.
        backwards_rad_s: highest speed of a joint against its direction at the request.
        speed_rad_s: highest speed of a joint at the request.
        to_rest_s, distance_rad: from the request to rest; the distance is that of the joint that went farthest.
        late_s: how much later than expected the controller took the stop [s].
        goal_rad: (6,) where the arm rests.
        whole: whether the state of every cycle is there. Where some are missing, speeds change evenly in between.
    """

    def __init__(self, states: Sequence[Any], asked_s: float, rate_hz: float) -> None:
        order = [states[0].joint_names.index(name) for name in ARM_JOINTS]
        times = np.array([seconds(state.header.stamp) for state in states])
        positions, speeds, accelerations = (
            np.array([getattr(state.reference, name) for state in states])[:, order]
            for name in ("positions", "velocities", "accelerations")
        )
        first = int(np.searchsorted(times, asked_s)) - 1
        assert first >= 0, "a state from before the request"
        rest = first + int(np.argmax(np.abs(speeds[first:]).max(axis=1) < 1e-9))
        assert rest > first, "it was moving, and came to rest"
        part = slice(first, rest + 1)
        times, positions, speeds, accelerations = (each[part] for each in (times, positions, speeds, accelerations))
        period_s = np.diff(times)[:, None]
        steps = np.abs(np.diff(speeds, axis=0))
        explained = np.maximum(np.abs(accelerations[:-1]), np.abs(accelerations[1:]))
        seen = period_s < UNSEEN_CYCLES / rate_hz
        # a step that the accelerations do not explain was made within one cycle
        jumps = np.where(seen, np.maximum(0.0, steps - explained * period_s) * rate_hz, 0.0)
        self.peak_rad_s2 = float(np.maximum(explained + jumps, steps / period_s).max())
        self.gap_rad = float(np.abs(np.diff(positions, axis=0) - (speeds[:-1] + speeds[1:]) / 2 * period_s).max())
        self.backwards_rad_s = float(max(0.0, (-speeds * np.sign(speeds[0])).max()))
        self.speed_rad_s = float(np.abs(speeds[0]).max())
        self.to_rest_s = float(times[-1] - asked_s)
        self.distance_rad = float(np.abs(positions[-1] - positions[0]).max())
        self.goal_rad, self.whole = positions[-1], bool(seen.all())
        taken = max(0, int(np.searchsorted(times, times[-1] - BRAKE_S + 1e-4)) - 1)
        fast = int(np.argmax(np.abs(speeds[taken])))
        self.late_s = float(BRAKE_S / 2 - (positions[-1] - positions[taken])[fast] / speeds[taken, fast])
        self._speed_when_taken = float(np.abs(speeds[taken, fast]))

    @property
    def is_usual(self) -> bool:
        """Whether the controller took the stop when it was expected to, which a busy machine delays."""
        return abs(self.late_s) <= DELAY_ERROR_S

    def check(self, limits: Limits) -> None:
        """It is as smooth as the delay of its messages allows, and within the limits of its mode if that is usual."""
        speed = self._speed_when_taken
        by_delay = speed / BRAKE_S + 6 * speed * abs(self.late_s) / BRAKE_S**2
        assert self.peak_rad_s2 <= max(1.1 * by_delay + 0.2, limits.peak_joint_acceleration_rad_s2), vars(self)
        if self.is_usual:
            assert self.backwards_rad_s < 1e-3, "no joint turns around"
            assert self.peak_rad_s2 <= limits.peak_joint_acceleration_rad_s2, vars(self)
