"""One trial, from the reset of the scene to its scores, over any ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.base import question_for
from merton.cognition.unanswered import unanswered
from merton.errors import (
    GATE_ERRORS,
    ErrorCode,
    InfrastructureError,
    InvalidActionError,
    InvalidAnswerError,
    OperatorStopError,
)
from merton.experiment.plan import DistortedPart, ExperimentSpec, Trial, distortion_seed, policy_seed
from merton.experiment.ports import (
    SIDES,
    STAGES,
    CellView,
    Execution,
    Judgement,
    Ports,
    Region,
    SegmentingPorts,
    Side,
    Stage,
)
from merton.experiment.scoring import Evidence, ToolPath
from merton.experiment.trial_report import ReferenceRun, TrialPicture, TrialReport
from merton.perception.distortion import TEMPORAL_FAULTS
from merton.perception.distortion.temporal import FaultyStream
from merton.results.records import Outcome, Reference, TrialRecord
from merton.world.action import ActionChunk
from merton.world.observation import CameraView

__all__ = ["ReferenceRun", "TrialPicture", "TrialReport", "TrialRun", "rounded", "run_trial"]


def run_trial(
    ports: Ports,
    spec: ExperimentSpec,
    experiment_id: str,
    trial: Trial,
    reference: ReferenceRun | None,
    corpus: Sequence[str],
    on_stage: Callable[[str, float], None] = lambda stage, progress: None,
    whose: Reference = Reference.OWN,
) -> TrialReport:
    """Run one trial.

    Args:
        spec: the experiment the trial belongs to (step limit, seed, the VLM's camera, the design).
        experiment_id: goes into the record.
        trial: agent and case.
        reference: the run to measure against; None for the first reference run of a scene, which then is its own, and
            where there is none.
        corpus: all reference answers of the VLM, for CIDEr; may be empty while those are being collected.
        on_stage: called with the stage's name and the progress 0..1.
        whose: whose run `reference` is; NONE if no undistorted run did the task, so that there is no execution score.

    Raises:
        InfrastructureError: some part of the world did not answer. Nothing about the agent follows from that.
        OperatorStopError: a person stopped the arm. Nothing about the agent follows from that either.
    """
    on_stage("perception", 0.0)
    run = TrialRun(ports, spec, trial).complete(on_stage)
    on_stage("scores", 0.95)
    return run.report(experiment_id, reference, corpus, whose)


Shown = tuple[Side, tuple[Region, ...]]
"""A side of an image, and the regions in which it is distorted."""


def sides_shown(distort: DistortedPart, cameras: Sequence[str], vlm_camera: str, step: int) -> tuple[Shown, ...]:
    """The images that the models are shown at a step of a distorted trial: the policy's, and at step 0 the VLM's."""
    shown: list[Side] = [distort.side("distorted", "decision", name, step) for name in cameras]
    if step == 0:
        shown.append(distort.side("distorted", "cognition", vlm_camera, 0))
    return tuple((side, distort.regions if side == "distorted" else ()) for side in shown)


class TrialRun:
    """A trial under way. Making one distorts the cameras, resets the cell and takes the first view.

    Attributes:
        spec: the experiment, with the part of the images that is distorted from now on.
        steps: chunks carried out, and so the number of the next step.
        over: the model is done, the arm was stopped, or the step limit is reached.
        ended: why the world has ended the trial, such as "success" or "step limit"; empty if it has not.
        waited_ns: simulated time for which the arm has stood still because its next chunk was not there yet [ns].
    """

    def __init__(self, ports: Ports, spec: ExperimentSpec, trial: Trial) -> None:
        self.ports, self.spec, self.trial, self.agent = ports, spec, trial, trial.agent
        self.started_s, case = time.monotonic(), trial.case
        ports.set_sensor(spec.sensor)
        ports.set_latency(spec.latency_s)
        ports.set_image_gate(spec.quality_metric, spec.min_image_quality)
        seed = distortion_seed(spec.seed, case)
        self.stream: FaultyStream | None = None
        if case.distortion in TEMPORAL_FAULTS:
            self.stream = FaultyStream(case.distortion, case.level, seed)
        ports.set_distortion(*("reference", 0) if self.stream else (case.distortion, case.level), seed)
        self.instruction = ports.reset(case.task, case.seed)
        self.instructions: dict[Side, str | None] = dict.fromkeys(SIDES, self.instruction)
        self.question = question_for(self.instruction, spec.prompt)
        self.noise_seed = policy_seed(spec.seed, trial.agent.id, trial.case.task, trial.case.seed)
        policy = self.spec.vla_entry(self.agent.vla)
        self.cameras = policy.cameras
        self.depth_cameras = self.cameras if policy.needs_depth else ()
        self.waited_ns = 0
        self.view = self._look(tuple(dict.fromkeys((spec.vlm_camera, *self.cameras))))
        self.start_ns = self.view.stamp_ns
        self.answers: tuple[str | None, str | None] = (None, None)
        self.unanswered: dict[Side, str] = {}
        self.first_chunks: tuple[ActionChunk, ActionChunk] | None = None
        self.path: list[tuple[float, float, float]] = [self.view.point] if self.view.point else []
        self.pictures: list[TrialPicture] = []
        self.outcome: Outcome | None = None
        self.steps, self.over, self.ended = 0, False, ""
        self.cut_short = False
        self.error_code, self.error_message = 0, ""

    def take_step(self, on_stage: Callable[[str, float], None] = lambda stage, progress: None) -> None:
        """Ask the VLM, at step 0 alone; then decide, and carry the chunk out."""
        if self.steps == 0:
            on_stage("cognition", 0.1)
            self._ask()
            on_stage("decision", 0.2)
        step = self.steps
        self._keep_pictures(step)
        try:
            chunk = self._decide("distorted", step)
        except InvalidActionError as error:
            self.outcome, self.over = Outcome.INVALID_ACTION, True
            self.error_code, self.error_message = int(ErrorCode.INVALID_ACTION), str(error)
            return
        if step == 0:
            self._compare(chunk)
        on_stage("execution", 0.3 + 0.6 * step / self.spec.max_steps)
        execution = self.ports.execute(chunk, self.view, self.spec.stop_rule)
        self.steps += 1
        self.path += execution.path
        self._update_outcome(execution)
        self.ended = execution.ended
        self.over = chunk.done or bool(self.ended or self.outcome) or self.steps == self.spec.max_steps
        # the final pose is measured, nothing is looked at
        self.view = self.ports.view((), ()) if self.over else self._look(self.cameras)

    def complete(self, on_stage: Callable[[str, float], None] = lambda stage, progress: None) -> Self:
        """Take steps until the run is over."""
        while not self.over:
            self.take_step(on_stage)
        return self

    def sides(self, spec: ExperimentSpec) -> tuple[Shown, ...]:
        """`sides_shown` at the next step if the experiment were `spec`."""
        return sides_shown(spec.distort, self.cameras, spec.vlm_camera, self.steps)

    def fork(self, spec: ExperimentSpec) -> TrialRun:
        """The same run so far, going on as one of `spec`, which may distort another part from here on."""
        forked = copy(self)
        forked.spec, forked.path, forked.pictures = spec, list(self.path), list(self.pictures)
        forked.stream, forked.mixed = self.stream and self.stream.fork(), {}
        return forked

    def report(
        self, experiment_id: str, reference: ReferenceRun | None, corpus: Sequence[str], whose: Reference
    ) -> TrialReport:
        """All results of a run that is over; arguments as of `run_trial`."""
        outcome, judgement = self._judge()
        final_tcp, path = self.view.base_from_tcp, rounded(self.path)
        if reference is None and whose is not Reference.NONE and outcome is not Outcome.FAILURE:  # it is its own
            reference = ReferenceRun(self.answers[0], final_tcp, path, bool(outcome.success))
        evidence = Evidence(
            self.answers,
            tuple(corpus),
            self.first_chunks,
            reference.base_from_tcp if reference else None,
            final_tcp,
            reference.path if reference else (),
            path,
            judgement.progress,
        )
        scores = self.ports.score(evidence, outcome)
        code, message = self._errors()
        record = TrialRecord(
            experiment=experiment_id,
            agent=self.agent.id,
            case=self.trial.case,
            outcome=outcome,
            **scores.totals,
            reference=whose if reference else Reference.NONE,
            reference_success=reference.success if reference else None,
            cut_short=self.cut_short,
            steps=self.steps,
            simulated_s=(self.view.stamp_ns - self.start_ns + self.waited_ns) / 1e9,
            wall_s=time.monotonic() - self.started_s,
            error_code=code,
            error_message=message,
        )
        texts, pictures = (self.instruction, self.question, judgement.judge), tuple(self.pictures)
        return TrialReport(self.trial, record, evidence, scores, *texts, pictures, self.unanswered, self.ended)

    def _look(self, cameras: Sequence[str]) -> CellView:
        """The next view of the cameras. A fault of time takes the place of the distortion.

        For the part of the latency in which no motion was under way the arm waits for the chunk: `waited_ns`. Nothing
        else moves then, so the cell stands still meanwhile.
        """
        view = self.ports.view(cameras, self.depth_cameras)
        if self.spec.latency_s:
            taken_ns = min((seen.stamp_ns for seen in view.reference.values()), default=view.stamp_ns)
            self.waited_ns += max(0, round(self.spec.latency_s * 1e9) - (view.stamp_ns - taken_ns))
        self.things: dict[str, NDArray[np.bool_]] = {}
        self.mixed: dict[str, CameraView] = {}
        if self.stream is None:
            return view
        return replace(view, distorted={name: self.stream.next(seen) for name, seen in view.reference.items()})

    def _ask(self) -> None:
        """The VLM's answers to the reference and to the distorted image, and why there is none.

        A refusal and two texts without a word are no answers: two silences are not agreement.
        """
        camera = self.spec.vlm_camera
        said: dict[Side, str | None] = dict.fromkeys(SIDES)
        failed: dict[Side, str] = {}
        for side in SIDES:
            image = self._shown(side, "cognition", (camera,), 0)[camera].color
            try:
                said[side] = self.ports.answer(self.agent.vlm, image, self.question, side).text
            except InvalidAnswerError as error:
                failed[side] = str(error)
        reasons = unanswered(*(said[side] for side in SIDES))
        for side, reason in zip(SIDES, reasons, strict=True):
            if reason:
                said[side], failed[side] = None, reason
        self.answers, self.unanswered = (said["reference"], said["distorted"]), failed
        if self.spec.couple is not None:
            self.instructions = said

    def _compare(self, chunk: ActionChunk) -> None:
        """Keep the pair of first chunks. Without one on the reference images there is none, and the run goes on."""
        try:
            self.first_chunks = (self._decide("reference", 0), chunk)
        except InvalidActionError as error:
            self.error_code = int(ErrorCode.INVALID_ACTION)
            self.error_message = f"no decision on the reference images to compare with: {error}"

    def _decide(self, side: Side, step: int) -> ActionChunk:
        """The VLA's chunk on one side of the view, of which it gets the cameras it names.

        Raises InvalidActionError if it cannot be used, or if the VLM gave no answer to act on.
        """
        instruction = self.instructions[side]
        if instruction is None:
            raise InvalidActionError(f"without an answer {self.agent.vla} has no instruction")
        observation = self.view.observation(side, instruction, step, self.noise_seed)
        views = self._shown(side, "decision", self.cameras, step)
        return self.ports.act(self.agent.vla, replace(observation, views=views), side)

    def _shown(self, side: Side, stage: Stage, cameras: Sequence[str], step: int) -> dict[str, CameraView]:
        """The views that a model of the stage is shown: undistorted ones outside of the distorted part."""
        part = self.spec.distort
        sides = {camera: part.side(side, stage, camera, step) for camera in cameras}
        is_mixed = not part.is_whole_image and not self.trial.case.is_reference
        return {
            camera: self._mixed(camera) if is_mixed and chosen == "distorted" else self.view.images(chosen)[camera]
            for camera, chosen in sides.items()
        }

    def _mixed(self, camera: str) -> CameraView:
        """The view of a camera that is distorted in one region alone, made once for all who look at it."""
        if camera in self.mixed:
            return self.mixed[camera]
        if camera not in self.things:
            if not isinstance(self.ports, SegmentingPorts):
                raise InfrastructureError("distort.regions: this cell does not know which pixels show which thing")
            self.things[camera] = self.ports.things(camera)
        inside = self.things[camera] if "things" in self.spec.distort.regions else ~self.things[camera]
        reference, distorted = self.view.reference[camera], self.view.distorted[camera]
        depth_m = reference.depth_m
        if depth_m is not None and distorted.depth_m is not None:
            depth_m = np.where(inside, distorted.depth_m, depth_m)
        color = np.where(inside[..., None], distorted.color, reference.color)
        self.mixed[camera] = replace(reference, color=color, depth_m=depth_m)
        return self.mixed[camera]

    def _update_outcome(self, execution: Execution) -> None:
        """Error and outcome that follow from how a chunk was executed."""
        if execution.error_code:
            self.error_code, self.error_message = execution.error_code, execution.error_message
        self.cut_short |= execution.error_code in GATE_ERRORS
        self.outcome = execution.outcome
        if execution.error_code == ErrorCode.STOPPED:
            raise OperatorStopError(f"the arm was stopped: {execution.error_message}")

    def _errors(self) -> tuple[int, str]:
        """Code and sentences of the record. Ours: the first failure has the code, unless the trial is to be judged."""
        code, sentences = self.error_code, [self.error_message]
        if self.unanswered:
            code = code if code == ErrorCode.NOT_JUDGED else int(ErrorCode.NO_ANSWER)
            sentences.insert(0, f"{self.agent.vlm} gave no answer {_to_images(self.unanswered)}")
        return code, "; ".join(filter(None, sentences))

    def _judge(self) -> tuple[Outcome, Judgement]:
        """The outcome and its judgement; without a judge for an outcome that follows from the execution."""
        if self.outcome is not None:
            return self.outcome, Judgement(None, "")
        judgement = self.ports.judge(self.trial.id, self.instruction, self.view)
        if judgement.success is None:
            self.error_code, self.error_message = int(ErrorCode.NOT_JUDGED), judgement.message
            return Outcome.INFRASTRUCTURE, judgement
        return Outcome.SUCCESS if judgement.success else Outcome.FAILURE, judgement

    def _keep_pictures(self, step: int) -> None:
        """Keep the images of the view as the models see them: distorted if any of them sees a distorted one."""
        for camera in self.view.reference:
            lookers = {"cognition": (self.spec.vlm_camera,) if step == 0 else (), "decision": self.cameras}
            shown = [
                self._shown("distorted", stage, (camera,), step)[camera].color
                for stage in STAGES
                if camera in lookers[stage]
            ]
            reference = self.view.reference[camera].color
            distorted = next((color for color in shown if color is not reference), reference)
            self.pictures.append(TrialPicture(step, camera, reference, distorted))


def _to_images(reasons: Mapping[Side, str]) -> str:
    """The images that have no answer, and why."""
    if len(reasons) == 2 and len(set(reasons.values())) == 1:
        return f"to either image: {reasons['distorted']}"
    return "; ".join(f"to the {side} image: {reason}" for side, reason in reasons.items())


def rounded(path: Sequence[tuple[float, float, float]]) -> ToolPath:
    """A path to a hundredth of a millimetre, as trial.json keeps it: a resumed run reads the same."""
    return tuple((round(x, 5), round(y, 5), round(z, 5)) for x, y, z in path)
