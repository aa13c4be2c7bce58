"""The promise of an image gate by policy, task and type, and thresholds of their own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from merton.errors import InputError
from merton.statistics.means import mean_interval
from merton.statistics.risk import Scored, fewest_scenes, guaranteed_threshold
from merton_studies.iqa.gate import gates
from merton_studies.iqa.gate_groups import admitted_by_group, group_promises
from merton_studies.iqa.gate_page import group_words
from merton_studies.iqa.gate_promise import fitted_half, promises
from merton_studies.iqa.gate_table import GateTable


def of_two_policies(scenes: int) -> GateTable:
    """Every scene once by each: "gist" fails in 2 of 100, "glance" in 60; the blur orders nothing."""
    rng = np.random.default_rng(3)
    n = 2 * scenes
    subject = np.array(["gist", "glance"])[np.arange(n) % 2]
    task = np.where(np.arange(n) % 4 < 2, "test-pick", "test-push")
    scene = [f"test.{number // 2}" for number in range(n)]
    failed = rng.random(n) < np.where(subject == "gist", 0.02, 0.6)
    return GateTable(
        trial=np.array(
            [f"{who}.{what}.{at.split('.')[1]}.jpeg.1" for who, what, at in zip(subject, task, scene, strict=True)]
        ),
        subject=subject,
        scene=np.array(scene),
        distortion=np.full(n, "jpeg"),
        level=np.ones(n, np.int64),
        outcome=np.where(failed, "failure", "success"),
        undistorted=np.full(n, ""),
        values={"blur_effect": rng.uniform(0.2, 0.6, n)},
    )


def test_a_promise_of_a_mixture_is_told_by_policy_and_task() -> None:
    """At 40 % the mixture is promised, though 60 % of one policy's trials fail: alone it has no threshold."""
    trials = of_two_policies(240)
    (blur,) = [gate for gate in gates(trials) if gate.name == "blur_effect"]
    (mixed,) = promises(blur, trials, "failure", trials.failed, [0.4])
    assert mixed.guaranteed is not None
    rows = {row.name: row for row in admitted_by_group(mixed, trials, trials.failed, 0)}
    assert set(rows) == {"gist", "glance", "test-pick", "test-push", "jpeg"}
    held = ~fitted_half(trials, 0) & (-trials.values["blur_effect"] >= mixed.guaranteed.value)
    own = held & (trials.subject == "glance")
    assert (rows["glance"].trials, rows["glance"].failing) == (own.sum(), pytest.approx(trials.failed[own].mean()))
    assert rows["glance"].interval == mean_interval(trials.failed[own].astype(float), trials.scene[own])
    assert rows["glance"].interval.low > 0.4 > rows["gist"].interval.high
    alone = group_promises(blur, trials, "failure", trials.failed, 0.4, "policy", 0)
    assert [(item.name, item.promise and item.promise.guaranteed is not None) for item in alone] == [
        ("gist", True),
        ("glance", False),
    ]
    few = group_promises(blur, of_two_policies(20), "failure", of_two_policies(20).failed, 0.1, "task", 0)
    assert [(item.name, item.promise) for item in few] == [("test-pick", None), ("test-push", None)]
    assert group_words(few[0]) == "none, too few scenes or trials"
    with pytest.raises(InputError, match="choose one of: policy, task"):
        group_promises(blur, trials, "failure", trials.failed, 0.4, "type", 0)
    nameless = replace(trials, trial=np.char.add("trial", trials.trial))
    assert {row.by for row in admitted_by_group(mixed, nameless, trials.failed, 0)} == {"policy", "type"}
    with pytest.raises(InputError, match="no name of a trial tells its task"):
        group_promises(blur, nameless, "failure", trials.failed, 0.4, "task", 0)


def test_fewer_scenes_than_any_proof_needs() -> None:
    """Origin: by hand, all capital on one stake grows by 1 / (1 - alpha) a scene; spread over 32 it takes longer."""
    for alpha in (0.05, 0.1, 0.2, 0.5):
        fewest = fewest_scenes(alpha)
        assert fewest > math.log(10.0) / -math.log1p(-alpha)
        for scenes, is_proven in ((fewest - 1, False), (fewest, True)):
            names = np.array([f"{number}" for number in range(scenes)])
            calm = Scored(np.ones(scenes), np.zeros(scenes, bool), names)
            other = Scored(np.ones(5), np.zeros(5, bool), np.array(["a", "b", "c", "d", "e"]))
            assert (guaranteed_threshold(other, calm, alpha) is not None) == is_proven
