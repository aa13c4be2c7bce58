"""Claims of a report's first sentences about agents and types that are known: true, false, and not made.

An agent's success in a scene is a coin whose log odds are those of the agent, of the scene (deviation 0.8) and of the
agent in the scene (0.5). It does one undistorted trial and one under each type of distortion, which share the scene.

    .venv/bin/python tools/studies/headline_claims.py --studies 400
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from merton.leaderboard.snapshot.contents import Snapshot
from merton.results.losses import Loss, by_agent
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.study.hardest import hardest
from merton.study.largest_drop import largest_drop

BEFORE = 1.8
"""Log odds of success without distortion, .82 in the mean over scenes."""


def study(falls: Sequence[float], scenes: int, types: Sequence[float], *seed: object) -> list[TrialRecord]:
    """The trials of one study.

    Args:
        falls: of each agent, by which distortion lowers its log odds.
        scenes: how many.
        types: of each type, by which it lowers them beside that.
        seed: of the draws.
    """
    rng = generator("headline claims", *seed)
    scene = rng.normal(0.0, 0.8, scenes)
    records = []
    for agent, fall in enumerate(falls):
        there = BEFORE + scene + rng.normal(0.0, 0.5, scenes)
        lowered = np.concatenate([[0.0], fall + np.asarray(types)])
        done = rng.random((scenes, len(lowered))) < 1.0 / (1.0 + np.exp(lowered - there[:, None]))
        for row, outcomes in enumerate(done.tolist()):
            for column, succeeded in enumerate(outcomes):
                case = TestCase("pick", row, f"type{column:02}" if column else "reference", 5 * bool(column))
                outcome = Outcome.SUCCESS if succeeded else Outcome.FAILURE
                records.append(TrialRecord("study", f"agent{agent}", case, outcome))
    return records


def overlapping(lost: Sequence[Loss]) -> bool:
    """Whether the claim of the largest loss was not made by the rule up to version 0.1: intervals that overlap."""
    first, *others = [_plain(loss.drops, 1.0) for loss in lost]
    return first[0] <= 0.0 or any(other[1] >= first[0] for other in others)


def paired(lost: Sequence[Loss]) -> bool:
    """Whether a plain interval of the difference of the two largest drops, case by case, excludes 0."""
    first, second = lost[0].drops, lost[1].drops
    return _plain({case: first[case] - second[case] for case in first}, 2.0)[0] > 0.0


def _plain(values: Mapping[TestCase, float], span: float) -> Interval:
    """The interval of a mean of values in -span..span as that of a score in 0..1."""
    scores = (np.array(list(values.values())) + span) / (2.0 * span)
    return mean_interval(scores, [case.scene for case in values]).scaled(2.0 * span, -span)


def agents(name: str, falls: Sequence[float], scenes: int, count: int, seed: int) -> str:
    """A line of the table of agents: the first agent is truly the one that loses most, unless all are equal."""
    before, plain, now, right, named = 0, 0, 0, 0, 0
    own = 0
    leader, shrunken, truth = [], [], []
    true = [_mean_drop(fall) for fall in falls]
    for number in range(count):
        found = by_agent(study(falls, scenes, [0.0] * 6, seed, name, scenes, number))
        lost = sorted(found.values(), key=lambda loss: (-loss.points, loss.agent))
        top = largest_drop(lost)
        before += not overlapping(lost)
        plain += paired(lost)
        is_claimed = not top.rivals and top.is_beyond_chance
        now += is_claimed
        right += is_claimed and top.first.agent == "agent0"
        named += "agent0" in (top.first.agent, *(rival.agent for rival in top.rivals))
        own += top.is_beyond_chance
        leader.append(100.0 * top.first.points)
        shrunken.append(100.0 * (top.shrunken or 0.0))
        truth.append(100.0 * true[int(top.first.agent.removeprefix("agent"))])
    shares = " | ".join(f"{value / count:.3f}" for value in (before, plain, now, right, named, own))
    means = " | ".join(f"{np.mean(values):.1f}" for values in (truth, leader, shrunken))
    return f"| {name} | {scenes} | {shares} | {means} |"


def types(name: str, harder: Sequence[float], scenes: int, count: int, seed: int) -> str:
    """A line of the table of types: the last one is the hardest, unless all are equal. Two agents."""
    named = alone = right = true_alone = 0
    rivals = []
    for number in range(count):
        records = study([1.5, 1.5], scenes, harder, seed, name, scenes, number)
        found = hardest(_board(records))
        if found is not None:
            is_last = found.name == f"type{len(harder):02} 5"
            named += 1
            right += is_last
            alone += not found.rivals
            true_alone += is_last and not found.rivals
            rivals.append(found.rivals)
    shares = " | ".join(f"{value / count:.3f}" for value in (named, right, alone, true_alone))
    return f"| {name} | {scenes} | {shares} | {np.mean(rivals) if rivals else math.nan:.1f} |"


def _board(records: Sequence[TrialRecord]) -> Snapshot:
    """The part of a board that `hardest` reads, without ratings."""
    names = sorted({record.agent for record in records})
    cases = sorted({record.case for record in records})
    place = {case: number for number, case in enumerate(cases)}
    rows = [
        SimpleNamespace(task=case.task, distortion=case.distortion, level=case.level, unit=(True, case.scene))
        for case in cases
    ]
    matches = [(names.index(record.agent), place[record.case], float(bool(record.success))) for record in records]
    board: Any = SimpleNamespace(agents=[SimpleNamespace(id=name) for name in names], cases=rows, matches=matches)
    return cast(Snapshot, board)


def _mean_drop(fall: float) -> float:
    """The mean drop over endlessly many scenes, 0..1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    there = BEFORE + math.hypot(0.8, 0.5) * nodes
    chances = [1.0 / (1.0 + np.exp(lowered - there)) for lowered in (0.0, fall)]
    return float(weights @ (chances[0] - chances[1])) / math.sqrt(2.0 * math.pi)


AGENTS = {
    "4 equal, 30 points": [1.6] * 4,
    "2, 15 apart": [2.1, 1.36],
    "1 of 4 worse by 29": [2.3, 0.87, 0.87, 0.87],
    "2 equal, 30 points": [1.6] * 2,
    "10 equal, 30 points": [1.6] * 10,
    "4 equal, none loses": [0.0] * 4,
    "2 equal at the top of 4": [2.1, 2.1, 1.0, 1.0],
    "2, 5 apart": [1.75, 1.52],
    "ladder of 6": [2.4, 2.0, 1.6, 1.2, 0.8, 0.4],
    "1 of 4 loses at all": [1.6, 0.0, 0.0, 0.0],
}
"""Name of a design to the falls of its agents; the first three are those of the tables of 2026."""
TYPES = {
    "30 equal": [0.0] * 30,
    "1 of 30 harder by half a logit": [0.0] * 29 + [0.5],
    "6 equal": [0.0] * 6,
    "1 of 6 harder by one": [0.0] * 5 + [1.0],
    "1 of 30 harder by two": [0.0] * 29 + [2.0],
    "2 of 30 harder by one": [0.0] * 28 + [1.0, 1.0],
}

WHOLE = 3
"""The first designs of each table have all studies, the others half of them."""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print("| agents | scenes | overlap | plain paired | claimed | claimed rightly | truly largest is named |")
    print("  the largest is told from 0 | true drop of the named | shown | shrunken |")
    for number, (name, falls) in enumerate(AGENTS.items()):
        count = chosen.studies if number < WHOLE else chosen.studies // 2
        for scenes in (12, 30, 100):
            print(agents(name, falls, scenes, count, chosen.seed), flush=True)
    print("| types | scenes | named | rightly | alone | alone rightly | rivals in the mean |")
    for number, (name, harder) in enumerate(TYPES.items()):
        count = chosen.studies if number < WHOLE else chosen.studies // 2
        for scenes in (12, 30, 100):
            print(types(name, harder, scenes, count, chosen.seed), flush=True)


if __name__ == "__main__":
    main()
