"""Success rate of a policy in the tasks of a split: python tools/train/vla_success.py glance --split val --scenes 20.

In closed loop, through the whole gate, in one process. Prints a row for each verb and one for all: the successes with
the exact 95 % interval (Clopper and Pearson) over the scenes, and those of each difficulty. Undistorted, or with
`--level N`: then each scene has one type of distortion, drawn by its verb and seed, the same for all policies and
levels; the last column is the mean decision score of the first chunk against that of the undistorted images.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import beta

from merton.decision.models.base import POLICIES
from merton.decision.score import score
from merton.errors import MertonError
from merton.experiment.local import LocalPorts
from merton.perception.distortion import DISTORTIONS
from merton.seeding import derive_seed
from merton.simulation.scene import make_scene, scene_seeds
from merton.simulation.varied import DIFFICULTIES
from merton.world.tasks import SPLITS, TASKS


@dataclass(frozen=True)
class Attempt:
    """A task that was tried once.

    Attributes:
        success: the task was done.
        said: why not, if the policy or the gate says so.
        decision: score of the first chunk against that of the undistorted images, 0..1; 0 for none.
    """

    success: bool
    said: str
    decision: float


def attempt(ports: LocalPorts, policy: str, task: str, seed: int, max_steps: int) -> Attempt:
    """The policy's attempt at a task, with the distortion of the ports."""
    instruction, said, decision = ports.reset(task, seed), "", 0.0
    for step in range(max_steps):
        view = ports.view(POLICIES[policy].cameras)
        try:
            chunk = ports.act(policy, view.observation("distorted", instruction, step), "distorted")
            if step == 0:
                undistorted = ports.act(policy, view.observation("reference", instruction), "reference")
                decision = score(undistorted, chunk).total
        except MertonError as refusal:
            return Attempt(False, str(refusal), decision)
        said = ports.execute(chunk, view).error_message
        if chunk.done or said:
            break
    return Attempt(ports.cell.success(), said, decision)


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The exact 95 % interval of a share."""
    low = float(beta.ppf(0.025, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(0.975, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def row(name: str, done: dict[int, list[Attempt]]) -> str:
    """One verb, or all, in Markdown."""
    attempts = [each for column in done.values() for each in column]
    everything = [each.success for each in attempts]
    low, high = interval(sum(everything), len(everything))
    cells = [f"{sum(each.success for each in done[level])} of {len(done[level])}" for level in DIFFICULTIES]
    share = f"{sum(everything)} of {len(everything)}, {100 * low:.0f} to {100 * high:.0f} %"
    decision = sum(each.decision for each in attempts) / max(len(attempts), 1)
    return f"| {name} | {share} | {' | '.join(cells)} | {decision:.3f} |"


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
    print("| verb | success | 1 | 2 | 3 | 4 | 5 | decision |\n|---|---|---|---|---|---|---|---|")
    everything = defaultdict[int, list[Attempt]](list)
    with LocalPorts() as ports:
        for verb in chosen.verbs:
            task, done = f"{chosen.split}-{verb}", defaultdict[int, list[Attempt]](list)
            for seed in scene_seeds(task, chosen.scenes):
                distortion = chosen.types[derive_seed(0, "type", verb, seed) % len(chosen.types)]
                ports.set_distortion(distortion, chosen.level, derive_seed(0, "distortion", task, seed))
                tried = attempt(ports, chosen.policy, task, seed, chosen.max_steps)
                scene = make_scene(task, seed)
                for attempts in (done, everything):
                    attempts[scene.difficulty].append(tried)
                if chosen.failures and not tried.success:
                    seen = f" ({distortion})" if chosen.level else ""
                    print(f"failed: {task} {seed}{seen}, {scene.command.instruction}: {tried.said}", flush=True)
            print(row(f"`{verb}`", done), flush=True)
    print(row("all", everything))


if __name__ == "__main__":
    main()
