"""The second score beside a stage's: slots of recorded answers, and decisions in units of the policy's own spread."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from merton.decision.score import score as decision_score
from merton.results.records import TestCase
from merton.statistics.means import mean_interval
from merton.study import beside, models
from merton.study.outputs import Output, references, scene_pairs
from merton.world.action import ActionChunk, checked_chunk

REFERENCE, BLUR = ("reference", 0), ("gaussian_blur", 3)


def chunk(x_m: float, gripper: float = 1.0) -> ActionChunk:
    return checked_chunk([[x_m, 0, 0, 0, 0, 0, gripper]], 0.2)


def output(
    scene: int, decided_m: float, shown: tuple[str, int] = BLUR, agent: str = "a", answer: str = "cup"
) -> Output:
    """A trial in whose scene the undistorted decision goes 1 cm a scene further; `decided_m` is how far off this is."""
    chunks = chunk(0.01 * scene), chunk(0.01 * scene + decided_m)
    scores = {"cognition": {"cognition": 0.5}, "decision": {"decision": decision_score(*chunks).total}}
    models = {"cognition": "vlm", "decision": agent}
    return Output(agent, models, TestCase("pick", scene, *shown), ("red cup", answer), chunks, scores)


SCENES = [output(scene, 0.0, REFERENCE) for scene in range(3)]
"""Pairs of scenes are 1, 1 and 2 cm apart: 4/3 cm in the mean."""


@pytest.mark.parametrize("factor", [0, 0.25, 0.5, 0.9, 1, 3])
def test_a_decision_is_measured_in_the_policys_own_spread(factor: float) -> None:
    found = beside.scored([*SCENES, output(1, factor * 0.04 / 3)])[-1].scores["decision"]
    assert found["own_spread"] == pytest.approx(1 - min(1, factor))
    assert found["decision"] > 0.97, "which half a metre hardly tells apart"


@pytest.mark.parametrize("scale", [0.2, 1, 10, 20])
def test_it_does_not_depend_on_the_size_of_the_movements(scale: float) -> None:
    def larger(one: Output) -> Output:
        assert one.chunks is not None
        chunks = [replace(part, deltas=part.deltas * np.array([scale, *[1] * 6])) for part in one.chunks]
        total = decision_score(chunks[0], chunks[1]).total
        return replace(one, chunks=(chunks[0], chunks[1]), scores={**one.scores, "decision": {"decision": total}})

    found = beside.scored([larger(one) for one in [*SCENES, output(1, 0.005)]])[-1].scores["decision"]
    assert found["own_spread"] == pytest.approx(1 - 0.005 / (0.04 / 3))


def test_a_policy_that_decides_the_same_has_no_spread_to_measure_in() -> None:
    same = [replace(one, chunks=(chunk(0), chunk(0))) for one in SCENES]
    found = beside.stage_scores(beside.scored([*same, output(1, 0.1)]))["decision"][1]
    assert (found.name, found.mean, found.interval, found.trials, found.without) == ("own_spread", None, None, 0, 1)
    assert found.reason == "it decides the same in all scenes of the task"
    alone = beside.stage_scores(beside.scored([SCENES[0], output(0, 0.1)]))["decision"][1]
    assert alone.reason == "its task has no two scenes with an undistorted decision"
    tiny = [replace(one, chunks=(chunk(1e-4 * one.case.seed),) * 2) for one in SCENES]
    assert beside.spreads(tiny)["a", "pick"].value is None, "a tenth of a millimetre is noise"


def test_the_means_have_their_trials_and_an_interval_by_scene() -> None:
    trials = [
        output(scene, off, answer=answer) for scene in range(3) for off, answer in ((0, "red cup"), (0.01, "blue cup"))
    ]
    without = replace(output(2, 0), chunks=None, answers=None, scores={"cognition": {}, "decision": {}})
    recorded = beside.scored([*SCENES, *trials, without])
    found = beside.stage_scores(recorded)
    assert list(found) == ["cognition", "decision"]
    assert [(row.name, row.trials, row.scenes, row.without) for rows in found.values() for row in rows] == [
        ("cognition", 6, 3, 1),
        ("slots", 6, 3, 1),
        ("decision", 6, 3, 1),
        ("own_spread", 6, 3, 1),
    ]
    slots, spread = found["cognition"][1], found["decision"][1]
    assert slots.mean == 0.5
    assert spread.mean == pytest.approx((1 + 0.25) / 2)
    values = [one.scores["decision"]["own_spread"] for one in recorded[3:-1]]
    assert spread.interval == mean_interval(values, [one.case.scene for one in trials])
    assert (slots.reason, spread.reason) == ("no answer", "no decision to compare")
    lines = list(csv.DictReader(io.StringIO(beside.as_csv(found))))
    assert [line["score"] for line in lines] == ["cognition", "slots", "decision", "own_spread"]
    assert float(lines[3]["mean"]) == pytest.approx(0.625)
    assert beside.by_trial(recorded)["slots"]["a", "pick.2.gaussian_blur.3"] == 0.0


def test_answers_that_name_nothing_have_no_slots() -> None:
    mute = replace(output(1, 0), answers=("yes", "certainly"))
    row = beside.stage_scores(beside.scored([*SCENES, mute]))["cognition"][1]
    assert (row.mean, row.without, row.reason) == (None, 1, "neither answer names a thing or an action of the scene")
    refused = replace(mute, answers=("Sorry.", "Sorry."))
    assert "slots" not in beside.scored([*SCENES, refused])[-1].scores["cognition"]


def test_both_are_dimensions_of_the_study_of_models() -> None:
    table = models.from_outputs(beside.scored([*SCENES, output(1, 0.005)]))
    assert models.stages(table) == {"cognition": ("cognition", "slots"), "decision": ("decision", "own_spread")}


def test_scenes_are_compared_with_other_scenes_alone() -> None:
    pairs = scene_pairs(references(SCENES, "a")["pick"])
    assert len(pairs) == 6
    assert all(one.case.seed != other.case.seed for one, other in pairs)
    assert scene_pairs(SCENES[:1]) == []
