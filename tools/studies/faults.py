"""Faults of depth and of time: their effect on the servo, and a picture of those of depth.

    .venv/bin/python tools/studies/faults.py effect [--scenes 6] [--names depth_holes late] > table.md   (minutes)
    .venv/bin/python tools/studies/faults.py draw docs/images/depth_faults.jpg

`effect` prints a table of docs/reference/distortions_measured.md: the success of `servo` in scenes of its four verbs.
Each scene counts once in a cell, so scenes are independent and the interval is Wilson's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from merton.decision.models.servo import VERBS
from merton.experiment.local import LocalPorts
from merton.experiment.plan import single_trial
from merton.experiment.runner import Runner
from merton.perception.distortion import DEPTH_FAULTS, TEMPORAL_FAULTS
from merton.perception.distortion.depth import Depth
from merton.perception.distortion.stream import DistortionSetting
from merton.results.records import Outcome
from merton.simulation.scene import scene_seeds
from merton.statistics.means import wilson
from merton.world.observation import Image

LEVELS = range(1, 6)
PICTURED = ("pick", 3, "top")
"""Task, scene and camera of the picture."""
NEAR_M, FAR_M = 0.8, 1.3
"""Depths of the first and the last colour."""


def successes(ports: LocalPorts, scenes: int, name: str, level: int) -> tuple[int, int]:
    """Trials of `servo` with a fault that succeed, and all."""
    outcomes = []
    for task in VERBS:
        for scene in scene_seeds(task, scenes):
            spec, trial = single_trial("servo", task, name, level, scene=scene)
            outcomes.append(Runner(spec, "faults", ports).run(trial).record.outcome)
    return outcomes.count(Outcome.SUCCESS), len(outcomes)


def effect(scenes: int, names: list[str]) -> None:
    """Print a row for each fault: success in per cent at each level, with the interval."""
    with LocalPorts() as ports:
        for name in names:
            cells = []
            for level in LEVELS:
                count, n = successes(ports, scenes, name, level)
                low, high = wilson(count, n)
                cells.append(f"{100 * count / n:.0f} ({100 * low:.0f} to {100 * high:.0f})")
            print(f"| `{name}` | {' | '.join(cells)} |", flush=True)
        count, n = successes(ports, scenes, "reference", 0)
        print(f"without a fault: {count} of {n}")


def draw(path: Path) -> None:
    """Write a row for each fault of depth: levels 0, 1, 3 and 5."""
    task, scene, camera = PICTURED
    with LocalPorts() as ports:
        ports.reset(task, scene)
        depth_m = ports.view((camera,)).reference[camera].depth_m
    assert depth_m is not None
    rows = []
    for name in DEPTH_FAULTS:
        settings = [DistortionSetting(), *(DistortionSetting(name, level) for level in (1, 3, 5))]
        tiles = [colored(setting.apply_depth(camera, depth_m)) for setting in settings]
        for tile, setting in zip(tiles, settings, strict=True):
            text = f"{name} {setting.level}" if setting.level else "no fault"
            cv2.rectangle(tile, (0, 0), (tile.shape[1], 22), (0, 0, 0), -1)
            cv2.putText(tile, text, (6, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (255, 255, 255), 1, cv2.LINE_AA)
        rows.append(np.hstack(tiles))
    whole = cv2.resize(np.vstack(rows), None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(path), cv2.cvtColor(whole, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 90])


def colored(depth_m: Depth) -> Image:
    """Depth in colours: blue is near, red is far, black is none."""
    share = np.clip((depth_m - NEAR_M) / (FAR_M - NEAR_M), 0, 1)
    picture = cv2.applyColorMap((255 * share).astype(np.uint8), cv2.COLORMAP_TURBO)[:, :, ::-1].copy()
    picture[depth_m == 0] = 0
    return np.asarray(picture, np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_effect = commands.add_parser("effect")
    of_effect.add_argument("--scenes", type=int, default=6, help="of each verb")
    of_effect.add_argument("--names", nargs="+", default=[*DEPTH_FAULTS, *TEMPORAL_FAULTS])
    commands.add_parser("draw").add_argument("path", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "effect":
        effect(arguments.scenes, arguments.names)
    else:
        draw(arguments.path)


if __name__ == "__main__":
    main()
