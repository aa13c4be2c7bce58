"""Blind agents: those that look at nothing, and nothing else that looks like it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.study.blindness import blind_agents, declared_blind


def trials(agent: str = "still", scenes: int = 12, **distorted: Any) -> list[TrialRecord]:
    """Undistorted successes and distorted trials that went the same way, but for the given fields."""
    found = []
    for seed in range(scenes):
        same = TrialRecord(
            "e",
            agent,
            TestCase("pick", seed, "reference", 0),
            Outcome.SUCCESS,
            decision=1.0,
            execution=100.0,
            distance_m=0.0,
            progress=1.0,
            path_m=0.0,
            reference=Reference.OWN,
            steps=2,
        )
        found += [same, replace(same, case=TestCase("pick", seed, "jpeg", 5), **distorted)]
    return found


LOST: dict[str, Any] = {"outcome": Outcome.FAILURE, "progress": 0.4}


def test_an_agent_is_blind_if_every_trial_went_as_without_distortion() -> None:
    assert blind_agents(trials()) == {"still"}
    assert blind_agents(trials(path_m=0.0009)) == {"still"}, "an arm repeats its path to less than a millimetre"
    assert blind_agents([*trials(), *trials("other", decision=0.5)]) == {"still"}
    assert blind_agents([record for record in trials() if record.case.is_reference]) == frozenset()
    assert blind_agents([]) == frozenset()


@pytest.mark.parametrize(
    "difference",
    [LOST, {"decision": 0.9995}, {"path_m": 0.002}, {"steps": 3}, {"progress": 0.5, "outcome": Outcome.FAILURE}],
    ids=str,
)
def test_a_single_trial_that_went_otherwise_shows_that_it_looks(difference: dict[str, Any]) -> None:
    records = trials()
    assert blind_agents([*records[:-1], replace(records[-1], **difference)]) == frozenset()


def test_a_policy_whose_first_chunk_alone_never_changes_looks() -> None:
    """It loses most of its trials, after a first chunk that is the same on every image."""
    lost = trials("peeker", path_m=0.3, **LOST)
    assert blind_agents(lost) == frozenset()
    assert blind_agents(lost, declared=["peeker"]) == frozenset(), "the drop is beyond chance, so it must look"


def test_records_without_a_path_tell_nothing_unless_it_is_declared() -> None:
    imported = trials("foreign", path_m=None)
    assert blind_agents(imported) == frozenset()
    assert blind_agents(imported, declared=["foreign"]) == {"foreign"}
    assert blind_agents(trials("foreign", decision=None)) == frozenset()


def test_a_declared_agent_is_blind_although_its_paths_vary() -> None:
    noisy = trials("noisy", decision=0.98, path_m=0.01)
    noisy[-1] = replace(noisy[-1], outcome=Outcome.FAILURE, progress=0.9)
    assert blind_agents(noisy) == frozenset()
    assert blind_agents(noisy, declared=["noisy", "absent"]) == {"noisy"}


def test_paths_that_are_measured_against_an_oracle_are_compared() -> None:
    """An agent that fails undistorted has no path of its own to compare with; doing nothing is as far off each time."""
    hold = [
        replace(record, agent="hold", path_m=0.4, reference=Reference.ORACLE, outcome=Outcome.FAILURE, progress=0.0)
        for record in trials()
    ]
    assert blind_agents(hold) == {"hold"}
    assert blind_agents([*hold[:-1], replace(hold[-1], path_m=0.41)]) == frozenset()


def test_faults_tell_nothing_and_a_missing_undistorted_trial_leaves_it_open() -> None:
    records = trials()
    fault = replace(records[-1], outcome=Outcome.INFRASTRUCTURE, execution=None, progress=None)
    assert blind_agents([*records[:-1], fault]) == {"still"}
    assert blind_agents([*records[:-2], records[-1]]) == frozenset()


def test_a_run_declares_its_blind_agents() -> None:
    assert declared_blind({"blind_agents": ["oracle", "hold"]}) == {"oracle", "hold"}
    for content in ({}, {"blind_agents": "oracle"}, {"blind_agents": [3, None]}):
        assert declared_blind(content) == frozenset()
