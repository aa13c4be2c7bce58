"""Measure what speed matters for, and write it as JSON: python tools/bench.py build/bench.json (make bench).

Each figure is the median over repetitions in one process; the machine's load at the start is in the file, because two
cores that are shared with something else measure something else.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton import __version__
from merton.config import load
from merton.execution.kinematics import UR5
from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.runner import Runner
from merton.perception.distortion import DISTORTIONS, distort
from merton.rating import agi_elo
from merton.resources import resource
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import Cell


def seconds(work: Callable[[], Any], repetitions: int = 9) -> float:
    """Median time of one call [s], after one call to warm up."""
    work()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def physics() -> dict[str, float]:
    """Simulated seconds per second while the arm moves."""
    cell = Cell()
    cell.reset("pick", 0)
    goal = cell.joints_rad + 0.2
    start = cell.joints_rad.copy()

    def move() -> None:
        cell.command_trajectory(np.array([0.0, 2.0]), np.array([cell.joints_rad, start if move.there else goal]))
        move.there = not move.there
        cell.advance(2.0)

    move.there = False
    return {"real_time_factor": 2.0 / seconds(move)}


def rendering() -> dict[str, float]:
    """Milliseconds per frame, colour and depth together."""
    cell = Cell()
    cell.reset("pick", 0)
    result = {}
    for width, height in ((424, 240), (640, 480)):
        cameras = SceneCameras(width, height)
        result[f"{width}x{height}_ms"] = 1e3 * seconds(lambda c=cameras: c.render("pick", 0, cell.qpos, "top"))
        cameras.close()
    return result


def distortions() -> dict[str, dict[str, float]]:
    """Milliseconds per 1280x720 image, one thread, levels 3 and 5."""
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    image = cv2.GaussianBlur(rng.integers(0, 255, (720, 1280, 3), np.uint8), (0, 0), 3)
    return {
        name: {
            f"level_{level}_ms": 1e3 * seconds(lambda n=name, k=level: distort(image, n, k, rng), 5) for level in (3, 5)
        }
        for name in DISTORTIONS
    }


def peers() -> dict[str, dict[str, float]]:
    """Milliseconds at level 3 beside the libraries that have the type, and how many times faster Merton is."""
    import albumentations
    from imagecorruptions import corrupt

    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    image = cv2.GaussianBlur(rng.integers(0, 255, (720, 1280, 3), np.uint8), (0, 0), 3)
    quality = (24, 24)
    rivals: dict[str, dict[str, Callable[[], Any]]] = {
        "white_noise": {"imagecorruptions": lambda: corrupt(image, corruption_name="gaussian_noise", severity=3)},
        "impulse_noise": {"imagecorruptions": lambda: corrupt(image, corruption_name="impulse_noise", severity=3)},
        "gaussian_blur": {"imagecorruptions": lambda: corrupt(image, corruption_name="gaussian_blur", severity=3)},
        "lens_blur": {"imagecorruptions": lambda: corrupt(image, corruption_name="defocus_blur", severity=3)},
        "motion_blur": {"imagecorruptions": lambda: corrupt(image, corruption_name="motion_blur", severity=3)},
        "mean_brighten": {"imagecorruptions": lambda: corrupt(image, corruption_name="brightness", severity=3)},
        "contrast_change": {"imagecorruptions": lambda: corrupt(image, corruption_name="contrast", severity=3)},
        "hsv_saturation": {"imagecorruptions": lambda: corrupt(image, corruption_name="saturate", severity=3)},
        "jpeg": {"imagecorruptions": lambda: corrupt(image, corruption_name="jpeg_compression", severity=3)},
    }
    same = {
        "white_noise": albumentations.GaussNoise(std_range=(0.055, 0.055), p=1),
        "gaussian_blur": albumentations.GaussianBlur(sigma_limit=(1.0, 1.0), blur_limit=0, p=1),
        "lens_blur": albumentations.Defocus(radius=(4, 4), alias_blur=(0.1, 0.1), p=1),
        "motion_blur": albumentations.MotionBlur(blur_limit=(5, 5), p=1),
        "hsv_saturation": albumentations.HueSaturationValue(p=1),
        "jpeg": albumentations.ImageCompression(quality_range=quality, compression_type="jpeg", p=1),
        "webp": albumentations.ImageCompression(quality_range=(10, 10), compression_type="webp", p=1),
    }
    for name, transform in same.items():
        rivals.setdefault(name, {})["albumentations"] = lambda t=transform: t(image=image)
    result = {}
    for name, others in rivals.items():
        ours = seconds(lambda n=name: distort(image, n, 3, rng))
        result[name] = {"merton_ms": 1e3 * ours}
        for rival, work in others.items():
            theirs = seconds(work, 5)
            result[name] |= {f"{rival}_ms": 1e3 * theirs, f"times_faster_than_{rival}": theirs / ours}
    return result


def kinematics() -> dict[str, float]:
    """Poses per second in batches, microseconds for one solution near a posture."""
    rng = np.random.default_rng(0)
    joints = rng.uniform(-np.pi, np.pi, (100_000, 6))
    poses = UR5.forward(joints)
    return {
        "forward_per_s": len(joints) / seconds(lambda: UR5.forward(joints)),
        "inverse_8_branches_per_s": len(joints) / seconds(lambda: UR5.inverse(poses), 3),
        "solve_us": 1e6 * seconds(lambda: UR5.solve(poses[0], joints[0]), 2000),
    }


def ratings() -> dict[str, float]:
    """Matches per second of the sequential update, and of a whole rating of the size of the quickstart."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    agents, cases, scores = rng.integers(0, 50, n), rng.integers(0, 50_000, n), rng.uniform(size=n)
    quickstart = [(f"a{i % 3}", f"c{i // 3}", float(s)) for i, s in enumerate(scores[:372])]
    update = seconds(lambda: agi_elo.update(agents, cases, scores, n_agents=50, n_cases=50_000), 3)
    return {"update_per_s": n / update, "quickstart_20_shuffles_ms": 1e3 * seconds(lambda: agi_elo.rate(quickstart, 0))}


def trials() -> dict[str, float]:
    """Seconds per trial of the quickstart in one process, by agent."""
    spec = load(resource("merton_bringup", "config/experiments/quickstart.yaml"), ExperimentSpec)
    runner = Runner(spec, "bench", LocalPorts())
    result = {}
    for agent in spec.agents:
        mine = [Trial(agent, case) for case in spec.cases() if case.is_reference]
        started = time.perf_counter()
        for trial in mine:
            runner.run(trial)
        result[f"{agent.id}_s"] = (time.perf_counter() - started) / len(mine)
    return result


SUITES: dict[str, Callable[[], dict[str, Any]]] = {
    "physics": physics,
    "rendering": rendering,
    "distortions": distortions,
    "distortion_peers": peers,
    "kinematics": kinematics,
    "ratings": ratings,
    "trials": trials,
}


def main() -> None:
    """Run every suite, show it, write the file."""
    sys.path.append("build/peers")
    result: dict[str, Any] = {
        "merton": __version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load_at_start": os.getloadavg()[0],
    }
    for name, suite in SUITES.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            result[name] = suite()
        except ImportError as error:
            result[name] = {"skipped": str(error)}
        print(json.dumps(result[name], indent=1), file=sys.stderr)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    main()
