"""Do ratings say what happened? Table 2 of AGI-Elo on the matches they were made from, and a test on held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from merton.errors import InputError
from merton.rating.checking import Floats, Match, Played, logistic, played
from merton.rating.predictions import Rated
from merton.seeding import generator

BIN_EDGES = np.arange(-1250.0, 1151.0, 100.0)
"""Edges of the bins of rating differences, agent less case, Elo points (the reference software's)."""

CALIBRATION_BINS = 10

_CERTAIN = 1e-6  # predictions are kept this far from 0 and 1, so that one surprise does not cost infinitely much

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
        matches: how many lie in the bins, -1250..1150 points.
    """

    case_correlation: float | None
    agent_correlation: float | None
    mae: float | None
    mse: float | None
    matches: int


@dataclass(frozen=True)
class CalibrationBin:
    """Matches predicted alike: the mean prediction, the mean score, how many."""

    predicted: float
    observed: float
    matches: int


@dataclass(frozen=True)
class HeldOut:
    """How ratings made without some matches predict them.

    Attributes:
        log_loss: mean of -S ln P - (1 - S) ln (1 - P), natural logarithm; less is better.
        constant_log_loss: the same of predicting the training matches' mean score for every match.
        calibration: ten bins of predictions with equally many matches each.
        calibration_error: mean distance of predicted and observed over the bins.
        matches: held out and predicted. skipped: held out, but a player has no match left to be rated from.
    """

    log_loss: float
    constant_log_loss: float
    calibration: tuple[CalibrationBin, ...]
    calibration_error: float
    matches: int
    skipped: int


def diagnose(agents: Mapping[str, Rated], cases: Mapping[str, Rated], matches: Iterable[Match]) -> Diagnostics:
    """Compare ratings with the scores they were made from (AGI-Elo, section 4.3).

    Raises:
        InputError: a score is outside 0..1, or a player has no rating.
    """
    game = played(matches)
    agent_mean, case_mean = _means("agent", agents, game.agent_ids), _means("case", cases, game.case_ids)
    difference = agent_mean[game.agents] - case_mean[game.cases]
    place = np.digitize(difference, BIN_EDGES) - 1
    inside = (place >= 0) & (place < len(BIN_EDGES) - 1)
    cell = (game.agents * (len(BIN_EDGES) - 1) + place)[inside]
    count = np.bincount(cell)
    filled = count > 0
    count = count[filled]
    observed = np.bincount(cell, weights=game.scores[inside])[filled] / count
    error = observed - logistic(np.bincount(cell, weights=difference[inside])[filled] / count)
    total = int(count.sum())
    return Diagnostics(
        case_correlation=_spearman(case_mean, _mean_scores(game.cases, game.scores, len(case_mean))),
        agent_correlation=_spearman(agent_mean, _mean_scores(game.agents, game.scores, len(agent_mean))),
        mae=float(np.abs(error) @ count) / total if total else None,
        mse=float(error**2 @ count) / total if total else None,
        matches=total,
    )


def held_out(
    matches: Iterable[Match], rate: Callable[[list[Match]], Ratings], seed: int, share: float = 0.2
) -> HeldOut:
    """Rate without a random share of the matches and predict these.

    Args:
        matches: all of them; their order has no influence.
        rate: makes (agents, cases) of matches, of either method.
        seed: of the choice.
        share: of the matches to hold out, strictly between 0 and 1.

    Raises:
        InputError: `share` is out of range, or no match could be held out and predicted.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"the share of matches to hold out must lie strictly between 0 and 1, got {share!r}")
    game = played(matches)
    out = generator("held out", seed).random(len(game.scores)) < share
    listed = _listed(game)
    agents, cases = rate([match for match, away in zip(listed, out, strict=True) if not away])
    away = [match for match, away in zip(listed, out, strict=True) if away]
    known = [match for match in away if match[0] in agents and match[1] in cases]
    if not known:
        raise InputError(f"none of {len(away)} held-out matches has two rated players; more matches are needed")
    scores = np.array([score for _, _, score in known])
    predicted = logistic(np.array([agents[agent].mean - cases[case].mean for agent, case, _ in known]))
    bins = tuple(
        CalibrationBin(float(predicted[part].mean()), float(scores[part].mean()), len(part))
        for part in np.array_split(np.lexsort((scores, predicted)), CALIBRATION_BINS)
        if len(part)
    )
    usual = np.full(len(scores), float(game.scores[~out].mean()))
    return HeldOut(
        log_loss=_log_loss(predicted, scores),
        constant_log_loss=_log_loss(usual, scores),
        calibration=bins,
        calibration_error=sum(abs(b.predicted - b.observed) * b.matches for b in bins) / len(scores),
        matches=len(known),
        skipped=len(away) - len(known),
    )


def _log_loss(predicted: Floats, scores: Floats) -> float:
    p = np.clip(predicted, _CERTAIN, 1.0 - _CERTAIN)
    return float(-np.mean(scores * np.log(p) + (1.0 - scores) * np.log1p(-p)))


def _listed(game: Played) -> list[Match]:
    agents, cases = game.agent_ids, game.case_ids
    return [(agents[a], cases[c], float(s)) for a, c, s in zip(game.agents, game.cases, game.scores, strict=True)]


def _means(kind: str, rated: Mapping[str, Rated], ids: Sequence[str]) -> Floats:
    missing = [name for name in ids if name not in rated]
    if missing:
        raise InputError(f"the {kind} {missing[0]!r} played but has no rating")
    return np.array([rated[name].mean for name in ids], dtype=np.float64)


def _mean_scores(index: np.ndarray, scores: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(index, weights=scores, minlength=count) / np.bincount(index, minlength=count))


def _spearman(one: Floats, other: Floats) -> float | None:
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    return float(spearmanr(one, other).statistic)
