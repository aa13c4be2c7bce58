"""One trial, from the reset of the scene to its scores, over whatever ports it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from merton.cognition.models.base import question_for
from merton.cognition.words import corpus_version
from merton.decision.models.base import POLICIES
from merton.errors import MODEL_ERRORS, ErrorCode, InvalidActionError, OperatorStopError
from merton.experiment.plan import ExperimentSpec, Trial, distortion_seed, policy_seed
from merton.experiment.ports import Execution, Look, Ports
from merton.experiment.scoring import Evidence
from merton.results.records import Outcome, TrialRecord
from merton.world.action import ActionChunk
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Image


@dataclass(frozen=True)
class ReferenceRun:
    """What later trials of the same scene are measured against.

    Attributes:
        answer: the VLM's answer to the undistorted image.
        base_from_tcp: final tool pose (4, 4) in `base_link`.
        path: tool positions along the run [m].
        success: whether it did the task.
    """

    answer: str
    base_from_tcp: Matrix
    path: tuple[tuple[float, float, float], ...]
    success: bool


@dataclass
class Picture:
    """A pair of frames of one camera, kept for people to look at."""

    step: int
    camera: str
    reference: Image
    distorted: Image

    def file(self, which: str) -> str:
        """File name of the "reference" or the "distorted" frame."""
        return f"{self.step:02d}_{self.camera}_{which}.jpg"


@dataclass
class TrialReport:
    """Everything a trial leaves behind.

    Attributes:
        record: what is stored and rated.
        details: the content of trial.json.
        pictures: frames to be saved beside it.
        reference: what later trials can be measured against.
        evidence: what the scores follow from.
    """

    record: TrialRecord
    details: dict[str, Any]
    evidence: Evidence
    pictures: list[Picture] = field(default_factory=list)
    reference: ReferenceRun | None = None


def run_trial(
    ports: Ports,
    spec: ExperimentSpec,
    experiment_id: str,
    trial: Trial,
    reference: ReferenceRun | None,
    corpus: Sequence[str],
    on_stage: Callable[[str, float], None] = lambda stage, progress: None,
) -> TrialReport:
    """Run one trial.

    Args:
        ports: the world.
        spec: the experiment the trial belongs to (step limit, seed, the VLM's camera).
        experiment_id: goes into the record.
        trial: agent and case.
        reference: the run to measure against; None for the first reference run of a scene, which then is its own.
        corpus: all reference answers of the VLM, for CIDEr; may be empty while those are being collected.
        on_stage: called with the stage's name and the progress 0..1.

    Raises:
        InfrastructureError: some part of the world did not answer. Nothing about the agent follows from that.
        OperatorStopError: a person stopped the arm. Nothing about the agent follows from that either.
    """
    started = time.monotonic()
    case, agent = trial.case, trial.agent
    on_stage("perception", 0.0)
    ports.set_distortion(case.distortion, case.level, distortion_seed(spec.seed, case))
    instruction = ports.reset(case.task, case.seed)
    first = look = ports.look()

    on_stage("cognition", 0.1)
    question = question_for(instruction)
    answers = [
        ports.answer(agent.vlm, views[spec.vlm_camera].color, question).text
        for views in (look.reference, look.distorted)
    ]

    on_stage("decision", 0.2)
    run = _Run(ports, spec, trial, instruction)
    pictures = run.decide_and_act(first, on_stage)
    look = run.look

    on_stage("scores", 0.95)
    outcome, judged_by = run.judged()
    final = look.base_from_tcp
    reference_tcp = _measured_against(outcome, reference, final)
    evidence = Evidence((answers[0], answers[1]), tuple(corpus), run.first_chunks, reference_tcp, final)
    scores = ports.score(evidence, outcome)
    record = TrialRecord(
        experiment=experiment_id,
        agent=agent.id,
        case=case,
        outcome=outcome,
        **scores.totals,
        steps=run.steps,
        simulated_s=(look.stamp_ns - first.stamp_ns) / 1e9,
        wall_s=time.monotonic() - started,
        error_code=run.error_code,
        error_message=run.error_message,
    )
    details: dict[str, Any] = {
        "id": trial.id,
        "agent": agent.id,
        "vlm": agent.vlm,
        "vla": agent.vla,
        "task": case.task,
        "seed": case.seed,
        "distortion": case.distortion,
        "level": case.level,
        "instruction": instruction,
        "question": question,
        "outcome": outcome.value,
        "success": outcome is Outcome.SUCCESS,
        "judged_by": judged_by,
        "answers": {"reference": answers[0], "distorted": answers[1]},
        "cognition": {**asdict(scores.cognition), "corpus": corpus_version(corpus) if corpus else None},
        "decision": {
            **(asdict(scores.decision) if scores.decision else {}),
            **{
                which: {"deltas": chunk.deltas.tolist(), "step_s": chunk.step_s, "frame": chunk.frame}
                for which, chunk in zip(("reference", "distorted"), run.first_chunks or (), strict=False)
            },
        },
        "execution": {"score": scores.execution, "distance_m": scores.distance_m},
        "path": _rounded(run.path),
        "reference_path": _rounded(reference.path if reference else run.path),
        "final_tcp": final.tolist(),
        "frames": [
            {"step": p.step, "camera": p.camera, "reference": p.file("reference"), "distorted": p.file("distorted")}
            for p in pictures
        ],
        "steps": run.steps,
        "simulated_s": record.simulated_s,
        "wall_s": record.wall_s,
        "error_code": run.error_code,
        "error_message": run.error_message,
    }
    own = ReferenceRun(answers[0], final, tuple(run.path), outcome is Outcome.SUCCESS)
    return TrialReport(record, details, evidence, pictures, own if case.is_reference else None)


def _measured_against(outcome: Outcome, reference: ReferenceRun | None, final: Matrix) -> Matrix | None:
    """A failure cannot be scored where no run did the task: there is nothing to measure a distance from."""
    if reference is not None:
        return reference.base_from_tcp
    return None if outcome is Outcome.FAILURE else final


class _Run:
    """The loop of looking, deciding and acting within one trial."""

    def __init__(self, ports: Ports, spec: ExperimentSpec, trial: Trial, instruction: str) -> None:
        self.ports, self.spec, self.trial, self.instruction = ports, spec, trial, instruction
        policy = POLICIES[trial.agent.vla]
        self.cameras, self.needs_depth = policy.cameras, policy.needs_depth
        self.seed = policy_seed(spec.seed, trial)
        self.first_chunks: tuple[ActionChunk, ActionChunk] | None = None
        self.path: list[tuple[float, float, float]] = []
        self.outcome: Outcome | None = None
        self.steps = 0
        self.error_code, self.error_message = 0, ""
        self.look: Look

    def decide_and_act(self, look: Look, on_stage: Callable[[str, float], None]) -> list[Picture]:
        """Until the model is done, the arm was stopped, or the step limit is reached; `self.look` is the last look."""
        self.look = look
        shown = dict.fromkeys((self.spec.vlm_camera, *self.cameras))
        pictures = [_picture(look, 0, camera) for camera in shown]
        self.path.append(_position(look.base_from_tcp))
        for step in range(self.spec.max_steps):
            if step:
                pictures += [_picture(self.look, step, camera) for camera in self.cameras]
            try:
                chunk = self._act(self.look.distorted, step)
                if step == 0:
                    self.first_chunks = (self._act(self.look.reference, step), chunk)
            except InvalidActionError as error:
                self.outcome, self.error_code, self.error_message = (
                    Outcome.INVALID_ACTION,
                    int(ErrorCode.INVALID_ACTION),
                    str(error),
                )
                break
            on_stage("execution", 0.3 + 0.6 * step / self.spec.max_steps)
            execution = self.ports.execute(chunk, self.look)
            self.steps += 1
            self.path += execution.path
            self._note(execution)
            self.look = self.ports.look()
            if chunk.done or self.outcome is not None:
                break
        return pictures

    def _act(self, views: Mapping[str, CameraView], step: int) -> ActionChunk:
        needed = {camera: views[camera] for camera in self.cameras}
        if not self.needs_depth:  # two thirds more to send, for nothing
            needed = {camera: replace(view, depth_m=None) for camera, view in needed.items()}
        return self.ports.act(self.trial.agent.vla, needed, self.look, self.instruction, step, self.seed)

    def _note(self, execution: Execution) -> None:
        if execution.error_code:
            self.error_code, self.error_message = execution.error_code, execution.error_message
        if execution.error_code in MODEL_ERRORS:
            self.outcome = Outcome.INVALID_ACTION
        elif execution.error_code == ErrorCode.COLLISION:
            self.outcome = Outcome.EMERGENCY_STOP
        elif execution.error_code == ErrorCode.STOPPED:
            raise OperatorStopError(f"the arm was stopped: {execution.error_message}")

    def judged(self) -> tuple[Outcome, str]:
        """How the trial ended, and who says whether the task was done; nobody is asked what is clear already."""
        if self.outcome is not None:
            return self.outcome, ""
        judgement = self.ports.judge(self.trial.id, self.instruction, self.look)
        if judgement.success is None:
            self.error_code, self.error_message = int(ErrorCode.NOT_JUDGED), judgement.message
            return Outcome.INFRASTRUCTURE, judgement.judge
        return Outcome.SUCCESS if judgement.success else Outcome.FAILURE, judgement.judge


def _picture(look: Look, step: int, camera: str) -> Picture:
    return Picture(step, camera, look.reference[camera].color, look.distorted[camera].color)


def _position(pose: Matrix) -> tuple[float, float, float]:
    x, y, z = np.asarray(pose)[:3, 3].tolist()
    return x, y, z


def _rounded(path: Sequence[tuple[float, float, float]]) -> list[list[float]]:
    return [[round(value, 5) for value in point] for point in path]
