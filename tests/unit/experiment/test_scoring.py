"""From the evidence of a trial to its scores, and how they compare with a record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.cognition.score import score as cognition_score
from merton.cognition.text import Cider
from merton.decision.score import score as decision_score
from merton.errors import InputError
from merton.experiment.scoring import TOLERANCE, Evidence, differences, score
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.world.action import checked_chunk
from merton.world.geometry import transform

CHUNKS = (checked_chunk([[0, 0, 0, 0, 0, 0, 1.0]], 0.2), checked_chunk([[0.05, 0, 0, 0, 0, 0.1, 0.0]], 0.2))
ANSWERS = ("the red cube is on the left", "the blue cube is on the right")
CORPUS = (ANSWERS[0], "lift the green cube", "open the drawer")
PATHS = (((0.1, 0.2, 0.5), (0.1, 0.2, 0.3)), ((0.1, 0.2, 0.5), (0.1, 0.2, 0.05)))
EVIDENCE = Evidence(
    ANSWERS, CORPUS, CHUNKS, transform((0.1, 0.2, 0.3)), transform((0.1, 0.2, 0.05)), *PATHS, progress=0.875
)


def test_every_stage_is_scored_by_its_own_formula() -> None:
    scores = score(EVIDENCE, Outcome.FAILURE)
    assert scores.cognition == cognition_score(*ANSWERS, Cider(CORPUS))
    assert scores.decision == decision_score(*CHUNKS)
    assert (scores.distance_m, scores.execution) == (pytest.approx(0.25), pytest.approx(75.0))
    assert score(EVIDENCE, Outcome.SUCCESS).execution == 100.0
    assert score(EVIDENCE, Outcome.INFRASTRUCTURE).execution is None


@pytest.mark.parametrize("corpus", [(), CORPUS[:1]])
def test_missing_evidence_is_not_scored(corpus: tuple[str, ...]) -> None:
    scores = score(Evidence(ANSWERS, corpus, None, None, np.eye(4)), Outcome.FAILURE)
    assert scores.cognition == cognition_score(*ANSWERS)
    assert scores.cognition.cider is None
    assert (scores.decision, scores.execution, scores.distance_m) == (None, None, None)


@pytest.mark.parametrize(
    ("outcome", "progress"),
    [
        (Outcome.SUCCESS, 1.0),
        (Outcome.FAILURE, 0.875),
        (Outcome.EMERGENCY_STOP, 0.0),
        (Outcome.INVALID_ACTION, 0.0),
        (Outcome.INFRASTRUCTURE, None),
    ],
)
def test_success_and_progress_follow_from_the_outcome(outcome: Outcome, progress: float | None) -> None:
    """A failure has the progress that the cell judged; a person judges none."""
    assert score(EVIDENCE, outcome).progress == progress
    assert score(replace(EVIDENCE, progress=None), outcome).progress == (None if progress == 0.875 else progress)
    assert outcome.success is (None if progress is None else progress == 1.0)


def test_a_failure_by_a_millimetre_has_no_success_and_nearly_all_progress() -> None:
    evidence = replace(EVIDENCE, final_tcp=transform((0.1, 0.2, 0.299)), progress=0.99)
    scores = score(evidence, Outcome.FAILURE)
    assert scores.execution == pytest.approx(99.9)
    assert scores.progress == 0.99
    assert Outcome.FAILURE.success is False


def test_deviations_of_path_and_orientation() -> None:
    scores = score(EVIDENCE, Outcome.FAILURE)
    assert scores.path_m == pytest.approx(0.25), "it went on below the end of the reference"
    assert scores.angle_rad == 0.0
    turned = replace(EVIDENCE, final_tcp=transform((0.1, 0.2, 0.05), Rotation.from_rotvec((0.3, 0, 0))))
    assert score(turned, Outcome.FAILURE).angle_rad == pytest.approx(0.3)
    alone = score(replace(EVIDENCE, reference_tcp=None, reference_path=()), Outcome.FAILURE)
    assert (alone.path_m, alone.angle_rad) == (None, None)


def test_chunks_in_different_frames_are_refused() -> None:
    with pytest.raises(InputError, match="cannot compare a chunk in"):
        score(replace(EVIDENCE, first_chunks=(CHUNKS[0], replace(CHUNKS[1], frame="tcp"))), Outcome.SUCCESS)


def test_only_real_differences_to_a_record_are_named() -> None:
    scores = score(EVIDENCE, Outcome.FAILURE)
    record = TrialRecord("e", "a", TestCase("pick", 0, "jpeg", 3), Outcome.FAILURE, **scores.totals)
    assert list(differences(record, scores)) == []
    assert scores.execution is not None
    close, far = scores.execution + TOLERANCE / 2, scores.execution + 1e-9
    assert list(differences(replace(record, execution=close), scores)) == []
    assert list(differences(replace(record, execution=far), scores)) == [("execution", far, scores.execution)]
    unscored = replace(record, decision=None)
    assert list(differences(unscored, scores)) == [("decision", None, scores.totals["decision"])]


@pytest.mark.parametrize("answers", [(None, None), ("red", None), (None, "")])
def test_a_recorded_score_of_answers_that_were_not_given_differs(answers: tuple[str | None, str | None]) -> None:
    """As `merton recording rescore` finds it in recordings of before: two absent answers had scored 1."""
    said = replace(EVIDENCE, answers=answers)
    totals = score(said, Outcome.FAILURE).totals
    record = TrialRecord(
        "run", "agent", TestCase("reach", 0, "jpeg", 5), Outcome.FAILURE, **(totals | {"cognition": 1.0})
    )
    assert list(differences(record, score(said, Outcome.FAILURE))) == [("cognition", 1.0, None)]
    assert not list(differences(replace(record, cognition=None), score(said, Outcome.FAILURE)))
