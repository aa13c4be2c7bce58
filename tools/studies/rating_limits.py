"""Boards whose ratings say nothing, and ranges of places from pairs and from intervals of ratings.

    python tools/studies/rating_limits.py withheld --studies 200
    python tools/studies/rating_limits.py ranges --studies 400

`withheld` prints for designs of agents that agree, that fail, and of ordinary ones (skills 200 points apart, cases 250,
half of the variance the scenes') how often ratings are withheld. `ranges` prints how often the ranges of two agents are
apart: of a pair with a real difference (power), and of equal agents (false separations), by the intervals of the
ratings as before, and by paired differences.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from merton.leaderboard.snapshot import ranges
from merton.leaderboard.snapshot.rows import standings
from merton.rating import likelihood
from merton.rating.checking import MatchTable, logistic, table_of

Floats = NDArray[np.float64]
Draw = np.random.Generator


def played(scores: Floats, views: int) -> MatchTable:
    """The matches of (agents, cases) scores; the views of a scene are in turn, NaN is no match."""
    agents, cases = np.nonzero(~np.isnan(scores))
    names = [f"{case:05}" for case in range(scores.shape[1])]
    scene_of = {name: f"{case // views:04}" for case, name in enumerate(names)}
    return table_of([f"{one:03}" for one in agents], [names[case] for case in cases], scores[agents, cases], scene_of)


def agreeing(draw: Draw, agents: int, scenes: int, views: int, share: float) -> Floats:
    """The scene decides, but for 2 % of the trials."""
    won = np.repeat(draw.random(scenes) < share, views)
    return (won != (draw.random((agents, len(won))) < 0.02)).astype(float)


def failing(draw: Draw, agents: int, scenes: int, views: int) -> Floats:
    """Three trials of a hundred succeed."""
    return (draw.random((agents, scenes * views)) < 0.03).astype(float)


def single(draw: Draw, agents: int, scenes: int, views: int) -> Floats:
    """Each agent meets one case."""
    scores = np.full((agents, scenes * views), np.nan)
    scores[np.arange(agents), draw.integers(scenes * views, size=agents)] = draw.random(agents) < 0.5
    return scores


def ordinary(
    draw: Draw,
    agents: int,
    scenes: int,
    views: int,
    missing: float = 0.0,
    spread: float = 250.0,
    skill: Floats | None = None,
) -> Floats:
    """Normal skills and cases."""
    hard = np.repeat(draw.normal(0, spread, scenes), views) + draw.normal(0, spread, scenes * views)
    skills = draw.normal(0, 200, agents) if skill is None else skill
    scores = (draw.random((agents, len(hard))) < logistic(skills[:, None] - hard / np.sqrt(2))).astype(float)
    scores[draw.random(scores.shape) < missing] = np.nan
    return scores


WITHHELD: tuple[tuple[str, Callable[..., Floats], tuple[float, ...]], ...] = (
    *((f"agree, {share}", agreeing, (agents, scenes, 3, share)) for share in (0.7, 0.86, 0.95)
      for agents, scenes in ((2, 12), (2, 36), (2, 100), (3, 36), (4, 36))),
    *(("fail", failing, size) for size in ((2, 36, 3), (4, 36, 3), (2, 100, 3))),
    *(("one match each", single, size) for size in ((5, 5, 1), (30, 5, 1))),
    *(("ordinary", ordinary, size) for size in (
        (2, 4, 3), (2, 10, 1), (2, 12, 3), (2, 36, 3), (2, 100, 3), (3, 4, 8), (3, 12, 3), (3, 60, 1), (4, 6, 1),
        (5, 20, 1), (5, 4, 32), (20, 30, 1))),
    ("ordinary, half missing", ordinary, (3, 60, 1, 0.5)),
    ("cases 600 apart", ordinary, (3, 36, 3, 0.0, 600.0)),
    ("cases 1000 apart", ordinary, (5, 36, 3, 0.0, 1000.0)),
)  # fmt: skip


def withheld(studies: int, seed: int) -> None:
    """Print a line a design."""
    print("| agents | size | withheld | shown, an interval wider than 2000 | shown, freedom < 3 | median freedom |")
    print("|---|---|---|---|---|---|")
    for name, make, size in WITHHELD:
        draw = np.random.default_rng(seed)
        fits = []
        for _ in range(studies):
            table = played(make(draw, *size), int(size[2]))
            if len(table.agent_ids) > 1:
                fits.append(likelihood.fit(table))
        is_open = np.array([fitted.is_open for fitted in fits])
        is_wide = np.array([bool(fitted.wide) for fitted in fits])
        freedom = np.array([fitted.spread_freedom for fitted in fits])
        agents, scenes, views = size[:3]
        shares = (is_open, is_wide & ~is_open, (freedom < likelihood.LEAST_FREEDOM) & ~is_open)
        cells = " | ".join(f"{share.mean():.2f}" for share in shares)
        print(f"| {name} | {agents} x {scenes} scenes x {views} | {cells} | {np.median(freedom):.1f} |", flush=True)


def apart(table: MatchTable, fitted: likelihood.Fit, one: int, other: int) -> tuple[bool, bool]:
    """Whether the ranges of two agents are apart by the intervals of ratings, and by pairs."""
    ratings = standings(fitted.agents)
    found = []
    most = ranges.MOST_COMPARED
    for limit in (-1, most):
        ranges.MOST_COMPARED = limit
        places = ranges.rank_ranges(table, ratings)
        (best, worst), (other_best, other_worst) = (places[table.agent_ids[agent]] for agent in (one, other))
        found.append(worst < other_best or other_worst < best)
    ranges.MOST_COMPARED = most
    return found[0], found[1]


def compare(studies: int, seed: int) -> None:
    """Print a line a design; the pair is the first two agents, all others are between them or as good."""
    print("| agents | difference, points | scenes | apart by intervals | apart by pairs | pairs of equals told apart |")
    print("|---|---|---|---|---|---|")
    for agents, difference in ((2, 250), (4, 250), (10, 250), (2, 0), (4, 0), (10, 0)):
        for scenes in (12, 30, 100):
            draw = np.random.default_rng(seed)
            skill = np.full(agents, -difference / 2.0)
            skill[0] = difference / 2.0
            found, false = [], []
            for _ in range(studies if agents < 10 else studies // 4):
                scores = ordinary(draw, agents, scenes, 6, skill=skill)
                table = played(scores, 6)
                found.append(apart(table, likelihood.fit(table), 0, 1))
                false.append(pairs_of_equals(table, 0 if difference == 0 else 1))
            cells = " | ".join(f"{share:.3f}" for share in (*np.mean(found, axis=0), np.mean(false)))
            print(f"| {agents} | {difference} | {scenes} x 6 | {cells} |", flush=True)


def pairs_of_equals(table: MatchTable, first: int) -> float:
    """The share of pairs of the agents from the index `first` on, all equal, that the paired difference tells apart."""
    scores = ranges.Scores.of(table)
    told = count = 0
    for one in range(first, len(scores.values) - 1):
        compared = scores.compared(scores.values[one], one + 1)
        told += int(np.sum(compared.is_better | compared.is_worse))
        count += len(compared.is_better)
    return told / count if count else 0.0


def main() -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("withheld", "ranges"))
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=39)
    chosen = parser.parse_args()
    (withheld if chosen.what == "withheld" else compare)(chosen.studies, chosen.seed)


if __name__ == "__main__":
    main()
