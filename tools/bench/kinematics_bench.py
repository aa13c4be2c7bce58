"""Poses per second of the kinematics, beside peers; part of tools/bench/bench.py."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timing import cpu_seconds

from merton.execution.kinematics import ROBOTS
from merton.execution.kinematics.calibrated_robot import calibrated
from merton.world.kinematic_calibration import KinematicCalibration, nominal

UR5 = ROBOTS["UR5"]
"""The arm of the published comparison, docs/reference/performance.md."""

REGULAR = 0.02
"""Smallest singular value of the Jacobian above which a posture is well defined by its pose."""


def kinematics() -> dict[str, Any]:
    """The UR5: poses per second in batches, microseconds for one pose, and the same of peers where they are installed.

    Everything here, the peers included, runs in one thread; times are processor times. Joints are uniform in a turn.
    "inverse" is all branches of a pose, "near" one solution near a posture, from a start where every joint is 0.05 rad
    off, "one" a call for each pose. A peer's agreement is the largest difference between its pose matrix and ours.
    """
    rng = np.random.default_rng(0)
    joints = rng.uniform(-np.pi, np.pi, (100_000, 6))
    poses = UR5.forward(joints)
    some, starts = slice(2000), joints[:2000] + 0.05
    theirs = UR5.forward(joints[some], frame="base")
    pairs = list(zip(poses[some], starts, strict=True))

    def forward_one_us() -> float:
        return 1e6 / len(pairs) * cpu_seconds(lambda: [UR5.forward(start) for _, start in pairs])

    result: dict[str, Any] = {
        "forward_per_s": len(joints) / cpu_seconds(lambda: UR5.forward(joints)),
        "forward_one_us": forward_one_us(),
        "inverse_8_branches_per_s": len(joints) / cpu_seconds(lambda: UR5.inverse(poses)),
        "inverse_one_us": 1e6 / len(pairs) * cpu_seconds(lambda: [UR5.inverse(pose) for pose, _ in pairs]),
        "solve_us": 1e6 / len(pairs) * cpu_seconds(lambda: [UR5.solve(pose, start) for pose, start in pairs]),
    }
    result["calibrated"] = calibrated_arm()
    for name, measure in (("ur_analytic_ik", ur_analytic_ik), ("eaik", eaik), ("roboticstoolbox", roboticstoolbox)):
        try:
            peer = measure(joints[some], theirs, starts)
        except ImportError as error:
            result[name] = {"skipped": f"{error} (wheels: requirements/bench.txt)"}
            continue
        peer["forward_times_faster"] = result["forward_per_s"] / peer["forward_per_s"]
        if "forward_one_us" in peer:
            # measured again beside the peer: a microsecond changes from second to second on a shared machine
            peer["forward_one_times_faster"] = peer["forward_one_us"] / forward_one_us()
        if "inverse_per_s" in peer:
            peer["inverse_times_faster"] = result["inverse_8_branches_per_s"] / peer["inverse_per_s"]
            peer["inverse_one_times_faster"] = 1e6 / peer["inverse_per_s"] / result["inverse_one_us"]
        if "near_us" in peer:
            peer["near_times_faster"] = peer["near_us"] / result["solve_us"]
        result[name] = peer
    return result


def calibrated_arm() -> dict[str, Any]:
    """A UR5 with a made-up calibration of the published size: how far the tool is off, what solutions cost and reach.

    10,000 postures, uniform in a turn, and all branches of the first 2,000; "near" as in `kinematics`. A posture or
    branch is regular if its Jacobian's smallest singular value is above `REGULAR`. "found" is how many postures are
    among the solutions of their own poses, "lost" how many regular branches of the arm as drawn have no counterpart.
    """
    rng = np.random.default_rng(0)
    drawn = nominal(UR5.lengths)
    origins = np.array(drawn.origins) + rng.normal(size=(6, 6)) * [4e-4, 4e-4, 4e-4, 1e-3, 1e-3, 1e-3]
    robot = calibrated(UR5, KinematicCalibration(tuple(map(tuple, origins.tolist()))))
    joints = rng.uniform(-np.pi, np.pi, (10_000, 6))
    poses, some = robot.forward(joints), slice(2000)
    off_m = np.linalg.norm(UR5.forward(joints)[:, :3, 3] - poses[:, :3, 3], axis=1)
    solved = [robot.solve(pose, start) for pose, start in zip(poses, joints + 0.05, strict=True)]
    followed = [robot.solve(pose, start).joints for pose, start in zip(poses, joints + 1e-3, strict=True)]
    branches = UR5.inverse(poses[some])
    branches[~(_least_singular_value(np.nan_to_num(branches)) > REGULAR)] = np.nan
    solutions: list[Any] = []
    inverse_s = cpu_seconds(lambda: solutions.append(robot.inverse(poses[some])), repetitions=1)
    found = (np.abs(_wrapped(solutions[0] - joints[some, None])).max(axis=2) < 1e-6).any(axis=1)
    regular = _least_singular_value(joints[some]) > REGULAR
    pairs = list(zip(poses[some], joints[some] + 0.05, strict=True))
    return {
        "drawn_off_mm": {"mean": 1e3 * float(off_m.mean()), "most": 1e3 * float(off_m.max())},
        "residual_m": max(result.residual_m for result in solved if result.success),
        "residual_rad": max(result.residual_rad for result in solved if result.success),
        "unsolved": sum(not result.success for result in solved),
        "followed": float((np.abs(_wrapped(np.array(followed) - joints)).max(axis=1) < 0.05).mean()),
        "found": {
            "all": float(found.mean()),
            "regular": float(found[regular].mean()),
            "regular_of": int(regular.sum()),
        },
        "branches": int((~np.isnan(branches[..., 0])).sum()),
        "lost": int((~np.isnan(branches[..., 0]) & np.isnan(solutions[0][..., 0])).sum()),
        "forward_per_s": len(joints) / cpu_seconds(lambda: robot.forward(joints)),
        "inverse_per_s": len(found) / inverse_s,
        "solve_us": 1e6 / len(pairs) * cpu_seconds(lambda: [robot.solve(pose, start) for pose, start in pairs]),
    }


def _least_singular_value(joints: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.svd(UR5.jacobian(joints), compute_uv=False)[..., -1]


def _wrapped(angles_rad: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same directions in [-pi, pi]."""
    return angles_rad - 2 * np.pi * np.round(angles_rad / (2 * np.pi))


def ur_analytic_ik(joints: NDArray[np.float64], poses: NDArray[np.float64], starts: NDArray[np.float64]) -> Any:
    """C++, closed form, one pose a call."""
    from ur_analytic_ik import ur5

    rows, pairs = joints.tolist(), list(zip(poses, starts.tolist(), strict=True))
    forward_s = cpu_seconds(lambda: [ur5.forward_kinematics(*row) for row in rows])
    return {
        "agreement": float(np.abs(np.array([ur5.forward_kinematics(*row) for row in rows]) - poses).max()),
        "forward_per_s": len(rows) / forward_s,
        "forward_one_us": 1e6 / len(rows) * forward_s,
        "inverse_per_s": len(rows) / cpu_seconds(lambda: [ur5.inverse_kinematics(pose) for pose in poses]),
        "near_us": 1e6 / len(rows) * cpu_seconds(lambda: [ur5.inverse_kinematics_closest(p, *q) for p, q in pairs]),
    }


def eaik(joints: NDArray[np.float64], poses: NDArray[np.float64], starts: NDArray[np.float64]) -> Any:
    """C++, subproblem decomposition, one pose a call; it has no solution near a posture."""
    from eaik.IK_DH import DhRobot

    arm = DhRobot(*(np.array(column) for column in standard_dh()))
    forward_s = cpu_seconds(lambda: [arm.fwdKin(row) for row in joints])
    return {
        "agreement": float(np.abs(np.array([arm.fwdKin(row) for row in joints]) - poses).max()),
        "forward_per_s": len(joints) / forward_s,
        "forward_one_us": 1e6 / len(joints) * forward_s,
        "inverse_per_s": len(joints) / cpu_seconds(lambda: [arm.IK(pose) for pose in poses]),
    }


def standard_dh() -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """The UR5's twists [rad], lengths a [m] and offsets d [m] in the standard Denavit-Hartenberg convention."""
    quarter = np.pi / 2
    d1, a2, a3, d4, d5, d6 = astuple(UR5.lengths)
    return (quarter, 0, 0, quarter, -quarter, 0), (0, a2, a3, 0, 0, 0), (d1, 0, 0, d4, d5, d6)


def roboticstoolbox(joints: NDArray[np.float64], poses: NDArray[np.float64], starts: NDArray[np.float64]) -> Any:
    """C++ behind Python; Levenberg-Marquardt to a residual of 1e-6, one solution."""
    from roboticstoolbox import DHRobot, RevoluteDH

    arm = DHRobot([RevoluteDH(d=d, a=a, alpha=turn) for turn, a, d in zip(*standard_dh(), strict=True)]).ets()
    pairs = list(zip(poses, starts, strict=True))
    return {
        "agreement": float(np.abs(arm.eval(joints) - poses).max()),
        "forward_per_s": len(joints) / cpu_seconds(lambda: arm.eval(joints)),
        "near_us": 1e6 / len(joints) * cpu_seconds(lambda: [arm.ik_LM(pose, q0=start) for pose, start in pairs]),
        "near_solved": float(np.mean([arm.ik_LM(pose, q0=start).success for pose, start in pairs])),
    }
