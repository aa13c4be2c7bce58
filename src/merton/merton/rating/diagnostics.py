"""Fit of ratings: Table 2 of AGI-Elo on the matches they were made from, and a test on held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merton.errors import InputError
from merton.rating.checking import Floats, Integers, Matches, MatchTable, as_table, logistic
from merton.rating.predictions import Rated
from merton.seeding import generator

BIN_EDGES = np.arange(-1250.0, 1151.0, 100.0)
"""Edges of the bins of rating differences, agent less case, Elo points (the reference software's)."""

CALIBRATION_BINS = 10

_CERTAIN = 1e-6  # least distance of predictions from 0 and 1, so that one surprise does not make the loss infinite

Ratings = tuple[Mapping[str, Rated], Mapping[str, Rated]]
"""Agents and cases by id."""


@dataclass(frozen=True)
class Diagnostics:
    """AGI-Elo's Table 2. Correlations are None where ratings or scores do not vary, errors where no bin is filled.

    Attributes:
        case_correlation: Spearman's, between the cases' ratings and their mean scores; -1 is perfect.
        agent_correlation: the same of agents; 1 is perfect.
        mae, mse: absolute and squared error of a bin's mean score against the logistic of its mean rating difference,
            over bins of one agent and 100 Elo points, weighted by their matches.
        matches: number of those in the bins, -1250..1150 points.
    """

    case_correlation: float | None
    agent_correlation: float | None
    mae: float | None
    mse: float | None
    matches: int


@dataclass(frozen=True)
class CalibrationBin:
    """Matches with similar predictions: the mean prediction, the mean score, and how many matches."""

    predicted: float
    observed: float
    matches: int


@dataclass(frozen=True)
class HeldOut:
    """Predictions of matches by ratings made without them.

    Attributes:
        log_loss: mean of -S ln P - (1 - S) ln (1 - P), natural logarithm; less is better.
        constant_log_loss: the same of predicting the training matches' mean score for every match.
        calibration: ten bins of predictions with equally many matches each.
        calibration_error: mean distance of predicted and observed over the bins.
        matches: held out and predicted.
        skipped: held out, but a player has no match left to be rated from.
    """

    log_loss: float
    constant_log_loss: float
    calibration: tuple[CalibrationBin, ...]
    calibration_error: float
    matches: int
    skipped: int


def diagnose(agents: Mapping[str, Rated], cases: Mapping[str, Rated], matches: Matches) -> Diagnostics:
    """Compare ratings with the scores they were made from (AGI-Elo, section 4.3).

    Raises:
        InputError: a score is outside 0..1, or a player has no rating.
    """
    table = as_table(matches)
    agent_mean, case_mean = _means(agents, table.agent_ids), _means(cases, table.case_ids)
    for kind, ids, means in (("agent", table.agent_ids, agent_mean), ("case", table.case_ids, case_mean)):
        if np.isnan(means).any():
            raise InputError(f"the {kind} {ids[int(np.argmax(np.isnan(means)))]!r} played but has no rating")
    difference = agent_mean[table.agents] - case_mean[table.cases]
    place = np.digitize(difference, BIN_EDGES) - 1
    inside = (place >= 0) & (place < len(BIN_EDGES) - 1)
    cell = (table.agents * (len(BIN_EDGES) - 1) + place)[inside]
    count = np.bincount(cell)
    filled = count > 0
    count = count[filled]
    observed = np.bincount(cell, weights=table.scores[inside])[filled] / count
    error = observed - logistic(np.bincount(cell, weights=difference[inside])[filled] / count)
    total = int(count.sum())
    return Diagnostics(
        case_correlation=_spearman(case_mean, _mean_scores(table.cases, table.scores, len(case_mean))),
        agent_correlation=_spearman(agent_mean, _mean_scores(table.agents, table.scores, len(agent_mean))),
        mae=float(np.abs(error) @ count) / total if total else None,
        mse=float(error**2 @ count) / total if total else None,
        matches=total,
    )


def held_out(matches: Matches, rate: Callable[[MatchTable], Ratings], seed: int, share: float = 0.2) -> HeldOut:
    """Rate without a random share of the matches and predict these.

    Args:
        rate: gives (agents, cases) of a table of matches, by either method.
        seed: of the draw.
        share: of the matches to hold out, strictly between 0 and 1.

    Raises:
        InputError: `share` is out of range, or no match could be held out and predicted.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"the share of matches to hold out must lie strictly between 0 and 1, got {share!r}")
    table = as_table(matches)
    out = generator("held out", seed).random(len(table.scores)) < share
    agents, cases = rate(table.where(~out))
    difference = _means(agents, table.agent_ids)[table.agents] - _means(cases, table.case_ids)[table.cases]
    known = out & ~np.isnan(difference)
    if not known.any():
        raise InputError(f"none of {out.sum()} held-out matches has two rated players; more matches are needed")
    scores, predicted = table.scores[known], logistic(difference[known])
    bins = tuple(
        CalibrationBin(float(predicted[part].mean()), float(scores[part].mean()), len(part))
        for part in np.array_split(np.lexsort((scores, predicted)), CALIBRATION_BINS)
        if len(part)
    )
    usual = np.full(len(scores), float(table.scores[~out].mean()))
    return HeldOut(
        log_loss=_log_loss(predicted, scores),
        constant_log_loss=_log_loss(usual, scores),
        calibration=bins,
        calibration_error=sum(abs(b.predicted - b.observed) * b.matches for b in bins) / len(scores),
        matches=len(scores),
        skipped=int(out.sum()) - len(scores),
    )


def _log_loss(predicted: Floats, scores: Floats) -> float:
    p = np.clip(predicted, _CERTAIN, 1.0 - _CERTAIN)
    return float(-np.mean(scores * np.log(p) + (1.0 - scores) * np.log1p(-p)))


def _means(rated: Mapping[str, Rated], ids: Sequence[str]) -> Floats:
    """Ratings by index; NaN for players without one."""
    return np.array([rated[name].mean if name in rated else np.nan for name in ids], dtype=np.float64)


def _mean_scores(index: Integers, scores: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(index, weights=scores, minlength=count) / np.bincount(index, minlength=count))


def _spearman(one: Floats, other: Floats) -> float | None:
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    from scipy.stats import spearmanr  # slow to load, and a board without checks needs none

    return float(spearmanr(one, other).statistic)
