"""Simulated studies whose truth is known: how often each rule for an interval holds it.

    .venv/bin/python tools/studies/interval_coverage.py [--studies 400] [--only values] [--processes 2]

Prints the tables of docs/reference/statistics.md: Spearman's correlation of values of images or trials that are alike
within a scene; Spearman's correlation of means of fixed units, such as types of distortion or models, over scenes; the
weighted kappa of all pairs of annotators; drops of success and differences of drops. Each has the rule that Merton uses
and those that it was chosen from. An hour on two idle cores with 400 studies.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray
from planted_differences import AGENTS, PAIRS, differences, truth
from scipy.special import ndtri
from scipy.stats import spearmanr

from merton.seeding import generator
from merton.statistics.clustered import Measured, correlation_interval, partial, row_correlations, scene_draws, steadied
from merton.statistics.correlation import (
    correlation_left_out,
    correlations_with_intervals,
    fisher_interval,
    without_each,
)
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.statistics.paired import drop_interval, paired_interval
from merton.statistics.raters import pooled_kappa
from merton.statistics.resampling import interval, resamples

Floats = NDArray[np.float64]
Setting = tuple[str | float, ...]
Rules = Mapping[str, Interval | None]

EACH = 5
"""Images of a scene."""
SHARE = math.sqrt(0.5)
"""Half of the variance of a value is its scene's."""
MANY = 40_000
VALUES = tuple(
    (kind, rho, scenes)
    for kind in ("normal", "60 % at the ceiling", "outcome 0 or 1")
    for rho in (0.0, 0.5, 0.9)
    for scenes in (10, 24, 50)
)
MEANS = tuple(
    (units, rho, noise, scenes)
    for units, rho, noise in (
        (30, 0.0, 1.0),
        (30, 0.5, 1.0),
        (30, 0.8, 1.0),
        (30, 0.8, 3.0),
        (12, 0.5, 1.0),
        (12, 0.8, 3.0),
        (6, 0.8, 1.0),
    )
    for scenes in (10, 24, 50)
)
GIVEN = tuple((rho, scenes) for rho in (0.0, 0.5) for scenes in (10, 24, 50))
FALL = 0.5
"""Of both values from one level to the next."""
KAPPAS = (10, 20, 30, 60, 100)
SCENES = (6, 12, 30, 100)
DROPS = tuple((agent, scenes) for agent in AGENTS for scenes in SCENES)
DROPS_APART = tuple((*agents, scenes) for agents in PAIRS for scenes in SCENES)


def values_of(setting: Setting, rng: np.random.Generator) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Two values (n,) of each image, and its scene; before they are cut off they are normal with Spearman's rho."""
    kind, rho, scenes = setting[0], float(setting[1]), int(setting[2])
    pearson = 2.0 * math.sin(math.pi * rho / 6.0)
    by_scene, by_image = rng.standard_normal((2, scenes, 1)), rng.standard_normal((2, scenes, EACH))
    x, own = (SHARE * (a + b) for a, b in zip(by_scene, by_image, strict=True))
    y = pearson * x + math.sqrt(1.0 - pearson**2) * own
    if kind == "60 % at the ceiling":
        x, y = (np.minimum(side, ndtri(0.4)) for side in (x, y))
    if kind == "outcome 0 or 1":
        y = (y < ndtri(0.7)).astype(float)
        x = -x
    return x.ravel(), y.ravel(), np.repeat(np.arange(scenes), EACH)


@cache
def _truth(setting: Setting) -> float:
    x, y, _ = values_of((*setting[:2], MANY), generator("truth of values", *setting[:2]))
    return float(spearmanr(x, y).statistic)


def study_of_values(setting: Setting, number: int) -> tuple[float, Rules]:
    """The truth of a study of values, and the interval of it by every rule."""
    x, y, scene = values_of(setting, generator("values", *setting, number))
    value = float(spearmanr(x, y).statistic)
    names = np.arange(int(setting[2])).astype(str)
    draws = row_correlations(x[None], y[None], scene_draws(number, names)[:, scene])
    low, high = correlations_with_intervals(np.stack([x, y]), scene)[1][0, 1].tolist()
    return _truth(setting), {
        "left out in turn": _known((low, high)),
        "left out one by one": _left_out(x, y, scene, value),
        "drawn, Student": _known(correlation_interval(draws, len(names), len(x))),
        "drawn, percentiles": interval(draws[1:]),
        "drawn, percentiles, mirrored": _with_mirror(value, interval(draws[1:])),
        "images independent": fisher_interval(value, len(x)),
    }


def _left_out(x: Floats, y: Floats, scene: NDArray[np.int64], value: float) -> Interval | None:
    scenes = int(scene.max()) + 1
    parts = row_correlations(x[None], y[None], (1.0 - np.eye(scenes))[:, scene])
    return _known(correlation_left_out(np.r_[value, parts]))


def levelled(rho: float, scenes: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """As `values_of` normal ones, but each image of a scene has another level, with which both values fall."""
    x, y, scene = values_of(("normal", rho, scenes), rng)
    level = np.tile(np.arange(1.0, EACH + 1.0), scenes)
    return x - FALL * level, y - FALL * level, level, scene


def _given_level(x: Floats, y: Floats, level: Floats, times: Floats) -> Floats:
    pairs = ((x, y), (x, level), (y, level))
    return partial(*(row_correlations(one[None], other[None], times) for one, other in pairs))


@cache
def _true_given(rho: float) -> float:
    x, y, level, _ = levelled(rho, MANY, generator("truth given the level", rho))
    return float(_given_level(x, y, level, np.ones((1, len(x))))[0])


def study_given_level(setting: Setting, number: int) -> tuple[float, Rules]:
    """The truth of a partial correlation given the level, and the interval of it by both rules."""
    rho, scenes = float(setting[0]), int(setting[1])
    x, y, level, scene = levelled(rho, scenes, generator("given the level", *setting, number))
    names = np.arange(scenes).astype(str)
    parts = np.stack(without_each(scene)).astype(float)
    draws = _given_level(x, y, level, scene_draws(number, names)[:, scene])
    return _true_given(rho), {
        "left out in turn": _known(correlation_left_out(_given_level(x, y, level, parts))),
        "drawn, Student": _known(correlation_interval(draws, scenes, len(x))),
    }


def study_of_means(setting: Setting, number: int) -> tuple[float, Rules]:
    """The truth of a study of fixed units, each seen once in every scene, and the interval of it by every rule."""
    units, rho, noise, scenes = int(setting[0]), float(setting[1]), float(setting[2]), int(setting[3])
    rng = generator("means", *setting, number)
    pearson = 2.0 * math.sin(math.pi * rho / 6.0)
    true = rng.standard_normal((2, units))
    true[1] = pearson * true[0] + math.sqrt(1.0 - pearson**2) * true[1]
    seen = true[:, :, None] + rng.standard_normal((2, 1, scenes)) + noise * rng.standard_normal((2, units, scenes))
    unit = np.repeat(np.arange(units), scenes)
    scene = np.tile(np.arange(scenes).astype(str), units)
    drawn = [Measured(unit, scene, side.ravel()).draws(number, units) for side in seen]
    plain = row_correlations(*drawn)
    (x, x_share), (y, y_share) = (steadied(side, scenes) for side in drawn)
    steady = correlation_interval(row_correlations(x, y), scenes, units, math.sqrt(x_share * y_share))
    return float(spearmanr(*true).statistic), {
        "drawn, steadied": _known(steady),
        "drawn, percentiles, mirrored": _with_mirror(float(plain[0]), interval(plain[1:])),
        "drawn, Student": _known(correlation_interval(plain, scenes, units)),
        "drawn, percentiles": interval(plain[1:]),
    }


def marks(setting: Setting, rng: np.random.Generator) -> Floats:
    """(annotators, videos) marks 0 to 3 of three annotators with errors of their own."""
    worth = rng.normal(1.5, 1.0, int(setting[0]))
    return np.clip(np.round(worth + rng.normal(0.0, 0.7, (3, len(worth)))), 0.0, 3.0)


@cache
def _true_kappa() -> float:
    return _pooled(marks((200_000,), generator("truth of marks")), np.ones((1, 200_000)))[0]


def _pooled(given: Floats, times: Floats) -> Floats:
    """(rows,) kappa of all pairs, each video counted (rows, videos) times."""
    count, observed, expected = times.sum(axis=1), 0.0, 0.0
    for one, other in ((0, 1), (0, 2), (1, 2)):
        a, b = given[one], given[other]
        observed = observed + times @ (a - b) ** 2
        expected = expected + times @ a**2 + times @ b**2 - 2.0 * (times @ a) * (times @ b) / count
    with np.errstate(invalid="ignore"):  # a draw without any variance is left out
        return np.asarray(1.0 - observed / expected)


def study_of_kappa(setting: Setting, number: int) -> tuple[float, Rules]:
    """The truth of a study of annotators, and the interval of it by every rule."""
    given = marks(setting, generator("marks", *setting, number))
    drawn = _pooled(given, resamples(range(given.shape[1]), "marks", number).weights)
    scores = {(name, video): mark for name, row in zip("abc", given, strict=True) for video, mark in enumerate(row)}
    return _true_kappa(), {
        "drawn, Student": pooled_kappa(scores).kappa.interval,
        "drawn, percentiles": interval(drawn),
    }


def study_of_differences(setting: Setting, number: int) -> tuple[float, Rules]:
    """The truth of a drop of one agent, or of the difference of the drops of two, and its interval by every rule."""
    agents, scenes = tuple(map(str, setting[:-1])), int(setting[-1])
    values, scene = differences(agents, scenes, generator("differences", *setting, number))
    span = float(len(agents))
    drawn = resamples(scene, "differences", number).means(values, np.zeros(len(values), np.int64), 1)[:, 0]
    return truth(agents), {
        "losses and gains": drop_interval(values, scene) if span == 1.0 else paired_interval(values, scene, span=span),
        "mean of (1 + d) / 2": mean_interval((span + values) / (2.0 * span), scene).scaled(2.0 * span, -span),
        "drawn, percentiles": interval(drawn),
    }


STUDIES: Mapping[str, tuple[tuple[Setting, ...], Callable[[Setting, int], tuple[float, Rules]], tuple[str, ...]]] = {
    "values": (VALUES, study_of_values, ("values", "rho", "scenes")),
    "given": (GIVEN, study_given_level, ("rho", "scenes")),
    "means": (MEANS, study_of_means, ("units", "rho", "scatter in a scene", "scenes")),
    "kappa": (tuple((videos,) for videos in KAPPAS), study_of_kappa, ("videos",)),
    "drops": (DROPS, study_of_differences, ("agent", "scenes")),
    "drops apart": (DROPS_APART, study_of_differences, ("agent", "other agent", "scenes")),
}


def _with_mirror(value: float, ends: Interval | None) -> Interval | None:
    """An interval together with its mirror image about the value, within -1..1."""
    if ends is None:
        return None
    low, high = ends
    return max(-1.0, min(low, 2.0 * value - high)), min(1.0, max(high, 2.0 * value - low))


def _known(ends: Interval) -> Interval | None:
    return None if math.isnan(ends[0]) or math.isnan(ends[1]) else ends


def measured(name: str, setting: Setting, studies: int) -> list[str]:
    """A cell for each rule: the percentage that held, the mean width, and the share that had an interval."""
    work = STUDIES[name][1]
    done = [work(setting, number) for number in range(studies)]
    cells = []
    for rule in done[0][1]:
        ends = [(truth, rules[rule]) for truth, rules in done]
        there = [(truth, *one) for truth, one in ends if one is not None]
        if len(there) < studies / 20:
            cells.append("none")
            continue
        held = sum(low <= truth <= high for truth, low, high in there)
        missing = "" if len(there) == studies else f", shown in {100 * len(there) / studies:.0f} %"
        width = float(np.mean([high_end - low_end for _, low_end, high_end in there]))
        cells.append(f"{100 * held / len(there):.1f} ({width:.2f}{missing})")
    return cells


def table(name: str, studies: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """The lines of a table in Markdown."""
    settings, work, heads = STUDIES[name]
    rules = tuple(work(settings[0], 0)[1])
    yield f"| {' | '.join((*heads, *rules))} |"
    yield "|---" * (len(heads) + len(rules)) + "|"
    size = len(settings)
    rows = pool.map(measured, [name] * size, settings, [studies] * size)
    for setting, cells in zip(settings, rows, strict=True):
        yield f"| {' | '.join((*map(str, setting), *cells))} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--only", choices=STUDIES)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn")) as pool:
        for name in [given.only] if given.only else STUDIES:
            print(f"\n{name}: percent of {given.studies} studies that held the truth (mean width)\n")
            for line in table(name, given.studies, pool):
                print(line, flush=True)


if __name__ == "__main__":
    main()
