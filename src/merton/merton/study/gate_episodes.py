"""The scenes of a recorded run of episodes as a gate judges them: all of them, in the order in which they were done.

A gate of the embedded cell draws one trial a scene. Another program carries out many of a scene, which are alike: a
scene counts once, with the mean of its pairs, and only when both agents have done all of it, so that its value never
changes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from merton.errors import UnknownNameError
from merton.results.records import TrialRecord
from merton.statistics.sequential import Conclusion, ConfidenceSequence
from merton.study.gate import Pair, gain
from merton.study.values import Value

Scene = tuple[str, int]
"""Task and number."""


@dataclass(frozen=True)
class RecordedScenes:
    """The scenes of two agents in a run of episodes.

    Attributes:
        done: the pairs of each scene, in the order in which the scenes were done.
        begun: scenes that are not done by both agents yet.
        apart: scenes that the agents did not begin with the same first picture: they are other scenes.
    """

    done: tuple[tuple[Pair, ...], ...]
    begun: int
    apart: int


def recorded_scenes(
    records: Iterable[TrialRecord],
    candidate: str,
    baseline: str,
    order: Mapping[str, int],
    planned: Mapping[Scene, int],
    apart: Collection[Scene] = (),
) -> RecordedScenes:
    """The scenes of two agents; pairs without a known success of both, such as broken ones, are left out of theirs.

    Args:
        records: of the run.
        candidate, baseline: ids of agents.
        order: trial id to the number of its episode; trials that are not in it come first.
        planned: scene to the number of its test cases by the design.
        apart: scenes that were not the same ones for all agents.

    Raises:
        UnknownNameError: an agent that has no trial.
    """
    trials: dict[str, dict[Scene, dict[str, TrialRecord]]] = {}
    for record in records:
        scene = record.case.task, record.case.seed
        trials.setdefault(record.agent, {}).setdefault(scene, {})[record.case.id] = record
    for agent in (candidate, baseline):
        if agent not in trials:
            raise UnknownNameError("agent of the run", agent, trials)
    mine, its = trials[candidate], trials[baseline]
    found: list[tuple[int, Scene, tuple[Pair, ...]]] = []
    begun = left_out = 0
    for scene in sorted(mine.keys() | its.keys()):
        one, other = mine.get(scene, {}), its.get(scene, {})
        if scene in apart:
            left_out += 1
        elif min(len(one), len(other)) < planned.get(scene, 1):
            begun += 1
        elif pairs := _pairs(one, other):
            last = max(order.get(record.id, -1) for own in (one, other) for record in own.values())
            found.append((last, scene, pairs))
    return RecordedScenes(tuple(pairs for _, _, pairs in sorted(found, key=lambda item: item[:2])), begun, left_out)


def until_sure(scenes: Sequence[Sequence[Pair]], value: Value, delta: float) -> int:
    """The number of scenes after which the verdict is sure, as a gate that draws them would have stopped; else all."""
    sequence = ConfidenceSequence(delta)
    for number, scene in enumerate(scenes, start=1):
        sequence.add(gain(scene, value))
        if sequence.verdict is not Conclusion.UNRESOLVED:
            return number
    return len(scenes)


def _pairs(one: Mapping[str, TrialRecord], other: Mapping[str, TrialRecord]) -> tuple[Pair, ...]:
    pairs = [(one[case], other[case]) for case in sorted(one.keys() & other.keys())]
    return tuple(pair for pair in pairs if pair[0].success is not None and pair[1].success is not None)
