"""The motion between waypoints: the cubic Hermite spline a joint trajectory controller executes, and its peaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import ErrorCode
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.kinematics import base_from_tcp
from merton.world.cell import CellConfig
from merton.world.geometry import Array

GRIPPER_CHANGE = 0.02
"""A gripper value this close to the last command is no new command: else a policy's ripple stops the arm every step."""

TOOL_SAMPLES = 16
"""The tool's speed and acceleration are sampled this many times a delta, and at its end."""

BETWEEN_SAMPLES = 1.01
"""Factor by which the tool may be faster between two samples than at them; a test compares."""

ADDED_TO_SPEED, ADDED_TO_ACCELERATION = 1.05, 1.3
"""Factors by which an arm's servos may exceed the motion they are sent: the limits bind the arm, not its commands.
Measured in the embedded cell, whose servos overshoot: at most 1.02 and 1.26 in fuzzed sequences, see test_gate_fuzz."""

_DIFFERENCE = 1e-3
"""Step of the central differences that give the tool's speed and acceleration from exact ones of the joints, as a
part of a delta."""


@dataclass(frozen=True)
class Peaks:
    """The highest speeds and accelerations within each of n deltas, (n,) each.

    Attributes:
        joint_speed: of the fastest joint [rad/s], exact.
        joint_acceleration: of the most accelerated joint [rad/s2], exact.
        tcp_speed, tcp_acceleration: of the tool centre point [m/s], [m/s2]: upper bounds, from samples.
    """

    joint_speed: Array
    joint_acceleration: Array
    tcp_speed: Array
    tcp_acceleration: Array


def gripper_intervals(gripper: Array) -> Iterator[tuple[int, int, float | None]]:
    """Intervals of waypoints (first, last, gripper command or None) between which the arm must rest for the gripper."""
    commanded, first, command = gripper[0], 0, None
    for index in range(1, len(gripper)):
        if not abs(gripper[index] - commanded) <= GRIPPER_CHANGE:  # NaN, unknown, is a change
            if index > 1:
                yield first, index - 1, command
            commanded, first, command = gripper[index], index - 1, float(gripper[index])
    if len(gripper) > 1:
        yield first, len(gripper) - 1, command


def velocities(joints: Array, gripper: Array, step_s: float) -> Array:
    """(k, 6) [rad/s]: central differences, but so that no joint goes beyond the waypoints it passes between.

    Zero wherever a stretch begins or ends and where a joint turns back, and at most three times the slower of the
    deltas beside it (Fritsch and Carlson 1980). Else a delta that hardly moves, before one that does, would swing the
    arm back first, and press an object that it has just grasped into the table.
    """
    slopes = np.diff(joints, axis=0) / step_s
    before, after = slopes[:-1], slopes[1:]
    limit = 3 * np.minimum(np.abs(before), np.abs(after)) * (np.sign(before) == np.sign(after))
    result = np.zeros_like(joints)
    result[1:-1] = np.clip((before + after) / 2, -limit, limit)
    for first, last, _ in gripper_intervals(gripper):
        result[[first, last]] = 0.0
    return result


def positions(joints: Array, speeds: Array, step_s: float, piece: NDArray[np.intp], phase: Array) -> Array:
    """(n, 6) [rad] on the pieces (n,) of the spline, at phases (n,) from 0 to 1 of each."""
    phase = phase[:, None]
    return np.asarray(
        (2 * phase**3 - 3 * phase**2 + 1) * joints[piece]
        + (phase**3 - 2 * phase**2 + phase) * step_s * speeds[piece]
        + (3 * phase**2 - 2 * phase**3) * joints[piece + 1]
        + (phase**3 - phase**2) * step_s * speeds[piece + 1]
    )


def peaks(joints: Array, speeds: Array, step_s: float, cell: CellConfig) -> Peaks:
    """The peaks of each of the n deltas between the waypoints (n + 1, 6) [rad] with speeds (n + 1, 6) [rad/s].

    On a cubic the acceleration is linear, so it peaks at an end; the speed peaks there or where that crosses zero.
    """
    mean = np.diff(joints, axis=0) / step_s
    before, after = speeds[:-1], speeds[1:]
    first = (6 * mean - 4 * before - 2 * after) / step_s
    last = (-6 * mean + 2 * before + 4 * after) / step_s
    with np.errstate(divide="ignore", invalid="ignore"):
        turning = np.clip(np.nan_to_num(first / (first - last)), 0.0, 1.0)
    middle = before + step_s * (first * turning + (last - first) * turning**2 / 2)
    fastest = np.maximum(np.maximum(np.abs(before), np.abs(after)), np.abs(middle)).max(axis=1)

    phase = np.linspace(0.0, 1.0, TOOL_SAMPLES + 1)[:, None, None]
    at = np.arange(len(mean) * len(phase)) % len(mean)
    position = positions(joints, speeds, step_s, at, np.repeat(phase.ravel(), len(mean)))
    speed = (before + step_s * (first * phase + (last - first) * phase**2 / 2)).reshape(-1, 6)
    acceleration = (first + (last - first) * phase).reshape(-1, 6)
    difference_s = _DIFFERENCE * step_s
    near = [
        base_from_tcp(position + h * speed + h * h / 2 * acceleration, cell)[:, :3, 3]
        for h in (-difference_s, 0.0, difference_s)
    ]
    tcp_speed = np.linalg.norm(near[2] - near[0], axis=1) / (2 * difference_s)
    tcp_acceleration = np.linalg.norm(near[2] - 2 * near[1] + near[0], axis=1) / difference_s**2
    shape = (len(phase), len(mean))
    return Peaks(
        fastest,
        np.maximum(np.abs(first), np.abs(last)).max(axis=1),
        BETWEEN_SAMPLES * tcp_speed.reshape(shape).max(axis=0),
        BETWEEN_SAMPLES * tcp_acceleration.reshape(shape).max(axis=0),
    )


def needed_slowdown(peak: Peaks, limits: Limits) -> tuple[Verdict | None, float]:
    """A verdict if the peak limits need too slow a motion, else None; and the factor of the slowdown, 1 for none.

    As in `Predictor.first_hit`, the verdict's message is the end of a sentence on the delta it names.
    """
    speed = ADDED_TO_SPEED * np.maximum(
        peak.joint_speed / limits.peak_joint_speed_rad_s, peak.tcp_speed / limits.peak_tcp_speed_m_s
    )
    # Slowing down by a factor takes its square off the acceleration.
    acceleration = np.sqrt(
        ADDED_TO_ACCELERATION
        * np.maximum(
            peak.joint_acceleration / limits.peak_joint_acceleration_rad_s2,
            peak.tcp_acceleration / limits.peak_tcp_acceleration_m_s2,
        )
    )
    needed = np.maximum(speed, acceleration)
    index = int((needed > limits.most_slowdown).argmax())
    if needed[index] > limits.most_slowdown:
        code = ErrorCode.SPEED_LIMIT if speed[index] >= acceleration[index] else ErrorCode.ACCELERATION_LIMIT
        much = f"would have to be {needed[index]:.3g} times slower, limit {limits.most_slowdown:g}"
        return Verdict(code, much, index), 1.0
    return None, max(1.0, float(needed.max()))
