"""The hardest distortion of a run, where one stands out, and those that are not told apart from it.

Some type is always the hardest of thirty, by luck alone. So none is named unless the types differ beyond chance at all,
and with it stands the number of those that may be as hard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.leaderboard.snapshot.contents import CaseRow, Snapshot
from merton.seeding import generator
from merton.statistics.paired import paired_interval

ORDERS = 199
"""Random orders of the types in each scene, which show how hard the hardest of equal types looks."""
CHANCE = 0.05
"""Share of studies of equal types in which one is named nevertheless."""


@dataclass(frozen=True)
class Hardest:
    """A type of distortion, or one at a level, under which the agents score least.

    Attributes:
        name: such as "max_darken 5"; "max_darken" where the level is drawn anew for each scene.
        rivals: how many others are not told apart from it at 95 % each, paired by scene.
        others: how many others were compared.
    """

    name: str
    rivals: int
    others: int


def hardest(board: Snapshot, blind: Collection[str] = ()) -> Hardest | None:
    """The type (and level) with the lowest mean score of the agents that look; None if none stands out.

    Only types in which every scene was seen are compared: else a hard scene makes its distortion look hard. That they
    differ at all is tested by exchanging them within scenes (Fisher 1935): the lowest mean score of the types against
    that of `ORDERS` random orders, in which they are alike. That takes all trials of a scene together, and holds for
    any number of types, as no interval of the hardest one alone does; the comparisons of single types after it are
    protected by it (Fisher 1935, section 24).

    Args:
        board: of a run's trials.
        blind: ids of agents that look at nothing (`blindness.blind_agents`).
    """
    for label in (lambda case: f"{case.distortion} {case.level}", lambda case: case.distortion):
        names, scores = _scores(board, blind, label)
        if len(names) > 1:
            break
    else:
        return None
    means = scores.mean(axis=0)
    first = int(np.argmin(np.round(means, 9)))
    if _chance(scores, float(means[first])) > CHANCE:
        return None
    others = [column for column in range(len(names)) if column != first]
    scenes = np.arange(len(scores))
    lower = [paired_interval(scores[:, column] - scores[:, first], scenes).low for column in others]
    rivals = sum(low <= 0.0 for low in lower)
    return Hardest(names[first], rivals, len(others)) if rivals < len(others) else None


def _scores(
    board: Snapshot, blind: Collection[str], label: Callable[[CaseRow], str]
) -> tuple[list[str], NDArray[np.float64]]:
    """The types by name that have a score of each agent on each task of every scene, and their mean scores, 0..1.

    The scores have the shape (scenes, types).
    """
    found: dict[str, dict[tuple[str, int, str], list[float]]] = {}
    for agent, case, score in board.matches:
        row = board.cases[case]
        if row.level and board.agents[agent].id not in blind:
            unit = (row.unit[1], agent, row.task)
            found.setdefault(label(row), {}).setdefault(unit, []).append(score)
    scenes = sorted({scene for units in found.values() for scene, _, _ in units})
    names = sorted(name for name, units in found.items() if {scene for scene, _, _ in units} == set(scenes))
    common = sorted(set.intersection(*(set(found[name]) for name in names))) if names else []
    if not common:
        return [], np.zeros((0, 0))
    table = np.array([[np.mean(found[name][unit]) for name in names] for unit in common])
    known, rows = np.unique([scene for scene, _, _ in common], return_inverse=True)
    return names, np.array([table[rows == number].mean(axis=0) for number in range(len(known))])


def _chance(scores: NDArray[np.float64], lowest: float) -> float:
    """The share of random orders of the types within each scene whose lowest mean is as low: p of equal types."""
    rng = generator("hardest", *scores.shape)
    drawn = [float(rng.permuted(scores, axis=1).mean(axis=0).min()) for _ in range(ORDERS)]
    return (1 + sum(value <= lowest + 1e-9 for value in drawn)) / (ORDERS + 1)
