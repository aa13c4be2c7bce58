"""Compare the pictures of Gazebo's cameras with the embedded cell's: a table for docs/lab/gazebo.md, and a figure.

.venv/bin/python tools/studies/gazebo_cameras.py docs/images/gazebo_cameras.jpg

Beside `ros2 launch merton_bringup gazebo.launch.py`, in its ROS domain. Resets the cell once for each task.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
from merton_interfaces.srv import ResetCell
from rclpy.node import Node
from sensor_msgs.msg import Image as ImageMessage

from merton.models.blobs import find_blobs
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.gazebo import tasks_in_gazebo
from merton.world.cell import load_cell
from merton.world.observation import Image
from merton.world.tasks import COLORS
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

CAMERAS = load_cell().camera_names
SEED = 2026
SHOWN = "insert"
"""The task of the figure's scene."""
WAIT_S = 600.0
"""For a reset and its frames; one takes seconds, on a busy machine a minute."""


@dataclass(frozen=True)
class Pair:
    """The largest patch of a colour in both pictures of a camera: distance of the centroids [px] and the largest
    difference of the medians of red, green and blue, of 255."""

    task: str
    camera: str
    color: str
    apart_px: float
    apart_levels: float


class GazeboCameras(Node):
    """Resets the cell and takes the frames of its scene. Another thread spins it."""

    def __init__(self, **options: Any) -> None:
        super().__init__("gazebo_cameras", **options)
        self.newest: dict[str, ImageMessage] = {}
        self.reset = self.create_client(ResetCell, names.CELL_RESET)
        for camera in CAMERAS:
            self.create_subscription(
                ImageMessage,
                names.color(camera),
                lambda message, camera=camera: self.newest.update({camera: message}),
                names.SENSOR_QOS,
            )

    def take(self, task: str, seed: int) -> dict[str, Image]:
        """The picture of each camera after a reset to a scene; raises TimeoutError or RuntimeError if there is none."""
        self._wait(self.reset.service_is_ready)
        answer = self.reset.call_async(ResetCell.Request(task=task, seed=seed))
        self._wait(answer.done)
        if answer.result().error_code:
            raise RuntimeError(answer.result().error_msg)
        since_ns = convert.nanoseconds_of(answer.result().state.header.stamp)
        self._wait(lambda: all(self._stamp_ns(camera) >= since_ns for camera in CAMERAS))
        return {camera: convert.color_array(self.newest[camera]) for camera in CAMERAS}

    def _stamp_ns(self, camera: str) -> int:
        return convert.nanoseconds_of(self.newest[camera].header.stamp) if camera in self.newest else -1

    def _wait(self, condition: Callable[[], bool]) -> None:
        pause = threading.Event()
        for _ in range(round(WAIT_S / 0.01)):
            if condition():
                return
            pause.wait(0.01)
        raise TimeoutError(f"nothing came in {WAIT_S:g} s")


def embedded(task: str, seed: int, cameras: SceneCameras) -> dict[str, Image]:
    """The picture of each camera of the embedded cell after a reset to a scene."""
    cell = SimulatedCell()
    cell.reset(task, seed)
    return {camera: cameras.render(task, seed, cell.qpos, camera, depth=False).color for camera in CAMERAS}


def compare(task: str, here: Mapping[str, Image], there: Mapping[str, Image]) -> tuple[list[Pair], list[str]]:
    """The patches of each camera and colour in both simulators, and those in one alone, "camera color in simulator"."""
    pairs, alone = [], []
    for camera in here:
        for color in COLORS:
            patches = [find_blobs(pictures[camera], color) for pictures in (here, there)]
            if all(patches):
                gazebo, mujoco = patches[0][0], patches[1][0]
                medians = [
                    np.median(pictures[camera][patch.mask], axis=0)
                    for pictures, patch in ((here, gazebo), (there, mujoco))
                ]
                apart_px = float(np.linalg.norm(np.subtract(gazebo.centroid_px, mujoco.centroid_px)))
                pairs.append(Pair(task, camera, color, apart_px, float(np.abs(medians[0] - medians[1]).max())))
            elif any(patches):
                patch = (patches[0] or patches[1])[0]
                where = "Gazebo" if patches[0] else "MuJoCo"
                alone.append(f"{task}, {camera}: {color} in {where} alone, {patch.area_px} px")
    return pairs, alone


def table(pairs: Iterable[Pair]) -> str:
    """Markdown: a line for each camera."""
    lines = [
        "| camera | patches | centroids apart [px], median | largest | colours apart [of 255], median | largest |",
        "|---|---|---|---|---|---|",
    ]
    listed = list(pairs)
    for camera in CAMERAS:
        px = [pair.apart_px for pair in listed if pair.camera == camera]
        levels = [pair.apart_levels for pair in listed if pair.camera == camera]
        numbers = f"{np.median(px):.2f} | {max(px):.2f} | {np.median(levels):.0f} | {max(levels):.0f}"
        lines.append(f"| {camera} | {len(px)} | {numbers} |")
    return "\n".join(lines)


def draw(path: Path, here: Mapping[str, Image], there: Mapping[str, Image]) -> None:
    """Write the figure: Gazebo above, the embedded cell below, a column for each camera."""
    rows = []
    for name, pictures in (("Gazebo", here), ("MuJoCo", there)):
        tiles = []
        for camera in CAMERAS:
            tile = cv2.resize(pictures[camera], (318, 180), interpolation=cv2.INTER_AREA)
            cv2.putText(tile, f"{name}, {camera}", (6, 174), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
            tiles.append(cv2.copyMakeBorder(tile, 0, 3, 0, 3, cv2.BORDER_CONSTANT, value=(255, 255, 255)))
        rows.append(np.hstack(tiles))
    cv2.imwrite(str(path), cv2.cvtColor(np.vstack(rows), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 85])


def main(path: Path) -> None:
    rclpy.init()
    node, cameras = GazeboCameras(), SceneCameras()
    threading.Thread(target=rclpy.spin, args=(node,), daemon=True).start()
    pairs: list[Pair] = []
    for task in tasks_in_gazebo():
        here, there = node.take(task, SEED), embedded(task, SEED, cameras)
        found, alone = compare(task, here, there)
        pairs += found
        print(f"{task}: {len(found)} patches in both", *alone, sep="\n", file=sys.stderr)
        if task == SHOWN:
            draw(path, here, there)
    print(table(pairs))
    rclpy.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
