"""Coverage of the intervals that boards, pages and commands print: simulated studies whose truth is known.

The table in docs/reference/ratings.md is what `merton leaderboard coverage` writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from merton.processes import carried_out, usable_cores
from merton.progress import OnStep
from merton.rating.checking import logistic, table_of
from merton.rating.glicko import START_MEAN
from merton.rating.likelihood import Fit, fit
from merton.rating.predictions import gap_to_share
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.statistics.raters import pooled_kappa

AGENT_SPREAD, CASE_SPREAD = 200.0, 250.0
"""Standard deviations of simulated skills and difficulties, Elo points, both around 1500."""

CONCENTRATION = 9.0
"""Of simulated partial scores, which are beta distributed: they have a tenth of a coin's variance."""

COLUMNS = 4
"""Of the simulated board of groups of cases."""

SHARE, MASTERY = 0.99, 0.99
STUDIES = 400
LARGE = 10_000
"""Matches of a study; larger ones are simulated a quarter as often."""

LEAST_SHOWN = 0.05
"""An interval that is shown in fewer studies than this share of them counts as not shown."""

_CHUNK = 50  # studies that a process does at a time
_ANNOTATORS, _TOP_SCORE, _DISAGREEMENT = 3, 3, 0.7

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """A kind of study.

    Attributes:
        agents, cases: how many; every agent meets every case once.
        spread: standard deviation of the cases' difficulties, Elo points.
        missing: share of the matches that are missing at random.
        is_partial: scores between 0 and 1; else right or wrong.
        is_skewed: exponential difficulties with a tail of hard cases, which no fit here expects; else normal.
        scenes: as many scenes, each seen through the same distortions and levels, have equally many of the cases; 0 if
            each case is a scene of its own. Half of the variance of difficulties is then the scenes', a quarter the
            distortions', a quarter the case's own.
        taste: standard deviation of what a scene is easier for one agent than for others, Elo points, which no fit
            here expects.
        is_ignorant: the intervals take the cases as independent, as all did before they were clustered by scene.
    """

    agents: int
    cases: int
    spread: float = CASE_SPREAD
    missing: float = 0.0
    is_partial: bool = False
    is_skewed: bool = False
    scenes: int = 0
    taste: float = 0.0
    is_ignorant: bool = False

    def __str__(self) -> str:
        parts = [f"{self.agents} x {self.cases}"]
        if self.spread != CASE_SPREAD:
            parts.append(f"cases {self.spread:.0f} apart")
        if self.missing:
            parts.append(f"{self.missing:.0%} missing".replace("%", " %"))
        if self.is_partial:
            parts.append("partial scores")
        if self.scenes:
            parts.append(f"in {self.scenes} scenes")
        if self.taste:
            parts.append(f"*scenes differ by agent, {self.taste:.0f}*")
        if self.is_ignorant:
            parts.append("*as independent*")
        if self.is_skewed:
            parts.append("*skewed cases*")
        return ", ".join(parts)

    def difficulties(self, quantiles: Floats) -> Floats:
        """The quantiles of the distribution of difficulties, Elo points."""
        standard = -np.log1p(-quantiles) - 1.0 if self.is_skewed else ndtri(quantiles)
        return np.asarray(START_MEAN + self.spread * standard)


_PLAIN = ((3, 60), (3, 1000), (7, 1000), (20, 30), (20, 1000))
SIZES = (
    *(Size(*plain, missing=missing) for plain in _PLAIN for missing in (0.0, 0.5)),
    Size(3, 200, 500.0),
    Size(5, 20),
    Size(10, 100),
    Size(3, 60, is_partial=True),
    Size(20, 30, is_partial=True),
    Size(7, 1000, is_partial=True),
    Size(5, 128, scenes=4),
    Size(5, 320, scenes=10),
    Size(5, 960, scenes=30),
    Size(5, 320, scenes=10, is_partial=True),
    Size(5, 128, scenes=4, is_ignorant=True),
    Size(5, 320, scenes=10, is_ignorant=True),
    Size(5, 960, scenes=30, is_ignorant=True),
    Size(5, 320, scenes=10, taste=100.0),
    Size(20, 30, is_skewed=True),
    Size(7, 1000, is_skewed=True),
)

INTERVALS = {
    "agent": "agent's rating",
    "case": "case's rating",
    "gap": "gap to 99 % of the cases",
    "score": "mean score, success",
    "column": "column of a board",
    "total": "total of a board",
}
"""The intervals that are measured, and the heading of each in the table."""

VIDEOS = (10, 30, 100, 300)
"""Numbers of videos in the studies of annotators' agreement."""

Held = dict[str, float | None]
"""By interval: the share of it in one study that holds the truth; None where the study shows none."""


@dataclass(frozen=True)
class _Drawn:
    """A simulated study: what is to be found, and what was seen; Elo points, scores 0..1."""

    skill: Floats  # (agents,)
    difficulty: Floats  # (cases,)
    scene: NDArray[np.int64]  # (cases,) by which the intervals are clustered
    scores: Floats  # (agents, cases)
    met: NDArray[np.bool_]  # (agents, cases)
    expected: Floats  # (agents, columns) mean score over very many scenes


def study(size: Size, number: int) -> Held:
    """Simulate one study, with the same result for the same number, and look which of its intervals hold the truth."""
    drawn = _draw(size, generator("coverage", str(replace(size, is_ignorant=False)), number))
    return {**_of_ratings(size, drawn), **_of_scores(drawn)}


def _draw(size: Size, random: np.random.Generator) -> _Drawn:
    skill = random.normal(START_MEAN, AGENT_SPREAD, size.agents)
    scene, easier = np.arange(size.cases), np.zeros((size.agents, 1))
    quantiles = (np.arange(2000) + 0.5) / 2000
    everywhere = size.difficulties(quantiles)[None].repeat(COLUMNS, axis=0)
    if size.scenes:
        scene = scene % size.scenes
        views = ndtri((np.arange(size.cases // size.scenes) + 0.5) * size.scenes / size.cases)
        views *= size.spread / 2.0 / views.std()
        other = size.spread * math.sqrt(0.75)  # of scene and case together
        of_scene = random.normal(0.0, size.spread * math.sqrt(0.5), size.scenes)
        own = random.normal(0.0, size.spread / 2.0, size.cases)
        difficulty = START_MEAN + of_scene[scene] + np.repeat(views, size.scenes) + own
        easier = random.normal(0.0, size.taste, (size.agents, size.scenes))[:, scene]
        everywhere = START_MEAN + np.add.outer(views, math.hypot(other, size.taste) * ndtri(quantiles))
        everywhere = everywhere.reshape(COLUMNS, -1)
    else:
        difficulty = size.difficulties(random.random(size.cases))
    chance = logistic(skill[:, None] + easier - difficulty)
    if size.is_partial:
        scores = random.beta(CONCENTRATION * chance, CONCENTRATION * (1.0 - chance))
    else:
        scores = (random.random(chance.shape) < chance).astype(np.float64)
    met = random.random(chance.shape) >= size.missing
    expected = logistic(skill[:, None, None] - everywhere).mean(axis=2)
    seen = np.arange(size.cases) if size.is_ignorant else scene
    return _Drawn(skill, difficulty, seen, scores, met, expected)


def _of_ratings(size: Size, drawn: _Drawn) -> Held:
    agents, cases = np.nonzero(drawn.met)
    matches = table_of(
        map(str, agents.tolist()),
        map(str, cases.tolist()),
        drawn.scores[agents, cases],
        {f"{case}": f"{scene}" for case, scene in enumerate(drawn.scene.tolist())},
    )
    fitted: Fit = fit(matches)
    target = float(size.difficulties(np.array(SHARE))) + 400.0 * math.log10(MASTERY / (1.0 - MASTERY))
    gaps = {name: gap_to_share(fitted, name, MASTERY, SHARE).interval for name in fitted.agents}
    return {
        "agent": _held((rating.interval, drawn.skill[int(name)]) for name, rating in fitted.agents.items()),
        "case": _held((rating.interval, drawn.difficulty[int(name)]) for name, rating in fitted.cases.items()),
        "gap": _held((interval, target - drawn.skill[int(name)]) for name, interval in gaps.items()),
    }


def _of_scores(drawn: _Drawn) -> Held:
    found: dict[str, list[tuple[Interval | None, float]]] = {"score": [], "column": [], "total": []}
    column = np.arange(len(drawn.scene)) * COLUMNS // len(drawn.scene)
    for truths, own, present in zip(drawn.expected.tolist(), drawn.scores, drawn.met, strict=True):
        scores, scenes, columns = own[present], drawn.scene[present], column[present]
        found["score"].append((mean_interval(scores, scenes), sum(truths) / COLUMNS))
        filled = [part for part in range(COLUMNS) if (columns == part).any()]
        if len(filled) == COLUMNS:  # else the agent has no total
            found["total"].append((mean_interval(scores, scenes, columns), sum(truths) / COLUMNS))
        for part in filled:
            found["column"].append((mean_interval(scores[columns == part], scenes[columns == part]), truths[part]))
    return {name: _held(iter(pairs)) for name, pairs in found.items()}


def _held(pairs: Iterator[tuple[Interval | None, float]]) -> float | None:
    """The share of the intervals that hold their truth, of those that are there; None without any."""
    inside = [interval[0] <= truth <= interval[1] for interval, truth in pairs if interval is not None]
    return sum(inside) / len(inside) if inside else None


def agreement_study(videos: int, number: int) -> Held:
    """Three annotators score videos 0 to 3 with errors of their own; the truth is the kappa of very many videos."""
    marks = _annotated(generator("agreement", videos, number), videos)
    scores: dict[tuple[str, Hashable], float] = {
        (f"{who}", video): float(mark) for who, row in enumerate(marks) for video, mark in enumerate(row)
    }
    return {"kappa": _held(iter([(pooled_kappa(scores).kappa.interval, _agreement_of_many())]))}


def _annotated(random: np.random.Generator, videos: int) -> Floats:
    """(annotators, videos) scores 0 to 3."""
    worth = random.normal(1.5, 1.0, videos)
    return np.clip(np.round(worth + random.normal(0.0, _DISAGREEMENT, (_ANNOTATORS, videos))), 0, _TOP_SCORE)


@cache
def _agreement_of_many() -> float:
    many = _annotated(generator("agreement of very many videos"), 1_000_000)
    expected = float(np.var(many[0]) + np.var(many[1]) + (many[0].mean() - many[1].mean()) ** 2)
    return 1.0 - float(np.mean((many[0] - many[1]) ** 2)) / expected


@dataclass(frozen=True)
class Coverage:
    """The share of studies' intervals that hold the truth, its Monte-Carlo standard error, and where one is shown.

    Attributes:
        mean: over the studies that show the interval; None if fewer than `LEAST_SHOWN` of them do.
        error: standard error of `mean`, studies being independent.
        shown: share of the studies that show the interval.
    """

    mean: float | None
    error: float
    shown: float

    @classmethod
    def of(cls, held: Sequence[float | None]) -> Coverage:
        """The coverage over studies."""
        known = [share for share in held if share is not None]
        shown = len(known) / len(held)
        if len(known) < 2 or shown < LEAST_SHOWN:
            return cls(None, 0.0, shown)
        return cls(float(np.mean(known)), float(np.std(known, ddof=1)) / math.sqrt(len(known)), shown)

    def __str__(self) -> str:
        if self.mean is None:
            return "not shown"
        part = f" (shown in {self.shown:.0%})".replace("%)", " %)") if self.shown < 1.0 else ""
        return f"{self.mean:.3f} ± {self.error:.3f}{part}"


def measure(
    sizes: Sequence[Size] = SIZES, studies: int = STUDIES, progress: OnStep = lambda text: None
) -> dict[Size, dict[str, Coverage]]:
    """The coverage of every interval in `studies` simulated studies of each size, on at most four processors.

    Of a size with more than `LARGE` matches there are a quarter as many.

    Args:
        progress: called with a line of text that says how long it will still take.
    """
    jobs = [
        (size, first, min(first + _CHUNK, count))
        for size in sizes
        for count in [_count(size, studies)]
        for first in range(0, count, _CHUNK)
    ]
    found = _in_processes(_studies, jobs, progress)
    return {
        size: {
            name: Coverage.of([held[name] for job, part in found.items() if job[0] == size for held in part])
            for name in INTERVALS
        }
        for size in sizes
    }


def measure_agreement(studies: int = STUDIES) -> dict[int, Coverage]:
    """The coverage of the interval of annotators' agreement, by the number of videos."""
    return {
        videos: Coverage.of([agreement_study(videos, number)["kappa"] for number in range(studies)])
        for videos in VIDEOS
    }


def _count(size: Size, studies: int) -> int:
    return studies if size.agents * size.cases <= LARGE else max(studies // 4, 2)


def _studies(size: Size, first: int, end: int) -> list[Held]:
    return [study(size, number) for number in range(first, end)]


def _in_processes(
    work: Callable[..., Any], jobs: Sequence[tuple[Size, int, int]], progress: OnStep
) -> Mapping[tuple[Size, int, int], list[Held]]:
    """Results of the jobs in their order; the largest are begun first, so that no process waits long at the end."""
    cost = {job: job[0].agents * job[0].cases * (job[2] - job[1]) for job in jobs}
    largest_first = sorted(jobs, key=lambda job: -cost[job])
    start, done, results = time.monotonic(), 0, {}
    for index, held in carried_out(work, largest_first, min(usable_cores(), 4)):
        job = largest_first[index]
        results[job] = held
        done += cost[job]
        left_s = (time.monotonic() - start) * (sum(cost.values()) / done - 1.0)
        progress(f"{len(results)} of {len(jobs)} parts simulated, about {left_s / 60:.0f} min left")
    return {job: results[job] for job in jobs}


def table(by_size: Mapping[Size, Mapping[str, Coverage]], by_videos: Mapping[int, Coverage], studies: int) -> str:
    """Both tables as Markdown, as they stand in docs/reference/ratings.md."""
    lines = [
        f"| agents x cases | studies | {' | '.join(INTERVALS.values())} |",
        f"|{'---|' * (len(INTERVALS) + 2)}",
    ]
    for size, found in by_size.items():
        lines.append(f"| {size} | {_count(size, studies)} | {' | '.join(str(found[name]) for name in INTERVALS)} |")
    lines += ["", "| annotators x videos | studies | kappa of all pairs |", "|---|---|---|"]
    lines += [f"| {_ANNOTATORS} x {videos} | {studies} | {found} |" for videos, found in by_videos.items()]
    return "\n".join(lines) + "\n"
