"""Ratings by maximum likelihood: all matches at once, in any order; the method to show first.

Model: an agent of rating R scores S on a case of difficulty D with expectation 1 / (1 + 10^((D - R) / 400)), the
one-parameter logistic (Rasch) model. Agents are parameters. Cases are draws from a normal distribution and are
integrated out (marginal maximum likelihood, Bock and Aitkin 1981), case by case with adaptive Gauss-Hermite quadrature:
with 20 agents a case, estimating 50,000 difficulties beside 20 skills would bias the skills.

Ours, for scores between 0 and 1: the likelihood of a coin with S heads is a quasi-likelihood whose variance is
dispersion · P (1 - P). The dispersion is 1 if all scores are 0 or 1 and estimated otherwise, because partial credit
scatters less than a coin. Standard errors have the sandwich form (White 1982), clustered by scene, which holds for both
and for cases that share a scene, which the model takes as independent (Liang and Zeger 1986); with few scenes the
form CR2 and Student's quantile (Bell and McCaffrey 2002). They are never below the model's own: the scores of an agent
with one match have no scatter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from merton.errors import InputError
from merton.rating.checking import (
    ONLY_WINS,
    Floats,
    Matches,
    MatchTable,
    Q,
    as_table,
    extremes,
    floor_warning,
    warnings,
)
from merton.rating.glicko import START_MEAN
from merton.rating.marginal import STEPS, Marginal
from merton.statistics.intervals import Interval
from merton.statistics.means import Z_95

MAX_AGENTS = 4000
"""The information matrix has as many rows and columns: 128 MB."""

EXTREME_LOSS = 0.5
"""The loss in all matches together that is assumed of an agent with only wins, so that its bound is finite (ours)."""

LEAST_SCENES = 10
"""With fewer scenes (of foreign cases: cases) the spread of cases, on which all ratings rest, is poorly known."""

LEAST_FREEDOM = 3.0
"""With fewer degrees of freedom of the spread of cases a sentence says that it is largely assumed. Ours: it may then be
2.2 times as large or small (one standard error of its logarithm), and a rating far from the mean moves with it."""

MOST_CASE_SPREAD = 1200.0
"""Elo points; with more, a case one deviation above the mean has 1,000 times the odds of a mean one, so that agents win
and lose nearly the same cases and no scale is left. Ours: agents that agree but for 2 % of trials gave 1,400 to 5,200
in 40 of 56 studies, agents 250 points apart on ordinary cases 150 to 1,100."""

WIDEST = 2000.0
"""Elo points; a wider 95 % interval says nothing of an agent. Ours: from its middle to its ends odds change by 300."""


@dataclass(frozen=True)
class Estimate:
    """One player's rating by maximum likelihood, in Elo points.

    Attributes:
        mean: agents: the maximum-likelihood estimate. Cases: the posterior mean.
        deviation: agents: standard error, against the mean of the cases' distribution.
            Cases: posterior deviation, with the part that comes from the agents' errors.
        matches: number of matches that the player took part in.
        flag: "only wins", "only losses", or empty: an agent's rating is then a bound, a case's leans on the prior.
        half_width: of the 95 % interval, in deviations, Student's; None for an agent's bound, and where one scene is
            all there is: those have no interval.
        with_spread: agents: correlation of the error of the mean with that of `Fit.case_spread`.
    """

    mean: float
    deviation: float
    matches: int
    flag: str = ""
    half_width: float | None = Z_95
    with_spread: float = 0.0

    @property
    def interval(self) -> Interval | None:
        """95 % interval; None for an agent's bound, and from one scene alone."""
        if self.half_width is None:
            return None
        half = self.half_width * self.deviation
        return Interval(self.mean - half, self.mean + half)

    @property
    def width(self) -> float:
        """Of the interval, Elo points; 0 without one."""
        return 0.0 if self.interval is None else self.interval.high - self.interval.low

    @property
    def width_of_spread(self) -> float:
        """Of the interval that the error of the cases' spread alone would give, Elo points; 0 without an interval."""
        return 0.0 if self.interval is None else 2.0 * Z_95 * abs(self.with_spread) * self.deviation


@dataclass(frozen=True)
class Fit:
    """A fit: ids sorted; the cases' distribution has mean 1500.

    Attributes:
        agents, cases: estimates by id.
        case_spread: standard deviation of the difficulties of cases, Elo points.
        spread_freedom: its degrees of freedom: so many cases of known difficulty would tell it as well.
        dispersion: variance of scores over that of a coin; 1 for scores of 0 and 1.
        scenes: number of those that were played; a foreign case counts as a scene of its own.
        warnings: reasons to trust the ratings less, one sentence each.
    """

    agents: dict[str, Estimate]
    cases: dict[str, Estimate]
    case_spread: float
    spread_freedom: float
    dispersion: float
    scenes: int
    warnings: tuple[str, ...]

    @property
    def wide(self) -> list[str]:
        """The agents whose interval is wider than `WIDEST`, the widest first."""
        return sorted(
            (name for name, one in self.agents.items() if one.width > WIDEST),
            key=lambda name: (-self.agents[name].width, name),
        )

    @property
    def is_open(self) -> bool:
        """Whether the matches leave the ratings open, so that no board shows them.

        That is so where the cases leave no scale (`MOST_CASE_SPREAD`); where the error of their spread alone makes an
        interval wider than `WIDEST`; and where at least half of all intervals are, from `LEAST_SCENES` scenes on: with
        fewer, Student's quantile makes them wide, and a sentence says so. Two agents that agree do that: they tell
        neither how much the cases differ nor how far from them they are. Ours; simulated in docs/reference/ratings.md.
        Bounds, and ratings from one scene alone, have no interval and are shown as such.
        """
        if self.has_no_scale or any(one.width_of_spread > WIDEST for one in self.agents.values()):
            return True
        intervals = sum(one.interval is not None for one in self.agents.values())
        return self.scenes >= LEAST_SCENES and 0 < intervals <= 2 * len(self.wide)

    @property
    def has_no_scale(self) -> bool:
        """Whether the agents win and lose nearly the same cases, so that any large spread of the cases fits."""
        return self.case_spread > MOST_CASE_SPREAD


def fit(matches: Matches) -> Fit:
    """Rate agents and cases by marginal maximum likelihood; no seed, the result has no randomness.

    Time and memory grow with matches times agents a case, and with the square of the agents.

    Args:
        matches: (agent id, case id, score in 0..1); an agent may meet a case more than once.

    Raises:
        InputError: a score is NaN or outside 0..1, or there are fewer than 2 agents (how cases differ is unknowable)
            or more than `MAX_AGENTS`.
    """
    table = as_table(matches)
    count = len(table.agent_ids)
    if not 2 <= count <= MAX_AGENTS:
        raise InputError(f"a likelihood fit needs 2 to {MAX_AGENTS} agents, got {count}")
    agent_flags = extremes(table.agents, table.scores, count)
    case_flags = extremes(table.cases, 1.0 - table.scores, len(table.case_ids))
    scores = _bounded_scores(table, agent_flags)
    by_case = np.lexsort((scores, table.agents, table.cases))
    starts = np.concatenate(([0], np.cumsum(np.bincount(table.cases, minlength=len(table.case_ids)))))
    state = Marginal(
        table.agents[by_case],
        scores[by_case],
        starts,
        count,
        coin=bool(np.isin(table.scores, (0, 1)).all()),
        scenes=table.scenes,
    )
    has_converged = state.climb()
    errors = state.errors()
    scenes = len(np.unique(table.scenes))
    skill = START_MEAN + state.skill / Q
    sizes = np.bincount(table.agents, minlength=count)
    found = Fit(
        agents={
            name: Estimate(
                float(skill[i]),
                float(errors.skills[i] / Q),
                int(sizes[i]),
                agent_flags[i],
                None if agent_flags[i] else _in_deviations(errors.skill_widths[i], errors.skills[i]),
                float(errors.skills_with_spread[i]),
            )
            for i, name in enumerate(table.agent_ids)
        },
        cases={
            name: Estimate(
                float(START_MEAN + state.case_mean[i] / Q),
                float(errors.cases[i] / Q),
                int(starts[i + 1] - starts[i]),
                case_flags[i],
                _in_deviations(errors.case_widths[i], errors.cases[i]),
            )
            for i, name in enumerate(table.case_ids)
        },
        case_spread=state.spread / Q,
        spread_freedom=0.5 / errors.log_spread**2,
        dispersion=state.dispersion,
        scenes=scenes,
        warnings=(
            *warnings(table, agent_flags, case_flags),
            *floor_warning(*state.weak_on_hard(), 0.1),
            *_fit_warnings(has_converged, scenes, len(table.case_ids)),
        ),
    )
    return replace(found, warnings=(*found.warnings, *_spread_warnings(found)))


def _in_deviations(width: float, deviation: float) -> float | None:
    return None if math.isnan(width) else float(width / deviation)


def _fit_warnings(has_converged: bool, scenes: int, cases: int) -> list[str]:
    found = []
    if not has_converged:
        found.append(f"The likelihood fit had not arrived after {STEPS} steps; its last digits are uncertain.")
    if scenes == 1 < cases:
        found.append(
            f"All {cases} test cases are of one scene: nothing tells how another scene would turn out, so the "
            "likelihood ratings have no intervals."
        )
    elif scenes < LEAST_SCENES:
        units = f"{cases} test cases" if scenes == cases else f"{scenes} scenes ({cases} test cases)"
        found.append(
            f"Only {units} were played: how much cases differ is largely assumed, so the likelihood ratings "
            "and their intervals are rough."
        )
    return found


def _spread_warnings(fitted: Fit) -> list[str]:
    """Sentences where the spread of the cases is largely assumed, and where an interval says nothing."""
    found = []
    if fitted.spread_freedom < LEAST_FREEDOM and fitted.scenes >= LEAST_SCENES:
        found.append(
            f"The matches tell little of how much cases differ ({fitted.spread_freedom:.1f} degrees of freedom): it is "
            "largely assumed, and the likelihood ratings with it; compare agents by their scores on the same cases."
        )
    if wide := fitted.wide:
        others = f" and {len(wide) - 1} more" if len(wide) > 1 else ""
        found.append(
            f"The 95 % interval of the likelihood rating is wider than {WIDEST:.0f} points for {wide[0]}{others}: it "
            "says nothing; compare agents by their scores on the same cases."
        )
    return found


def _bounded_scores(table: MatchTable, flags: list[str]) -> Floats:
    """The scores, with those of agents that only won or only lost moved off the bound.

    They stay beyond those of all other agents: an agent without a loss must not be rated below one with a small loss.
    """
    count = np.bincount(table.agents, minlength=len(flags))
    share = np.bincount(table.agents, weights=table.scores, minlength=len(flags)) / count
    moved, won = np.array([(bool(flag), flag == ONLY_WINS) for flag in flags]).T
    others = share[~moved]
    lost = np.minimum(EXTREME_LOSS / count, (1.0 - others).min(initial=1.0) / 2)
    gained = np.minimum(EXTREME_LOSS / count, others.min(initial=1.0) / 2)
    bounded = np.where(won, 1.0 - lost, gained)
    return np.where(moved[table.agents], bounded[table.agents], table.scores)
