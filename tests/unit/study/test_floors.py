"""Chance floors: the score of the output for another image, and outputs that never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from merton.cognition.score import score as cognition_score
from merton.cognition.text import Cider
from merton.decision.score import score as decision_score
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.store import of_trials
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study import floors as study
from merton.study.outputs import Output
from merton.world.action import ActionChunk, checked_chunk

ANSWERS = {
    ("pick", 0): "pick up the red cube on the left",
    ("pick", 1): "pick up the blue ball near the edge",
    ("pick", 2): "pick up the red ball on the right",
    ("push", 0): "push the green cube away from the robot",
    ("push", 1): "push the green cylinder to the left of the mat",
}


def chunk(*deltas: Sequence[float]) -> ActionChunk:
    return checked_chunk(list(deltas), 0.2)


def chunk_for(case: TestCase) -> ActionChunk:
    return chunk((0.1 * case.seed, 0.05 * (case.task == "push"), 0, 0, 0, 0.2, 1))


def output(case: TestCase, answer: str, decided: ActionChunk, agent: str = "servo", vlm: str = "describe") -> Output:
    return Output(agent, {"cognition": vlm, "decision": agent}, case, (answer, answer), (decided, decided), {})


def board(*rows: tuple[str, float | None, float | None]) -> Snapshot:
    """Agents with their cognition and decision; in execution 90, and 60 for doing nothing."""
    case = TestCase("pick", 0, "jpeg", 1)
    trials = [
        TrialRecord("e", name, case, Outcome.FAILURE, cognition=cognition, decision=decision, execution=90.0)
        for name, cognition, decision in rows
    ]
    found = of_trials(trials)
    rows = tuple(replace(row, execution_above_floor=0.75) for row in found.agents)
    return replace(found, agents=rows, chance_floor=60.0)


CASES = [TestCase(task, scene, "reference", 0) for task, scene in ANSWERS]
RUN = [output(case, ANSWERS[case.task, case.seed], chunk_for(case)) for case in CASES]


def test_the_floor_is_the_score_against_other_scenes_of_the_task() -> None:
    found = study.floors(RUN, board(("servo", 0.8, 0.9)))["servo"]
    cider = Cider(ANSWERS.values())
    by_task: dict[str, list[float]] = {}
    moves: dict[str, list[float]] = {}
    for one in CASES:
        for other in CASES:
            if one.task == other.task and one.seed != other.seed:
                pair = ANSWERS[one.task, one.seed], ANSWERS[other.task, other.seed]
                by_task.setdefault(one.task, []).append(cognition_score(*pair, cider).total)
                moves.setdefault(one.task, []).append(decision_score(chunk_for(one), chunk_for(other)).total)
    floor = np.mean([np.mean(values) for values in by_task.values()])
    assert 0.05 < floor < 0.8
    assert found["cognition"].floor == pytest.approx(floor)
    assert found["cognition"].raw == 0.8
    assert found["cognition"].normalised == pytest.approx((0.8 - floor) / (1 - floor))
    assert set(found["cognition"].dimensions) == {"bleu", "rouge_l", "cider", "slots"}
    assert all(0 <= value <= 1 for value in found["cognition"].dimensions.values())
    floor = np.mean([np.mean(values) for values in moves.values()])
    assert found["decision"].floor == pytest.approx(floor)
    assert found["decision"].dimensions["state"] == 1.0
    assert found["execution"] == study.Floor(90.0, 60.0, 0.75, False, {})
    assert not any(item.repeats for item in found.values())
    assert found["decision"].inert == ("z", "rotation x", "rotation y", "rotation z", "gripper")
    assert found["cognition"].inert == ()


def test_dimensions_that_never_vary_are_named() -> None:
    """The gripper's end counts; one scene tells nothing; of constant output no single dimension is named."""

    def inert(*chunks: ActionChunk) -> tuple[str, ...]:
        run = [output(case, "words", decided) for case, decided in zip(CASES, chunks, strict=False)]
        return study.floors(run, board(("servo", 0.8, 0.9)))["servo"]["decision"].inert

    open_then = [chunk((0.1, 0, 0, 0, 0, 0, end), (0.1 * scene, 0, 0, 0, 0, 0, 0)) for scene, end in ((1, 1), (3, 0))]
    assert inert(*open_then) == ("y", "z", "rotation x", "rotation y", "rotation z", "gripper")
    ends = [chunk((0.1, 0, 0.2, 0, 0, 0, 1)), chunk((0.1, 0, 0.1, 0, 0, 0, 0.5))]
    assert inert(*ends) == ("x", "y", "rotation x", "rotation y", "rotation z")
    assert inert(*ends, chunk()) == inert(*ends), "an action without deltas has no dimensions"
    assert inert(ends[0]) == ()
    assert inert(ends[0], ends[0]) == (), "constant output"


def test_a_score_at_its_floor_is_zero_and_below_it_negative() -> None:
    floor = study.floors(RUN, board(("servo", None, 0.9)))["servo"]["cognition"].floor
    assert floor is not None
    assert study.floors(RUN, board(("servo", floor, 0.9)))["servo"]["cognition"].normalised == pytest.approx(
        0, abs=1e-5
    )
    assert study.floors(RUN, board(("servo", floor / 2, 0.9)))["servo"]["cognition"].normalised < 0  # type: ignore[operator]
    assert study.floors(RUN, board(("servo", None, 0.9)))["servo"]["cognition"].normalised is None


def test_one_scene_has_no_floor() -> None:
    single = [item for item in RUN if item.case.seed == 0]
    found = study.floors(single, board(("servo", 0.8, 0.9)))["servo"]
    for stage in ("cognition", "decision"):
        assert (found[stage].floor, found[stage].normalised, found[stage].repeats) == (None, None, False)
    assert study.floors([], board(("servo", 0.8, None)))["servo"]["decision"] == study.Floor(
        None, None, None, False, {}
    )


@pytest.mark.parametrize("scenes", [1, 2])
def test_a_model_that_repeats_itself_is_named(scenes: int) -> None:
    """With one scene a task it shows across tasks."""
    still = chunk((0, 0, 0, 0, 0, 0, 1))
    blind = [output(c, "I see a table.", still, "hold") for c in CASES if c.seed < scenes]
    found = study.floors(blind, board(("hold", 1.0, 1.0)))["hold"]
    for stage in ("cognition", "decision"):
        assert found[stage].repeats
        assert found[stage].normalised is None
    if scenes == 2:
        assert found["decision"].floor == 1.0


def test_output_that_follows_the_task_alone_repeats_too() -> None:
    deaf = [
        output(case, f"I {case.task} it.", chunk((0.1 * (case.task == "push"), 0, 0, 0, 0, 0, 1)), "deaf")
        for case in CASES
    ]
    found = study.floors(deaf, board(("deaf", 1.0, 1.0)))["deaf"]
    assert found["cognition"].repeats
    assert found["decision"].repeats


def test_robust_output_does_not_repeat() -> None:
    """The oracle's decisions do not depend on the distortion, but on the scene; nor does one case prove anything."""
    distorted = [
        output(
            TestCase("pick", scene, "jpeg", level), ANSWERS["pick", scene], chunk_for(TestCase("pick", scene, "", 0))
        )
        for scene in (0, 1)
        for level in (1, 5)
    ]
    found = study.floors([*RUN, *distorted], board(("servo", 1.0, 1.0)))["servo"]
    assert found["decision"].normalised == 1.0
    assert not found["decision"].repeats
    alone = [item for item in RUN + distorted if (item.case.task, item.case.seed) == ("pick", 0)]
    assert not study.floors(alone, board(("servo", 1.0, 1.0)))["servo"]["decision"].repeats


def test_nearly_the_same_first_motion_is_no_repetition_and_blindness_is_another_thing() -> None:
    """A policy that first only goes near: its first motions in all scenes score .999 and more against each other."""
    near = [output(case, "words", chunk((0.1 + 0.0001 * case.seed, 0, 0, 0, 0, 0, 1)), "near") for case in CASES]
    rows = board(("near", 0.8, 0.9999))
    found = study.floors(near, rows)["near"]["decision"]
    assert found.floor is not None
    assert 0.999 < found.floor < 1.0
    assert (found.repeats, found.is_blind) == (False, False)
    assert found.normalised == pytest.approx((0.9999 - found.floor) / (1.0 - found.floor))
    blind = study.floors(near, rows, blind=["near"])["near"]
    assert (blind["decision"].is_blind, blind["decision"].repeats, blind["decision"].normalised) == (True, False, None)
    assert not blind["cognition"].is_blind, "its VLM looks"


def test_each_vlm_has_its_own_corpus() -> None:
    other = [output(case, "a table", chunk_for(case), "second", "other") for case in CASES]
    alone = study.floors(RUN, board(("servo", 0.8, 0.9)))
    both = study.floors([*RUN, *other], board(("servo", 0.8, 0.9), ("second", 1.0, 0.9)))
    assert both["servo"] == alone["servo"]
    shared = [output(case, ANSWERS[case.task, case.seed], chunk_for(case), "third") for case in CASES]
    again = study.floors([*RUN, *shared], board(("servo", 0.8, 0.9), ("third", 0.8, 0.9)))
    assert again["servo"] == again["third"] == alone["servo"]  # one document a scene, for each agent
