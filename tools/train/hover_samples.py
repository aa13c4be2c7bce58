"""The second look of a policy: the hand near where the oracle's first movement ends, and the rest of its motion.

For every task of a scene of `split_samples`, with the tables that the cameras "top" and "wrist" then see from above
(`table_view`). The hand is off by a few centimetres and degrees, as after a first movement from a blurred look. Nothing
has been touched yet, so the arm is put there without physics.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from split_samples import HEIGHT, WIDTH, Arrays, apart, blocks, draw_by_command, joined

from merton.decision.models import table_view
from merton.decision.models.glance import first_movement
from merton.decision.models.oracle import Oracle
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.seeding import generator
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.geometry import Matrix, rotation_of_vector
from merton.world.observation import Observation

CAMERAS = ("top", "wrist")
OFF_M, OFF_RAD = (0.02, 0.02, 0.01), 0.08
"""Standard deviations of the hand's place, and of its yaw. Ours: twice the errors of a first look."""


@dataclass(frozen=True)
class HoverSamples:
    """n scenes, five tasks each, from the second look on.

    Attributes:
        coded: camera to 5 n PNG images of the table from above.
        poses: (5 n, 4, 4) of the tool centre point in `base_link`.
        gripper_open: (5 n,) 0 or 1.
        deltas: the oracle's chunk from there, (m, 7).
    """

    coded: dict[str, list[NDArray[np.uint8]]]
    poses: NDArray[np.float64]
    gripper_open: NDArray[np.float64]
    deltas: list[NDArray[np.float64]]

    def images(self, camera: str) -> NDArray[np.uint8]:
        """(5 n, 3, rows, columns) RGB of a camera."""
        decoded = (cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1] for data in self.coded[camera])
        return np.stack([image.transpose(2, 0, 1) for image in decoded])


def load(folder: Path, split: str, seeds: range, workers: int = 1) -> HoverSamples:
    """The scenes of a split, drawn into `folder` where they are not there yet; `seeds` are whole blocks."""
    parts = blocks(folder, split, seeds, _draw, workers)
    return HoverSamples(
        {name: [code for part in parts for code in apart(part, name)] for name in CAMERAS},
        np.concatenate([part["poses"] for part in parts]),
        np.concatenate([part["gripper_open"] for part in parts]),
        [chunk for part in parts for chunk in apart(part, "deltas")],
    )


def moved(pose: Matrix, deltas: NDArray[np.float64]) -> Matrix:
    """The pose (4, 4) after a chunk (m, 7)."""
    pose = pose.copy()
    for delta in deltas:
        pose[:3, 3] += delta[:3]
        pose[:3, :3] = rotation_of_vector(delta[3:6]) @ pose[:3, :3]
    return pose


def _draw(split: str, seeds: range) -> Arrays:
    """The arrays of `HoverSamples` for some seeds."""
    cell, cameras, oracle = SimulatedCell(), SceneCameras(WIDTH, HEIGHT), Oracle()
    coded: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in CAMERAS}
    poses, grippers, chunks = [], [], []
    for seed in seeds:
        tasks = [f"{split}-{verb}" for verb in verbs_of(seed)]
        cell.reset(tasks[0], seed)
        state, home = cell.scene_state(), cell.base_from_tcp
        for task in tasks:
            rng = generator("hover", task, seed)
            instruction = make_scene(task, seed).command.instruction
            start = Observation({}, cell.joints_rad, home, 1.0, instruction, scene=state)
            first = first_movement(oracle.act(start).deltas)
            qpos, pose = _off(cell, moved(home, first), first[-1, 6], rng)
            there = Observation({}, qpos[:6], pose, float(first[-1, 6]), instruction, scene=state)
            poses.append(pose)
            grippers.append(first[-1, 6])
            chunks.append(oracle.act(there).deltas)
            for name in CAMERAS:
                table = table_view.from_above(cameras.render(tasks[0], seed, qpos, name, depth=False))
                coded[name].append(cv2.imencode(".png", table[..., ::-1])[1].ravel())
    cameras.close()
    return {
        "poses": np.array(poses), "gripper_open": np.array(grippers), **joined("deltas", chunks),
        **{key: values for name in CAMERAS for key, values in joined(name, coded[name]).items()},
    }  # fmt: skip


def _off(
    cell: SimulatedCell, pose: Matrix, gripper_open: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], Matrix]:
    """The configuration vector with the hand near a pose, or where no such pose is in reach at it, and its own pose."""
    qpos = cell.qpos.copy()
    qpos[6:8] = gripper_open * cell.config.gripper.stroke / 2
    arm, tcp_from_tool0 = kinematics_of(cell.config), np.linalg.inv(cell.config.tool0_from_tcp)
    for scale in (1.0, 0.5, 0.0):
        near = pose.copy()
        near[:3, 3] += scale * rng.normal(0.0, OFF_M)
        near[:3, :3] = rotation_of_vector((0.0, 0.0, scale * rng.normal(0.0, OFF_RAD))) @ near[:3, :3]
        found = arm.solve(near @ tcp_from_tool0, cell.joints_rad)
        if found.success:
            qpos[:6] = found.joints
            return qpos, base_from_tcp(found.joints, cell.config)
    return qpos, cell.base_from_tcp


if __name__ == "__main__":
    draw_by_command(__doc__, _draw)
