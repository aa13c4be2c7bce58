"""The origin of a loss in a run of episodes: another program has carried out the trials in which only parts are
distorted, as far as it got, and nothing is run again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from merton.results.records import TrialRecord
from merton.results.text import count_of, counted
from merton.study.attribution import Findings, attribute, failure
from merton.study.rerun_sample import Pair, Rerun, pairs_of

VALUES = ("success",)
"""Another program says nothing of the progress of a failure."""


@dataclass(frozen=True)
class RecordedGame:
    """The parts of one axis.

    Attributes:
        axis: "cameras" or "steps".
        parts: their names.
        designs: every subset of the parts to the name of its design, that of all of them among them.
    """

    axis: str
    parts: Sequence[str]
    designs: Mapping[frozenset[str], str]


def findings_of(
    agent: str,
    games: Sequence[RecordedGame],
    prefixes: Mapping[int, str],
    whole: Iterable[TrialRecord],
    parts: Iterable[TrialRecord],
) -> Findings:
    """The shares of an agent's loss of success, over the distorted episodes of which every design is recorded.

    Which those are follows from the order in which conditions are given, not from results, so they are a sample of all.

    Args:
        games: of the run's design.
        prefixes: each distorted step to the design in which it and those before it are distorted; empty without steps.
        whole: the run's own trials.
        parts: those in which only parts are distorted; their experiment is the name of the design.
    """
    known = pairs_of(whole, agent)
    found: dict[str, dict[str, TrialRecord]] = {}
    for record in parts:
        if record.agent == agent and record.success is not None:
            found.setdefault(record.id, {})[record.experiment] = record
    findings = Findings((), (), ())
    for game in games:
        wanted = [name for some, name in game.designs.items() if len(some) < len(game.parts)]
        pairs, reruns = _complete(known, found, wanted)
        if not reruns:
            why = f"{agent} has no distorted episode with all {len(wanted)} designs of {game.axis} recorded yet."
            findings += Findings((), (), (why,))
            continue
        shares = attribute(agent, game.axis, game.parts, game.designs, pairs, reruns, (), VALUES)
        lost = failure(agent, prefixes, pairs, reruns) if game.axis == "steps" and prefixes else None
        findings += Findings(tuple(shares), (lost,) if lost else (), tuple(_remarks(agent, game.axis, pairs, known)))
    return findings


def _complete(
    pairs: Sequence[Pair], found: Mapping[str, Mapping[str, TrialRecord]], wanted: Sequence[str]
) -> tuple[list[Pair], list[Rerun]]:
    whole = [pair for pair in pairs if all(name in found.get(pair.after.id, {}) for name in wanted)]
    return whole, [Rerun(pair, found[pair.after.id]) for pair in whole]


def _remarks(agent: str, axis: str, pairs: Sequence[Pair], known: Sequence[Pair]) -> Iterator[str]:
    """Which episodes the shares are of, and that chance alone is not known."""
    lose, gain = sum(pair.loses for pair in pairs), sum(pair.changes and not pair.loses for pair in pairs)
    size = count_of(len(pairs), len({pair.after.case.scene for pair in pairs}))
    yield (
        f"By {axis}: {size} of the {counted(len(known), 'distorted episode')} of {agent} have all designs recorded; it "
        f"loses success in {lose} and gains in {gain}."
    )
