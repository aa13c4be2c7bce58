"""Planted studies: how often the interval of `half_losses` holds the level at which half is lost, and what is said.

    python tools/studies/half_loss_coverage.py [--studies 300]

The mean share that is left at levels 1 .. 5 is planted, 1 at level 0; the truth is the first level at which straight
lines through the shares are .5 or less. Each scene adds a normal effect of deviation .15 of the share, each image one
of .2 (heavy: Student's t with two degrees of freedom, times .12); scores are 2 + 3 x share, as they come or, where the
case says so, within 0 .. 5. "all": each scene has each level once. "percentiles": those of the level in resampled
scenes, the rule before. "not falling" is the share of studies that say so; there no level is named, and their interval
counts as any other. A quarter of an hour with 300 studies.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from merton.seeding import generator
from merton.statistics.means import middle
from merton.statistics.resampling import resamples
from merton_studies.opinions.sensitivity import LEVELS, half_losses

CHANCE, UNCHANGED = 2.0, 5.0
DRAWS = 200
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """A planted study: shares at levels 1 .. 5, scenes, images of each scene, and the levels that these have."""

    name: str
    shares: Sequence[float]
    scenes: int = 12
    images: int = 5
    levels: Sequence[int] = ()
    noise: str = "normal"


def logistic(middle_level: float, slope: float) -> list[float]:
    return [1.0 / (1.0 + math.exp((level - middle_level) / slope)) for level in range(1, LEVELS + 1)]


LINEAR = [1.0 - 0.15 * level for level in range(1, LEVELS + 1)]
REVIEW = (
    Case("step at level 1, then flat .45", [0.45] * 5),
    Case("flat .55: never half", [0.55] * 5),
    Case("dip to .3 at level 2, then .8", [0.8, 0.3, 0.8, 0.8, 0.8]),
    Case("logistic", logistic(2.7, 0.6)),
    Case("below chance", [0.8, 0.4, 0.1, -0.1, -0.2]),
    Case("linear", LINEAR),
)
OWN = (
    Case("half exactly at level 3, 6 scenes", [0.9, 0.7, 0.5, 0.3, 0.1], 6),
    Case("logistic, 30 scenes, one image each", logistic(3.3, 0.5), 30, 1, (1, 2, 3, 4, 5)),
    Case("linear, 100 scenes", LINEAR, 100),
    Case("steep between 4 and 5", [0.98, 0.97, 0.96, 0.95, 0.05]),
    Case("two images a scene", logistic(2.2, 0.8), 12, 2, (1, 2, 3, 4, 5)),
    Case("floor of exactly .5", [0.5] * 5, 30),
    Case("U: .7 .3 .2 .3 .45", [0.7, 0.3, 0.2, 0.3, 0.45], 30),
    Case("level 1 above no change", [1.05, 0.9, 0.6, 0.3, 0.1]),
    Case("heavy tails, within 0 .. 5", logistic(3.0, 0.7), 12, 5, (), "heavy"),
    Case("levels 2 and 4 missing", logistic(2.7, 0.6), 12, 4, (1, 3, 5)),
    Case("flat .51: never half", [0.51] * 5, 60, 1, (1, 2, 3, 4, 5)),
    Case("dip, 6 scenes", [0.8, 0.3, 0.8, 0.8, 0.8], 6),
)


def study(case: Case, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64], NDArray[np.str_]]:
    """Scores, levels and scenes of one planted study."""
    scene = np.repeat(np.arange(case.scenes), case.images)
    drawn = rng.choice(case.levels, len(scene)) if case.levels else np.tile(np.arange(1, LEVELS + 1), case.scenes)
    own = 0.12 * rng.standard_t(2, len(scene)) if case.noise == "heavy" else 0.2 * rng.normal(size=len(scene))
    share = np.array(case.shares)[drawn - 1] + 0.15 * rng.normal(size=case.scenes)[scene] + own
    score = CHANCE + (UNCHANGED - CHANCE) * share
    return np.clip(score, 0.0, 5.0) if case.noise == "heavy" else score, drawn, scene.astype(str)


def crossing(level: Floats, share: Floats) -> float:
    """The first level at which the line through shares is .5 or less; infinite without one."""
    lost = np.flatnonzero(share <= 0.5)
    if not len(lost):
        return math.inf
    at = int(lost[0])
    part = (share[at - 1] - 0.5) / (share[at - 1] - share[at])
    return float(level[at - 1] + part * (level[at] - level[at - 1]))


def truth(case: Case) -> float:
    levels = sorted(case.levels or range(1, LEVELS + 1))
    return crossing(np.array([0.0, *levels]), np.array([1.0, *(case.shares[level - 1] for level in levels)]))


def percentiles(score: Floats, level: NDArray[np.int64], scene: NDArray[np.str_]) -> tuple[float, float]:
    drawn = resamples(scene, "half_loss", draws=DRAWS)
    share = (score - CHANCE) / (UNCHANGED - CHANCE)
    counts, totals = (drawn.totals(value, level, LEVELS + 1) for value in (np.ones(len(share)), share))
    found = []
    for count, total in zip(counts, totals, strict=True):
        met = count > 0
        falling = isotonic_regression(total[met] / count[met], weights=count[met], increasing=False).x
        found.append(crossing(np.array([0.0, *np.flatnonzero(met)]), np.array([1.0, *np.minimum(falling, 1.0)])))
    return middle(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=300)
    studies = parser.parse_args().studies
    print("| case | truth | median | held | width within 0 .. 5 | not falling | percentiles held |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for case in (*REVIEW, *OWN):
        rng, real = generator("half_loss_coverage", case.name), truth(case)
        levels, widths, held, before = [], [], 0, 0
        for _ in range(studies):
            score, level, scene = study(case, rng)
            (found,) = half_losses(score, np.full(len(score), "haze"), level, scene, CHANCE, UNCHANGED)
            assert found.interval is not None
            levels.append(found.level)
            held += found.interval.low <= real <= found.interval.high
            widths.append(min(found.interval.high, 5.0) - min(found.interval.low, 5.0))
            low, high = percentiles(score, level, scene)
            before += low <= real <= high
        known = [level for level in levels if not math.isnan(level)]
        middle_level = np.median(known) if known else math.nan
        print(
            f"| {case.name} | {real:.2f} | {middle_level:.2f} | {held / studies:.3f} | {np.mean(widths):.2f} "
            f"| {1.0 - len(known) / studies:.2f} | {before / studies:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
