"""Demonstrations of a world's own expert: demonstrations.py WORLD FOLDER --tasks T .. --cameras C ..

Every scene is done twice: by the expert alone, and by the expert whose hand is pushed aside now and then, so that a
policy that clones it learns to come back (Laskey et al. 2017, DART). Every few rows the cameras are looked through, and
the rows are written down that the expert would give from there. FOLDER/WORLD/TASK/SCENE_KIND.npz; what is there is
kept, so that a collection goes on after an interruption.
"""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from cloned import seen

from merton.files import make_folder, written_whole
from merton.pool import open_pool, results
from merton.seeding import generator
from merton.worlds.client import HostedWorld
from merton.worlds.entry import WORLDS

PUSHED_SHARE = 0.3
"""Of the chunks of a pushed demonstration."""
PUSH = 0.5
"""Standard deviation of a push along each axis, times the spread of the world's actions, at every row of a chunk."""
MOST_LOOKS = 60


@dataclass(frozen=True)
class Wanted:
    """A demonstration to make.

    Attributes:
        rows: from one look to the next, and of a chunk.
        is_pushed: whether the hand is pushed aside now and then.
        file: takes the arrays of `demonstrate`.
    """

    world: str
    task: str
    scene: int
    cameras: tuple[str, ...]
    rows: int
    is_pushed: bool
    file: Path


def demonstrate(world: HostedWorld, wanted: Wanted) -> dict[str, np.ndarray]:
    """One attempt at a task.

    Returns:
        Of each look `pictures` (looks, cameras, 64, 64, 3), `hand` (looks, 3) [m], `gripper_open` (looks,) and the
        expert's `rows` (looks, k, 7); the `trace` (rows, 4) of hand [m] and gripper, and `success`.
    """
    rng = generator("demonstration", wanted.task, wanted.scene, "pushed")
    spread_m = np.asarray(world.action.spread[:3])
    world.reset(wanted.task, wanted.scene)
    found: dict[str, list[np.ndarray]] = {name: [] for name in ("pictures", "hand", "gripper_open", "rows")}
    trace: list[np.ndarray] = []
    for _ in range(MOST_LOOKS):
        state, rows = world.state(), world.expert(wanted.rows)
        if state.base_from_tool is None or state.gripper_open is None or not len(rows):
            raise SystemExit(f"{wanted.world} has no tool with a gripper, or its expert no row")
        found["pictures"].append(np.stack([seen(world.look(camera).color) for camera in wanted.cameras]))
        found["hand"].append(state.base_from_tool[:3, 3])
        found["gripper_open"].append(np.array(state.gripper_open))
        found["rows"].append(np.concatenate([rows, np.repeat(rows[-1:], wanted.rows - len(rows), 0)]))
        is_pushed = wanted.is_pushed and rng.random() < PUSHED_SHARE
        acted = rows + np.append(PUSH * spread_m * rng.normal(size=3), np.zeros(4)) if is_pushed else rows
        carried = world.carry_out_rows(acted)
        trace += [np.append(point, row[6]) for point, row in zip(carried.points, acted, strict=False)]
        if carried.ended:
            break
    arrays = {name: np.stack(values) for name, values in found.items()}
    return {**arrays, "trace": np.stack(trace), "success": np.array(world.judged().success)}


def make(wanted: list[Wanted]) -> None:
    """Make demonstrations, one after the other in one process of their world."""
    with closing(cast(HostedWorld, WORLDS[wanted[0].world].build())) as world:
        for each in wanted:
            started = time.monotonic()
            arrays = demonstrate(world, each)
            make_folder(each.file.parent)
            with written_whole(each.file) as file:
                np.savez_compressed(file, **arrays)
            done = "done" if arrays["success"] else "NOT done"
            took = f"{len(arrays['rows'])} looks, {time.monotonic() - started:.1f} s"
            print(f"{each.file.parent.name} {each.file.stem}: {done}, {took}", flush=True)


def main() -> None:
    """Share the scenes among the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", choices=[name for name in WORLDS if WORLDS[name].is_hosted])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--scenes", default="20-49", help="the first and the last")
    parser.add_argument("--cameras", nargs="+", required=True)
    parser.add_argument("--rows", type=int, default=8, help="from one look to the next")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    first, last = map(int, given.scenes.split("-"))
    wanted = []
    for task in given.tasks:
        for scene in range(first, last + 1):
            for kind in ("expert", "pushed"):
                file = given.folder / given.world / task / f"{scene:03}_{kind}.npz"
                cameras = tuple(given.cameras)
                wanted.append(Wanted(given.world, task, scene, cameras, given.rows, kind == "pushed", file))
    missing = [each for each in wanted if not each.file.exists()]
    shares = [missing[start :: given.workers] for start in range(given.workers)]
    with open_pool(given.workers) as pool:
        list(results(pool, make, [(share,) for share in shares if share]))


if __name__ == "__main__":
    main()
