"""Nothing gets past the gate: fuzzed sequences, checked against the spline itself and in the simulator's own record.

MERTON_FUZZ_PLANNED and MERTON_FUZZ_EXECUTED say how many sequences are tried (100000 and 500 before a release), and
MERTON_FUZZ_SEED which.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fuzz import KINDS, count, sequence
from scipy.interpolate import CubicHermiteSpline

from merton.errors import ErrorCode
from merton.execution.gate.collision import Guard, HeldObject
from merton.execution.gate.planner import MotionPlan, plan, segments
from merton.execution.gate.safety import MODES, Limits
from merton.execution.kinematics import ROBOTS, base_from_tcp
from merton.simulation.cell import SimulatedCell
from merton.simulation.model import TIMESTEP_S
from merton.world.cell import CellConfig, load_cell

UR5 = ROBOTS["UR5"]

PLANNED = count("MERTON_FUZZ_PLANNED", 1000)
EXECUTED = count("MERTON_FUZZ_EXECUTED", 25)
SEED = count("MERTON_FUZZ_SEED", 0)


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


def narrow(cell: CellConfig) -> CellConfig:
    """The cell with walls where the arm can reach them, and no workspace that ends before."""
    places = {"back": (0.75, 0.0, 0.45), "left": (0.45, 0.40, 0.45)}
    walls = tuple(box.model_copy(update={"center": places[box.name]}) for box in cell.walls)
    everywhere = cell.workspace.model_copy(update={"min": (-9, -9, -9), "max": (9, 9, 9)})
    return cell.model_copy(update={"walls": walls, "workspace": everywhere})


def assert_bounded(
    motion: MotionPlan,
    cell: CellConfig,
    limits: Limits,
    guard: Guard,
    rng: np.random.Generator,
    held_m: float,
) -> None:
    """Every limit, measured on the spline with other means than the gate's."""
    assert motion.executed == len(motion.joints_rad) - 1 == len(motion.times_s) - 1
    assert 1.0 <= motion.slowdown <= limits.most_slowdown
    steps = np.linalg.norm(np.diff(motion.base_from_tcp[:, :3, 3], axis=0), axis=1)
    assert (steps <= limits.step_translation_m + 1e-9).all()
    here = motion.base_from_tcp[0, :3, 3]
    outside = max(0.001, cell.workspace.outside_m(here))
    assert all(cell.workspace.outside_m(pose[:3, 3]) <= outside for pose in motion.base_from_tcp)
    opening_m = float(np.nan_to_num(motion.gripper_open[0], nan=1.0)) * cell.gripper.stroke
    start = guard.clearance(motion.joints_rad[0], max(opening_m, held_m)).distance_m
    floor = min(0.5 * limits.stopping_margin_m, start - 0.001)  # the gate looks at points of the path
    itself = guard.self_clearances(motion.joints_rad[:1], max(opening_m, held_m))[0].distance_m
    self_floor = min(0.5 * limits.stopping_margin_m, itself - 0.001)
    for part in segments(motion):
        if part.gripper is not None:
            opening_m = part.gripper * cell.gripper.stroke
        if not part.moves:
            continue
        spline = CubicHermiteSpline(part.times_s, part.joints_rad, part.velocities_rad_s)
        times = np.unique(np.concatenate([part.times_s, np.linspace(0, part.times_s[-1], 20 * len(part.times_s))]))
        joints, speeds = spline(times), spline(times, 1)
        assert np.abs(speeds).max() <= limits.peak_joint_speed_rad_s * (1 + 1e-9)
        inside = np.concatenate([part.times_s[:-1] * (1 + 1e-12) + 1e-12, part.times_s[1:] * (1 - 1e-9)])
        assert np.abs(spline(inside, 2)).max() <= limits.peak_joint_acceleration_rad_s2 * (1 + 1e-6)
        assert (np.abs(joints) <= np.array(UR5.joint_limits_rad) + 1e-9).all()
        tcp = base_from_tcp(joints, cell)[:, :3, 3]
        chords = np.linalg.norm(np.diff(tcp, axis=0), axis=1) / np.diff(times)
        assert chords.max() <= limits.peak_tcp_speed_m_s * (1 + 1e-6)
        some = rng.integers(0, len(times), 8)
        assert min(item.distance_m for item in guard.clearances(joints[some], np.full(8, opening_m))) > floor
        assert min(item.distance_m for item in guard.self_clearances(joints[some], np.full(8, opening_m))) > self_floor


def test_nothing_gets_past_the_gate(cell: CellConfig) -> None:
    """For any input: a verdict, never an exception, and every limit of the mode is kept along the spline."""
    rng = np.random.default_rng(SEED)
    cells = [(one, Guard(one)) for one in (cell, narrow(cell))]
    codes: Counter[ErrorCode] = Counter()
    kinds: Counter[str] = Counter()
    slowed = 0
    joints, opened = cell.home_joints, 1.0
    for index in range(PLANNED):
        mode = ("normal", "reduced")[index % 2]
        taken = HeldObject(0.045, 0.022) if index % 3 == 0 else None
        fuzzed = sequence(rng)
        cell, guard = cells[index // 50 % 2]
        motion = plan(joints, fuzzed.deltas, fuzzed.step_s, fuzzed.frame, cell, MODES[mode], opened, taken)
        codes[motion.verdict.code] += 1
        kinds[fuzzed.kind] += 1
        slowed += motion.slowdown > 1
        assert bool(motion.verdict.message) is not motion.verdict.ok
        assert_bounded(motion, cell, MODES[mode], guard, rng, 0.0 if taken is None else taken.width_m)
        joints, opened = motion.joints_rad[-1], float(motion.gripper_open[-1])
        if index % 10 == 9 or motion.verdict.stops:
            joints, opened = cell.home_joints, float(rng.choice([np.nan, 0.0, 0.3, 1.0]))
    print(f"{PLANNED} sequences, {slowed} slowed down:", {code.name: n for code, n in sorted(codes.items())})
    assert set(kinds) == set(KINDS)
    assert codes.keys() >= {
        ErrorCode.OK,
        ErrorCode.INVALID_ACTION,
        ErrorCode.STEP_LIMIT,
        ErrorCode.SPEED_LIMIT,
        ErrorCode.ACCELERATION_LIMIT,
        ErrorCode.UNREACHABLE,
        ErrorCode.WORKSPACE,
        ErrorCode.COLLISION,
        ErrorCode.SELF_COLLISION,
    }
    assert slowed


class Record:
    """Speeds and accelerations in the simulator itself, step by step, while the arm moves freely.

    Not after a stop, which brakes as hard as it can, and not while or just after the hand meets an object: what pushing
    an object does to the arm is nothing a gate that knows no objects can bound.
    """

    def __init__(self, cell: SimulatedCell) -> None:
        self.cell = cell
        self.speed = self.acceleration = self.tcp_speed = self.tcp_acceleration = self.free_s = 0.0
        model = cell.model
        names = [model.body(model.geom_bodyid[geom]).name for geom in range(model.ngeom)]
        self.solid = np.array([name == "table" or name.startswith("wall_") for name in names])
        self.robot = np.array([self._is_robot(model.geom_bodyid[geom]) for geom in range(model.ngeom)])
        self.arm = self.robot & np.array([not name.startswith(("gripper_left", "gripper_right")) for name in names])

    def _is_robot(self, body: int) -> bool:
        model = self.cell.model
        while body and model.body(body).name != "shoulder_link":
            body = model.body_parentid[body]
        return bool(body)

    def run(self) -> None:
        """To the end of the command."""
        touched_s = np.inf
        before = self.cell.joint_velocities
        tcp = self.cell.base_from_tcp[:3, 3]
        tcp_velocity = None
        while self.cell.busy:
            self.cell.advance(TIMESTEP_S)
            touching = self.cell.data.contact.geom
            hit = (self.solid[touching] & self.arm[touching[:, ::-1]]).any()
            assert not hit or self.cell.stopped, "the arm touched table or wall and was not stopped"
            met_something = (self.robot[touching].sum(axis=1) == 1).any()
            touched_s = 0.0 if met_something else touched_s + TIMESTEP_S
            now, tcp_now = self.cell.joint_velocities, self.cell.base_from_tcp[:3, 3]
            tcp_velocity_now = (tcp_now - tcp) / TIMESTEP_S
            if self.cell.stopped or touched_s < 0.3:
                before, tcp, tcp_velocity = now, tcp_now, None
                continue
            self.free_s += TIMESTEP_S
            self.speed = max(self.speed, float(np.abs(now).max()))
            self.acceleration = max(self.acceleration, float(np.abs(now - before).max()) / TIMESTEP_S)
            self.tcp_speed = max(self.tcp_speed, float(np.linalg.norm(tcp_velocity_now)))
            if tcp_velocity is not None:
                change = float(np.linalg.norm(tcp_velocity_now - tcp_velocity))
                self.tcp_acceleration = max(self.tcp_acceleration, change / TIMESTEP_S)
            before, tcp, tcp_velocity = now, tcp_now, tcp_velocity_now


@pytest.mark.parametrize("mode", list(MODES))
def test_no_bound_is_exceeded_in_the_simulators_own_record(mode: str) -> None:
    """The same sequences carried out; no touch without a stop, and every stop holds until it is lifted."""
    cell, limits = SimulatedCell(), MODES[mode]
    rng, record = np.random.default_rng(SEED), Record(cell)
    stops = {"predicted": 0, "felt": 0}
    executed = moved = index = 0
    while executed < EXECUTED:
        if index % 6 == 0 or cell.stopped:
            cell.reset("pick", int(rng.integers(0, 1000)))
        index += 1
        fuzzed = sequence(rng)
        opened = cell.gripper_opening_m / cell.config.gripper.stroke
        motion = plan(
            cell.joints_rad, fuzzed.deltas, fuzzed.step_s, fuzzed.frame, cell.config, limits, min(opened, 1.0)
        )
        if motion.verdict.code is ErrorCode.INVALID_ACTION:
            assert segments(motion) == []
            continue
        executed += 1
        for part in segments(motion):
            if part.gripper is not None:
                cell.command_gripper(part.gripper * cell.config.gripper.stroke)
                record.run()
            if part.moves:
                moved += part.deltas
                cell.command_trajectory(part.times_s, part.joints_rad, part.velocities_rad_s)
                record.run()
        stops["felt"] += cell.contact is not None
        assert (cell.contact is None) or cell.stopped
        if motion.verdict.stops and not cell.stopped:
            cell.stop()
            stops["predicted"] += 1
        if cell.stopped:
            assert not cell.command_trajectory([1.0], [cell.config.home_joints])
    print(
        f"{mode}: {executed} sequences, {moved} deltas, {stops}; free for {record.free_s:.0f} s: "
        f"joints {record.speed:.2f} rad/s and {record.acceleration:.1f} rad/s2, "
        f"tool {record.tcp_speed:.3f} m/s and {record.tcp_acceleration:.1f} m/s2"
    )
    assert record.speed <= limits.peak_joint_speed_rad_s
    assert record.tcp_speed <= limits.peak_tcp_speed_m_s
    assert record.free_s > executed / 10
    assert record.acceleration <= limits.peak_joint_acceleration_rad_s2
    assert record.tcp_acceleration <= limits.peak_tcp_acceleration_m_s2
