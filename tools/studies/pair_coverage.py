"""Coverage of the intervals of `merton.rating.bradley_terry`: how often they hold the truth, in simulated studies.

Six contenders, each two compared by three raters in every scene. With a spread of scenes, each contender is better or
worse in a scene by a normal deviate; the truth is then the rating that endlessly many scenes give.

    .venv/bin/python tools/studies/pair_coverage.py --studies 500
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from merton.rating.bradley_terry import Comparison, fit_pairs
from merton.seeding import generator

CONTENDERS, RATERS = 6, 3
POINTS = 400.0 / math.log(10.0)


def study(skill: np.ndarray, scenes: int, spread: float, *seed: object) -> list[Comparison]:
    """The comparisons of one study."""
    rng = generator("pair coverage", *seed)
    there = skill + rng.normal(0.0, spread, (scenes, len(skill)))
    return [
        (f"c{i}", f"c{j}", float(rng.random() < 1.0 / (1.0 + math.exp(there[scene, j] - there[scene, i]))), f"s{scene}")
        for scene in range(scenes) for i in range(len(skill)) for j in range(i) for _ in range(RATERS)
    ]  # fmt: skip


def truth(skill: np.ndarray, spread: float) -> np.ndarray:
    """The ratings that endlessly many scenes give: the maximum for the expected shares."""
    if spread == 0.0:
        return 1500.0 + POINTS * (skill - skill.mean())
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    shares = []
    for i in range(len(skill)):
        for j in range(i):
            gaps = skill[i] - skill[j] + math.sqrt(2.0) * spread * nodes
            shares.append((i, j, float(weights @ (1.0 / (1.0 + np.exp(-gaps)))) / math.sqrt(2.0 * math.pi)))
    found = fit_pairs((f"c{i}", f"c{j}", share, "s") for i, j, share in shares)
    return np.array([found.contenders[f"c{i}"].mean for i in range(len(skill))])


def main() -> None:
    """Print a line for each kind of study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500)
    count = parser.parse_args().studies
    for scenes in (6, 10, 30):
        for spread in (0.0, 1.0):
            held = intervals = 0
            for number in range(count):
                skill = generator("skill", number).normal(0.0, 0.8, CONTENDERS)
                found = fit_pairs(study(skill, scenes, spread, number))
                for mean, one in zip(truth(skill, spread), found.contenders.values(), strict=True):
                    if one.interval:
                        intervals += 1
                        held += bool(one.interval[0] <= mean <= one.interval[1])
            print(f"{scenes} scenes, spread {spread:g}: {100 * held / intervals:.1f} % of {intervals} intervals")


if __name__ == "__main__":
    main()
