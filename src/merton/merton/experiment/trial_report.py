"""The results of a trial: its report, the pictures in it, and the run that later trials are measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from merton.cognition.words import VERSION as WORDS_VERSION
from merton.decision.score import DecisionScore
from merton.experiment.plan import Trial
from merton.experiment.ports import SIDES, Side
from merton.experiment.scoring import Evidence, Scores, ToolPath, version_of
from merton.results.records import TrialRecord
from merton.world.geometry import Matrix
from merton.world.observation import Image


@dataclass(frozen=True)
class ReferenceRun:
    """The results of an undistorted trial that later trials of the same scene are measured against.

    Attributes:
        answer: the VLM's answer to the undistorted image; None if it gave none.
        base_from_tcp: final tool pose (4, 4) in `base_link`; None of a robot without one.
        success: whether it did the task.
    """

    answer: str | None
    base_from_tcp: Matrix | None
    path: ToolPath
    success: bool


@dataclass(frozen=True)
class TrialPicture:
    """A pair of frames of one camera, saved for people."""

    step: int
    camera: str
    reference: Image
    distorted: Image

    def file(self, side: Side) -> str:
        """File name of the reference or the distorted frame."""
        return f"{self.step:02d}_{self.camera}_{side}.jpg"


@dataclass(frozen=True)
class TrialReport:
    """All results of a trial.

    Attributes:
        trial: agent and test case.
        record: the part that is stored and rated.
        evidence: the inputs of the scores.
        scores: with the parts each of them is made of.
        instruction: the task in words, as the VLA gets it unless the VLM's answer takes its place.
        question: in words, as the VLM gets it.
        judged_by: "cell", the operator's name, or empty where the outcome needed no judgement.
        pictures: frames to be saved beside trial.json.
        unanswered: why the VLM gave no answer, by side; empty if it gave both.
        ended: why the world has ended the trial; empty if it has not.
    """

    trial: Trial
    record: TrialRecord
    evidence: Evidence
    scores: Scores
    instruction: str
    question: str
    judged_by: str
    pictures: tuple[TrialPicture, ...]
    unanswered: Mapping[Side, str] = field(default_factory=dict)
    ended: str = ""

    @property
    def reference(self) -> ReferenceRun | None:
        """The run that later trials can be measured against; None unless this trial is undistorted."""
        if not self.record.case.is_reference:
            return None
        evidence = self.evidence
        return ReferenceRun(evidence.answers[0], evidence.final_tcp, evidence.path, bool(self.record.success))

    @property
    def details(self) -> dict[str, Any]:
        """The content of trial.json: every field of the record, and further results."""
        record, evidence, scores = self.record, self.evidence, self.scores
        corpus = version_of(evidence.corpus) if evidence.corpus else None
        details: dict[str, Any] = {
            "id": record.id,
            "agent": record.agent,
            "vlm": self.trial.agent.vlm,
            "vla": self.trial.agent.vla,
            **record.case.facts,
            "instruction": self.instruction,
            "question": self.question,
            "outcome": record.outcome.value,
            "success": record.success,
            "judged_by": self.judged_by,
            "answers": dict(zip(SIDES, evidence.answers, strict=True)),
            "cognition": {
                **(asdict(scores.cognition) if scores.cognition else {}),
                "corpus": corpus,
                "words": WORDS_VERSION,
            },
            "decision": {
                **_parts(scores.decision),
                **{
                    side: {"deltas": chunk.deltas.tolist(), "step_s": chunk.step_s, "frame": chunk.frame}
                    for side, chunk in zip(SIDES, evidence.first_chunks or (), strict=False)
                },
            },
            "execution": {
                "score": scores.execution,
                "distance_m": scores.distance_m,
                "path_m": scores.path_m,
                "angle_rad": scores.angle_rad,
            },
            "path": evidence.path,
            "reference_path": evidence.reference_path or evidence.path,
            "final_tcp": None if evidence.final_tcp is None else evidence.final_tcp.tolist(),
            "frames": [
                {"step": picture.step, "camera": picture.camera, **{side: picture.file(side) for side in SIDES}}
                for picture in self.pictures
            ],
        }
        if evidence.first_chunks and evidence.first_chunks[0].spread is not None:
            details["decision"]["spread"] = evidence.first_chunks[0].spread
        if self.ended:
            details["ended"] = self.ended
        if self.unanswered:
            details["unanswered"] = dict(self.unanswered)
        elsewhere = {"experiment", "case", *details["execution"]}
        return details | {key: value for key, value in asdict(record).items() if key not in details.keys() | elsewhere}


def _parts(decision: DecisionScore | None) -> dict[str, float]:
    """The parts that a decision's score has."""
    return {} if decision is None else {name: value for name, value in asdict(decision).items() if value is not None}
