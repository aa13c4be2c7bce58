"""The stages of a run together: means by level, trials at the ceiling, correlations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study.stages import stages


def trials(agent: str, shift: float) -> list[TrialRecord]:
    """Ten scenes at levels 0, 1 and 5: execution follows decision, cognition is drawn by itself."""
    rng = np.random.default_rng(int(10 * shift))
    found = []
    for seed in range(10):
        for level in (0, 1, 5):
            decision = 1.0 if level == 0 else float(np.clip(1.0 - level * 0.1 + shift + rng.normal() / 20, 0.0, 0.99))
            done = decision > 0.7
            found.append(
                TrialRecord(
                    "e",
                    agent,
                    TestCase("pick", seed, "jpeg" if level else "reference", level),
                    Outcome.SUCCESS if done else Outcome.FAILURE,
                    cognition=1.0 if level == 0 else float(rng.uniform(0.2, 0.9)),
                    decision=decision,
                    execution=100.0 * decision,
                    progress=1.0 if done else decision,
                )
            )
    return found


def test_levels_ceilings_and_correlations_of_planted_trials() -> None:
    records = [*trials("one", 0.0), *trials("two", 0.05), *trials("blind", 0.3)]
    found = stages(records, ["one", "two"])
    assert found is not None
    assert (found.agents, found.trials, found.scenes) == (2, 40, 10)
    assert [(row.level, row.trials, row.scenes) for row in found.levels] == [(0, 20, 10), (1, 20, 10), (5, 20, 10)]
    assert found.levels[0].means == {
        "cognition": 1.0, "decision": 1.0, "execution": 100.0, "success": 1.0, "progress": 1.0
    }  # fmt: skip
    hard = [record for record in records if record.agent != "blind" and record.case.level == 5]
    assert found.levels[2].means["decision"] == pytest.approx(np.mean([record.decision for record in hard]))
    assert found.levels[2].means["success"] == 0.0
    assert found.at_ceiling == {"cognition": 0.0, "decision": 0.0, "execution": 0.0, "success": 0.5, "progress": 0.5}
    by_name = {(pair.one, pair.other): pair for pair in found.agreements}
    pair = by_name["decision", "execution"]
    assert (pair.correlation, pair.within) == (pytest.approx(1.0), pytest.approx(1.0))
    assert by_name["decision", "success"].correlation > 0.8
    assert math.isnan(by_name["decision", "success"].within), "within a level all succeed, or none"
    low, high = by_name["cognition", "execution"].interval
    assert low < 0.0 < high


def test_falls_of_planted_trials_with_an_interval_by_scene() -> None:
    records = [*trials("one", 0.0), *trials("two", 0.05)]
    found = stages(records, ["one", "two"], {"decision": 0.2})
    assert found is not None
    losses = [1.0 - record.decision for record in records if record.case.level == 5 and record.decision is not None]
    fall = found.falls["decision"]
    assert fall.points == pytest.approx(100 * np.mean(losses))
    assert fall.interval is not None
    by_scene = np.array(losses).reshape(2, 10).mean(axis=0)
    half = 100 * t.ppf(0.975, 9) * by_scene.std(ddof=1) / math.sqrt(10)
    assert fall.interval[1] == pytest.approx(fall.points + half, abs=0.01)
    assert fall.interval[0] < fall.points - half, "an eleventh scene may gain"
    assert fall.share == pytest.approx(fall.points / 0.8)
    assert fall.share_interval == pytest.approx(np.array(fall.interval) / 0.8)
    assert found.falls["execution"].points == pytest.approx(fall.points), "a hundredth of it, in points"
    assert found.falls["cognition"].share is None, "no floor is known"
    alone = stages([record for record in records if record.case.seed == 3], ["one", "two"])
    assert alone is not None
    assert alone.falls["decision"].interval is None, "one scene says nothing of another"


def test_the_order_of_records_does_not_matter() -> None:
    records = [*trials("one", 0.0), *trials("two", 0.05)]
    assert repr(stages(records[::-1], ["two", "one"])) == repr(stages(records, ["one", "two"]))


def test_nothing_is_said_without_distorted_trials() -> None:
    assert stages([record for record in trials("one", 0.0) if not record.case.level], ["one"]) is None
    assert stages(trials("one", 0.0), []) is None
