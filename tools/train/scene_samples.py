"""Scenes for training the tiny models: what the top camera sees, what is asked, what the oracle does, what is true.

`load` draws them once, with both cores, and keeps them in build/scene_samples, a file a task and a block of seeds, so
that a drawing that was ended goes on. Training scenes begin at seeds where no experiment looks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.decision.models.oracle import Oracle
from merton.decision.models.tiny_vla import crop
from merton.processes import usable_cores, worker_pool
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.observation import Observation

TRAINING_SEEDS = 1_000_000
"""Seed of the first training scene."""
HELD_OUT_SEEDS = 2_000_000
"""Seed of the first scene that the reported figures are measured on."""

FOLDER = Path("build/scene_samples")
BLOCK = 250
"""Scenes in a file."""


@dataclass(frozen=True)
class Samples:
    """Scenes before anything is done, n of them.

    Attributes:
        tasks, seeds: which scene each is.
        instructions: what the robot is told.
        images: (n, 112, 160, 3) uint8 RGB: the part of the camera "top" at 424 x 240 that `tiny_vla.crop` takes out.
        deltas: the oracle's chunk of each, (m, 7) as `ActionChunk.deltas`.
        keypoints: (n, 3, 2) x, y [m] in `base_link` of what is handled and of what it is brought to; NaN where there is
            no such thing. The third point is left to the network.
        things: per scene the names of everything there, and its (x, y) [m].
    """

    tasks: list[str]
    seeds: list[int]
    instructions: list[str]
    images: NDArray[np.uint8]
    deltas: list[NDArray[np.float64]]
    keypoints: NDArray[np.float64]
    things: list[dict[str, tuple[float, float]]]

    def __len__(self) -> int:
        return len(self.tasks)


def load(tasks: Sequence[str], seeds: range) -> Samples:
    """The scenes of every task and seed, drawn where they are not there yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    blocks = [(task, range(first, min(first + BLOCK, seeds.stop))) for task in tasks for first in seeds[::BLOCK]]
    missing = [block for block in blocks if not _file(*block).exists()]
    with worker_pool(usable_cores()) as workers:
        for done, block in enumerate(workers.map(_draw, missing), 1):
            print(f"drew {block}: {done} of {len(missing)} files", flush=True)
    parts = [dict(np.load(_file(*block), allow_pickle=False)) for block in blocks]
    deltas = [chunk for part in parts for chunk in np.split(part["deltas"], np.cumsum(part["lengths"])[:-1])]
    things = []
    for part in parts:
        for names, places in zip(part["names"], part["places"], strict=True):
            things.append({str(name): (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True) if name})
    return Samples(
        [block[0] for block in blocks for _ in block[1]],
        [seed for block in blocks for seed in block[1]],
        [str(text) for part in parts for text in part["instructions"]],
        np.concatenate([part["images"] for part in parts]),
        deltas,
        np.concatenate([part["keypoints"] for part in parts]),
        things,
    )


def _file(task: str, seeds: range) -> Path:
    return FOLDER / f"{task}_{seeds.start}_{len(seeds)}.npz"


def _draw(block: tuple[str, range]) -> str:
    """Draw a block and write its file."""
    task, seeds = block
    cell, cameras, oracle = SimulatedCell(), SceneCameras(424, 240), Oracle()
    images, instructions, chunks, keypoints, names, places = [], [], [], [], [], []
    for seed in seeds:
        command = cell.reset(task, seed).command
        view, state = cameras.render(task, seed, cell.qpos, "top"), cell.scene_state()
        observation = Observation(
            {"top": view}, cell.joints_rad, cell.base_from_tcp, 1.0, command.instruction, scene=state
        )
        images.append(crop(view.color))
        instructions.append(command.instruction)
        chunks.append(oracle.act(observation).deltas)
        there = {thing.name: thing.base_from_object[:2, 3] for thing in state.objects}
        nowhere = np.full(2, np.nan)
        keypoints.append([there[command.object], there.get(str(command.target), nowhere), nowhere])
        names.append([*there, *[""] * (16 - len(there))])
        places.append(np.array([*there.values(), *[nowhere] * (16 - len(there))]))
    cameras.close()
    target = _file(task, seeds)
    temporary = target.with_suffix(f".{os.getpid()}.npz")
    np.savez(
        temporary,
        images=np.array(images), instructions=np.array(instructions), deltas=np.concatenate(chunks),
        lengths=np.array([len(chunk) for chunk in chunks]), keypoints=np.array(keypoints),
        names=np.array(names), places=np.array(places),
    )  # fmt: skip
    temporary.rename(target)
    return target.name
