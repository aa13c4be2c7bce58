"""The agents that look at nothing: distortion cannot cost them anything, so they are no part of a study of it.

The one place that decides it. A high decision score is no sign of it: it compares first chunks alone, and a policy that
first only goes near loses its way later. So an agent is blind if its policy declares no camera, or if every distorted
trial went as the undistorted one did, to the millimetre; and never if its success differs beyond chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from merton.results.losses import by_agent
from merton.results.records import Outcome, Reference, TestCase, TrialRecord

WORDS = "0, does not look"
"""In place of the drop of a blind agent and its interval: it is 0 by construction, not by measurement."""
DECLARED = "blind_agents"
"""Entry of run.json: ids of the agents whose policies look through no camera."""
SAME_PATH_M = 1e-3
"""The largest distance between two paths that are the same [m]. Ours: a simulated arm repeats its path to far less."""


def declared_blind(facts: Mapping[str, Any]) -> frozenset[str]:
    """Ids of the agents that a run.json declares to look through no camera; none if it says nothing."""
    found = facts.get(DECLARED)
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()


def blind_agents(records: Iterable[TrialRecord], declared: Collection[str] = ()) -> frozenset[str]:
    """Ids of the agents of these trials that look at nothing, as far as is known.

    Args:
        records: trials; those that lack a score or a path, such as imported ones, tell nothing.
        declared: ids of agents that are known to look through no camera (`declared_blind`).
    """
    known = list(records)
    candidates = _unmoved(known) | {record.agent for record in known if record.agent in declared}
    lost = by_agent(record for record in known if record.agent in candidates)
    return frozenset(
        agent for agent in candidates if agent not in lost or lost[agent].interval[0] <= 0.0 <= lost[agent].interval[1]
    )


def _unmoved(records: Iterable[TrialRecord]) -> set[str]:
    """The agents with a distorted trial, all of whose distorted trials went as their undistorted ones."""
    known = [record for record in records if record.outcome is not Outcome.INFRASTRUCTURE]
    undistorted: dict[tuple[str, str, TestCase], TrialRecord] = {
        (record.experiment, record.agent, record.case): record for record in known if record.case.is_reference
    }
    went: dict[str, bool] = {}
    for record in known:
        if not record.case.is_reference:
            before = undistorted.get((record.experiment, record.agent, record.case.reference))
            is_same = before is not None and _went_alike(record, before)
            went[record.agent] = went.get(record.agent, True) and is_same
    return {agent for agent, is_same in went.items() if is_same}


def _went_alike(distorted: TrialRecord, undistorted: TrialRecord) -> bool:
    """Whether decision, path, outcome, progress and number of chunks are those of the undistorted trial."""
    return (
        distorted.decision == 1.0
        and _same_path(distorted, undistorted)
        and (distorted.outcome, distorted.progress) == (undistorted.outcome, undistorted.progress)
        and distorted.steps == undistorted.steps
    )


def _same_path(distorted: TrialRecord, undistorted: TrialRecord) -> bool:
    """Whether the paths are the same; a path is known by its distance from that of the reference run.

    That run is mostly the undistorted one itself; where it failed it is an oracle's, and two distances are compared.
    """
    if distorted.path_m is None:
        return False
    if distorted.reference is not Reference.ORACLE:
        return distorted.path_m < SAME_PATH_M
    if undistorted.reference is not Reference.ORACLE or undistorted.path_m is None:
        return False
    return abs(distorted.path_m - undistorted.path_m) < SAME_PATH_M
