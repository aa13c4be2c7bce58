"""A mixed model of a run: how much of the variance of trials is between agents, scenes, distortions and levels.

    value = mean + agent + scene + agent x scene + distortion + level + residual, all random, crossed

Estimated by Henderson's first method (1953; Searle, Casella and McCulloch 1992, section 5.3): sums of squares are set
equal to their expectations, which are linear in the variances. It needs no iteration, takes designs with gaps, and is
unbiased; a negative estimate is shown as 0. Plans of experiments rest on the same numbers (`study.power`).

An agent whose distorted trials all have the same value, such as one that never or always wins, stays out: it has no
scatter, and averaged with others it would make theirs look smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

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


@dataclass(frozen=True)
class PairedComponents:
    """Variances of a value in 0..1 that remain where agents, or undistorted and distorted trials, are paired by scene.

    Attributes:
        agent_scene: of distorted trials, of what a scene is easier for one agent than for others.
        residual: of a distorted trial, without what all agents share in its case.
        scene: between scenes, for all agents alike, of the mean of a scene's distorted trials.
        undistorted_agent_scene, undistorted_scene: likewise of the mean of a scene's undistorted trials, of which there
            is one for each task: its own chance is part of the former. None of a value that only distorted trials have.
        agent_scene_covariance, scene_covariance: between the two means of a scene.
    """

    agent_scene: float
    residual: float
    scene: float
    undistorted_agent_scene: float | None = None
    undistorted_scene: float = 0.0
    agent_scene_covariance: float = 0.0
    scene_covariance: float = 0.0


def equal_agents(records: Iterable[TrialRecord], value: Value) -> tuple[str, ...]:
    """The agents whose distorted trials all have the same value, by name: they have no variance."""
    values: dict[str, set[float]] = {}
    for record in records:
        if record.case.level > 0 and (own := value(record)) is not None:
            values.setdefault(record.agent, set()).add(own)
    return tuple(sorted(agent for agent, own in values.items() if len(own) == 1))


def left_out_sentences(agents: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each group of agents that stays out of the components of the same values, from value to agents."""
    values: dict[str, list[str]] = {}
    for value, names in agents.items():
        for name in names:
            values.setdefault(name, []).append(value)
    groups: dict[str, list[str]] = {}
    for name, found in values.items():
        groups.setdefault(", ".join(found), []).append(name)
    return [f"Left out, all distorted trials alike: {', '.join(names)} ({found})." for found, names in groups.items()]


def components(records: Iterable[TrialRecord], value: Value) -> Components | None:
    """The variance components of the distorted trials' values, without `equal_agents`; None with fewer than two scenes.

    Of one agent, what is the scene's and what is the agent's in that scene cannot be told apart: all is the scene's.
    Of one trial an agent and scene, the residual is all the agent's in that scene.
    """
    known = list(records)
    left_out = equal_agents(known, value)
    estimates = _estimates([item for item in known if item.case.level > 0 and item.agent not in left_out], value)
    if estimates is None:
        return None
    return Components(**{field.name: estimates.get(field.name, 0.0) for field in fields(Components)})


def paired_components(records: Iterable[TrialRecord], value: Value) -> PairedComponents | None:
    """The components of a run that a plan rests on, without `equal_agents`.

    Those of trials are of the mixed model with the case as one more factor. Those of means are of agent, scene and
    rest; the covariances come by the same method from products in place of squares.

    Returns:
        None with fewer than two scenes of distorted trials, or fewer than two agents in them.
    """
    known = [item for item in records if value(item) is not None]
    left_out = equal_agents(known, value)
    distorted = [item for item in known if item.case.level > 0 and item.agent not in left_out]
    trials = _estimates(distorted, value, by_case=True)
    if trials is None or len({item.agent for item in distorted}) < 2:
        return None
    undistorted = {(item.agent, item.case) for item in known if item.case.level == 0}
    paired = [item for item in distorted if (item.agent, item.case.reference) in undistorted]
    cases = {(item.agent, item.case.reference) for item in paired}
    after = _cell_means(paired or distorted, value)
    before = _cell_means([item for item in known if (item.agent, item.case) in cases], value)
    _, scene, _ = _of_means(after, after)
    found = PairedComponents(trials.get("agent_scene", 0.0), trials.get("residual", 0.0), max(scene, 0.0))
    if not before:
        return found
    _, scene, agent_scene = _of_means(before, before)
    _, together, own = _of_means(after, before)
    return replace(
        found,
        undistorted_agent_scene=max(agent_scene, 0.0),
        undistorted_scene=max(scene, 0.0),
        agent_scene_covariance=own,
        scene_covariance=together,
    )


Means = dict[tuple[str, str], float]
"""(agent, scene) to the mean of the values there."""


def _cell_means(records: Iterable[TrialRecord], value: Value) -> Means:
    cells: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if (own := value(record)) is not None:
            cells.setdefault((record.agent, record.case.scene), []).append(own)
    return {cell: math.fsum(values) / len(values) for cell, values in cells.items()}


def _of_means(one: Means, other: Means) -> list[float]:
    """The covariances of two means of the same cells: between agents, between scenes, and of the rest."""
    cells = sorted(one)
    factors = [_codes((agent,) for agent, _ in cells), _codes((scene,) for _, scene in cells)]
    return _henderson(np.array([one[cell] for cell in cells]), factors, np.array([other[cell] for cell in cells]))


def _estimates(records: Iterable[TrialRecord], value: Value, by_case: bool = False) -> dict[str, float] | None:
    """The variance of each part by its name, those below 0 as 0; None with fewer than two scenes."""
    found = [(record, own) for record in records if (own := value(record)) is not None]
    found.sort(key=lambda item: (item[0].agent, item[0].case, item[1]))  # the last bit of a sum depends on the order
    if len({record.case.scene for record, _ in found}) < 2:
        return None
    labels: dict[str, Callable[[TrialRecord], tuple[str, ...]]] = {
        "agent": lambda record: (record.agent,),
        "scene": lambda record: (record.case.scene,),
        "agent_scene": lambda record: (record.agent, record.case.scene),
        "distortion": lambda record: (record.case.distortion,),
        "level": lambda record: (str(record.case.level),),
        **({"case": lambda record: (record.case.id,)} if by_case else {}),
    }
    codes = {name: _codes(label(record) for record, _ in found) for name, label in labels.items()}
    if codes["agent"].max() == 0:  # of one agent, the scene and the agent in that scene are one
        del codes["agent_scene"]
    codes = {name: code for name, code in codes.items() if code.max() > 0}
    is_seen_once = "agent_scene" in codes and codes["agent_scene"].max() + 1 == len(found)
    if is_seen_once:  # its residual may all be the scene's, so that more views of a scene would tell no more
        del codes["agent_scene"]
    if is_seen_once or ("case" in codes and codes["case"].max() + 1 == len(found)):
        codes.pop("case", None)  # then it is the scene, or the trial itself
    estimates = _henderson(np.array([own for _, own in found]), list(codes.values()))
    names = (*codes, "agent_scene" if is_seen_once else "residual")
    return {name: max(own, 0.0) for name, own in zip(names, estimates, strict=True)}


def _codes(labels: Iterable[tuple[str, ...]]) -> NDArray[np.int64]:
    """Each label's place among the different ones, sorted; no more than these are in memory."""
    first: dict[tuple[str, ...], int] = {}
    met = np.fromiter((first.setdefault(label, len(first)) for label in labels), np.int64)
    place = np.empty(len(first), np.int64)
    place[[first[label] for label in sorted(first)]] = np.arange(len(first))
    return place[met]


def _henderson(
    values: NDArray[np.float64], factors: Sequence[NDArray[np.int64]], others: NDArray[np.float64] | None = None
) -> list[float]:
    """The variance of each factor, and that of the residual, which is the factor of which each trial is a level.

    With `others`, a second value (n,) of each trial, the covariances of the two: products in place of squares.
    """
    n, centered = len(values), values - np.mean(np.sort(values))
    beside = centered if others is None else others - np.mean(np.sort(others))
    every = [*factors, np.arange(n)]
    sizes = [np.bincount(factor).astype(float) for factor in every]
    squares = [
        float(np.sum(np.sort(np.bincount(factor, centered) * np.bincount(factor, beside) / size)))
        for factor, size in zip(every, sizes, strict=True)
    ]
    expected = np.empty((len(every), len(every)))
    for row, (one, size) in enumerate(zip(every, sizes, strict=True)):
        for column, (other, other_size) in enumerate(zip(every, sizes, strict=True)):
            together, counts = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)
            inside = float(np.sum(counts**2 / size[together // (int(other.max()) + 1)]))
            expected[row, column] = inside - float(np.sum(other_size**2)) / n
    return [float(found) for found in np.linalg.lstsq(expected, np.array(squares), rcond=None)[0]]
