"""Convergence of a simulated study's ratings with the share of its matches, and coverage of a newcomer's interval.

    python tools/studies/rating_convergence.py convergence --agents 20 --cases 5000 --shuffles 20
    python tools/studies/rating_convergence.py placing --studies 400

Skills are normal, 200 points apart, cases 250, around 1500; scores are 0 or 1. `convergence` prints Fig. 4's measures
and whether the errors fall at each step within two standard errors; `placing` prints the share of 95 % intervals of
newcomers that hold their skill on the scale of the board (the shift of its agents' ratings taken off) and beyond it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from merton.rating import likelihood, placing
from merton.rating.checking import MatchTable, table_of
from merton.rating.convergence import Convergence, Spread, convergence

SIZES = ((5, 60, 60, 0), (10, 200, 20, 0), (10, 200, 200, 0), (10, 1000, 100, 0), (10, 320, 10, 10), (10, 960, 10, 30))
"""Agents and cases of a board, and of a newcomer the cases it meets, of scenes if the last number is not 0: scenes."""


def simulated(agents: int, cases: int, rng: np.random.Generator) -> MatchTable:
    """Every agent on every case."""
    skill, hard = rng.normal(0, 200, agents), rng.normal(0, 250, cases)
    won = rng.random((agents, cases)) < 1 / (1 + 10 ** ((hard - skill[:, None]) / 400))
    who, what = np.divmod(np.arange(agents * cases), cases)
    return table_of([f"a{i:02}" for i in who], [f"c{i:05}" for i in what], won.ravel().astype(float).tolist())


def rises(points: Sequence[Spread | None]) -> list[float]:
    """The rise of the mean at each step, in standard errors of the difference; negative where it falls."""
    found = []
    for before, after in pairwise(point for point in points if point is not None):
        error = math.hypot(before.error, after.error)
        found.append((after.mean - before.mean) / error if error else 0.0)
    return found


def report(found: Convergence) -> None:
    """Print the measures of one method, a line a share, and its verdict."""
    for place, share in enumerate(found.shares):
        row = {name: points[place] for name, points in found.measures.items()}
        cells = "  ".join(f"{name} {at.mean:.4f} ± {at.error:.4f}" for name, at in row.items() if at)
        print(f"{found.method:12} {100 * share:5.0f} %  {cells}")
    for name in ("mae", "mse"):
        worst = max(rises(found.measures[name]))
        print(f"{found.method:12} {name} falls within 2 SE: {worst <= 2.0} (largest rise {worst:.1f} SE)")


def held(agents: int, cases: int, met: int, scenes: int, rng: np.random.Generator) -> tuple[bool, bool] | None:
    """Whether the interval of a newcomer holds its skill on the board's own scale, and on that of all cases."""
    skill, new = rng.normal(0, 200, agents), rng.normal(0, 200)
    scene = np.repeat(np.arange(scenes), cases // scenes) if scenes else np.arange(cases)
    hard = rng.normal(0, 200, scenes)[scene] + rng.normal(0, 150, cases) if scenes else rng.normal(0, 250, cases)
    names = [f"c{case:05}" for case in range(cases)]
    of = {name: f"s{scene[case]:03}" for case, name in enumerate(names)} if scenes else {}
    won = (rng.random((agents + 1, cases)) < 1 / (1 + 10 ** ((hard - np.append(skill, new)[:, None]) / 400))) * 1.0
    who, what = np.divmod(np.arange(agents * cases), cases)
    table = table_of([f"a{i:02}" for i in who], [names[i] for i in what], won[:-1].ravel().tolist(), of)
    fitted = likelihood.fit(table)
    chosen = np.flatnonzero(np.isin(scene, rng.choice(scene.max() + 1, met, replace=False)))
    found = placing.place([(names[i], float(won[-1, i])) for i in chosen], fitted, of).interval
    shift = np.mean([fitted.agents[f"a{i:02}"].mean - 1500.0 - skill[i] for i in range(agents)])
    if found is None:
        return None
    return found[0] <= 1500.0 + new + shift <= found[1], found[0] <= 1500.0 + new <= found[1]


def main() -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("convergence", "placing"))
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng = np.random.default_rng(chosen.seed)
    if chosen.what == "convergence":
        for found in convergence(simulated(chosen.agents, chosen.cases, rng), shuffles=chosen.shuffles):
            report(found)
        return
    for size in SIZES:
        results = [one for one in (held(*size, rng) for _ in range(chosen.studies)) if one is not None]
        own, absolute = np.mean(results, axis=0)
        error = math.sqrt(0.05 * 0.95 / len(results))
        agents, cases, met, scenes = size
        unit = f"{met} of {scenes} scenes" if scenes else f"{met} cases"
        print(
            f"{agents} x {cases}, {unit}: {own:.3f} ± {error:.3f} on the board's scale, {absolute:.3f} beyond it "
            f"(n = {len(results)})"
        )


if __name__ == "__main__":
    main()
