"""Claims of the paper about its opinions (Embodied-IQA 4), sentence by sentence, beside a dataset's own opinions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from merton.pages.words import interval_words, number, p_value, signed
from merton.statistics.intervals import Interval
from merton.statistics.resampling import Floats, interval, resamples
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.distributions import Category, Dimensions, Trend
from merton_studies.opinions.opinion_tables import Opinions
from merton_studies.opinions.published import Claim, ClaimVerdict
from merton_studies.opinions.sensitivity import by_cell_again

HOLDS: ClaimVerdict = "holds"
FAILS: ClaimVerdict = "does not hold"
UNRESOLVED: ClaimVerdict = "not resolved"
NOT_APPLICABLE: ClaimVerdict = "not applicable"
NO_TYPE = "no such type in this dataset"
NO_CHANGE = 0.25
"""A fall between level 1 and 5 that is smaller than this, of 5, is none. Ours: a twentieth of the scale."""
INDEPENDENT = 0.3
"""Dimensions whose SRCC is below this are nearly independent. Ours."""
CLASS_DRAWS = 200
SURE = 0.975
"""Share of draws in which a cell must have its class, or must not have it."""


@dataclass(frozen=True)
class StageResults:
    """Results that have been computed of one stage."""

    trends: list[Trend]
    categories: list[Category]
    dimensions: Dimensions


def claims(opinions: Opinions, results: Mapping[str, StageResults]) -> list[Claim]:
    """Every claim that the stages of the opinions can decide; "not resolved" where the images cannot."""
    found = []
    for stage, result in results.items():
        found += list(_of_trends(stage, {trend.distortion: trend for trend in result.trends}))
    found += list(_of_cells(opinions, list(results)))
    if len(results) == len(DIMENSIONS):
        found += list(_of_both(opinions))
    for stage, result in results.items():
        found.append(_of_dimensions(opinions, stage))
        if stage == "decision":
            found += [*_of_tags(opinions, stage), _independence(result.dimensions)]
    if len(results) == len(DIMENSIONS):
        found += [_more_alike(results), _less_between(opinions)]
    return found


def _verdict(
    found: Interval | None, holds: Callable[[Interval], bool], fails: Callable[[Interval], bool]
) -> ClaimVerdict:
    if found is None:
        return UNRESOLVED
    return HOLDS if holds(found) else FAILS if fails(found) else UNRESOLVED


def _of_trends(stage: str, trends: Mapping[str, Trend]) -> Iterator[Claim]:
    for name in ("max_brighten", "max_darken"):
        words = f"{stage}: {_words(name)} falls significantly with the level"
        trend = trends.get(name)
        if trend is None:
            yield Claim(words, NO_TYPE, NOT_APPLICABLE)
            continue
        verdict = HOLDS if trend.falls else _verdict(trend.fall_interval, lambda _: False, lambda i: i[1] < NO_CHANGE)
        yield Claim(words, _fall(trend), verdict)
    for name in ("mean_brighten", "mean_darken"):
        words = f"{stage}: {_words(name)} has no significant change from level 1 to 5"
        trend = trends.get(name)
        if trend is None:
            yield Claim(words, NO_TYPE, NOT_APPLICABLE)
            continue
        whole = trend.fall_interval if trend.ends == (1, 5) else None
        verdict = _verdict(whole, lambda i: i[0] > -NO_CHANGE and i[1] < NO_CHANGE, lambda i: i[0] > 0)
        yield Claim(words, _fall(trend), FAILS if trend.falls else verdict)


def _fall(trend: Trend) -> str:
    return (
        f"falls by {number(trend.fall)} {interval_words(trend.fall_interval)}, tau {signed(trend.tau)}, "
        f"p {p_value(trend.adjusted, sign=True)}"
    )


def _of_cells(opinions: Opinions, stages: list[str]) -> Iterator[Claim]:
    cells = (
        ("gaussian_denoise", 1, "severe", "serious already at level 1"),
        ("block_interpolation", 5, "mild", "without significant effect even at level 5"),
    )
    for stage in stages:
        shares = _class_shares(opinions, stage, [(name, level, wanted) for name, level, wanted, _ in cells])
        for (name, level, wanted, words), share in zip(cells, shares, strict=True):
            cell = (opinions.distortion == name) & (opinions.level == level)
            classes = getattr(opinions, f"jnd_{stage}")[cell]
            seen = [str(one) for one in np.unique(classes) if one]
            if not seen or share is None:
                there = bool((opinions.distortion == name).any())
                empty = ("no images", UNRESOLVED) if there else (NO_TYPE, NOT_APPLICABLE)
                yield Claim(f"{stage}: {_words(name)} is {words}", *empty)
                continue
            verdict = HOLDS if share >= SURE else FAILS if share <= 1.0 - SURE else UNRESOLVED
            measured = f"{seen[0]} at level {level}; {wanted} in {100 * share:.0f} % of the resampled studies"
            yield Claim(f"{stage}: {_words(name)} is {words} ({wanted})", measured, verdict)


def _class_shares(opinions: Opinions, stage: str, cells: list[tuple[str, int, str]]) -> list[float | None]:
    """Of each cell the share of draws in which it has the class; None without images or with one scene."""
    used = opinions.where(~np.isnan(opinions.value(stage)))
    drawn = resamples(used.scene, "classes", stage, draws=CLASS_DRAWS)
    if drawn.weights.shape[1] < 2:
        return [None] * len(cells)
    classes = by_cell_again(used.value(stage), used.distortion_id, used.level, drawn)
    places = [np.flatnonzero((used.distortion == name) & (used.level == level)) for name, level, _ in cells]
    return [
        float((classes[:, place[0]] == wanted).mean()) if len(place) else None
        for place, (_, _, wanted) in zip(places, cells, strict=True)
    ]


def _of_both(opinions: Opinions) -> Iterator[Claim]:
    """Types that are said to hurt one kind of model: by the images' mean rank of decision less that of cognition."""
    used = opinions.where(~np.isnan(opinions.cognition) & ~np.isnan(opinions.decision))
    ranks = [rankdata(used.value(stage).round(9)) / max(len(used.level), 1) for stage in DIMENSIONS]
    difference = ranks[1] - ranks[0]
    for name, who, sign in (("lens_blur", "VLMs", 1.0), ("multiplicative_noise", "VLAs", -1.0)):
        mine = used.distortion == name
        words = f"{_words(name)} hurts mainly {who}"
        if not mine.any():
            there = bool((opinions.distortion == name).any())
            yield Claim(words, *(("no images", UNRESOLVED) if there else (NO_TYPE, NOT_APPLICABLE)))
            continue
        drawn = resamples(used.scene[mine], "kinds", name)
        shift = sign * difference[mine]
        found = interval(drawn.means(shift, np.zeros(len(shift), np.int64), 1)[:, 0])
        verdict = _verdict(found, lambda i: i[0] > 0, lambda i: i[1] < 0)
        stages = ("decision", "cognition")[:: int(sign)]
        measured = f"mean rank of {stages[0]} less that of {stages[1]} {signed(shift.mean())} {interval_words(found)}"
        yield Claim(words, measured, verdict)


def _of_tags(opinions: Opinions, stage: str) -> Iterator[Claim]:
    pairs = (
        ("domain", "real", "simulation", "real images score higher than simulated ones"),
        ("perspective", "third_person", "first_person", "first-person images score far below third-person ones"),
    )
    for name, high, low, words in pairs:
        column = getattr(opinions, name)
        mine = np.isin(column, (high, low)) & ~np.isnan(opinions.value(stage))
        mean, found = _difference(opinions, stage, mine, column, high, low)
        there = [tag for tag in (high, low) if (column[mine] == tag).any()]
        measured = f"{_words(high)} higher by {signed(mean)} {interval_words(found)}"
        if len(there) < 2:
            measured = f"one {name} only: {_words(there[0])}" if there else f"no image has a {name}"
        yield Claim(f"{stage}: {words}", measured, _verdict(found, lambda i: i[0] > 0, lambda i: i[1] < 0))


def _difference(
    opinions: Opinions, stage: str, mine: NDArray[np.bool_], column: NDArray[np.str_], high: str, low: str
) -> tuple[float, Interval | None]:
    """Mean of the images with the tag `high` less that of those with `low`."""
    group = (column[mine] == low).astype(np.int64)
    if len(np.unique(group)) < 2:
        return float("nan"), None
    score = opinions.value(stage)[mine]
    means = resamples(opinions.scene[mine], "tags", stage, high).means(score, group, 2)
    whole = score[group == 0].mean() - score[group == 1].mean()
    return float(whole), interval(means[:, 0] - means[:, 1])


ORDERS = {"cognition": ("cider", "rouge_l", "bleu"), "decision": ("state", "position", "rotation")}
"""Dimensions from the one that falls least, as the paper orders them."""


def dimension_falls(opinions: Opinions, stage: str) -> dict[str, tuple[float, Interval | None]]:
    """Mean fall of each dimension of a stage from 5, over the distorted images, the least first, with its interval."""
    found = {}
    for name in DIMENSIONS[stage]:
        known = ~np.isnan(opinions.value(name))
        if known.any():
            loss = 5.0 - opinions.value(name)[known]
            drawn = resamples(opinions.scene[known], "dimensions", stage)
            found[name] = float(loss.mean()), interval(drawn.means(loss, np.zeros(len(loss), np.int64), 1)[:, 0])
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _of_dimensions(opinions: Opinions, stage: str) -> Claim:
    """The order of the dimensions: each step is an interval of the images' paired differences."""
    names = {"bleu": "Precision", "rouge_l": "Recall", "cider": "Semantic"}
    order = ORDERS[stage]
    listed = [names.get(name, name.capitalize()) for name in order]
    text = f"{stage}: {listed[0]} falls least, then {listed[1]}, then {listed[2]}"
    if any(np.isnan(opinions.value(name)).all() for name in order):  # of people, who give one opinion
        return Claim(text, "no opinions of these dimensions", UNRESOLVED)
    steps = []
    for less, more in pairwise(order):
        difference = opinions.value(less) - opinions.value(more)
        known = ~np.isnan(difference)
        drawn = resamples(opinions.scene[known], "order", stage)
        steps.append(interval(drawn.means(difference[known], np.zeros(int(known.sum()), np.int64), 1)[:, 0]))
    verdict = HOLDS if all(step and step[0] > 0 for step in steps) else UNRESOLVED
    if any(step and step[1] < 0 for step in steps):
        verdict = FAILS
    falls = ", ".join(
        f"{names.get(name, name.capitalize())} by {number(fall)} {interval_words(ends)}"
        for name, (fall, ends) in dimension_falls(opinions, stage).items()
    )
    return Claim(text, falls, verdict)


def _independence(found: Dimensions) -> Claim:
    pairs = [(1, 2), (1, 3), (2, 3)]
    values = [abs(float(found.matrix[pair])) for pair in pairs]
    ends = [np.sort(np.abs(found.intervals[pair])) for pair in pairs]
    verdict = UNRESOLVED
    if all(np.isfinite(found.intervals[pair]).all() for pair in pairs):
        crosses = [found.intervals[pair][0] < 0 < found.intervals[pair][1] for pair in pairs]
        if all(end[1] < INDEPENDENT for end in ends):
            verdict = HOLDS
        elif any(end[0] > INDEPENDENT and not cross for end, cross in zip(ends, crosses, strict=True)):
            verdict = FAILS
    words = "decision: position, rotation and state are nearly independent (SRCC below .3)"
    return Claim(words, "SRCC " + ", ".join(number(value) for value in values), verdict)


def _more_alike(results: Mapping[str, StageResults]) -> Claim:
    """The least correlation of cognition's dimensions against the highest of decision's, by their intervals."""
    means = {stage: float(np.mean(result.dimensions.between)) for stage, result in results.items()}
    low, high = results["cognition"].dimensions, results["decision"].dimensions
    pairs = ([1, 1, 2], [2, 3, 3])
    ends = [found.intervals[pairs].mean(axis=0) for found in (low, high)]
    verdict = UNRESOLVED
    if np.isfinite(ends).all():
        verdict = HOLDS if ends[0][0] > ends[1][1] else FAILS if ends[0][1] < ends[1][0] else UNRESOLVED
    measured = f"mean SRCC {number(means['cognition'])} and {number(means['decision'])}"
    return Claim("Cognition's three dimensions correlate more than Decision's", measured, verdict)


def _less_between(opinions: Opinions) -> Claim:
    """The range of the means of the tags' values, in standard deviations of the images, averaged over the tags."""
    used = opinions.where(~np.isnan(opinions.cognition) & ~np.isnan(opinions.decision))
    drawn = resamples(used.scene, "between")
    draws: list[Floats] = []
    whole = []
    for stage in DIMENSIONS:
        score = used.value(stage)
        parts, values = [], []
        for name in ("domain", "perspective", "object", "background"):
            tags, group = np.unique(getattr(used, name), return_inverse=True)
            if len(tags) > 1:
                parts.append(np.ptp(drawn.means(score, group.astype(np.int64), len(tags)), axis=1) / score.std())
                values.append(np.ptp([score[group == one].mean() for one in range(len(tags))]) / score.std())
        draws.append(np.mean(parts, axis=0) if parts else np.full(len(drawn.weights), np.nan))
        whole.append(float(np.mean(values)) if values else float("nan"))
    found = interval(draws[1] - draws[0])
    verdict = _verdict(found, lambda i: i[0] > 0, lambda i: i[1] < 0)
    measured = (
        f"ranges of {number(whole[0])} and {number(whole[1])} standard deviations, difference {interval_words(found)}"
    )
    return Claim("Cognition differs less between categories than Decision", measured, verdict)


def _words(name: str) -> str:
    return name.replace("_", " ")
