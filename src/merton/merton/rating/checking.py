"""The common part of both rating methods: matches, checked and in one order, and warnings about ratings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from merton.errors import InputError

Q = math.log(10.0) / 400.0
"""Elo points to natural log-odds."""

MAX_RATING = 1e6
"""Larger ratings are refused as a mistake of the caller; sums of smaller ones stay exact enough in a float."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Match = tuple[str, str, float]
"""Agent id, case id, score of the agent in 0..1."""

NO_SCENES: Mapping[str, str] = {}
"""Of cases that share no scene, such as those of a foreign matrix."""

ONLY_WINS, ONLY_LOSSES = "only wins", "only losses"

DECIDED = 1e-3
"""A score that is nearer to 0 or 1 than this (a millimetre of an execution score) is a match lost or won altogether.

Ours: the log-odds of a score run to infinity at 0 and 1; those of 1e-300 are not an estimate either, but a bound.
"""

# A guessing floor is searched among the matches predicted lowest: their least number, the least excess, and its sigmas.
_FLOOR_MATCHES, _FLOOR_EXCESS, _FLOOR_SIGMAS = 100, 0.03, 3.0


@dataclass(frozen=True)
class MatchTable:
    """Matches as arrays, sorted by agent, case and score, so that the order they were stored in plays no part.

    Attributes:
        agent_ids, case_ids: sorted ids of those with a match; the position is the index.
        agents, cases: (n,) indices.
        scores: (n,) the agents' scores in 0..1.
        scenes: (cases,) index of each case's scene; a case without one, such as a foreign one, has an index of its own.
        has_scene: (cases,) whether it is that of a scene.
    """

    agent_ids: list[str]
    case_ids: list[str]
    agents: Integers
    cases: Integers
    scores: Floats
    scenes: Integers
    has_scene: NDArray[np.bool_]

    @property
    def clusters(self) -> Integers:
        """(n,) the scene of each match: the unit that was sampled, by which every interval is clustered."""
        return self.scenes[self.cases]

    def scene_count(self, cases: Integers) -> int:
        """The number of different scenes of the cases with these indices; those without a scene do not count."""
        return len(np.unique(self.scenes[cases[self.has_scene[cases]]]))

    def where(self, chosen: NDArray[np.bool_]) -> MatchTable:
        """The table of the matches chosen, (n,); players without a match there are left out."""
        agent_ids, agents = _reindexed(self.agent_ids, self.agents[chosen])
        present = np.unique(self.cases[chosen])
        case_ids, cases = _reindexed(self.case_ids, self.cases[chosen])
        _, scenes = np.unique(self.scenes[present], return_inverse=True)
        return MatchTable(agent_ids, case_ids, agents, cases, self.scores[chosen], scenes, self.has_scene[present])


Matches = Iterable[Match] | MatchTable
"""Matches one by one, or checked before."""


def as_table(matches: Matches) -> MatchTable:
    """The matches, checked and sorted; a table is returned as it is.

    Raises:
        InputError: a match has not three values, an id is not a text, or a score is not a number, NaN or outside 0..1.
    """
    if isinstance(matches, MatchTable):
        return matches
    agents, cases, scores = columns("match", matches, ("agent id", "case id", "score"))
    return table_of(agents, cases, scores)


def table_of(
    agents: Iterable[str], cases: Iterable[str], scores: Iterable[float], scene_of: Mapping[str, str] = NO_SCENES
) -> MatchTable:
    """The table of matches given as columns: agents' ids, cases' ids and scores, equally many; InputError as above.

    Args:
        scene_of: case id to scene; a case that it lacks shares its scene with no other.
    """
    agent_ids, agent = _indexed("agent", agents)
    case_ids, case = _indexed("case", cases)
    score = checked_scores(list(scores)) + 0.0  # turns -0 into 0, which sorts as equal but has another byte
    pair = agent * len(case_ids) + case
    order = np.argsort(pair)
    if (np.diff(pair[order]) == 0).any():  # a pair that met more than once is sorted by score
        order = np.lexsort((score, pair))
    has_scene = np.array([name in scene_of for name in case_ids], dtype=bool)
    units = [(name in scene_of, scene_of.get(name, name)) for name in case_ids]
    place = {unit: index for index, unit in enumerate(sorted(set(units)))}
    scenes = np.array([place[unit] for unit in units], dtype=np.int64)
    return MatchTable(agent_ids, case_ids, agent[order], case[order], score[order], scenes, has_scene)


def columns(kind: str, rows: Iterable[Sequence[Any]], fields: Sequence[str]) -> list[Iterable[Any]]:
    """The columns of rows that have a value for each field; InputError names the first row that has not.

    Args:
        kind: of a row, such as "match".
    """
    shape = f"({', '.join(fields)})"
    if not isinstance(rows, Iterable):
        raise InputError(f"each {kind} must be {shape}, got a single value of type {type(rows).__name__}")
    listed = list(rows)
    if not all(issubclass(found, Sequence) for found in set(map(type, listed))) or set(map(len, listed)) - {
        len(fields)
    }:
        place, wrong = next(
            (place, row) for place, row in enumerate(listed) if not isinstance(row, Sequence) or len(row) != len(fields)
        )
        raise InputError(f"{kind} {place} must be {shape}, got {wrong!r:.80}")
    return [map(itemgetter(place), listed) for place in range(len(fields))]


def checked_index(kind: str, values: ArrayLike, count: int) -> Integers:
    """Indices of players of a kind in 0 .. count - 1; InputError if they are anything else."""
    index = np.asarray(values)
    if count < 0:
        raise InputError(f"the number of {kind}s must not be negative, got {count}")
    if index.size == 0:
        return np.zeros(0, dtype=np.int64)
    if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        raise InputError(
            f"the {kind} indices must be a one-dimensional array of integers, got {index.dtype} {index.shape}"
        )
    if index.min() < 0 or index.max() >= count:
        raise InputError(f"the {kind} indices must lie in 0 .. {count - 1}, got {index.min()} .. {index.max()}")
    return index.astype(np.int64, copy=False)


def checked_scores(values: ArrayLike) -> Floats:
    """Scores in 0..1, one-dimensional; InputError names the first that is not."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiubO":  # text, times and complex numbers would be converted
            raise TypeError
        scores = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError("the scores of matches must be numbers in 0..1") from None
    if scores.ndim != 1:
        raise InputError(f"the scores of matches must be one-dimensional, got shape {scores.shape}")
    wrong = ~((scores >= 0.0) & (scores <= 1.0))  # NaN is neither
    if wrong.any():
        position = int(np.argmax(wrong))
        raise InputError(f"the score of match {position} must be in 0..1, got {scores[position]:g}")
    return scores


def checked_rating(player: str, rating: float) -> float:
    """A rating in Elo points that can be computed with; InputError if it is not finite or beyond `MAX_RATING`."""
    if not math.isfinite(rating):
        raise InputError(f"the {player} rating must be finite, got {rating!r}")
    if abs(rating) > MAX_RATING:
        raise InputError(f"the {player} rating must lie within ±{MAX_RATING:g}, got {rating:g}")
    return float(rating)


def logistic(difference: Floats) -> Floats:
    """The plain logistic of rating differences in Elo points; never overflows."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * Q * difference)))


def extremes(index: Integers, scores: Floats, count: int) -> list[str]:
    """ "only wins", "only losses" or "" for each of `count` players, from the player's own scores; see `DECIDED`."""
    lost = np.bincount(index, weights=scores <= 1.0 - DECIDED, minlength=count) > 0
    won = np.bincount(index, weights=scores >= DECIDED, minlength=count) > 0
    return [ONLY_WINS if not lost[i] else ONLY_LOSSES if not won[i] else "" for i in range(count)]


_BOUNDS = {
    ("agent", ONLY_WINS): ("Full score on every case", "such a rating is a bound, at least (≥) so high"),
    ("agent", ONLY_LOSSES): ("No score on any case", "such a rating is a bound, at most (≤) so high"),
    ("test case", ONLY_WINS): ("No agent scores on it", "how much harder such a case is remains open"),
    ("test case", ONLY_LOSSES): ("Every agent has the full score on it", "how much easier such a case is remains open"),
}
"""Kind of player and its flag to what such players have in common, and what follows from it, which is no fault."""


def warnings(table: MatchTable, agent_flags: Sequence[str], case_flags: Sequence[str]) -> tuple[str, ...]:
    """Reasons to trust ratings of these matches less, one sentence each."""
    if not table.agent_ids:
        return ("No trial has a score, so nothing could be rated.",)
    found = []
    size = len(table.agent_ids) + len(table.case_ids)
    links = (np.ones(len(table.agents)), (table.agents, len(table.agent_ids) + table.cases))
    groups = connected_components(coo_array(links, shape=(size, size)), directed=False, return_labels=False)
    if groups > 1:
        found.append(
            f"The matches fall into {groups} groups that never met; ratings of different groups cannot be compared."
        )
    if len(table.agent_ids) == 1:
        found.append("Only one agent was rated; its rating says nothing without a second one to compare it with.")
    flagged = {("agent", flag): (table.agent_ids, agent_flags) for flag in (ONLY_WINS, ONLY_LOSSES)}
    flagged |= {("test case", flag): (table.case_ids, case_flags) for flag in (ONLY_WINS, ONLY_LOSSES)}
    for (kind, flag), (ids, flags) in flagged.items():
        names = [name for name, own in zip(ids, flags, strict=True) if own == flag]
        if names:
            common, follows = _BOUNDS[kind, flag]
            shown = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}"
            found.append(f"{common}: {shown} ({len(names)} of {len(ids)} {kind}s); {follows}.")
    return tuple(found)


def floor_warning(predicted: Floats, scores: Floats, share: float) -> tuple[str, ...]:
    """A warning if the matches predicted lowest score clearly more than predicted, as by guessing.

    Ours: the logistic of both methods approaches 0, but guessing among four choices scores 0.25, which lowers the
    ratings of hard cases and raises those of weak agents.

    Args:
        predicted: (n,) expected scores.
        scores: (n,) the scores themselves.
        share: of the matches to look at, those predicted lowest.
    """
    lowest = int(share * len(scores))
    if lowest < _FLOOR_MATCHES:
        return ()
    chosen = np.argsort(predicted, kind="stable")[:lowest]
    expected, observed = float(predicted[chosen].mean()), float(scores[chosen].mean())
    noise = math.sqrt(float(np.sum(predicted[chosen] * (1.0 - predicted[chosen])))) / lowest
    if observed - expected < max(_FLOOR_EXCESS, _FLOOR_SIGMAS * noise):
        return ()
    return (
        f"The {lowest} matches predicted lowest score {observed:.2f} where {expected:.2f} was predicted: this looks "
        "like a guessing floor; rescale the metric so that guessing scores 0.",
    )


def _indexed(kind: str, names: Iterable[str]) -> tuple[list[str], Integers]:
    """The sorted ids among names, and the index into them for each name."""
    code: defaultdict[str, int] = defaultdict(count().__next__)
    try:
        codes = np.fromiter(map(code.__getitem__, names), dtype=np.int64)
    except TypeError as error:
        raise InputError(f"the {kind} ids of matches must be text: {error}") from None
    for name in code:
        if not isinstance(name, str):
            raise InputError(f"the {kind} ids of matches must be text, got {name!r:.80}")
    ids = sorted(code)
    place = np.empty(len(ids), dtype=np.int64)
    place[[code[name] for name in ids]] = np.arange(len(ids))
    return ids, place[codes]


def _reindexed(ids: list[str], index: Integers) -> tuple[list[str], Integers]:
    present, position = np.unique(index, return_inverse=True)
    return [ids[i] for i in present], position
