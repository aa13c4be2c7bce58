"""Opinions of pictures: the mean of raters, the loss against the hidden reference, and raters that are left out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from merton.results.csv_writer import write_csv
from merton.statistics.intervals import Interval
from merton.statistics.means import student
from merton_studies.people.item import Item
from merton_studies.people.rating import ItemRating
from merton_studies.people.screening import Screened

LEAST, MOST = 1.0, 5.0
HUMAN = "human.csv"
"""The table that `merton_studies.opinions.human` reads."""
COLUMNS = (
    "image", "reference_id", "distortion", "level", "scene", "ratings", "mos", "mos_low", "mos_high", "deviation",
    "dmos_ratings", "dmos", "dmos_low", "dmos_high",
)  # fmt: skip
_UNBOUNDED = Interval(-math.inf, math.inf)


@dataclass(frozen=True)
class Mean:
    """The mean of so many raters.

    Attributes:
        n: raters.
        mean: None without a rater.
        interval: 95 %, Student's over raters (ITU-R BT.500, which has 1.96 for it), of a mean opinion within 1..5; None
            for fewer than two, or where all are equal: that tells nothing of other raters.
        deviation: of the raters, n - 1 in the denominator; None for fewer than two.
    """

    n: int
    mean: float | None
    interval: Interval | None
    deviation: float | None


@dataclass(frozen=True)
class Opinion:
    """The opinions of one picture.

    Attributes:
        item: the picture.
        mos: mean opinion score, 1..5.
        dmos: mean of the raters' differential scores, 5 + own score - own score of the reference (ACR-HR,
            ITU-T P.910), by raters who judged both; may be beyond 5 where a picture is better than its reference.
    """

    item: Item
    mos: Mean
    dmos: Mean


def opinions(
    items: Sequence[Item], ratings: Sequence[ItemRating], left_out: Collection[str] = ()
) -> tuple[Opinion, ...]:
    """The opinions of every picture, in the order of the items.

    Args:
        items: of a project with the protocol quality.
        ratings: of `ratings_of`; of repeats the first answer counts, gold items do not.
        left_out: raters whose ratings do not count, such as those that BT.500 rejects.
    """
    scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for one in sorted(ratings, key=lambda one: (one.item, one.rater, one.number)):
        if one.rater not in left_out and one.kind not in ("repeat", "gold"):
            scores[one.item].setdefault(one.rater, float(one.value))
    found = []
    for item in items:
        own = scores[item.id]
        of_reference = scores.get(item.facts.get("reference", ""), {})
        losses = [MOST + own[rater] - of_reference[rater] for rater in sorted(own) if rater in of_reference]
        found.append(Opinion(item, _mean([own[rater] for rater in sorted(own)], Interval(LEAST, MOST)), _mean(losses)))
    return tuple(found)


def write_opinions(found: Sequence[Opinion], path: Path) -> Path:
    """Write a row for each picture that has an opinion; same opinions, same bytes."""
    rows = []
    for one in found:
        if one.mos.n:
            key = (one.item.facts.get(name, "") for name in COLUMNS[:4])
            rows.append((*key, one.item.scene, *_cells(one.mos), _rounded(one.mos.deviation), *_cells(one.dmos)))
    return write_csv(path, COLUMNS, rows)


def write_raters(screened: Sequence[Screened], names: Mapping[str, str], path: Path) -> Path:
    """Write a row for each rater: the counts of BT.500, and whether the rater is left out of the means."""
    rows = []
    for one in screened:
        found = one.rejection
        if found is not None:
            verdict = "yes" if found.rejected else "no" if found.possible else "too few ratings to tell"
            rows.append((names[one.rater], found.n, found.above, found.below, verdict))
    return write_csv(path, ("rater", "ratings", "far_above", "far_below", "left_out"), rows)


def _mean(values: Sequence[float], within: Interval = _UNBOUNDED) -> Mean:
    if not values:
        return Mean(0, None, None, None)
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Mean(1, mean, None, None)
    deviation = float(np.std(values, ddof=1))
    half = float(student(len(values) - 1)) * deviation / math.sqrt(len(values))
    interval = Interval(max(mean - half, within.low), min(mean + half, within.high)) if deviation else None
    return Mean(len(values), mean, interval, deviation)


def _cells(of: Mean) -> tuple[int, float | None, float | None, float | None]:
    low, high = of.interval or (None, None)
    return of.n, _rounded(of.mean), _rounded(low), _rounded(high)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
