"""Simulated studies with raters whose agreement is known: do the intervals hold it, and are careless raters found?

    .venv/bin/python tools/studies/people_coverage.py [--studies 500] [--out FILE.json]

Kappas and alphas are of given raters: only the scenes are drawn anew in each study. Their truth is computed from
200,000 items by formulas that stand here. ICC(2,1) speaks of other raters like these: there the raters are drawn, too.
Ten minutes on one core with 500 studies.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import merton
from merton.seeding import generator
from merton.statistics.alpha import Scale, krippendorff_alpha
from merton.statistics.intraclass import intraclass
from merton.statistics.means import wilson
from merton.statistics.rater_draws import RaterAgreement
from merton.statistics.raters import cohen_kappa, fleiss_kappa, weighted_kappa
from merton_studies.people.rating import ItemRating
from merton_studies.people.screening import screen

Floats = NDArray[np.float64]

MANY = 200_000
CLASSES = 4
BIAS, NOISE = 0.3, 0.7
"""Standard deviations of raters' leniency and of their errors, in those of the items' worth."""
TEAMS = 10
"""Sets of raters; each meets a tenth of the studies."""


@dataclass(frozen=True)
class Size:
    """A kind of study: so many scenes, items of each, raters, and ratings of an item."""

    scenes: int
    each: int
    raters: int
    ratings: int

    def __str__(self) -> str:
        return f"{self.scenes} x {self.each}, {self.ratings} of {self.raters} raters"

    @property
    def scene(self) -> NDArray[np.int64]:
        """(items,)."""
        return np.repeat(np.arange(self.scenes), self.each)


SIZES = (
    Size(10, 1, 3, 3),
    Size(10, 6, 5, 5),
    Size(20, 2, 3, 3),
    Size(30, 1, 3, 3),
    Size(30, 3, 5, 5),
    Size(30, 3, 8, 3),
    Size(100, 1, 5, 5),
    Size(100, 1, 15, 5),
)


def worth(rng: np.random.Generator, scenes: int, each: int) -> Floats:
    """(items,) normal, half of the variance the scenes'."""
    half = math.sqrt(0.5)
    return np.repeat(rng.normal(0, half, scenes), each) + rng.normal(0, half, scenes * each)


def team(size: Size, number: int) -> tuple[Floats, Floats]:
    """(raters,) leniency and skill of a set of raters."""
    rng = generator("team", str(size), number)
    return rng.normal(0, BIAS, size.raters), rng.uniform(0.5, 0.9, size.raters)


def graded(rng: np.random.Generator, value: Floats, leniency: Floats) -> Floats:
    """(items, raters) scores 1 to 5."""
    scores = 3 + 1.1 * (value[:, None] + leniency + rng.normal(0, NOISE, (len(value), len(leniency))))
    return np.clip(np.round(scores), 1, 5)


def named(rng: np.random.Generator, value: Floats, skill: Floats) -> Floats:
    """(items, raters) classes 0 to 3: the true one, a quarter each, or one at random, with the chance of the skill."""
    true = np.digitize(value, [-0.6745, 0.0, 0.6745])
    guess = rng.integers(0, CLASSES, (len(value), len(skill)))
    return np.where(rng.random(guess.shape) < skill, true[:, None], guess).astype(float)


def masked(rng: np.random.Generator, table: Floats, ratings: int) -> Floats:
    """With so many ratings of each item, by raters at random; NaN elsewhere."""
    order = rng.random(table.shape).argsort(axis=1).argsort(axis=1)
    return np.where(order < ratings, table, np.nan)


@cache
def truths(size: Size, number: int) -> dict[str, float]:
    """The coefficients of a set of raters, by formulas of their own, from very many items."""
    rng = generator("truth", str(size), number)
    leniency, skill = team(size, number)
    value = rng.normal(0, 1, MANY)
    scores = masked(rng, graded(rng, value, leniency), size.ratings)
    classes = masked(rng, named(rng, value, skill), size.ratings)
    found = {"Fleiss' kappa": _alpha(classes, lambda a: np.eye(CLASSES)[a.astype(int)])}
    found["alpha, nominal"] = found["Fleiss' kappa"]
    found["alpha, interval"] = _alpha(scores, lambda a: a[..., None])
    known = scores[~np.isnan(scores)]
    share = np.array([(known == mark).mean() for mark in range(1, 6)])
    rank = np.concatenate([[0.0], np.cumsum(share) - share / 2])
    found["alpha, ordinal"] = _alpha(scores, lambda a: rank[a.astype(int)][..., None])
    one, other = graded(rng, value, leniency)[:, :2].T
    found["weighted kappa"] = 1 - np.mean((one - other) ** 2) / (
        np.var(one) + np.var(other) + (one.mean() - other.mean()) ** 2
    )
    one, other = named(rng, value, skill)[:, :2].T
    chance = sum(np.mean(one == kind) * np.mean(other == kind) for kind in range(CLASSES))
    found["Cohen's kappa"] = (np.mean(one == other) - chance) / (1 - chance)
    found["ICC(3,1)"] = 1 / (1 + NOISE**2)
    found["ICC(2,1)"] = found["ICC(1)"] = 1 / (1 + BIAS**2 + NOISE**2)
    mean = size.ratings
    found["ICC(2,k)"] = 1 / (1 + (BIAS**2 + NOISE**2) / mean)
    return {name: float(value) for name, value in found.items()}


def _alpha(table: Floats, place: Callable[[Floats], Floats]) -> float:
    """1 - within / total variance of ratings placed in space (items, raters, dimensions)."""
    there = ~np.isnan(table)
    points = np.where(there[..., None], place(np.where(there, table, 1.0)), 0.0)
    m = there.sum(axis=1)
    centre = points.sum(axis=1) / m[:, None]
    within = (((points - centre[:, None]) ** 2) * there[..., None]).sum() / (m - 1).sum()
    flat = points[there]
    return float(1 - within / flat.var(axis=0).sum())


def study(size: Size, number: int) -> dict[str, bool | None]:
    """Coefficient to whether its interval holds the truth, in one study; None without an interval."""
    rng = generator("study", str(size), number)
    value, scene = worth(rng, size.scenes, size.each), size.scene.tolist()
    leniency, skill = team(size, number % TEAMS)
    complete, classes = graded(rng, value, leniency), named(rng, value, skill)
    scores = masked(rng, complete, size.ratings)
    words = [[f"{v:.0f}" for v in row if not math.isnan(v)] for row in masked(rng, classes, size.ratings)]
    found = {
        "Fleiss' kappa": fleiss_kappa(words, scene, number),
        "alpha, nominal": krippendorff_alpha(words, "nominal", scene, number),
        "weighted kappa": weighted_kappa(complete[:, 0].tolist(), complete[:, 1].tolist(), "quadratic", scene, number),
        "Cohen's kappa": cohen_kappa(*(list(map(str, column)) for column in classes[:, :2].T), scene, number),
    }
    scales: tuple[Scale, ...] = ("ordinal", "interval")
    for scale in scales:
        known = [[v for v in row if not math.isnan(v)] for row in scores.tolist()]
        found[f"alpha, {scale}"] = krippendorff_alpha(known, scale, scene, number)
    noise = rng.normal(0, NOISE, (len(value), size.raters))
    of_others = masked(rng, value[:, None] + rng.normal(0, BIAS, size.raters) + noise, size.ratings)
    two = intraclass(_rows(of_others), scene, number)
    found |= {"ICC(3,1)": two.consistency, "ICC(2,1)": two.two_way, "ICC(2,k)": two.mean}
    own = value[:, None] + rng.normal(0, math.hypot(BIAS, NOISE), (len(value), size.ratings))
    found["ICC(1)"] = intraclass(_rows(own), scene, number).one_way
    true = truths(size, number % TEAMS)
    return {name: _held(one, true[name]) for name, one in found.items()}


def _rows(table: Floats) -> list[dict[str, float]]:
    return [{f"R{place}": v for place, v in enumerate(row) if not math.isnan(v)} for row in table.tolist()]


def _held(found: RaterAgreement, true: float) -> bool | None:
    return None if found.interval is None else found.interval[0] <= true <= found.interval[1]


CARELESS = ("random", "constant", "middle", "half")
"""Ways to be careless: any answer; always one; one of two; any answer to every other item."""


@dataclass(frozen=True)
class Crew:
    """A study with careless raters: so many items of each rater, ratings of an item, and a scale."""

    answers: int
    ratings: int
    scale: Scale

    def __str__(self) -> str:
        return f"{self.answers} answers a rater, {self.ratings} of an item, {self.scale}"


CREWS = tuple(
    Crew(answers, ratings, scale) for scale in ("ordinal", "nominal") for answers in (20, 40, 100) for ratings in (3, 5)
)
RATERS, SHARE_CARELESS = 10, 0.2


def careless_study(crew: Crew, number: int) -> Iterator[tuple[str, bool, bool]]:
    """(kind, marked as careless, rejected by BT.500) of each of ten raters; the kind of a careful one is empty."""
    rng = generator("careless", str(crew), number)
    items = crew.answers * RATERS // crew.ratings
    value = worth(rng, items // 2, 2)
    items = len(value)
    leniency, skill = rng.normal(0, BIAS, RATERS), rng.uniform(0.5, 0.9, RATERS)
    ordinal = crew.scale == "ordinal"
    table = graded(rng, value, leniency) if ordinal else named(rng, value, skill)
    kinds = [str(rng.choice(CARELESS)) if rng.random() < SHARE_CARELESS else "" for _ in range(RATERS)]
    low, high = (1, 5) if ordinal else (0, CLASSES - 1)
    for place, kind in enumerate(kinds):
        any_answer = rng.integers(low, high + 1, items).astype(float)
        if kind in ("random", "half"):
            table[:, place] = (
                np.where(np.arange(items) % 2 == 0, table[:, place], any_answer) if kind == "half" else any_answer
            )
        elif kind == "constant":
            table[:, place] = float(rng.integers(low, high + 1))
        elif kind == "middle":
            table[:, place] = low + 1.0 + rng.integers(0, 2, items)
    table = masked(rng, table, crew.ratings)
    ratings = [
        ItemRating(
            f"i{item}",
            f"s{item // 2}",
            f"R{place}",
            "mark",
            float(v) if ordinal else f"{v:.0f}",
            item,
            "design",
            1.0,
            "",
        )
        for (item, place), v in np.ndenumerate(table)
        if not math.isnan(v)
    ]
    for one in screen(ratings, {"mark": crew.scale}, number):
        kind = kinds[int(one.rater[1:])]
        yield kind, one.careless, one.rejection is not None and one.rejection.rejected


def coverage(size: Size, studies: int) -> dict[str, tuple[int, int]]:
    """Coefficient to how many intervals held the truth, and how many there were."""
    found: dict[str, list[bool]] = defaultdict(list)
    for number in range(studies):
        for name, held in study(size, number).items():
            if held is not None:
                found[name].append(held)
    return {name: (sum(held), len(held)) for name, held in found.items()}


def detection(crew: Crew, studies: int) -> dict[str, tuple[int, int, int]]:
    """Kind of rater to how many are marked as careless, how many BT.500 rejects, and how many there were."""
    found: dict[str, list[int]] = {kind: [0, 0, 0] for kind in ("", *CARELESS)}
    for number in range(studies):
        for kind, marked, rejected in careless_study(crew, number):
            for place, amount in enumerate((marked, rejected, 1)):
                found[kind][place] += amount
    return {kind: (a, b, c) for kind, (a, b, c) in found.items()}


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} {wilson(part, whole):.3f}" if whole else "none"


def main() -> None:
    """Print both tables as Markdown, and write them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--out", type=Path)
    wanted = parser.parse_args()
    told: dict[str, object] = {"merton": merton.__version__, "studies": wanted.studies, "seeds": "0 and up"}
    names = sorted(truths(SIZES[0], 0))
    print(f"| scenes x items | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for size in SIZES:
        held = coverage(size, wanted.studies)
        told[str(size)] = held
        cells = [f"{held[name][0] / held[name][1]:.3f}" if name in held else "" for name in names]
        print(f"| {size} | {' | '.join(cells)} |", flush=True)
    print(f"\n| careless raters | precision | recall | {' | '.join(CARELESS)} | BT.500 recall |\n|{'---|' * 8}")
    for crew in CREWS:
        seen = detection(crew, max(wanted.studies // 5, 1))
        told[str(crew)] = seen
        bad = [seen[kind] for kind in CARELESS]
        right, all_bad = sum(one[0] for one in bad), sum(one[2] for one in bad)
        cells = [_share(right, right + seen[""][0]), _share(right, all_bad)]
        cells += [f"{one[0]}/{one[2]}" for one in bad]
        print(f"| {crew} | {' | '.join(cells)} | {sum(one[1] for one in bad)}/{all_bad} |", flush=True)
    if wanted.out:
        wanted.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
