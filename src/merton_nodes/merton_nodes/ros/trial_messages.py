"""The messages of a trial's results: its record, the evidence of its scores, and the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from geometry_msgs.msg import Point
from merton_interfaces.msg import DistortionInfo, TrialEvidence, TrialResult
from merton_interfaces.srv import ScoreTrial

from merton.cognition.score import CognitionScore
from merton.decision.score import DecisionScore
from merton.errors import InputError
from merton.experiment.scoring import Evidence, Scores
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

T = TypeVar("T")

_OUTCOMES = {outcome: int(getattr(TrialResult, outcome.name)) for outcome in Outcome}
_REFERENCES: dict[Reference | None, int] = {
    None: TrialResult.REFERENCE_UNKNOWN,
    **{reference: getattr(TrialResult, f"REFERENCE_{reference.name}") for reference in Reference},
}


def result_message(record: TrialRecord, seed: int = 0) -> TrialResult:
    """The message of a trial's record; `seed` is the distortion's."""
    case = record.case
    return TrialResult(
        experiment_id=record.experiment,
        trial_id=record.id,
        agent_id=record.agent,
        task=case.task,
        scene_seed=case.seed,
        reference_image=f"trials/{record.id}",
        distortion=DistortionInfo(name=case.distortion, level=float(case.level), seed=seed),
        outcome=_OUTCOMES[record.outcome],
        cognition=_or_nan(record.cognition),
        decision=_or_nan(record.decision),
        execution=_or_nan(record.execution),
        distance=_or_nan(record.distance_m),
        progress=_or_nan(record.progress),
        path_deviation=_or_nan(record.path_m),
        angle=_or_nan(record.angle_rad),
        reference=_REFERENCES[record.reference],
        reference_success=_flag(record.reference_success),
        cut_short=_flag(record.cut_short),
        steps=record.steps,
        elapsed=convert.duration_message(record.simulated_s),
        wall=record.wall_s,
        error_code=record.error_code,
        error_msg=record.error_message,
    )


def fault_message(error_code: int, error: str) -> TrialResult:
    """The message of a trial that ended before it had a record: nothing is known but the error."""
    unscored = ("cognition", "decision", "execution", "distance", "progress", "path_deviation", "angle")
    return TrialResult(
        outcome=TrialResult.INFRASTRUCTURE,
        **dict.fromkeys(unscored, math.nan),
        reference_success=-1,
        cut_short=-1,
        error_code=error_code,
        error_msg=error,
    )


def record_of(message: TrialResult) -> TrialRecord:
    """A trial's record from its message. Raises InputError for an unknown outcome or a level that is not whole."""
    if not float(message.distortion.level).is_integer():
        raise InputError(f"trial {message.trial_id!r} has level {message.distortion.level}; levels are whole here")
    return TrialRecord(
        experiment=message.experiment_id,
        agent=message.agent_id,
        case=TestCase(message.task, message.scene_seed, message.distortion.name, int(message.distortion.level)),
        outcome=outcome_of(message.outcome),
        cognition=_or_none(message.cognition),
        decision=_or_none(message.decision),
        execution=_or_none(message.execution),
        distance_m=_or_none(message.distance),
        progress=_or_none(message.progress),
        path_m=_or_none(message.path_deviation),
        angle_rad=_or_none(message.angle),
        reference=_member(_REFERENCES, message.reference, "reference"),
        reference_success=_truth(message.reference_success),
        cut_short=_truth(message.cut_short),
        steps=message.steps,
        simulated_s=convert.nanoseconds_of(message.elapsed) / 1e9,
        wall_s=message.wall,
        error_code=message.error_code,
        error_message=message.error_msg,
    )


def evidence_message(evidence: Evidence, stamp_ns: int, experiment_id: str = "", trial_id: str = "") -> TrialEvidence:
    """The message of a trial's evidence, scored at `stamp_ns`."""
    reference, final = evidence.reference_tcp, evidence.final_tcp
    if final is None:
        raise InputError(f"trial {trial_id!r} has no tool pose, which a message of a cell has")
    return TrialEvidence(
        header=convert.header(stamp_ns, names.BASE_FRAME),
        experiment_id=experiment_id,
        trial_id=trial_id,
        reference_answer=answer_text(evidence.answers[0]),
        answer=answer_text(evidence.answers[1]),
        corpus=list(evidence.corpus),
        first_chunks=[convert.chunk_message(chunk, stamp_ns, trial_id) for chunk in evidence.first_chunks or ()],
        reference_pose=[] if reference is None else [convert.pose_message(reference)],
        final_pose=convert.pose_message(final),
        reference_path=[Point(x=x, y=y, z=z) for x, y, z in evidence.reference_path],
        path=[Point(x=x, y=y, z=z) for x, y, z in evidence.path],
        progress=_or_nan(evidence.progress),
    )


def evidence_of(message: TrialEvidence) -> Evidence:
    """Evidence from its message. Raises InputError or InvalidActionError if it cannot be scored."""
    chunks = [convert.chunk_of(chunk) for chunk in message.first_chunks]
    if len(chunks) not in (0, 2) or len(message.reference_pose) > 1:
        raise InputError(f"the evidence of {message.trial_id!r} has {len(chunks)} chunks; it must be two or none")
    return Evidence(
        (answer_of(message.reference_answer), answer_of(message.answer)),
        tuple(message.corpus),
        (chunks[0], chunks[1]) if chunks else None,
        convert.matrix_of(message.reference_pose[0]) if message.reference_pose else None,
        convert.matrix_of(message.final_pose),
        tuple((point.x, point.y, point.z) for point in message.reference_path),
        tuple((point.x, point.y, point.z) for point in message.path),
        _or_none(message.progress),
    )


def answer_text(answer: str | None) -> str:
    """An answer in a message, whose strings cannot be absent: empty is none, and a space the answer without a word."""
    return "" if answer is None else answer or " "


def answer_of(text: str) -> str | None:
    """The answer that `answer_text` made a text of; None if there was none."""
    return None if not text else text if text != " " else ""


def scores_response(scores: Scores) -> ScoreTrial.Response:
    """The response of scorer_node that carries a trial's scores; NaN stands for None."""
    cognition = scores.cognition or CognitionScore(*[math.nan] * 4)
    decision = scores.decision or DecisionScore(*[math.nan] * 4)
    return ScoreTrial.Response(
        cognition=cognition.total,
        bleu=cognition.bleu,
        rouge=cognition.rouge_l,
        cider=_or_nan(cognition.cider),
        decision=decision.total,
        position=decision.position,
        rotation=decision.rotation,
        state=decision.state,
        execution=_or_nan(scores.execution),
        distance=_or_nan(scores.distance_m),
        progress=_or_nan(scores.progress),
        path_deviation=_or_nan(scores.path_m),
        angle=_or_nan(scores.angle_rad),
    )


def scores_of(message: ScoreTrial.Response) -> Scores:
    """A trial's scores from the response of scorer_node."""
    cognition = CognitionScore(message.cognition, message.bleu, message.rouge, _or_none(message.cider))
    decision = DecisionScore(message.decision, message.position, message.rotation, message.state)
    return Scores(
        None if math.isnan(message.cognition) else cognition,
        None if math.isnan(message.decision) else decision,
        _or_none(message.execution),
        _or_none(message.distance),
        _or_none(message.progress),
        _or_none(message.path_deviation),
        _or_none(message.angle),
    )


def outcome_of(value: int) -> Outcome:
    """The outcome a TrialResult constant stands for; raises InputError for any other number."""
    return _member(_OUTCOMES, value, "outcome")


def outcome_constant(outcome: Outcome) -> int:
    """The constant of the message for an outcome."""
    return _OUTCOMES[outcome]


def _member(constants: Mapping[T, int], value: int, name: str) -> T:
    for member, constant in constants.items():
        if constant == value:
            return member
    choices = ", ".join(f"{number} ({getattr(member, 'value', 'unknown')})" for member, number in constants.items())
    raise InputError(f"unknown {name} {value}; choose one of: {choices}")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _flag(value: bool | None) -> int:
    return -1 if value is None else int(value)


def _truth(flag: int) -> bool | None:
    return None if flag < 0 else bool(flag)
