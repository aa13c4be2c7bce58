"""Draws scenes of the splits: `.venv/bin/python tools/draw/draw_scenes.py docs/images/scenes.jpg`."""

from __future__ import annotations

import sys

import cv2
import numpy as np

from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.tasks import SPLITS

SEEDS = (0, 2, 4)
CROP = (slice(85, 445), slice(170, 678))
"""Rows and columns of the top camera's image at 848 x 480 in which the things of a scene lie."""
LINE_PX = 19


def main(path: str) -> None:
    """Write one image: a row a split, the start of each scene as the top camera sees it, and its five tasks."""
    cell, cameras = SimulatedCell(), SceneCameras(848, 480, samples=8)
    rows = [np.hstack([tile(cell, cameras, split, seed) for seed in SEEDS]) for split in SPLITS]
    cameras.close()
    cv2.imwrite(path, cv2.cvtColor(np.vstack(rows), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 86])


def tile(cell: SimulatedCell, cameras: SceneCameras, split: str, seed: int) -> np.ndarray:
    """One scene with its tasks, (height, width, 3) uint8 RGB."""
    tasks = [f"{split}-{verb}" for verb in verbs_of(seed)]
    cell.reset(tasks[0], seed)
    picture = np.ascontiguousarray(cameras.render(tasks[0], seed, cell.qpos, "top").color[CROP])
    below = LINE_PX * (len(tasks) + 1) + 8
    white = (255, 255, 255)
    picture = np.asarray(cv2.copyMakeBorder(picture, 0, below, 0, 4, cv2.BORDER_CONSTANT, value=white), np.uint8)
    lines = [
        f"{split} {seed}",
        *(f"{number} {make_scene(task, seed).command.instruction}" for number, task in enumerate(tasks, 1)),
    ]
    for number, text in enumerate(lines):
        at = (4, picture.shape[0] - below + LINE_PX * (number + 1) - 4)
        cv2.putText(picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (40, 40, 40), 1, cv2.LINE_AA)
    return picture


if __name__ == "__main__":
    main(sys.argv[1])
