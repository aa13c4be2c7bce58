"""Stops of the UR driver's way before real controllers, measured in the controller's own state.

MERTON_STOPS=100 makes the stops of the table in docs/lab/lab_robot.md, with each controller, at 125 and at 500 Hz, and
prints it (`-s`).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import SafetyState
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from measured_stop import MeasuredStop
from merton.execution.gate.safety import MODES, Limits
from merton.world.cell import load_cell
from merton_nodes.cell.messages import arm_state_of
from merton_nodes.ros import names
from ros import Probe, Ros, trigger
from ros2_control import NEEDED, PLAIN, SCALED, Bench

pytestmark = [pytest.mark.needs(*NEEDED), pytest.mark.timeout(1800)]
CONTROLLERS = [pytest.param(PLAIN), pytest.param(SCALED, marks=pytest.mark.needs("ur_controllers"))]
STOPS = int(os.environ.get("MERTON_STOPS", "4"))
HOME = load_cell().home_joints


@pytest.fixture
def make(ros: Ros, probe: Probe, processes: Any, tmp_path: Path) -> Any:
    return lambda controller, **options: Bench(ros, probe, processes, tmp_path, controller, **options)


def fastest(distance_rad: np.ndarray, limits: Limits) -> float:
    """Duration [s] of a `Bench.motion` within limits, with the planner's distance from them."""
    turn = float(np.abs(distance_rad).max())
    by_speed = np.pi / 2 * turn / (limits.peak_joint_speed_rad_s / 1.05)
    return float(max(by_speed, np.sqrt(np.pi**2 / 2 * turn / (limits.peak_joint_acceleration_rad_s2 / 1.3))))


def stopped_at_random(
    bench: Bench, random: np.random.Generator, stop: Callable[[], None], mode: str = "reduced", reach_rad: float = 1.5
) -> MeasuredStop:
    """A random motion that is stopped at a random moment, and judged; far ones for a stop that takes effect later."""
    limits, begin = MODES[mode], len(bench.raw)
    goal = under_way(bench, random, mode, reach_rad)
    asked_s = time.time()
    stop()
    bench.wait_for_rest(asked_s)
    found = MeasuredStop(bench.states(begin), asked_s, bench.rate_hz)
    assert np.abs(found.goal_rad - goal).max() > 1e-3, "it stopped on the way"
    found.check(limits)
    return found


def under_way(bench: Bench, random: np.random.Generator, mode: str, reach_rad: float) -> np.ndarray:
    """A random motion as fast as its mode allows, a random share of which is done; returns its goal (6,) [rad]."""
    while True:
        goal = HOME + random.uniform(-reach_rad, reach_rad, 6)
        if partly_done(bench, goal, fastest(goal - bench.joints_rad, MODES[mode]), random.uniform(0.05, 0.65)):
            return goal
        bench.wait_for_rest()


def partly_done(bench: Bench, goal: np.ndarray, duration_s: float, share: float) -> bool:
    """Begin a motion, and wait until a share of its time is over; false if this process was late itself."""
    start, begin_s = bench.joints_rad, time.time()
    bench.move(goal, duration_s)
    turn = 0.5 - 0.5 * np.cos(np.pi * share)
    way_rad, normal = turn * np.abs(goal - start).max(), SafetyState.NORMAL
    bench.ros.until(lambda: np.abs(bench.joints_rad - start).max() >= way_rad or bench.safety[-1].mode != normal)
    assert bench.safety[-1].mode == normal, bench.safety[-1].message
    return time.time() < begin_s + 0.8 * duration_s


def table_row(stops: list[MeasuredStop], **what: object) -> str:
    """A row of the table in docs/lab/lab_robot.md."""
    late_ms = [round(1e3 * float(np.quantile([stop.late_s for stop in stops], share)), 1) for share in (0, 0.5, 1)]
    return json.dumps(
        {
            **what,
            "stops": len(stops),
            "usual": sum(stop.is_usual for stop in stops),
            "whole": sum(stop.whole for stop in stops),
            "late_ms": late_ms,
            "reversals": sum(stop.backwards_rad_s > 1e-6 for stop in stops),
            "backwards_rad_s": max(stop.backwards_rad_s for stop in stops),
            "fastest_rad_s": round(max(stop.speed_rad_s for stop in stops), 2),
            "peak_rad_s2": round(max(stop.peak_rad_s2 for stop in stops), 2),
            "longest_s": round(max(stop.to_rest_s for stop in stops), 3),
            "farthest_rad": round(max(stop.distance_rad for stop in stops), 3),
            "gap_rad": round(max(stop.gap_rad for stop in stops), 5),
        }
    )


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("rate_hz", [125, 500])
def test_stops_at_random_moments_of_random_motions(make: Any, controller: str, rate_hz: int) -> None:
    bench, random = make(controller, rate_hz=rate_hz), np.random.default_rng(14)
    for mode in MODES:
        stops = [stopped_at_random(bench, random, bench.stop, mode) for _ in range(STOPS)]
        assert any(stop.is_usual for stop in stops)
        assert bench.safety[-1].mode == SafetyState.NORMAL
        print(table_row(stops, controller=controller, rate_hz=rate_hz, mode=mode))


def lose_heartbeat(bench: Bench) -> None:
    bench.beats = False


def hang(bench: Bench) -> None:
    os.kill(bench.node_pid, signal.SIGSTOP)


def end(bench: Bench) -> None:
    os.kill(bench.node_pid, signal.SIGTERM)


def kill(bench: Bench) -> None:
    os.kill(bench.node_pid, signal.SIGKILL)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("event", [lose_heartbeat, hang, end, kill])
def test_the_arm_stops_if_its_commander_or_the_node_is_gone(
    make: Any, probe: Probe, controller: str, event: Callable[[Bench], None]
) -> None:
    """After kill -9 the guard of the node is left, and knows the motion by its plan."""
    bench, random, stops = make(controller, heartbeat_timeout_s=0.5), np.random.default_rng(2), []
    for left in reversed(range(-(-STOPS // 5))):
        stops.append(stopped_at_random(bench, random, lambda: event(bench), reach_rad=3.0))
        if event is lose_heartbeat:
            bench.wait_for_fault("no arm/heartbeat")
            bench.beats = True
        elif event is hang:
            os.kill(bench.node_pid, signal.SIGCONT)
            bench.wait_for_fault("its guard braked it")
        else:
            bench.ros.until(lambda: not bench.node.session())
            if left:
                bench.start_node()
            continue
        assert trigger(bench.ros, probe, names.CELL_RELEASE).success
        bench.ros.until(lambda: bench.safety[-1].mode == SafetyState.NORMAL)
    print(table_row(stops, controller=controller, event=event.__name__))


def halted(states: list[bytes]) -> tuple[float, int]:
    """The step of the fastest joint in a cycle [rad] before it halted, and the cycles in which it did."""
    joints_rad = np.array([arm_state_of(deserialize_message(state, JointState))[0] for state in states])
    steps = np.diff(joints_rad, axis=0)
    last = np.flatnonzero(np.abs(steps).max(axis=1) > 1e-9)[-1]
    before = np.median(steps[last - 8 : last - 2], axis=0)
    joint = np.abs(before).argmax()
    shares = steps[last - 2 :, joint] / before[joint]
    assert (shares > -1e-6).all(), "it does not turn around"
    return float(abs(before[joint])), 1 + int((shares[:3] < 0.5).sum())


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("rate_hz", [125, 500])
def test_a_controller_that_is_deactivated_holds_its_last_command(
    make: Any, ros: Ros, probe: Probe, controller: str, rate_hz: int
) -> None:
    """The arm stands in the next cycle of the mock hardware, far beyond the limits of its mode; Merton says FAULT."""
    bench, random = make(controller, rate_hz=rate_hz), np.random.default_rng(3)
    raw: list[bytes] = []
    probe.create_subscription(JointState, names.DRIVER_JOINT_STATES, raw.append, names.RELIABLE_QOS, raw=True)
    for mode in MODES:
        halts: list[tuple[float, int]] = []
        for _ in range(-(-STOPS // 5)):
            raw.clear()
            under_way(bench, random, mode, 1.5)
            bench.switch([], [controller])
            bench.wait_for_fault("the controller was deactivated during a motion")
            halts.append(halted(list(raw)))
            bench.switch([controller], [])
            assert trigger(ros, probe, names.CELL_RELEASE).success
            ros.until(lambda: bench.safety[-1].mode == SafetyState.NORMAL)
        steps_rad, cycles = zip(*halts, strict=True)
        assert max(cycles) <= 2, "one, and one more if a command came between two states"
        speeds = np.round(np.multiply(steps_rad, rate_hz), 2).tolist()
        print(
            json.dumps({"controller": controller, "rate_hz": rate_hz, "mode": mode, "speeds": speeds, "cycles": cycles})
        )
