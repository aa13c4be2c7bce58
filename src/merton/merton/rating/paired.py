"""Agents compared two at a time on the test cases that both met, so that the difficulty of the cases cancels.

The rule is `statistics.paired.paired_interval`, clustered by scene; here it is computed of one agent against many at
once, because a board of a hundred agents has five thousand pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from merton.rating.checking import Floats, Integers, MatchTable
from merton.statistics.intervals import Interval
from merton.statistics.means import NO_VARIANCE, Z_95, student
from merton.statistics.paired import ALIKE, Side, difference_ends, paired_interval

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Difference:
    """Two agents on the test cases that both met.

    Attributes:
        mean: of the first one's scores less the other's, -1..1; a case counts once, however often it was met.
        interval: 95 % of it, clustered by scene.
        cases: number of them.
        scenes: number of their scenes; 0 where cases share none, such as foreign ones.
    """

    mean: float
    interval: Interval
    cases: int
    scenes: int


@dataclass(frozen=True)
class Comparison:
    """One agent against others, each field (others,).

    Attributes:
        is_better, is_worse: whether the 95 % interval of the mean difference lies wholly above 0, wholly below.
        is_shared: whether both met at least half of the cases of the one that met fewer. Ours: of agents that share
            less, the ratings know more.
    """

    is_better: Bools
    is_worse: Bools
    is_shared: Bools


@dataclass(frozen=True)
class Scores:
    """The mean score of every agent on every case.

    Attributes:
        values: (agents, cases) 0..1; NaN where an agent did not meet a case. The cases are sorted by scene.
        case_ids: (cases,).
        starts: (scenes,) the first case of each.
    """

    values: Floats
    case_ids: Sequence[str]
    starts: Integers

    @classmethod
    def of(cls, table: MatchTable) -> Scores:
        """The scores of a table; the agents are in its order."""
        shape = len(table.agent_ids), len(table.case_ids)
        place = table.agents * shape[1] + table.cases
        met = np.bincount(place, minlength=shape[0] * shape[1])
        sums = np.bincount(place, weights=table.scores, minlength=shape[0] * shape[1])
        order = np.argsort(table.scenes, kind="stable")
        with np.errstate(invalid="ignore"):
            values = (sums / met).reshape(shape)[:, order]
        _, starts = np.unique(table.scenes[order], return_index=True)
        return cls(values, [table.case_ids[case] for case in order], starts)

    def row(self, results: Sequence[tuple[str, float]]) -> Floats:
        """(cases,) the scores of an agent that is not among these, from its (case id, score); others do not count."""
        place = {name: index for index, name in enumerate(self.case_ids)}
        own = np.full(len(self.case_ids), np.nan)
        for case, score in results:
            if case in place:
                own[place[case]] = score
        return own

    def compared(self, own: Floats, first: int = 0) -> Comparison:
        """An agent of these scores, (cases,), against those from the index `first` on."""
        others = self.values[first:]
        sums = _sums(own, others, self.starts)
        low, high = _ends(sums)
        fewer = np.minimum(np.sum(~np.isnan(own)), np.sum(~np.isnan(others), axis=1))
        return Comparison(low > 0.0, high < 0.0, (sums[:, _COMMON] > 0.0) & (2.0 * sums[:, _COMMON] >= fewer))


def difference(table: MatchTable, one: str, other: str) -> Difference | None:
    """The difference of two agents of a table; None if they met no case in common."""
    chosen = [table.agent_ids.index(name) for name in (one, other)]
    scores = Scores.of(table.where(np.isin(table.agents, chosen)))
    mine, its = scores.values if chosen[0] < chosen[1] else scores.values[::-1]
    common = np.flatnonzero(~np.isnan(mine - its))
    if not len(common):
        return None
    gains, place = (mine - its)[common], {name: index for index, name in enumerate(table.case_ids)}
    cases = np.array([place[scores.case_ids[int(case)]] for case in common])
    interval = paired_interval(gains, table.scenes[cases])
    return Difference(float(gains.mean()), interval, len(gains), table.scene_count(cases))


(
    _COMMON,
    _SCENES,
    _CHANGED,
    _LOSS,
    _GAIN,
    _LOSS_SQUARES,
    _GAIN_SQUARES,
    _LOSS_VARIANCE,
    _GAIN_VARIANCE,
    _PRODUCTS,
    _SHARES,
    _TRACE,
    _TRACE_OF_SQUARE,
) = range(13)
"""Columns of `_sums`: common cases and scenes; cases with a difference; the means of losses and of gains, the sums of
their squared residuals by scene, their variances (CR2), the sum of their residuals' products; the sum of the scenes'
squared shares; the two traces that `freedom_of_shares` is made of."""


@numba.njit(cache=True, error_model="numpy")
def _sums(own: Floats, others: Floats, starts: Integers) -> Floats:
    """(others, 13) the sums over scenes of one agent's scores less each other's, NaN where either has none."""
    rows, cases = others.shape
    scenes = len(starts)
    found = np.zeros((rows, 13))
    share, lost, gained = np.empty(scenes), np.empty(scenes), np.empty(scenes)
    for row in range(rows):
        sums = found[row]
        for scene in range(scenes):
            share[scene] = lost[scene] = gained[scene] = 0.0
            for case in range(starts[scene], starts[scene + 1] if scene + 1 < scenes else cases):
                difference = own[case] - others[row, case]
                if math.isnan(difference):
                    continue
                share[scene] += 1.0
                sums[_CHANGED] += abs(difference) >= ALIKE
                if difference >= ALIKE:
                    lost[scene] += difference
                elif difference <= -ALIKE:
                    gained[scene] -= difference
            sums[_COMMON] += share[scene]
            sums[_SCENES] += share[scene] > 0.0
            sums[_LOSS] += lost[scene]
            sums[_GAIN] += gained[scene]
        if sums[_SCENES] < 2.0:
            continue
        sums[_LOSS] /= sums[_COMMON]
        sums[_GAIN] /= sums[_COMMON]
        squares = between = quartic = mixed = crossed = 0.0  # of each scene's own part, as CR2 stretches it
        for scene in range(scenes):
            part = share[scene] / sums[_COMMON]
            one = lost[scene] / sums[_COMMON] - part * sums[_LOSS]
            other = gained[scene] / sums[_COMMON] - part * sums[_GAIN]
            sums[_LOSS_SQUARES] += one**2
            sums[_GAIN_SQUARES] += other**2
            sums[_LOSS_VARIANCE] += one**2 / (1.0 - part)
            sums[_GAIN_VARIANCE] += other**2 / (1.0 - part)
            sums[_PRODUCTS] += one * other
            sums[_SHARES] += part**2
            pull = part**2 / (1.0 - part)
            squares += pull
            between += pull * part
            quartic += pull**2
            mixed += pull**2 * part
            crossed += pull * part**2
        shares = sums[_SHARES]
        sums[_TRACE] = squares - 2.0 * between + shares * squares
        product = between**2 + 2.0 * squares * (crossed - shares * between) + (shares * squares - between) ** 2
        sums[_TRACE_OF_SQUARE] = quartic + 2.0 * (shares * quartic - 2.0 * mixed) + product
    return found


def _ends(sums: Floats) -> tuple[Floats, Floats]:
    """Ends of `paired_interval` of each row of `_sums`, (rows,); -1 and 1 of one common scene or none."""
    is_known = sums[:, _SCENES] > 1.0
    low, high = np.full(len(sums), -1.0), np.ones(len(sums))
    sums = sums[is_known]
    n, quantile = 1.0 / sums[:, _SHARES], student(sums[:, _TRACE] ** 2 / sums[:, _TRACE_OF_SQUARE])
    loss, gain = sums[:, _LOSS], sums[:, _GAIN]
    changed = sums[:, _CHANGED]
    change = np.where(changed > 0.0, (loss + gain) * sums[:, _COMMON] / np.maximum(changed, 1.0), 1.0)
    unmet = np.minimum(change, 1.0) * _none_in(n)
    loss_side, gain_side = (
        Side(mean, *_mean_ends(mean, variance, n, quantile))
        for mean, variance in ((loss, sums[:, _LOSS_VARIANCE]), (gain, sums[:, _GAIN_VARIANCE]))
    )
    length = np.sqrt(sums[:, _LOSS_SQUARES] * sums[:, _GAIN_SQUARES])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(length > NO_VARIANCE, sums[:, _PRODUCTS] / length, 0.0)
    low[is_known], high[is_known] = difference_ends(loss_side, gain_side, unmet, unmet, correlation)
    return low, high


def _mean_ends(mean: Floats, variance: Floats, n: Floats, quantile: Floats) -> tuple[Floats, Floats]:
    """Ends of `mean_interval` of each mean, (rows,)."""
    mean = np.minimum(mean, 1.0)
    coin = mean * (1.0 - mean)
    is_flat = (variance < NO_VARIANCE) | (coin <= 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        width = np.where(is_flat, Z_95, np.minimum(quantile * np.sqrt(variance * n / coin), Z_95))
    shrink = 1.0 + width**2 / n
    center = (mean + width**2 / (2.0 * n)) / shrink
    half = width / shrink * np.sqrt(coin / n + width**2 / (4.0 * n**2))
    unseen = _none_in(n)
    return (
        np.where(is_flat, mean - unseen * mean, center - half),
        np.where(is_flat, mean + unseen * (1.0 - mean), center + half),
    )


def _none_in(n: Floats) -> Floats:
    """The most that Wilson's interval allows where n have none."""
    return np.asarray(Z_95**2 / (n + Z_95**2))
