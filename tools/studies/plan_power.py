"""The forecasts of `merton plan` against simulated runs, in ten planted designs and in one with planted points.

    .venv/bin/python tools/studies/plan_power.py [--studies 400]

Each design has two agents, whose trials succeed by chances that are logistic in normal effects: of the scene, of the
agent in the scene, and of the case, each felt by undistorted trials, too, as far as `shared` says. The variances come
from one run of 1,500 scenes through `study.variance.paired_components`; the power from runs of the design's own size,
each judged by `statistics.paired.paired_interval`. Same arguments, same tables.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from merton.results.records import Outcome, TestCase, TrialRecord
from merton.seeding import generator
from merton.statistics.paired import drop_interval, paired_interval
from merton.study.power import ASSUMED, ASSUMED_RANGE, Quantity, power, scatter_of
from merton.study.values import success
from merton.study.variance import PairedComponents, paired_components

MANY, FEW = 50_000, 1_500
"""Scenes that tell the true differences, and of the run that tells the variances."""

Wins = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(2, scenes) undistorted and (2, scenes, views) distorted successes of two agents."""


@dataclass(frozen=True)
class Design:
    """Two agents; the effects are standard deviations in logits.

    Attributes:
        before: logit of success of both, undistorted, in an average scene.
        after: of each agent, distorted.
        scene, agent_scene, case: effects.
        shared: how much of the effects of scenes the undistorted trials feel, -1..1.
    """

    name: str
    scenes: int
    views: int
    before: tuple[float, float]
    after: tuple[float, float]
    scene: float = 1.0
    agent_scene: float = 0.7
    case: float = 0.7
    shared: float = 1.0


DESIGNS = (
    Design("ordinary", 12, 6, (1.6, 1.6), (0.5, -0.5)),
    Design("ordinary", 30, 6, (1.6, 1.6), (0.4, -0.4)),
    Design("ordinary", 100, 6, (1.6, 1.6), (0.3, -0.3)),
    Design("one view a scene", 100, 1, (1.6, 1.6), (0.4, -0.4)),
    Design("30 views a scene", 12, 30, (1.6, 1.6), (0.5, -0.5)),
    Design("near the ceiling", 30, 6, (4.0, 4.0), (2.6, 1.6)),
    Design("near the floor", 30, 6, (0.0, 0.0), (-1.8, -3.2)),
    Design("agents differ by scene", 30, 6, (1.6, 1.6), (0.5, -0.5), 1.0, 2.0, 0.7),
    Design("cases differ, scenes do not", 30, 6, (1.0, 1.0), (0.4, -0.4), 0.2, 0.2, 2.0),
    Design("undistorted scenes are others", 60, 8, (1.0, 0.4), (0.2, -0.6), 1.0, 1.0, 0.7, 0.0),
)


def wins(design: Design, scenes: int, rng: np.random.Generator) -> Wins:
    """A run of a design."""
    own = rng.normal(0.0, design.scene, (1, scenes)) + rng.normal(0.0, design.agent_scene, (2, scenes))
    other = rng.normal(0.0, design.scene, (1, scenes)) + rng.normal(0.0, design.agent_scene, (2, scenes))
    of_case = rng.normal(0.0, design.case, (1, scenes, design.views))
    undistorted = design.shared * own + math.sqrt(1.0 - design.shared**2) * other
    before = expit(np.array(design.before)[:, None] + undistorted)
    after = expit(np.array(design.after)[:, None, None] + own[:, :, None] + of_case)
    return (rng.random(before.shape) < before).astype(float), (rng.random(after.shape) < after).astype(float)


def planted(points: float, scenes: int, views: int, parts: PairedComponents, rng: np.random.Generator) -> Wins:
    """A run of two agents with planted components, equal undistorted, `points` apart distorted, around .81, .5.

    Chances are normal in each scene, cut off at 0 and 1; undistorted ones follow those by the covariances.
    """
    scene, own = rng.normal(0.0, 1.0, (1, scenes)), rng.normal(0.0, 1.0, (2, scenes))
    of_scene, of_agent = math.sqrt(parts.scene), math.sqrt(parts.agent_scene)
    felt = parts.scene_covariance / of_scene * scene + parts.agent_scene_covariance / of_agent * own
    middle = np.array([0.5 + points / 2.0, 0.5 - points / 2.0])[:, None]
    after = np.repeat((middle + of_scene * scene + of_agent * own)[:, :, None], views, axis=2)
    before = 0.81 + felt
    return (rng.random(before.shape) < before).astype(float), (rng.random(after.shape) < after).astype(float)


def differences(quantity: Quantity, run: Wins) -> NDArray[np.float64]:
    """(scenes, views) what the report takes the mean of; a drop is that of the second agent."""
    before, after = run
    if quantity is Quantity.DIFFERENCE:
        return np.asarray(after[0] - after[1])
    drops = before[:, :, None] - after
    return np.asarray(drops[1] if quantity is Quantity.DROP else drops[0] - drops[1])


def is_resolved(quantity: Quantity, run: Wins) -> bool:
    """Whether the interval of the report excludes 0."""
    found = differences(quantity, run)
    scene = np.repeat(np.arange(len(found)), found.shape[1])
    if quantity is Quantity.DROP:
        low, high = drop_interval(found.ravel(), scene)
    else:
        span = 2.0 if quantity is Quantity.DROP_DIFFERENCE else 1.0
        low, high = paired_interval(found.ravel(), scene, span=span)
    return not low <= 0.0 <= high


def measured(run: Wins) -> PairedComponents:
    """The components of a run, through its records."""
    before, after = run
    records = []
    for agent, scene in np.ndindex(before.shape):
        outcomes = {0: before[agent, scene], **dict(enumerate(after[agent, scene], start=1))}
        for number, won in outcomes.items():
            kind, level = (f"type{number}", 1) if number else ("reference", 0)
            outcome = Outcome.SUCCESS if won else Outcome.FAILURE
            records.append(TrialRecord("plan", f"agent{agent}", TestCase("pick", scene, kind, level), outcome))
    found = paired_components(records, success)
    assert found is not None
    return found


def row(name: str, scenes: int, views: int, large: Wins, runs: list[Wins]) -> str:
    """A line of the table: for each quantity its size, and the power as forecast and as simulated."""
    parts, cells = measured((large[0][:, :FEW], large[1][:, :FEW])), []
    for quantity in Quantity:
        scatter = scatter_of(quantity, parts, views)
        assert scatter is not None
        size = float(differences(quantity, large).mean())
        seen = np.mean([is_resolved(quantity, run) for run in runs])
        cells.append(f"{100 * size:.0f} points: {power(size, scenes, scatter):.2f}, {seen:.2f}")
    return f"| {name} | {scenes} x {views} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Forecasts of merton plan against simulated runs.")
    parser.add_argument("--studies", type=int, default=400)
    studies = parser.parse_args().studies
    print("| design | scenes x views | difference: forecast, simulated | drop | difference of drops |")
    print("|---|---|---|---|---|")
    for number, design in enumerate(DESIGNS):
        large = wins(design, MANY, generator("plan", number))
        runs = [wins(design, design.scenes, generator("plan", number, study)) for study in range(studies)]
        print(row(design.name, design.scenes, design.views, large, runs), flush=True)
    parts = ASSUMED["success"]
    for scenes in (12, 30, 100):
        large = planted(0.1, MANY, 6, parts, generator("planted"))
        runs = [planted(0.1, scenes, 6, parts, generator("planted", scenes, study)) for study in range(studies)]
        print(row("assumed components, 10 points", scenes, 6, large, runs), flush=True)
        for quantity in Quantity:
            scatter = scatter_of(quantity, parts, 6)
            assert scatter is not None
            told = power(0.1, scenes, scatter)
            around = [power(0.1, scenes, own) for own in scatter.around(ASSUMED_RANGE, quantity)]
            print(f"  {quantity.value}: merton plan says {told:.2f} [{min(around):.2f}, {max(around):.2f}]")


if __name__ == "__main__":
    main()
