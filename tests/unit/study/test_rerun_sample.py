"""The trials of an attribution are no choice by outcome: shares add up to the drop of the report, chance to nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from merton.results.losses import by_agent
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study.attribution import attribute, chance, changed_by_placebo
from merton.study.rerun_sample import LEAST, SHARE, Pair, Rerun, pairs_of, rerun_weights

DESIGNS = {frozenset("a"): "a", frozenset("b"): "b", frozenset("ab"): "all"}


def record(won: bool, case: TestCase, way: float = 0.0, progress: float | None = None) -> TrialRecord:
    outcome = Outcome.SUCCESS if won else Outcome.FAILURE
    return TrialRecord("x", "one", case, outcome, progress=won if progress is None else progress, simulated_s=way)


def throws(scenes: int, kinds: int, p: float, *, seed: int) -> list[Rerun]:
    """Every trial and design is another throw of one coin: no part has any effect."""
    rng, trials = np.random.default_rng(seed), []
    for scene in range(scenes):
        reference = TestCase("pick", scene, "reference", 0)
        before, unseen = (record(rng.random() < p, reference) for _ in range(2))
        for kind in range(kinds):
            case = TestCase("pick", scene, f"kind{kind}", 5)
            after, first, second, beside = (record(rng.random() < p, case, rng.random()) for _ in range(4))
            trials.append(Rerun(Pair(before, after), {"a": first, "b": second}, 1.0, (unseen, beside)))
    return trials


def sampled(trials: list[Rerun], seed: int) -> list[Rerun]:
    weights = rerun_weights([trial.pair for trial in trials], seed)
    ids = [trial for trial in trials if trial.pair.after.id in weights]
    return [Rerun(one.pair, one.found, weights[one.pair.after.id], one.placebo) for one in ids]


def test_all_that_lose_and_gain_are_run_again_and_a_drawn_part_of_the_others_stands_for_them() -> None:
    trials = throws(5, 40, 0.9, seed=1)
    pairs = [trial.pair for trial in trials]
    weights = rerun_weights(pairs, 7)
    changed = {pair.after.id for pair in pairs if pair.changes}
    assert any(pair.changes and not pair.loses for pair in pairs)
    assert {weights[id] for id in changed} == {1.0}
    for scene in range(5):
        others = [pair.after.id for pair in pairs if pair.after.case.seed == scene and pair.after.id not in changed]
        drawn = [id for id in others if id in weights]
        assert len(drawn) == max(LEAST, math.ceil(SHARE * len(others))) < len(others)
        assert math.fsum(weights[id] for id in drawn) == pytest.approx(len(others))
    assert rerun_weights(pairs[::-1], 7) == weights, "by the seed alone"
    assert rerun_weights(pairs, 8) != weights
    few = [trial.pair for trial in throws(6, 2, 0.9, seed=1)]
    assert len(rerun_weights(few, 7)) == len(few), "of a small run all"


def test_loss_is_the_drop_of_the_report_and_shares_add_up_to_it() -> None:
    for seed in range(3):
        trials = throws(6, 20, 0.7, seed=seed)
        before = {trial.pair.before.case: trial.pair.before for trial in trials}
        records = [*before.values(), *(trial.pair.after for trial in trials)]
        pairs = pairs_of(records, "one")
        assert pairs == [trial.pair for trial in trials]
        for found in attribute("one", "cameras", "ab", DESIGNS, pairs, sampled(trials, seed)):
            assert math.fsum(share.value for share in found.shares.values()) == pytest.approx(found.loss.value)
            drop = by_agent(records)["one"]
            assert found.loss.value == pytest.approx(drop.points, abs=1e-12)
            assert found.loss.interval == drop.interval
            assert (found.trials, found.scenes) == (drop.trials, drop.scenes)
            assert found.lost + found.gained == sum(pair.changes for pair in pairs)
            assert found.reruns < found.trials


def test_a_part_without_effect_loses_nothing_by_chance() -> None:
    """Losing trials alone would give it half of p (1 - p) = 0.08, and the interval of most would be above 0."""
    shares, floors = [], []
    for seed in range(12):
        trials = throws(20, 6, 0.8, seed=seed)
        found = attribute("one", "cameras", "ab", DESIGNS, [trial.pair for trial in trials], sampled(trials, seed))[0]
        assert found.chance is not None
        shares.append(found.shares["a"])
        floors.append(found.chance)
    for means in (shares, floors):
        ends = [mean.interval for mean in means if mean.interval is not None]
        assert sum(one.low <= 0.0 <= one.high for one in ends) >= 10
        assert abs(np.mean([mean.value for mean in means])) < 0.04


def test_parts_that_cancel_out_are_seen_in_trials_that_neither_lose_nor_gain() -> None:
    trials = []
    for scene in range(4):
        for kind in range(8):
            case = TestCase("pick", scene, f"kind{kind}", 5)
            pair = Pair(record(True, case.reference), record(True, case, 1.0))
            trials.append(Rerun(pair, {"a": record(False, case, 2.0), "b": record(True, case, 3.0)}))
    found = attribute("one", "cameras", "ab", DESIGNS, [trial.pair for trial in trials], sampled(trials, 1))[0]
    assert (found.loss.value, found.reruns) == (0.0, 8)
    assert {part: share.value for part, share in found.shares.items()} == {"a": 0.5, "b": -0.5}


def test_the_placebo_is_shared_out_as_a_part_is() -> None:
    case = TestCase("pick", 0, "jpeg", 5)
    pair = Pair(record(True, case.reference), record(True, case))
    stays = Rerun(pair, {}, 3.0, (pair.before, pair.after))
    fails = Rerun(pair, {}, 1.0, (record(False, case.reference), record(False, case)))
    assert chance("success", [stays]).value == 0.0  # type: ignore[union-attr]
    assert chance("success", [stays, fails]).value == 0.25  # type: ignore[union-attr]
    assert chance("success", [Rerun(pair, {})]) is None
    assert changed_by_placebo([fails]) == (2, 2)
    lost = Pair(pair.before, record(False, case))
    saved = Rerun(lost, {}, 1.0, (record(True, case.reference), record(True, case)))
    assert chance("success", [saved]).value == -0.5  # type: ignore[union-attr]
    assert changed_by_placebo([saved]) == (1, 2)


def test_tiny_differences_are_no_loss() -> None:
    case = TestCase("pick", 0, "jpeg", 5)
    before, after = record(False, case.reference, progress=0.5), record(False, case, progress=0.5 - 1e-6)
    assert not Pair(before, after).changes
    assert Pair(before, record(False, case, progress=0.4)).loses
    assert not Pair(before, record(False, case, progress=0.6)).loses
    assert pairs_of([before], "one") == []
    assert pairs_of([before, after], "two") == []
