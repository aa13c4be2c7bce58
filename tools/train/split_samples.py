"""Scenes of a split for training policies: images of the cameras, the five instructions, and the oracle's chunks.

`load` draws the scenes that are not there yet, in blocks, each into a file of its own, so that a drawing that was ended
goes on. The bytes of a block depend on split and seeds alone. Drawing takes about 0.2 s of processor time a scene.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.decision.models.oracle import Oracle
from merton.processes import worker_pool
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.geometry import Matrix
from merton.world.nouns import noun
from merton.world.observation import Image, Intrinsics, Observation, SceneState

CAMERAS = ("top", "side")
TASKS_PER_SCENE = 5
BLOCK = 50
"""Scenes in a file."""
WIDTH, HEIGHT = 424, 240
POINTS = 3
"""Number of things in an instruction: the one that is handled, the target, the landmark that tells it from its like."""

Arrays = dict[str, NDArray[np.generic]]
"""Arrays of a file, by name."""
Draw = Callable[[str, range], Arrays]
"""Draws some seeds of a split; a function at the top of its module, so that other processes find it."""


@dataclass(frozen=True)
class SplitSamples:
    """`n` scenes of a split, each with five tasks, before anything is done.

    Attributes:
        split, seeds: which scenes these are, n of them.
        coded: camera to n PNG images of `WIDTH` x `HEIGHT`.
        base_from_camera: camera to its calibrated pose, which is the same in all scenes; the true one differs a little.
        intrinsics: of all cameras.
        instructions: 5 n texts, those of a scene one after another in rising difficulty.
        deltas: the oracle's chunk of each task, (m, 7) as `ActionChunk.deltas`.
        keypoints: (5 n, `POINTS`, 2) x, y [m] in `base_link`; NaN where a task has no such thing.
        start: position (3,) of the tool centre point before the motion [m].
    """

    split: str
    seeds: range
    coded: dict[str, list[NDArray[np.uint8]]]
    base_from_camera: dict[str, Matrix]
    intrinsics: Intrinsics
    instructions: list[str]
    deltas: list[NDArray[np.float64]]
    keypoints: NDArray[np.float64]
    start: NDArray[np.float64]

    def images(self, camera: str) -> Iterator[Image]:
        """The n images of a camera, decoded one by one, (height, width, 3) uint8 RGB."""
        for data in self.coded[camera]:
            yield np.ascontiguousarray(cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1])


def load(folder: Path, split: str, seeds: range, workers: int = 1) -> SplitSamples:
    """The scenes of a split, drawn into `folder` where they are not there yet; `seeds` are whole blocks."""
    parts = blocks(folder, split, seeds, _draw, workers)
    first = parts[0]
    return SplitSamples(
        split,
        range(seeds.start, seeds.start + BLOCK * len(parts)),
        {name: [code for part in parts for code in apart(part, name)] for name in CAMERAS},
        {name: first[f"base_from_{name}"] for name in CAMERAS},
        Intrinsics(WIDTH, HEIGHT, *(float(number) for number in first["lens"])),
        [str(text) for part in parts for text in part["instructions"]],
        [chunk for part in parts for chunk in apart(part, "deltas")],
        np.concatenate([part["keypoints"] for part in parts]),
        first["start"],
    )


def blocks(folder: Path, split: str, seeds: range, draw: Draw, workers: int = 1) -> list[Arrays]:
    """The arrays of each block of `BLOCK` seeds, from a file each in `folder`; `draw` gives those without one."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{split}_{first:06d}_{BLOCK}.npz": range(first, first + BLOCK) for first in seeds[::BLOCK]}
    missing = [file for file in files if not file.exists()]
    write = partial(_write, split, draw)
    with worker_pool(workers) if workers > 1 else nullcontext() as pool:
        written = (map if pool is None else pool.map)(write, missing, [files[file] for file in missing])
        for done, name in enumerate(written, 1):
            print(f"drew {name}: {done} of {len(missing)} files", flush=True)
    parts = []
    for file in files:
        with np.load(file, allow_pickle=False) as stored:
            parts.append({name: stored[name] for name in stored.files})
    return parts


def _write(split: str, draw: Draw, file: Path, seeds: range) -> str:
    """Draw a block, and write its file whole or not at all; its name."""
    temporary = file.with_suffix(f".{os.getpid()}.npz")
    np.savez(temporary, **draw(split, seeds))
    temporary.rename(file)
    return file.name


def _draw(split: str, seeds: range) -> Arrays:
    """The arrays of `SplitSamples` for some seeds."""
    cell, cameras, oracle = SimulatedCell(), SceneCameras(WIDTH, HEIGHT), Oracle()
    coded: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in CAMERAS}
    instructions, chunks, keypoints = [], [], []
    poses: dict[str, Matrix] = {}
    for seed in seeds:
        tasks = [f"{split}-{verb}" for verb in verbs_of(seed)]
        cell.reset(tasks[0], seed)
        for name in CAMERAS:
            view = cameras.render(tasks[0], seed, cell.qpos, name, depth=False)
            poses[name] = view.base_from_camera
            coded[name].append(cv2.imencode(".png", view.color[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 3])[1].ravel())
        state = cell.scene_state()
        for task in tasks:
            scene = make_scene(task, seed)
            observation = Observation(
                {}, cell.joints_rad, cell.base_from_tcp, 1.0, scene.command.instruction, scene=state
            )
            instructions.append(scene.command.instruction)
            chunks.append(oracle.act(observation).deltas)
            landmark = noun(scene.command.object).landmark
            keypoints.append([_place(state, name) for name in (scene.meant.object, scene.meant.target, landmark)])
    cameras.close()
    lens = cameras.intrinsics
    return {
        "instructions": np.array(instructions), "keypoints": np.array(keypoints),
        "lens": np.array([lens.fx, lens.fy, lens.cx, lens.cy]), "start": cell.base_from_tcp[:3, 3],
        **joined("deltas", chunks),
        **{f"base_from_{name}": pose for name, pose in poses.items()},
        **{key: values for name in CAMERAS for key, values in joined(name, coded[name]).items()},
    }  # fmt: skip


def _place(state: SceneState, name: str | None) -> NDArray[np.float64]:
    """x, y [m] of a thing; NaN without a name."""
    return np.full(2, np.nan) if name is None else state.find(name).base_from_object[:2, 3]


def joined(name: str, arrays: Sequence[NDArray[np.generic]]) -> Arrays:
    """Arrays of different lengths as one, with their lengths; `apart` is the inverse."""
    return {name: np.concatenate(arrays), f"{name}_lengths": np.array([len(array) for array in arrays])}


def apart(stored: Arrays, name: str) -> list[NDArray[np.generic]]:
    """The arrays that `joined` made one."""
    return np.split(stored[name], np.cumsum(stored[f"{name}_lengths"])[:-1])


def draw_by_command(description: str | None, draw: Draw) -> None:
    """The command line that draws scenes before they are needed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="train")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.scenes)
    blocks(arguments.folder, arguments.split, seeds, draw, arguments.workers)


if __name__ == "__main__":
    draw_by_command(__doc__, _draw)
