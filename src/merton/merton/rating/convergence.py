"""Convergence of ratings over matches: Table 2's measures (AGI-Elo, Fig. 4) and agents' ratings (A.3) by share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from merton.errors import InputError
from merton.progress import OnProgress, unseen
from merton.rating import agi_elo, likelihood
from merton.rating.checking import Floats, Integers, Matches, MatchTable, as_table
from merton.rating.diagnostics import Diagnostics, diagnose
from merton.rating.glicko import packed, play_all
from merton.rating.likelihood import Estimate
from merton.rating.predictions import Rated
from merton.seeding import generator
from merton.statistics.means import middle

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of the matches, at which both methods are looked at."""

SHUFFLES = 20
"""Random orders of the matches, each of which is followed from the first share to the last."""

METHODS = ("likelihood", "agi_elo", "single_pass")
"""The two methods of a board, and AGI-Elo as the paper plays it: each shuffle once, in its own order."""

MEASURES = ("case_correlation", "agent_correlation", "mae", "mse")
"""The fields of `Diagnostics` that Fig. 4 shows."""


@dataclass(frozen=True)
class Spread:
    """A number over the shuffles in which it is defined.

    Attributes:
        mean: of the shuffles.
        low, high: the band that holds the middle 95 % of them, of 20 all. It is not a confidence interval: it says how
            much depends on which matches came first, and all shuffles share the same matches.
        deviation: standard deviation over them, 0 for one.
        shuffles: so many.
    """

    mean: float
    low: float
    high: float
    deviation: float
    shuffles: int

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(self.shuffles)


@dataclass(frozen=True)
class Convergence:
    """One method at every share of the matches.

    Attributes:
        method: of `METHODS`.
        shares: 0..1, rising.
        matches: so many were used at each.
        measures: name of `MEASURES` to its spread at each share; None where no shuffle defines it.
        agents_by_share: agent to the spread of its rating at each share, Elo points (the paper's A.3); None where it
            had no match in any shuffle. A rating that is a bound (`Rating.flag`) counts like another.
    """

    method: str
    shares: tuple[float, ...]
    matches: tuple[int, ...]
    measures: dict[str, tuple[Spread | None, ...]]
    agents_by_share: dict[str, tuple[Spread | None, ...]]


def convergence(
    matches: Matches,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    shuffles: int = SHUFFLES,
    progress: OnProgress = unseen,
    joint: bool = False,
) -> tuple[Convergence, ...]:
    """Rate growing shares of the matches in seeded random orders, and diagnose each share on its own matches.

    At a share the first so many matches of an order are used, at least one. Players without a match among them have no
    rating and are in no measure (in the paper's software they count with 1500 points and a mean score of 0). Where all
    matches are used, "likelihood" and "agi_elo" do not depend on the order and equal `diagnose` of a board's ratings.

    Time: `shuffles` times the sum of the shares times that of `likelihood.fit` and of `agi_elo.rate` with 20 orders.

    Args:
        shares: of the matches, above 0 and at most 1, rising.
        seed: of the orders.
        shuffles: number of orders, >= 1.
        progress: called with the number of shares rated, over all orders, and their total.
        joint: as for `agi_elo.rate`, of both methods but the likelihood.

    Returns:
        One for each of `METHODS`; without the likelihood where fewer than two agents or more than its maximum played,
        and where all matches together leave its ratings open (`Fit.is_open`).

    Raises:
        InputError: there are no matches, a score is outside 0..1, or `shares` or `shuffles` are not as above.
    """
    table = as_table(matches)
    _check(table, shares, shuffles)
    n = len(table.scores)
    sizes = tuple(max(math.ceil(share * n - 1e-9), 1) for share in shares)
    found: dict[str, list[list[_Found]]] = {name: [[] for _ in shares] for name in METHODS}
    methods: dict[str, Callable[[MatchTable], _Found | None]] = {"agi_elo": partial(_by_agi_elo, joint)}
    of_all: dict[str, _Found | None] = {}
    if (fitted := _fitted(table)) is not None and not fitted.is_open:
        methods["likelihood"] = _by_likelihood
        of_all["likelihood"] = _result(fitted.agents, fitted.cases, table)
    for shuffle in range(shuffles):
        order = generator("convergence", seed, shuffle).permutation(n)
        for place, size in enumerate(sizes):
            part = _first(table, order[:size])
            settled = of_all if size == n else {}
            for method, rate in methods.items():
                if method not in settled:
                    settled[method] = rate(part)
                _keep(found[method][place], settled[method])
            _keep(found["single_pass"][place], _by_single_pass(table, order[:size], part, joint))
            progress(shuffle * len(sizes) + place + 1, shuffles * len(sizes))
    return tuple(
        _summary(method, tuple(shares), sizes, results, table.agent_ids)
        for method, results in found.items()
        if any(results)
    )


_Found = tuple[Diagnostics, dict[str, float]]
"""The measures of one share of one order, and the agents' ratings."""


def _check(table: MatchTable, shares: Sequence[float], shuffles: int) -> None:
    if not len(table.scores):
        raise InputError("there are no matches to follow")
    if shuffles < 1:
        raise InputError(f"shuffles must be at least 1, got {shuffles}")
    if not shares or any(after <= before for before, after in pairwise((0.0, *shares))) or not shares[-1] <= 1.0:
        raise InputError(f"the shares of the matches must rise, above 0 and at most 1, got {list(shares)}")


def _first(table: MatchTable, chosen: Integers) -> MatchTable:
    used = np.zeros(len(table.scores), dtype=bool)
    used[chosen] = True
    return table.where(used)


def _keep(results: list[_Found], result: _Found | None) -> None:
    if result is not None:
        results.append(result)


def _fitted(part: MatchTable) -> likelihood.Fit | None:
    """None where the matches are of too few agents, such as the first ones, or of too many."""
    try:
        return likelihood.fit(part)
    except InputError:
        return None


def _by_likelihood(part: MatchTable) -> _Found | None:
    fitted = _fitted(part)
    return None if fitted is None else _result(fitted.agents, fitted.cases, part)


def _by_agi_elo(joint: bool, part: MatchTable) -> _Found:
    """The ratings in the orders of a board; the order of the shuffle plays no part."""
    ratings = agi_elo.rate(part, joint=joint)
    return _result(ratings.agents, ratings.cases, part)


def _by_single_pass(table: MatchTable, order: Integers, part: MatchTable, joint: bool) -> _Found:
    """The matches played once, as they come (AGI-Elo, section 4.1)."""
    sequence = packed(table.agents[order], table.cases[order], table.scores[order])
    after = play_all(sequence, len(table.agent_ids), len(table.case_ids), joint)
    return _result(
        _numbered(part.agent_ids, table.agent_ids, after.agent_mean, after.agent_rd),
        _numbered(part.case_ids, table.case_ids, after.case_mean, after.case_rd),
        part,
    )


def _numbered(played: Sequence[str], ids: Sequence[str], means: Floats, deviations: Floats) -> dict[str, Estimate]:
    """The ratings of those that played; the number of their matches plays no part here."""
    there = set(played)
    return {name: Estimate(float(means[i]), float(deviations[i]), 0) for i, name in enumerate(ids) if name in there}


def _result(agents: Mapping[str, Rated], cases: Mapping[str, Rated], part: MatchTable) -> _Found:
    return diagnose(agents, cases, part), {name: rated.mean for name, rated in agents.items()}


def _summary(
    method: str, shares: tuple[float, ...], sizes: tuple[int, ...], results: list[list[_Found]], agents: Sequence[str]
) -> Convergence:
    return Convergence(
        method,
        shares,
        sizes,
        {
            name: tuple(spread(getattr(diagnostics, name) for diagnostics, _ in at) for at in results)
            for name in MEASURES
        },
        {agent: tuple(spread(means.get(agent) for _, means in at) for at in results) for agent in agents},
    )


def spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values that are defined; None without any."""
    defined = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(defined):
        return None
    band = middle(defined)
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0
    return Spread(float(defined.mean()), *band, deviation, len(defined))
