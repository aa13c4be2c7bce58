"""Errors of `levels: staircase` on planted thresholds, beside those of even and drawn levels with as many trials.

    python tools/studies/staircase_errors.py [--repetitions 300]

An agent succeeds at level x of a scene with c / (1 + exp((x - m - u) / s)), u the scene's own, normal with deviation
0.7. The truth is the level at which the mean over scenes is 75 %. "even" shows each scene at all five levels, "one" at
one that is drawn. An error counts within 0.5 .. 5.5: beyond the levels only "below 1" and "above 5" are said.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from merton.experiment.staircase import Staircase
from merton.study.thresholds import HIGHEST, LOWEST, TARGET, estimate

SCATTER = 0.7
AGENTS = {"steep": (0.4, 0.99), "shallow": (0.8, 0.93)}
"""Name to s and c."""
THRESHOLDS = (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
DESIGNS = ("staircase", "even", "one")


class Planted:
    """An agent with a known threshold in scenes."""

    def __init__(self, slope: float, ceiling: float, threshold: float) -> None:
        self.slope, self.ceiling, self.threshold = slope, ceiling, threshold
        u, levels = np.linspace(-4.0, 4.0, 161) * SCATTER, np.linspace(-8.0, 8.0, 1601)
        weights = np.exp(-0.5 * (u / SCATTER) ** 2)
        mean = (ceiling / (1.0 + np.exp((levels[:, None] - u) / slope)) * weights).sum(axis=1) / weights.sum()
        self.middle = threshold - float(np.interp(-TARGET, -mean, levels))

    def succeeds(self, rng: np.random.Generator, level: int, shift: float) -> bool:
        return bool(rng.random() < self.ceiling / (1.0 + math.exp((level - self.middle - shift) / self.slope)))


def trials(
    agent: Planted, design: str, scenes: int, tasks: int, rng: np.random.Generator
) -> Iterator[tuple[int, bool, int]]:
    """Level, success and scene of `scenes` x `tasks` distorted trials."""
    shifts, count, chain = rng.normal(size=scenes) * SCATTER, scenes * tasks, Staircase()
    drawn = rng.permutation(np.repeat(np.arange(scenes), tasks))
    for number in range(count):
        # of an even design each scene and task takes five trials, so a fifth of them is met
        scene = int(drawn[number // 5] if design == "even" else drawn[number])
        level = {"staircase": chain.level, "even": 1 + number % 5, "one": int(rng.integers(1, 6))}[design]
        success = agent.succeeds(rng, level, float(shifts[scene]))
        chain.add(success)
        yield level, success, scene


def errors(agent: Planted, design: str, scenes: int, tasks: int, repetitions: int) -> tuple[NDArray[np.float64], float]:
    """The error of each repetition, and the share of intervals that hold the truth."""
    rng = np.random.default_rng([scenes, tasks, round(10 * agent.threshold), round(10 * agent.slope)])
    found, held = [], 0
    for _ in range(repetitions):
        levels, wins, where = zip(*trials(agent, design, scenes, tasks, rng), strict=True)
        undistorted = (rng.random(scenes * tasks) < agent.ceiling).tolist()
        middle, low, high = estimate(levels, wins, where, undistorted)
        found.append(min(max(middle, 0.5), 5.5) - agent.threshold)
        truth = agent.threshold
        seen = -math.inf if truth < LOWEST else math.inf if truth > HIGHEST else truth
        held += low <= seen <= high
    return np.array(found), held / repetitions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    repetitions = parser.parse_args().repetitions
    print("| agent | scenes x tasks | design | root mean square error | bias at 1.5, 3.5 | coverage, least and mean |")
    print("|---|---|---|---|---|---|", flush=True)
    for name, (slope, ceiling) in AGENTS.items():
        for scenes, tasks in ((20, 1), (40, 1), (10, 4)):
            for design in DESIGNS:
                found = [errors(Planted(slope, ceiling, at), design, scenes, tasks, repetitions) for at in THRESHOLDS]
                error = math.sqrt(float(np.mean([np.mean(own**2) for own, _ in found])))
                low, high = (float(found[at][0].mean()) for at in (1, 3))
                held = [share for _, share in found]
                print(
                    f"| {name} | {scenes} x {tasks} | {design} | {error:.2f} | {low:+.2f}, {high:+.2f} "
                    f"| {100 * min(held):.0f} %, {100 * float(np.mean(held)):.0f} % |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
