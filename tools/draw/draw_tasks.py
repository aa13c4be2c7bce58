"""Draws the scenes of the paper's ten verbs: `.venv/bin/python tools/draw/draw_tasks.py docs/images/tasks.jpg`."""

from __future__ import annotations

import sys

import cv2
import numpy as np

from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell

VERBS = ("cover", "insert", "move", "pick", "place", "pour", "press", "pull", "push", "twist")
SEED = 1
COLUMNS = 5
CROP = (slice(130, 355), slice(250, 600))
"""Rows and columns of the top camera's image at 848 x 480 in which the objects' area lies."""


def main(path: str) -> None:
    """Write one image: the start of each scene as the top camera sees it, and what the robot is told."""
    cell, cameras, tiles = SimulatedCell(), SceneCameras(848, 480, samples=8), []
    for verb in VERBS:
        scene = cell.reset(verb, SEED)
        tile = np.ascontiguousarray(cameras.render(verb, SEED, cell.qpos, "top").color[CROP])
        tile = cv2.copyMakeBorder(tile, 0, 24, 0, 4, cv2.BORDER_CONSTANT, value=(255, 255, 255))
        text = (4, tile.shape[0] - 8)
        cv2.putText(tile, scene.command.instruction, text, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (40, 40, 40), 1, cv2.LINE_AA)
        tiles.append(tile)
    cameras.close()
    rows = [np.hstack(tiles[first : first + COLUMNS]) for first in range(0, len(tiles), COLUMNS)]
    cv2.imwrite(path, cv2.cvtColor(np.vstack(rows), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main(sys.argv[1])
