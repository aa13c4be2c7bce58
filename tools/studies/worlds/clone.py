"""Clone a world's expert: python tools/studies/worlds/clone.py WORLD FOLDER ridge|network --cameras C ..

FOLDER is that of `demonstrations.py`; the weights are written into ./WORLD_ridge.npz or ./WORLD_network.npz. The
network needs torch; its training goes on after an interruption, from ./WORLD_network.pt: delete that file first if the
demonstrations have changed. The same demonstrations give the same weights on one machine with as many threads.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cloned import PLACES, kernel, pixels, situation
from numpy.typing import NDArray

from merton.errors import InputError
from merton.worlds.entry import WORLDS

Floats = NDArray[np.float64]

EYE_RIDGE, MOTION_RIDGE = 3.0, 0.02
STEPS = 1500
LONGEST = 1.2
"""Times the usual number of rows; a scene in which the expert needs more is no example."""
HELD_OUT = 5
"""Every fifth scene tells how well the ridge does on scenes that it does not know; then all are used."""


@dataclass(frozen=True)
class Demonstrations:
    """All looks of a task: pictures (n, cameras, 64, 64, 3), hand (n, 3) [m], opening (n,), rows (n, k, 7), places
    (n, 6) [m] and the number of the scene (n,)."""

    pictures: NDArray[np.uint8]
    hand: Floats
    opening: Floats
    rows: Floats
    places: Floats
    scene: NDArray[np.int64]

    def some(self, chosen: NDArray[np.bool_]) -> Demonstrations:
        """Those of a mask (n,)."""
        return Demonstrations(*(values[chosen] for values in vars(self).values()))


def places_of(trace: Floats) -> Floats:
    """Places (6,) of a trace (rows, 4) of hand and gripper: see `cloned.PLACES`."""
    changes = np.flatnonzero(np.abs(np.diff(trace[:, 3])) > 0.2)
    return np.concatenate([trace[at, :3] for at in (changes[0] if len(changes) else -1, -1)])


def read(folder: Path) -> Demonstrations:
    """The demonstrations of a task in its folder.

    Scenes that the expert alone could not do, or took much longer for than usual, are left out: it fumbled there.

    Raises:
        InputError: there is none.
    """
    traces: dict[int, Floats] = {}
    for expert in sorted(folder.glob("*_expert.npz")):
        with np.load(expert) as stored:
            if stored["success"]:
                traces[int(expert.name[:3])] = stored["trace"]
    if not traces:
        raise InputError(f"{folder} has no demonstration that did the task: demonstrations.py makes them")
    usual = np.median([len(trace) for trace in traces.values()])
    parts = []
    for scene, trace in traces.items():
        if len(trace) > LONGEST * usual:
            continue
        for file in sorted(folder.glob(f"{scene:03}_*.npz")):
            with np.load(file) as stored:
                looks = len(stored["rows"])
                own = [stored[name] for name in ("pictures", "hand", "gripper_open", "rows")]
            parts.append([*own, np.tile(places_of(trace), (looks, 1)), np.full(looks, scene)])
    return Demonstrations(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def solved(inputs: Floats, outputs: Floats, ridge: float) -> Floats:
    """Weights (inputs, outputs) of a ridge regression without a constant, by its dual."""
    gram = inputs @ inputs.T
    return np.asarray(inputs.T @ np.linalg.solve(gram + ridge * np.eye(len(gram)), outputs))


def ridge_of(known: Demonstrations) -> dict[str, Floats]:
    """The numbers of `cloned.Ridge` for one task."""
    mean = known.places.mean(0)
    eye = solved(pixels(known.pictures), known.places - mean, EYE_RIDGE)
    at = situation(known.hand, known.opening, known.places)
    rows = known.rows.reshape(len(at), -1)
    rest = rows.mean(0)
    motion = np.linalg.solve(kernel(at, at) + MOTION_RIDGE * np.eye(len(at)), rows - rest)
    return {"eye": eye, "mean": mean, "known": at, "motion": motion, "rest": rest}


def report(name: str, known: Demonstrations) -> None:
    """Print the error of the ridge's places on scenes that were held out, and that of their mean."""
    out = known.scene % HELD_OUT == 0
    if out.all() or not out.any():
        return
    of, test = ridge_of(known.some(~out)), known.some(out)
    seen = np.abs(of["mean"] + pixels(test.pictures) @ of["eye"] - test.places).mean(0)
    unseen = np.abs(of["mean"] - test.places).mean(0)
    print(
        f"{name}: {len(known.scene)} looks of {len(set(known.scene.tolist()))} scenes; on others the places are off by"
    )
    print(f"  {(100 * seen).round(1)} cm, unseen by {(100 * unseen).round(1)} cm", flush=True)


def network_of(
    tasks: list[Demonstrations], spread: Floats, steps: int, state_file: Path
) -> dict[str, NDArray[np.floating]]:
    """The weights of `cloned.Network`; `state_file` as of `network_twin.trained`."""
    from network_twin import Examples, trained

    hand = np.concatenate([task.hand for task in tasks])
    middle = hand.mean(0)
    opening = np.concatenate([task.opening for task in tasks])[:, None]
    one_hot = np.repeat(np.eye(len(tasks)), [len(task.scene) for task in tasks], 0)
    scale = np.where(spread > 0, spread, 1.0)
    examples = Examples(
        np.concatenate([task.pictures for task in tasks]),
        np.concatenate([(hand - middle) / 0.1, opening, one_hot], 1),
        np.concatenate([(task.rows / scale).reshape(len(task.rows), -1) for task in tasks]),
        (np.concatenate([task.places for task in tasks]) - np.tile(middle, PLACES)) / 0.1,
    )
    return {**trained(examples, steps, state_file), "spread": scale, "middle": middle}


def main() -> None:
    """Read, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", choices=[name for name in WORLDS if WORLDS[name].is_hosted])
    parser.add_argument("folder", type=Path)
    parser.add_argument("policy", choices=("ridge", "network"))
    parser.add_argument("--cameras", nargs="+", required=True, help="as in the demonstrations")
    parser.add_argument("--steps", type=int, default=STEPS, help="of the network's training")
    arguments = parser.parse_args()
    description = WORLDS[arguments.world].described()
    folders = sorted((arguments.folder / arguments.world).iterdir())
    tasks = [read(folder) for folder in folders]
    file = Path(f"{arguments.world}_{arguments.policy}.npz")
    weights: dict[str, NDArray[np.floating]] = {}
    if arguments.policy == "ridge":
        for number, (folder, task) in enumerate(zip(folders, tasks, strict=True)):
            report(folder.name, task)
            weights.update({f"{key}_{number}": value for key, value in ridge_of(task).items()})
    else:
        weights = network_of(tasks, np.asarray(description.action.spread), arguments.steps, file.with_suffix(".pt"))
    instructions = np.array([description.task(folder.name).instruction for folder in folders])
    kept = {name: value.astype(np.float32) for name, value in weights.items()}
    np.savez_compressed(file, instructions=instructions, cameras=np.array(arguments.cameras), **kept)
    file.with_suffix(".pt").unlink(missing_ok=True)
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
