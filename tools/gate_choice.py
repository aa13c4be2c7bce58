"""Would `merton gate` end earlier if it chose its scenes? Studies resampled from a run of it, by rules of choice.

    .venv/bin/python tools/gate_choice.py runs/gate-... [--repetitions 400] [--scenes 1400]

Scenes, coins and planted losses are those of `tools/gate_errors.py`; a loss lies in all scenes evenly, in levels 4 and
5, or in every fourth type. The limit is a loss of 5 points. Chosen scenes are weighted by one over their probability,
so that the number that is estimated stays the same, and the probabilities of 50 scenes follow from those before them,
so that the capital of the gambler stays a martingale and the promised errors hold. Same arguments, same table.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from gate_errors import Successes, successes
from numpy.typing import NDArray
from scipy.special import logsumexp

from merton.results.records import TestCase
from merton.seeding import generator
from merton.statistics.sequential import ERROR, Verdict, _log_returns

DELTA = 0.05
BATCH = 50
"""Scenes between two choices."""
WEIGHT = 4.0
"""Scenes of a group that differ as often as expected, and are added to those seen."""
PLANTED = (
    (0.0, "even"),
    *((loss, where) for loss in (0.05, 0.10, 0.20) for where in ("even", "levels")),
    (0.10, "types"),
)

Groups = list[NDArray[np.intp]]
"""For each way to group scenes (task, type, level) the number of each scene's group."""
Chances = Callable[[NDArray[np.intp], NDArray[np.float64]], NDArray[np.float64] | None]
"""From scenes seen and their differences to the chance that the agents differ, of every scene; None: draw evenly."""


def groups(cases: Sequence[TestCase]) -> Groups:
    """By task, by type and by level."""
    keys = ([case.task for case in cases], [case.distortion for case in cases], [case.level for case in cases])
    return [np.unique(key, return_inverse=True)[1] for key in keys]


def shrunk(by: Groups, seen: NDArray[np.intp], happened: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chances of every scene, as a mean times a factor for each group; factors of rare groups are near 1."""
    chances = np.full(len(by[0]), (happened.sum() + 1.0) / (len(seen) + 10.0))
    for _ in range(3):
        for group in by:
            size = int(group.max()) + 1
            found, expected = np.bincount(group[seen], happened, size), np.bincount(group[seen], chances[seen], size)
            chances = chances * ((found + WEIGHT) / (expected + WEIGHT))[group]
    return np.clip(chances, 1e-4, 1.0)


def rules(by: Groups, found: Successes, differ: NDArray[np.float64]) -> dict[str, Chances]:
    """Rules of choice by name. An earlier record of the baseline is that of the other half of the scenes; the last two
    know beforehand what no comparison knows."""
    everything, (task, _, level) = np.arange(len(found)), by
    failure = np.zeros(len(found))
    for half in (0, 1):
        others = everything[1 - half :: 2]
        failure[half::2] = shrunk(by, others, 1.0 - found[others, 1])[half::2]
    known = {
        "recorded failures": failure * (1.0 - failure) / 2.0,
        "level known": shrunk([level], everything, differ),
        "all known": shrunk(by, everything, differ),
    }

    def learned(own: Groups) -> Chances:
        return lambda seen, gains: shrunk(own, seen, gains**2) if len(seen) else None

    return {
        "drawn": lambda seen, gains: None,
        "level learned": learned([level]),
        "task, level learned": learned([task, level]),
        "all learned": learned(by),
        **{name: (lambda seen, gains, own=own: own) for name, own in known.items()},
    }


def study(
    found: Successes, lost: NDArray[np.float64], rule: Chances, scenes: int, rng: np.random.Generator
) -> tuple[int, Verdict]:
    """The number of scenes of one study and its verdict.

    For a gap g between the mean and the limit, a scene whose agents differ with the chance d is drawn in proportion to
    sqrt(d) + r, where r = sqrt(s^2 + 2 g) - s and s is the mean of sqrt(d), and its difference is shifted by
    r (sqrt(d) - s), which is 0 on average (ours: approximates the largest growth of the capital against all means of
    groups that together have a mean at the limit).
    """
    number, seen, gains, weighted = len(found), np.zeros(0, np.intp), np.zeros(0), np.zeros(0)
    capitals = np.zeros((2, 32))
    while len(seen) < scenes:
        chances, shares, shifts = rule(seen, gains), np.full(number, 1.0 / number), np.zeros(number)
        if chances is not None:
            gap = max(abs((weighted.mean() if len(seen) else 0.0) + DELTA), DELTA / 2)
            roots = np.sqrt(chances)
            reach = math.sqrt(roots.mean() ** 2 + 2.0 * gap) - roots.mean()
            shares = (roots + reach) / (roots + reach).sum()
            shifts = reach * (roots - roots.mean())
        drawn = rng.choice(number, size=min(BATCH, scenes - len(seen)), p=shares)
        swapped, kept = rng.random((2, len(drawn)))
        ours, theirs = found[drawn].T
        candidate, baseline = np.where(swapped < 0.5, theirs, ours), np.where(swapped < 0.5, ours, theirs)
        own = candidate * (kept >= lost[drawn]) - baseline
        weights = 1.0 / (number * shares)
        returns = []
        for sign in (1.0, -1.0):  # on means above the limit, and on means below
            values, least = weights[drawn] * (sign * own + shifts[drawn]), float((weights * (shifts - 1.0)).min())
            returns.append(_log_returns(values - least, -sign * DELTA - least))
        paths = capitals[:, :, None] + np.cumsum(returns, axis=2)
        sure = logsumexp(paths, axis=1) - math.log(32) > math.log(2.0 / ERROR)
        if sure.any():
            first = int(sure.any(axis=0).argmax())
            return len(seen) + first + 1, Verdict.NOT_WORSE if sure[0, first] else Verdict.WORSE
        capitals = paths[:, :, -1]
        seen, gains = np.append(seen, drawn), np.append(gains, own)
        weighted = np.append(weighted, weights[drawn] * own)
    return scenes, Verdict.UNRESOLVED


def planted(cases: Sequence[TestCase], found: Successes, loss: float, where: str) -> NDArray[np.float64]:
    """The chance of each scene that a success of the candidate is lost, for a mean loss of `loss`."""
    types = sorted({case.distortion for case in cases if case.level})[::4]
    inside = [where == "even" or (case.level >= 4 if where == "levels" else case.distortion in types) for case in cases]
    return np.minimum(np.array(inside) * loss / (np.array(inside) * found.mean(axis=1)).mean(), 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether merton gate would end earlier if it chose its scenes.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--scenes", type=int, default=1400, help="the budget of a study")
    arguments = parser.parse_args()
    cases, found, _ = successes(arguments.run)
    by, apart = groups(cases), found[:, 0] != found[:, 1]
    levels = np.array([case.level for case in cases])
    rates = ", ".join(f"{100 * apart[levels == level].mean():.0f}" for level in sorted(set(levels)))
    print(f"{len(found)} scenes; the two agents differ in {100 * apart.mean():.1f} %, by level {rates} %")
    print("| loss, points | rule | passed | failed | scenes, mean | saved | scenes, 80 % |")
    print("|---|---|---|---|---|---|---|")
    for loss, where in PLANTED:
        lost = planted(cases, found, loss, where)
        differ = np.where(apart, 1.0 - lost / 2.0, found[:, 0] * lost)
        drawn = math.nan
        for name, rule in rules(by, found, differ).items():
            ends = [
                study(found, lost, rule, arguments.scenes, generator("gate choice", loss, where, number))
                for number in range(arguments.repetitions)
            ]
            counts, verdicts = np.array([scenes for scenes, _ in ends]), [verdict for _, verdict in ends]
            passed, failed = (100 * verdicts.count(one) / len(ends) for one in (Verdict.NOT_WORSE, Verdict.WORSE))
            mean = float(counts.mean())
            drawn = mean if name == "drawn" else drawn
            cells = (f"{100 * loss:g}, {where}", name, f"{passed:.1f} %", f"{failed:.1f} %", f"{mean:.0f}")
            saved = f"{100 * (1 - mean / drawn):+.0f} %"
            print("|", " | ".join((*cells, saved, f"{np.quantile(counts, 0.8):.0f}")), "|", flush=True)


if __name__ == "__main__":
    main()
