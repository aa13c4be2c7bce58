"""How often a policy does the tasks of a split: python tools/vla_success.py glance --split val --scenes 20.

In closed loop, through the whole gate, in one process. Prints a row for each verb and one for all: the successes with
the exact 95 % interval (Clopper and Pearson) over the scenes, and those of each difficulty. Undistorted, or with
`--level N`: then each scene has one type of distortion, drawn by its verb and seed, the same for all policies and
levels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

from scipy.stats import beta

from merton.decision.models.base import POLICIES
from merton.errors import MertonError
from merton.experiment.local import LocalPorts
from merton.perception.distortion import DISTORTIONS
from merton.seeding import derive_seed
from merton.simulation.scene import make_scene, scene_seeds
from merton.simulation.varied import DIFFICULTIES
from merton.world.tasks import SPLITS, TASKS


def attempt(ports: LocalPorts, policy: str, task: str, seed: int, max_steps: int) -> tuple[bool, str]:
    """Whether the policy does a task as the ports distort it, and why not if it or the gate says so."""
    instruction, said = ports.reset(task, seed), ""
    for step in range(max_steps):
        view = ports.view(POLICIES[policy].cameras)
        try:
            chunk = ports.act(policy, view.observation("distorted", instruction, step), "distorted")
        except MertonError as refusal:
            return False, str(refusal)
        said = ports.execute(chunk, view).error_message
        if chunk.done or said:
            break
    return ports.cell.success(), said


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The exact 95 % interval of a share."""
    low = float(beta.ppf(0.025, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(0.975, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def row(name: str, done: dict[int, list[bool]]) -> str:
    """One verb, or all, in Markdown."""
    everything = [success for column in done.values() for success in column]
    low, high = interval(sum(everything), len(everything))
    cells = [f"{sum(done[level])} of {len(done[level])}" for level in DIFFICULTIES]
    share = f"{sum(everything)} of {len(everything)}, {100 * low:.0f} to {100 * high:.0f} %"
    return f"| {name} | {share} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="name in the catalogue")
    parser.add_argument("--split", choices=SPLITS, default="val")
    parser.add_argument("--scenes", type=int, default=20, help="of each verb")
    parser.add_argument("--verbs", nargs="*", default=list(TASKS))
    parser.add_argument("--level", type=int, default=0, choices=range(6), help="of the distortion; 0 for none")
    parser.add_argument("--types", nargs="*", default=list(DISTORTIONS), help="of distortion; by default all 30")
    parser.add_argument("--max-steps", type=int, default=6, help="chunks of a trial")
    parser.add_argument("--failures", action="store_true", help="print every failure")
    chosen = parser.parse_args(arguments)
    print("| verb | success | 1 | 2 | 3 | 4 | 5 |\n|---|---|---|---|---|---|---|")
    everything = defaultdict[int, list[bool]](list)
    with LocalPorts() as ports:
        for verb in chosen.verbs:
            task, done = f"{chosen.split}-{verb}", defaultdict[int, list[bool]](list)
            for seed in scene_seeds(task, chosen.scenes):
                distortion = chosen.types[derive_seed(0, "type", verb, seed) % len(chosen.types)]
                ports.set_distortion(distortion, chosen.level, derive_seed(0, "distortion", task, seed))
                success, said = attempt(ports, chosen.policy, task, seed, chosen.max_steps)
                scene = make_scene(task, seed)
                for successes in (done, everything):
                    successes[scene.difficulty].append(success)
                if chosen.failures and not success:
                    seen = f" ({distortion})" if chosen.level else ""
                    print(f"failed: {task} {seed}{seen}, {scene.command.instruction}: {said}", flush=True)
            print(row(f"`{verb}`", done), flush=True)
    print(row("all", everything))


if __name__ == "__main__":
    main()
