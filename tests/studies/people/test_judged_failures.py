"""A verdict of a person leaves what the VLM failed at."""

from __future__ import annotations

from dataclasses import replace

from merton.results.records import Outcome, TestCase, TrialRecord
from merton_studies.people.judged import judged_records


def test_a_persons_verdict_keeps_that_the_vlm_gave_no_answer() -> None:
    """The verdict is about the task; what the VLM did not say stays unsaid."""
    case = TestCase("reach", 0, "reference", 0)
    why = "describe gave no answer to either image: why"
    mute = TrialRecord("id", "a", case, Outcome.FAILURE, progress=0.0, error_code=102, error_message=why)
    stopped = replace(mute, agent="b", error_code=304, error_message="COLLISION")
    found = judged_records([mute, stopped], {mute.id: True, stopped.id: True})
    assert [(one.outcome, one.error_code, one.error_message) for one in found] == [
        (Outcome.SUCCESS, 102, why),
        (Outcome.SUCCESS, 0, ""),
    ]
