"""Twins of an exported dataset against executed trials: does a low likeness predict a failure?

    merton run clean.yaml --in-process; merton export lerobot clean -o demos     # levels: [0]
    merton run levels.yaml --in-process                                          # the same tasks, scenes and seed
    cd tools/studies; merton whatif demos --policy dataset_twins_against_execution:GlanceByRows --every 100000 \
        --episodes 0: --distort jpeg@5 ... --out twins
    .venv/bin/python tools/studies/dataset_twins_against_execution.py demos twins RUN

Joins step 0 of each episode with the executed trial of the same task, scene, distortion and level. Of the pairs whose
undistorted trial did the task, prints the success by likeness, and the share of pairs (one that failed, one that did
not) in which the failed one had the lower likeness, with a 95 % interval of drawn scenes.
"""

from __future__ import annotations

import argparse
import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from merton.decision.models.base import POLICIES
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.execution.robots.gripper import Gripper
from merton.perception.camera.folder import d455_intrinsics
from merton.results.parquet import read_columns
from merton.results.store import open_record
from merton.statistics.resampling import interval
from merton.world.cell import load_cell
from merton.world.geometry import as_transported
from merton.world.observation import CameraView, Observation
from merton_studies.twins.motion import PaperRobot

FPS = 10
"""Of an exported run."""


class GlanceByRows:
    """The policy glance of Merton's cell, as a policy of the export: the joints and the opening that it leads to."""

    def __init__(self) -> None:
        self._policy, self._cell = POLICIES["glance"].build(), load_cell()
        self._robot, self._gripper = PaperRobot(self._cell), Gripper.from_cell(self._cell)

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(n, 7) rows at 10 Hz: six joint angles [rad], opening [m]."""
        state = np.asarray(observation["observation.state"], float)
        joints = state[:6]
        hand = kinematics_of(self._cell).forward(joints)
        views = {}
        for camera in self._policy.cameras:
            color = observation[f"observation.images.{camera}"]
            pose = as_transported(self._cell.base_from_camera(camera, hand))
            views[camera] = CameraView(camera, color, None, d455_intrinsics(color.shape[1], color.shape[0]), pose)
        tool = as_transported(base_from_tcp(joints, self._cell))
        opened = self._gripper.gripper_open(state[6])
        chunk = self._policy.act(Observation(views, joints, tool, opened, observation["task"], 0))
        return self._rows(chunk, joints, state[6])

    def _rows(self, chunk: Any, joints: np.ndarray, opening_m: float) -> np.ndarray:
        from merton.execution.gate.carrying import Carrying, Hand

        hand = Hand(self._gripper, lambda: opening_m, lambda: base_from_tcp(joints, self._cell))
        plan = Carrying(chunk, joints, hand, self._cell, self._robot.limits).motion
        opening = [opening_m, *(self._gripper.opening_m(value) for value in chunk.deltas[: plan.executed, 6])]
        ways = np.column_stack([plan.joints_rad, opening])
        times_s = np.arange(len(ways)) * chunk.step_s
        ticks_s = np.arange(1, max(2, round(times_s[-1] * FPS) + 1)) / FPS
        return np.column_stack([np.interp(ticks_s, times_s, column) for column in ways.T])


def joined(demos: Path, twins: Path, run: Path) -> list[tuple[str, float, bool]]:
    """(scene, likeness, success) of each pair whose undistorted trial did the task."""
    names = ["episode_index", "task_name", "seed", "success"]
    rows = read_columns(demos / "meta/episodes/chunk-000/file-000.parquet", names).to_pylist()
    episodes = {row["episode_index"]: row for row in rows}
    executed = {
        (record.case.task, record.case.seed, record.case.distortion, record.case.level): bool(record.success)
        for record in open_record(str(run)).records()
    }
    found = []
    with (twins / "twins.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            of = episodes[int(row["episode"])]
            key = (of["task_name"], of["seed"], row["distortion"], int(row["level"]))
            if row["frame"] == "0" and of["success"] and row["to_clean"] and key in executed:
                found.append((f"{of['task_name']}.{of['seed']}", float(row["to_clean"]), executed[key]))
    return found


def area(pairs: list[tuple[str, float, bool]]) -> float:
    """Share of (failed, done) pairs in which the failed one is less alike; equal ones count half. NaN without both."""
    failed = np.array([like for _, like, done in pairs if not done])
    done = np.array([like for _, like, done in pairs if done])
    if not len(failed) or not len(done):
        return float("nan")
    below = (failed[:, None] < done[None]).mean()
    return float(below + 0.5 * (failed[:, None] == done[None]).mean())


def main() -> None:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demos", type=Path)
    parser.add_argument("twins", type=Path)
    parser.add_argument("run", type=Path)
    pairs = joined(**vars(parser.parse_args()))
    scenes = sorted({scene for scene, _, _ in pairs})
    print(f"{len(pairs)} pairs of {len(scenes)} scenes, {sum(not done for _, _, done in pairs)} of them failed")
    edges = (0.0, 0.8, 0.9, 0.95, 0.98, 1.0)
    for low, high in pairwise(edges):
        some = [done for _, like, done in pairs if low <= like < high or (high == like == 1.0)]
        if some:
            print(f"  likeness {low:.2f} to {high:.2f}: {len(some)} pairs, success {np.mean(some):.2f}")
    draw, by_scene = np.random.default_rng(0), {scene: [pair for pair in pairs if pair[0] == scene] for scene in scenes}
    drawn = [area([pair for scene in draw.choice(scenes, len(scenes)) for pair in by_scene[scene]]) for _ in range(500)]
    known = np.array([value for value in drawn if not np.isnan(value)])
    print(f"  failed ones are less alike: {area(pairs):.3f} {interval(known):.3f}")


if __name__ == "__main__":
    main()
