"""Screening of raters: agreement with the others, bias, the rejection of ITU-R BT.500, careless raters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.statistics.intervals import Interval
from merton.statistics.means import student
from merton.statistics.rater_draws import ROUNDING, Floats, RaterAgreement, drawn_sums, of_draws
from merton_studies.people.protocol import Scale
from merton_studies.people.rating import ItemRating
from merton_studies.people.ratings import independent

LEAST_RATED = 10
"""Items that a rater must share with others before agreement with them says anything about the rater."""
CARELESS_SHARE = 0.5
"""Share of the median rater's agreement with the others below which a rater is careless. Ours."""
BEYOND, ONE_SIDED = 0.05, 0.3
"""A rater is rejected whose share of ratings far from the others' mean is greater, if these lie on both sides alike:
ITU-R BT.500-13, annex 2, section 2.3.1."""


@dataclass(frozen=True)
class Bias:
    """Excess of a rater's scores over the mean of the others' on the same items; negative if they are lower.

    Attributes:
        criterion: of the scores.
        mean: in steps of the scale.
        interval: 95 %, clustered by scene; None of a single scene.
        n: items.
    """

    criterion: str
    mean: float
    interval: Interval | None
    n: int


@dataclass(frozen=True)
class Rejection:
    """The count of ITU-R BT.500-13, annex 2, over all criteria that have numbers.

    Attributes:
        above, below: ratings at least 2 standard deviations from the mean of their item, or 4.47 where the kurtosis of
            the item's ratings is not in 2..4.
        n: ratings that were looked at.
        possible: False where no item has the six ratings without which none can lie so far from their mean.
    """

    above: int
    below: int
    n: int
    possible: bool

    @property
    def rejected(self) -> bool:
        """Whether the recommendation rejects this rater."""
        far = self.above + self.below
        return bool(far) and far / self.n > BEYOND and abs(self.above - self.below) / far < ONE_SIDED


@dataclass(frozen=True)
class Screened:
    """The screening of one rater's work.

    Attributes:
        rater: pseudonym.
        with_others: agreement with the other raters of the same items. On scales with numbers: Pearson's correlation
            with the others' mean, within each criterion (ITU-T P.913, section 12.4). On nominal ones: kappa with the
            others.
        biases: of each criterion with numbers.
        rejection: of ITU-R BT.500; None on nominal scales.
        constant: True if all ratings of each criterion are one value, of at least `LEAST_RATED` items where the others'
            differ.
        careless: True if `constant`, or if nothing shows that agreement with the others is better than chance (its
            interval reaches 0), while it is less than half of the median of the other raters.
    """

    rater: str
    with_others: RaterAgreement
    biases: tuple[Bias, ...]
    rejection: Rejection | None
    constant: bool
    careless: bool


def screen(ratings: Sequence[ItemRating], criteria: Mapping[str, Scale], seed: int = 0) -> tuple[Screened, ...]:
    """The screening of each rater, by pseudonym. Where criteria have numbers, those without play no part.

    Args:
        ratings: of `ratings_of`.
        criteria: of the protocol.
        seed: of the bootstrap.
    """
    numeric = [name for name, scale in criteria.items() if scale != "nominal"]
    used = numeric or list(criteria)
    by_criterion: dict[str, dict[str, dict[str, float | str]]] = {name: defaultdict(dict) for name in used}
    scene: dict[str, str] = {}
    for rating in independent(ratings):
        if rating.criterion in by_criterion:
            by_criterion[rating.criterion][rating.item][rating.rater] = rating.value
            scene[rating.item] = rating.scene
    raters = sorted({rating.rater for rating in ratings})
    agreements, constants = {}, {}
    for rater in raters:
        measure = _correlation if numeric else _kappa
        agreements[rater], constants[rater] = measure(rater, by_criterion, scene, seed)
    rejections = _rejections(raters, by_criterion) if numeric else {}
    return tuple(
        Screened(
            rater,
            agreements[rater],
            tuple(_biases(rater, by_criterion, scene)) if numeric else (),
            rejections.get(rater),
            constants[rater],
            _careless(rater, agreements, constants),
        )
        for rater in raters
    )


def _careless(rater: str, agreements: Mapping[str, RaterAgreement], constants: Mapping[str, bool]) -> bool:
    own = agreements[rater]
    if constants[rater]:
        return True
    others = [one.value for name, one in agreements.items() if name != rater and one.value is not None]
    if own.value is None or own.interval is None or own.n < LEAST_RATED or not others:
        return False
    return own.interval[0] <= 0.0 and own.value < CARELESS_SHARE * float(np.median(others))


ByCriterion = Mapping[str, Mapping[str, Mapping[str, float | str]]]
"""Criterion to item to rater to value."""


def _shared(rater: str, items: Mapping[str, Mapping[str, float | str]]) -> list[str]:
    """The items that this rater and at least one other rated, sorted."""
    return sorted(item for item, values in items.items() if rater in values and len(values) > 1)


def _beside(rater: str, values: Mapping[str, float | str]) -> list[float | str]:
    return [value for name, value in sorted(values.items()) if name != rater]


def _correlation(
    rater: str, by_criterion: ByCriterion, scene: Mapping[str, str], seed: int
) -> tuple[RaterAgreement, bool]:
    """Pearson's correlation within criteria, and whether this rater alone never varies."""
    rows: list[list[float]] = []
    items, constant = [], []
    for place, of_items in enumerate(by_criterion.values()):
        shared = _shared(rater, of_items)
        own = np.array([of_items[item][rater] for item in shared], np.float64)
        others = np.array([np.mean([float(v) for v in _beside(rater, of_items[item])]) for item in shared])
        if not shared:
            continue
        constant.append(len(shared) >= LEAST_RATED and float(np.ptp(own)) == 0.0 < float(np.ptp(others)))
        own, others = own - own.mean(), others - others.mean()
        for x, y, item in zip(own.tolist(), others.tolist(), shared, strict=True):
            row = [0.0] * (6 * len(by_criterion))
            row[6 * place : 6 * place + 6] = [1.0, x, y, x * x, y * y, x * y]
            rows.append(row)
            items.append(item)
    if not rows:
        return RaterAgreement(None, None, 0, 0, 0), False
    labels = [scene[item] for item in items]
    sums = drawn_sums(np.array(rows), labels, "others", rater, seed).reshape(-1, len(by_criterion), 6)
    n = np.maximum(sums[..., 0], 1.0)
    xx, yy, xy = (
        (sums[..., square] - sums[..., one] * sums[..., other] / n).sum(axis=1)
        for square, one, other in ((3, 1, 1), (4, 2, 2), (5, 1, 2))
    )
    scale = np.sqrt(np.maximum(xx * yy, 0.0))
    values = np.divide(xy, scale, out=np.full(len(xy), np.nan), where=scale > ROUNDING)
    return _of_items(values, items, labels), all(constant)


def _kappa(rater: str, by_criterion: ByCriterion, scene: Mapping[str, str], seed: int) -> tuple[RaterAgreement, bool]:
    """Kappa with the others, chance within criteria, and whether this rater alone never varies."""
    known = {(place, value) for place, of_items in enumerate(by_criterion.values())
             for values in of_items.values() for value in values.values()}  # fmt: skip
    categories = {pair: number for number, pair in enumerate(sorted(known, key=lambda pair: (pair,)))}
    size = len(categories)
    rows, items, constant = [], [], []
    for place, of_items in enumerate(by_criterion.values()):
        shared = _shared(rater, of_items)
        others_seen = set()
        for item in shared:
            others = _beside(rater, of_items[item])
            others_seen.update(others)
            own = np.eye(size)[categories[place, of_items[item][rater]]]
            seen = np.bincount([categories[place, value] for value in others], minlength=size) / len(others)
            rows.append(np.concatenate([[own @ seen], own, seen]))
            items.append(item)
        if shared:
            mine = {of_items[item][rater] for item in shared}
            constant.append(len(shared) >= LEAST_RATED and len(mine) == 1 < len(others_seen))
    if not rows:
        return RaterAgreement(None, None, 0, 0, 0), False
    labels = [scene[item] for item in items]
    sums = drawn_sums(np.array(rows), labels, "others", rater, seed)
    own_sums, other_sums = sums[:, 1 : 1 + size], sums[:, 1 + size :]
    of_criterion = np.eye(len(by_criterion))[[place for place, _ in categories]]
    n = own_sums @ of_criterion
    chance = (((own_sums * other_sums) @ of_criterion) / np.maximum(n, 1.0)).sum(axis=1)
    left = n.sum(axis=1) - chance
    values = np.divide(sums[:, 0] - chance, left, out=np.full(len(left), np.nan), where=left > ROUNDING)
    return _of_items(values, items, labels), all(constant)


def _of_items(values: Floats, items: Sequence[str], labels: Sequence[str]) -> RaterAgreement:
    """The agreement of draws, with the number of items in place of the number of values."""
    rated: NDArray[np.bool_] = np.ones(len(labels), bool)
    found = of_draws(values, rated, labels)
    return RaterAgreement(found.value, found.interval, len(set(items)), found.clusters, 0)


def _biases(rater: str, by_criterion: ByCriterion, scene: Mapping[str, str]) -> list[Bias]:
    found = []
    for criterion, of_items in by_criterion.items():
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        shared = _shared(rater, of_items)
        for item in shared:
            others = _beside(rater, of_items[item])
            gap = float(of_items[item][rater]) - math.fsum(float(value) for value in others) / len(others)
            sums[scene[item]][0] += gap
            sums[scene[item]][1] += 1.0
        if shared:
            total, count = np.array([sums[name] for name in sorted(sums)]).T
            mean, clusters = float(total.sum() / count.sum()), len(total)
            interval = None
            if clusters > 1:
                variance = float(np.sum((total - mean * count) ** 2)) / count.sum() ** 2 * clusters / (clusters - 1)
                half = float(student(clusters - 1)) * math.sqrt(float(variance))
                interval = Interval(mean - half, mean + half)
            found.append(Bias(criterion, mean, interval, len(shared)))
    return found


def _rejections(raters: Sequence[str], by_criterion: ByCriterion) -> dict[str, Rejection]:
    above, below, looked = (dict.fromkeys(raters, 0) for _ in range(3))
    possible = False
    for of_items in by_criterion.values():
        for values in of_items.values():
            names = sorted(values)
            scores = np.array([values[name] for name in names], np.float64)
            possible |= len(scores) >= 6
            gaps = scores - scores.mean()
            moment = float(np.mean(gaps**2))
            for name in names:
                looked[name] += 1
            if len(scores) < 2 or moment < ROUNDING:
                continue
            kurtosis = float(np.mean(gaps**4)) / moment**2
            far = (2.0 if 2.0 <= kurtosis <= 4.0 else math.sqrt(20.0)) * float(np.std(scores, ddof=1)) - ROUNDING
            for name, gap in zip(names, gaps.tolist(), strict=True):
                above[name] += gap >= far
                below[name] += gap <= -far
    return {name: Rejection(above[name], below[name], looked[name], possible) for name in raters}
