"""A mixed model of a run: how much of the variance of trials is between agents, scenes, distortions and levels.

    value = mean + agent + scene + agent x scene + distortion + level + residual, all random, crossed

Estimated by Henderson's first method (1953; Searle, Casella and McCulloch 1992, section 5.3): sums of squares are set
equal to their expectations, which are linear in the variances. It needs no iteration, takes designs with gaps, and is
unbiased; a negative estimate is shown as 0. Plans of experiments rest on the same numbers (`study.power`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from merton.results.records import TrialRecord
from merton.study.values import Value


@dataclass(frozen=True)
class Components:
    """Variances of a trial's value in 0..1, and the trials they come from.

    Attributes:
        agent: between agents.
        scene: between scenes, for all agents alike.
        agent_scene: of what a scene is easier for one agent than for others.
        distortion: between types of distortion.
        level: between levels of distortion.
        residual: of trials that share all of these.
    """

    agent: float
    scene: float
    agent_scene: float
    distortion: float
    level: float
    residual: float

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(getattr(self, field.name) for field in fields(self))

    def independent_trials(self, trials: int, scenes: int) -> float:
        """The number of trials in scenes of their own that tell an agent's mean as well as these do.

        Args:
            trials: of the agent, over the same distortions and levels in every scene.
            scenes: equally many of the trials in each.
        """
        of_scene = self.scene + self.agent_scene
        variance = of_scene / scenes + self.residual / trials
        return (of_scene + self.residual) / variance if variance > 0.0 else float(trials)


def components(records: Iterable[TrialRecord], value: Value) -> Components | None:
    """The variance components of the distorted trials' values; None with fewer than two scenes of them.

    Of one agent, what is the scene's and what is the agent's in that scene cannot be told apart: all is the scene's.
    Of one trial an agent and scene, the residual is all the agent's in that scene.
    """
    found = [(record, own) for record in records if record.case.level > 0 and (own := value(record)) is not None]
    found.sort(key=lambda item: (item[0].agent, item[0].case, item[1]))  # the last bit of a sum depends on the order
    if len({record.case.scene for record, _ in found}) < 2:
        return None
    labels: dict[str, Callable[[TrialRecord], tuple[str, ...]]] = {
        "agent": lambda record: (record.agent,),
        "scene": lambda record: (record.case.scene,),
        "agent_scene": lambda record: (record.agent, record.case.scene),
        "distortion": lambda record: (record.case.distortion,),
        "level": lambda record: (str(record.case.level),),
    }
    codes = {name: _codes(label(record) for record, _ in found) for name, label in labels.items()}
    if codes["agent"].max() == 0:  # of one agent, the scene and the agent in that scene are one
        del codes["agent_scene"]
    codes = {name: code for name, code in codes.items() if code.max() > 0}
    is_seen_once = "agent_scene" in codes and codes["agent_scene"].max() + 1 == len(found)
    if is_seen_once:  # its residual may all be the scene's, so that more views of a scene would tell no more
        del codes["agent_scene"]
    estimates = _henderson(np.array([own for _, own in found]), list(codes.values()))
    by_name = dict(zip((*codes, "agent_scene" if is_seen_once else "residual"), estimates, strict=True))
    return Components(**{field.name: max(by_name.get(field.name, 0.0), 0.0) for field in fields(Components)})


def _codes(labels: Iterable[tuple[str, ...]]) -> NDArray[np.int64]:
    """Each label's place among the different ones, sorted; no more than these are in memory."""
    first: dict[tuple[str, ...], int] = {}
    met = np.fromiter((first.setdefault(label, len(first)) for label in labels), np.int64)
    place = np.empty(len(first), np.int64)
    place[[first[label] for label in sorted(first)]] = np.arange(len(first))
    return place[met]


def _henderson(values: NDArray[np.float64], factors: Sequence[NDArray[np.int64]]) -> list[float]:
    """The variance of each factor, and that of the residual, which is the factor of which each trial is a level."""
    n, centered = len(values), values - np.mean(np.sort(values))
    every = [*factors, np.arange(n)]
    sizes = [np.bincount(factor).astype(float) for factor in every]
    squares = [
        float(np.sum(np.sort(np.bincount(factor, weights=centered) ** 2 / size)))
        for factor, size in zip(every, sizes, strict=True)
    ]
    expected = np.empty((len(every), len(every)))
    for row, (one, size) in enumerate(zip(every, sizes, strict=True)):
        for column, (other, other_size) in enumerate(zip(every, sizes, strict=True)):
            together, counts = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)
            inside = float(np.sum(counts**2 / size[together // (int(other.max()) + 1)]))
            expected[row, column] = inside - float(np.sum(other_size**2)) / n
    return [float(found) for found in np.linalg.lstsq(expected, np.array(squares), rcond=None)[0]]
