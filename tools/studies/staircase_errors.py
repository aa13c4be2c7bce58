"""Errors of `levels: staircase` on planted thresholds, beside those of even and drawn levels with as many trials.

    python tools/studies/staircase_errors.py [--repetitions 300] [--only designs]

An agent succeeds at level x of a scene with c / (1 + exp((x - m - u) / s)), u the scene's own, normal with deviation
0.7. The truth is the level at which the mean over scenes is 75 %. "even" shows each scene at all five levels, "one" at
one that is drawn. An error counts within 0.5 .. 5.5: beyond the levels only "below 1" and "above 5" are said.

The second table has curves of other shapes, by staircase: logistic ones above a floor, steps, and dips, which do not
fall. The truth is the first level at which the mean over scenes is 75 % or less, between the levels of steps on
straight lines; "not falling" is the share of chains of which this is said.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from merton.experiment.staircase import Staircase
from merton.seeding import generator
from merton.statistics.falling import greatest_rise
from merton.study.thresholds import HIGHEST, LOWEST, TARGET, estimate

SCATTER = 0.7
AGENTS = {"steep": (0.4, 0.99), "shallow": (0.8, 0.93)}
"""Name to s and c."""
THRESHOLDS = (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
DESIGNS = ("staircase", "even", "one")


class Shape(NamedTuple):
    """A planted curve: success undistorted and at level 1 .. 5 of a scene whose level is shifted by u.

    Attributes:
        success: level and u to a chance.
        scatter: deviation of u.
        tasks: trials of each scene.
    """

    name: str
    success: Callable[[float, float], float]
    scatter: float = SCATTER
    tasks: int = 1


def logistic(middle: float, slope: float, ceiling: float = 0.98, floor: float = 0.0) -> Callable[[float, float], float]:
    def success(level: float, shift: float) -> float:
        fallen = math.exp((level - middle - shift) / slope) if level else 0.0
        return floor + (ceiling - floor) / (1.0 + fallen)

    return success


def steps(*chances: float) -> Callable[[float, float], float]:
    return lambda level, shift: float(np.interp(level, np.arange(len(chances)), chances))


REVIEW = (
    Shape("logistic", logistic(3.0, 0.5)),
    Shape("level 5 not enough", logistic(6.5, 0.6)),
    Shape("lapse of .14", logistic(3.0, 0.5, 0.86)),
    Shape("guess floor .5", logistic(2.5, 0.5, 0.98, 0.5)),
    Shape("floor .7", logistic(2.0, 0.5, 0.98, 0.7), 0.0),
    Shape("dip at 2 and 3", steps(0.9, 0.9, 0.5, 0.5, 0.9, 0.9)),
)
OWN = (
    Shape("floor .6", logistic(2.0, 0.5, 0.98, 0.6)),
    Shape("floor .72", logistic(1.5, 0.7, 0.95, 0.72)),
    Shape("floor .8: never", logistic(2.0, 0.5, 0.98, 0.8)),
    Shape("flat .9: never", steps(*[0.9] * 6)),
    Shape("step to .6 at level 1", steps(0.97, *[0.6] * 5)),
    Shape("step between 4 and 5", steps(0.97, 0.97, 0.97, 0.97, 0.95, 0.1)),
    Shape("shallow, floor .2", logistic(3.0, 1.2, 0.95, 0.2)),
    Shape("ceiling .78", logistic(3.5, 0.4, 0.78)),
    Shape("scenes far apart", logistic(3.0, 0.5), 1.5),
    Shape("four tasks a scene, floor .5", logistic(2.5, 0.5, 0.98, 0.5), SCATTER, 4),
    Shape("back at 4 and 5", steps(0.95, 0.95, 0.4, 0.2, 0.95, 0.95)),
)


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


def crossing(shape: Shape) -> float:
    """The truth of a shape, as `estimate` gives it: -inf below level 1, inf above 5."""
    u = np.linspace(-4.0, 4.0, 161)
    weights = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    for at in np.linspace(LOWEST, HIGHEST, 401).tolist():
        mean = sum(w * shape.success(at, shape.scatter * x) for w, x in zip(weights, u, strict=True))
        if mean <= TARGET:
            return -math.inf if at == LOWEST else at
    return math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--only", choices=("designs", "shapes"))
    arguments = parser.parse_args()
    if arguments.only != "shapes":
        print_designs(arguments.repetitions)
    if arguments.only != "designs":
        print_shapes(arguments.repetitions)


def print_designs(repetitions: int) -> None:
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


def print_shapes(repetitions: int) -> None:
    print("| curve | truth | scenes | mean | held | not falling | held or not falling |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for shape in (*REVIEW, *OWN):
        truth = crossing(shape)
        for scenes in (24, 80):
            print(
                f"| {shape.name} | {truth:.2f} | {scenes} | {shape_row(shape, truth, scenes, repetitions)} |",
                flush=True,
            )


def shape_row(shape: Shape, truth: float, scenes: int, repetitions: int) -> str:
    rng = generator("staircase_errors", shape.name, scenes)
    middles, held, rising, either = [], 0, 0, 0
    for _ in range(repetitions):
        shifts, chain = shape.scatter * rng.normal(size=scenes), Staircase()
        order = rng.permutation(np.repeat(np.arange(scenes), shape.tasks))
        levels, wins = [], []
        for scene in order.tolist():
            levels.append(chain.level)
            wins.append(bool(rng.random() < shape.success(chain.level, float(shifts[scene]))))
            chain.add(wins[-1])
        undistorted = [bool(rng.random() < shape.success(0, 0.0)) for _ in order]
        middle, low, high = estimate(levels, wins, order, undistorted)
        rise = greatest_rise(wins + undistorted, levels + [0] * len(order), [*order, *order], TARGET)
        said = rise is not None and rise.crosses(TARGET)
        middles.append(min(max(middle, 0.5), 5.5))
        held, rising, either = held + (low <= truth <= high), rising + said, either + (low <= truth <= high or said)
    return (
        f"{np.mean(middles):.1f} | {held / repetitions:.2f} | {rising / repetitions:.2f} | {either / repetitions:.2f}"
    )


if __name__ == "__main__":
    main()
