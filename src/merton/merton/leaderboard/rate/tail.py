"""The long tail of a board (AGI-Elo, sections 3.4 and 4.2): the cases beyond each agent, and the hardest ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from merton.leaderboard.snapshot.compute import SHARE, BothMethods
from merton.rating.checking import MatchTable
from merton.rating.predictions import MASTERY, Gap, Rated, gap_to_hardest, gap_to_share, oracle, predicted_score
from merton.results.text import printable
from merton.statistics.intervals import Interval

METHOD_NAMES = {"likelihood": "likelihood", "agi_elo": "AGI-Elo"}

HARDEST = 20
"""Cases that are listed with the agents that solve them."""

SOLVED = 0.5
"""Mean score from which an agent counts as having solved a case."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""Shares of the cases whose ratings describe the distribution; the last is the hardest case."""


@dataclass(frozen=True)
class HardCase:
    """One of the hardest cases.

    Attributes:
        rating, interval: Elo points; no interval by AGI-Elo.
        mean_score: of all agents that met it, 0..1.
        met: so many agents.
        solved_by: those with a mean score of at least `SOLVED` on it, best rated first.
        best: the agent with the highest mean score on it, and that score.
    """

    id: str
    rating: float
    interval: Interval | None
    mean_score: float
    met: int
    solved_by: tuple[str, ...]
    best: tuple[str, float]


@dataclass(frozen=True)
class Beyond:
    """The cases beyond one rating, an agent's or a target's.

    Attributes:
        name: the agent, or "target 50 %", AGI-Elo's oracle.
        rating: Elo points.
        interval: 95 %; None where none holds.
        flag: as of the rating; empty for a target.
        is_target: whether it is a target: a score on the hardest case.
        shares: of the cases on which a score below each of `MASTERY` is predicted, 0..1 (the paper's eq. 11); the
            first is the share of the cases rated higher.
        to_hardest, to_share: gaps to scoring each of `MASTERY` on the hardest case and on 99 % of all such cases;
            of agents alone, the latter by likelihood alone.
        on_hardest: the score that is predicted on the hardest case, 0..1 (the paper's Table 1).
        scored: its mean score there; None where it did not meet the case, and of a target.
    """

    name: str
    rating: float
    interval: Interval | None
    flag: str
    is_target: bool
    shares: tuple[float, ...]
    to_hardest: tuple[Gap, ...] = ()
    to_share: tuple[Gap, ...] = ()
    on_hardest: float = 0.0
    scored: float | None = None


@dataclass(frozen=True)
class LongTail:
    """The long tail by one method.

    Attributes:
        method: "likelihood" or "agi_elo".
        case_ratings: of all cases, the hardest first.
        quantiles: (share of the cases, rating that so many are not above).
        beyond: the targets, highest first, and then the agents, best first.
        hardest: the hardest cases, at most `HARDEST`.
    """

    method: str
    case_ratings: tuple[tuple[str, float], ...]
    quantiles: tuple[tuple[float, float], ...]
    beyond: tuple[Beyond, ...]
    hardest: tuple[HardCase, ...]


def long_tails(table: MatchTable, rated: BothMethods) -> tuple[LongTail, ...]:
    """The long tail by each method that rated the matches; none without a match."""
    found = []
    for method, ratings in (("likelihood", rated.likelihood), ("agi_elo", rated.agi_elo)):
        if ratings is not None and ratings.cases:
            found.append(_long_tail(method, table, ratings.agents, ratings.cases, rated))
    return tuple(found)


def _long_tail(
    method: str, table: MatchTable, agents: Mapping[str, Rated], cases: Mapping[str, Rated], rated: BothMethods
) -> LongTail:
    order = sorted(cases, key=lambda name: (-cases[name].mean, name))
    ratings = np.array([cases[name].mean for name in order])
    hardest = float(ratings[0])
    fitted = rated.likelihood if method == "likelihood" else None
    scored = _means_on(np.flatnonzero(table.cases == table.case_ids.index(order[0])), table)
    beyond = [
        Beyond(f"target {100 * p:g} %", at, None, "", True, _shares(at, ratings), on_hardest=p)
        for p, at in ((p, oracle(hardest, p)) for p in reversed(MASTERY))
    ]
    for name in sorted(agents, key=lambda name: (-agents[name].mean, name)):
        one = agents[name]
        beyond.append(
            Beyond(
                name,
                one.mean,
                getattr(one, "interval", None),
                getattr(one, "flag", ""),
                False,
                _shares(one.mean, ratings),
                tuple(gap_to_hardest(one.mean, hardest, p) for p in MASTERY),
                tuple(gap_to_share(fitted, name, p, SHARE) for p in MASTERY) if fitted else (),
                predicted_score(one.mean, hardest),
                scored.get(name),
            )
        )
    return LongTail(
        method,
        tuple(zip(order, ratings.tolist(), strict=True)),
        tuple((share, float(np.quantile(ratings, share))) for share in QUANTILES),
        tuple(beyond),
        _hardest(order[:HARDEST], table, agents, cases),
    )


def negative_gaps(tail: LongTail) -> tuple[str, ...]:
    """A sentence on each agent with a negative gap: it is predicted to reach a target on the hardest case already."""
    found = []
    for item in tail.beyond:
        reached = [gap for gap in item.to_hardest if gap.gap < 0.0]
        if not reached:
            continue
        gap, hardest = reached[-1], printable(tail.case_ratings[0][0], 40)
        did = "did not meet it" if item.scored is None else f"scored {100 * item.scored:.0f} % there"
        found.append(
            f"The gap of {printable(item.name, 40)} to {100 * gap.p:g} % on the hardest case ({hardest}) is "
            f"{gap.gap:.0f} points by {METHOD_NAMES[tail.method]}: it is predicted {100 * item.on_hardest:.0f} %, and "
            f"{did}. A rating follows all matches, so an agent may be rated above a case that it failed."
        )
    return tuple(found)


def _shares(rating: float, cases: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, ...]:
    """The share of the cases, hardest first, on which a score below each of `MASTERY` is predicted."""
    return tuple(float(np.mean(oracle(0.0, p) + cases > rating)) for p in MASTERY)


def _hardest(
    chosen: list[str], table: MatchTable, agents: Mapping[str, Rated], cases: Mapping[str, Rated]
) -> tuple[HardCase, ...]:
    best_first = {name: rank for rank, name in enumerate(sorted(agents, key=lambda name: (-agents[name].mean, name)))}
    found = []
    number_of = {name: number for number, name in enumerate(table.case_ids)}
    for name in chosen:
        rows = np.flatnonzero(table.cases == number_of[name])
        means = _means_on(rows, table)
        ranked = sorted(means, key=lambda agent: (-means[agent], best_first[agent]))
        found.append(
            HardCase(
                name,
                cases[name].mean,
                getattr(cases[name], "interval", None),
                float(table.scores[rows].mean()),
                len(means),
                tuple(sorted((agent for agent in ranked if means[agent] >= SOLVED), key=best_first.__getitem__)),
                (ranked[0], means[ranked[0]]),
            )
        )
    return tuple(found)


def _means_on(rows: np.ndarray[tuple[int], np.dtype[np.intp]], table: MatchTable) -> dict[str, float]:
    """Agent to its mean score, 0..1, on the case of these rows of the table."""
    players = table.agents[rows]
    return {table.agent_ids[i]: float(table.scores[rows][players == i].mean()) for i in np.unique(players)}
