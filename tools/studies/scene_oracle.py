"""Successes of the oracle in the tasks of the splits: `python tools/studies/scene_oracle.py test shift --scenes 30`.

Every task of every scene, in process and through the whole gate. Prints one table for each split, verbs down and
difficulties across, and every failure with the scene to look at it again.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

from merton.errors import MertonError
from merton.experiment.local import LocalPorts
from merton.simulation.scene import make_scene
from merton.simulation.varied import DIFFICULTIES, verbs_of
from merton.world.tasks import SPLITS, TASKS


def attempt(ports: LocalPorts, task: str, seed: int) -> tuple[bool, str]:
    """Whether the oracle does a task, and the error of the gate if there was one."""
    instruction = ports.reset(task, seed)
    view = ports.view(color=(), depth=())
    try:
        chunk = ports.act("oracle", view.observation("reference", instruction), "reference")
        error = ports.execute(chunk, view).error_message
    except MertonError as refusal:
        error = str(refusal)
    return ports.cell.success(), error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="*", default=SPLITS, help=f"of {', '.join(SPLITS)}")
    parser.add_argument("--scenes", type=int, default=30, help="of each split")
    parser.add_argument("--first", type=int, default=0, help="seed of the first scene")
    arguments = parser.parse_args()
    with LocalPorts() as ports:
        for split in arguments.splits:
            done: dict[tuple[str, int], list[bool]] = defaultdict(list)
            for seed in range(arguments.first, arguments.first + arguments.scenes):
                for verb in verbs_of(seed):
                    scene = make_scene(f"{split}-{verb}", seed)
                    success, error = attempt(ports, scene.task, seed)
                    done[verb, scene.difficulty].append(success)
                    if not success:
                        print(f"failed: {scene.task} {seed}, {scene.command.instruction}: {error}", flush=True)
            print(table(split, done), flush=True)


def table(split: str, done: dict[tuple[str, int], list[bool]]) -> str:
    """Successes of trials, in Markdown."""
    everything = [success for column in done.values() for success in column]
    lines = [
        f"\n{split}: {sum(everything)} of {len(everything)}\n",
        "| verb | 1 | 2 | 3 | 4 | 5 |",
        "|---|---|---|---|---|---|",
    ]
    for verb in TASKS:
        cells = [f"{sum(done[verb, level])} of {len(done[verb, level])}" for level in DIFFICULTIES]
        lines.append(f"| `{verb}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
