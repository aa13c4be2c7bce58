"""How often `merton compare` finds a difference between simulated runs: where there is none, and where one is planted.

    .venv/bin/python tools/studies/compared_coverage.py [--studies 400]

Each agent succeeds by chances that are logistic in normal effects: of the scene, of the agent in the scene, of the
case, and, for all that changed between the runs, of the run in the scene. Both runs meet the same cases, or other
scenes. The distorted chance of the first agent is moved by the planted points in run B. Same arguments, same table.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit

from merton.results.records import Outcome, TestCase, TrialRecord
from merton.seeding import generator
from merton.study.compared import compared

VIEWS = 6
SCENE, AGENT_SCENE, RUN_SCENE, CASE = 1.0, 0.7, 0.5, 0.7
"""Standard deviations of the effects, in logits."""
BEFORE, AFTER = 1.6, 0.0
"""Logits of success in an average scene, undistorted and distorted."""


def runs(
    points: float, agents: int, scenes: int, same_scenes: bool, rng: np.random.Generator
) -> tuple[list[TrialRecord], list[TrialRecord]]:
    """The trials of two runs; the first agent is `points` (0..1) better in the second where distorted."""
    effects = [_scene_effects(agents, scenes, rng)]
    effects.append(effects[0] if same_scenes else _scene_effects(agents, scenes, rng))
    found = []
    for number, (of_scene, of_case) in enumerate(effects):
        own = of_scene + rng.normal(0.0, RUN_SCENE, of_scene.shape)
        before, after = expit(BEFORE + own), expit(AFTER + own[:, :, None] + of_case)
        after[0] = np.clip(after[0] + points * number, 0.0, 1.0)
        chances = np.concatenate((before[:, :, None], after), axis=2)
        first = 0 if same_scenes else number * scenes
        found.append(_records(rng.random(chances.shape) < chances, first))
    return found[0], found[1]


def found_rate(points: float, agents: int, scenes: int, studies: int, same_scenes: bool = True) -> float:
    """The share of studies whose finding tells at least one agent apart, 0..1."""
    rng, found = generator("compared coverage", points, agents, scenes, same_scenes), 0
    for _ in range(studies):
        rows = compared(*runs(points, agents, scenes, same_scenes, rng)).candidates
        ends = [row.distorted.among(len(rows)) for row in rows if row.distorted]
        found += any(not low <= 0.0 <= high for low, high in ends)
    return found / studies


def _scene_effects(agents: int, scenes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    of_scene = rng.normal(0.0, SCENE, (1, scenes)) + rng.normal(0.0, AGENT_SCENE, (agents, scenes))
    return of_scene, rng.normal(0.0, CASE, (1, scenes, VIEWS))


def _records(won: np.ndarray, first: int) -> list[TrialRecord]:
    """Trials of successes (agents, scenes, 1 + views), the undistorted one first."""
    names = ["reference", *(f"type {number}" for number in range(VIEWS))]
    return [
        TrialRecord(
            "run",
            f"agent {agent}",
            TestCase("pick", first + scene, names[view], 5 * (view > 0)),
            Outcome.SUCCESS if won[agent, scene, view] else Outcome.FAILURE,
        )
        for agent, scene, view in np.ndindex(won.shape)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400, help="of each row")
    studies = parser.parse_args().studies
    print("| scenes | agents | planted, points | same scenes | found, % |\n|---|---|---|---|---|")
    for scenes in (6, 12, 30):
        for agents, points, same in ((1, 0.0, True), (4, 0.0, True), (1, 0.0, False), (1, 0.2, True), (1, 0.2, False)):
            rate = found_rate(points, agents, scenes, studies, same)
            print(
                f"| {scenes} | {agents} | {100 * points:.0f} | {'yes' if same else 'no'} | {100 * rate:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
