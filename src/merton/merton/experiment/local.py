"""The world of a trial in one process, without ROS: for tests, tuning and quick studies.

It does everything as the nodes do, including the rounding of their messages, so that a trial has the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from merton.cognition.final_answer import spoken
from merton.cognition.models.base import MODELS, Answer, VisionLanguageModel, checked_answer
from merton.decision.models.base import POLICIES, Policy
from merton.errors import (
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    is_infrastructure,
    reason_of,
)
from merton.execution.gate.carrying import Carrying, Grip, Hand, Move, PredictedStop, Step
from merton.execution.gate.image_quality import ImageQuality, quality_verdict
from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.gate.stop import StopEvent
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.execution.robots.gripper import Gripper
from merton.experiment.ports import CellView, Execution, Judgement, Side, StopRule
from merton.experiment.scoring import Evidence, Scores, score
from merton.perception.distortion.stream import DistortionSetting
from merton.perception.quality import METRICS, measure
from merton.results.records import Outcome
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell, Snapshot
from merton.simulation.delay import DelayLine, Instant
from merton.simulation.sensor import SENSORS, AutoExposure
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import Matrix, as_transported
from merton.world.observation import Image, Observation, SceneObject, SceneState, whole_millimetres

SLICE_S = 0.02
"""Simulated time between two points of the path, as the cell's node reports its joints [s]."""


@dataclass(frozen=True)
class LocalSnapshot:
    """The state of `LocalPorts` between two chunks: cell, what the cameras saw last, and what the hand holds."""

    cell: Snapshot
    exposures: Mapping[str, AutoExposure]
    past: DelayLine
    hand: Hand


class LocalPorts:
    """`merton.experiment.ports.Ports` of a simulated cell in this process. A context manager, which closes it.

    Args:
        linkage: the gripper has the linkage of the real one; else its fingers slide.

    Attributes:
        on_slice: called after every slice of `SLICE_S` of motion, such as by a film of the cell; it changes nothing.

    Raises:
        MissingDependencyError: this machine cannot render off screen.
    """

    knows_scene = True

    def __init__(self, *, linkage: bool = False) -> None:
        self.cell = SimulatedCell(linkage=linkage)
        self.cameras = SceneCameras(linkage=linkage)
        self.gripper = Gripper.from_cell(self.cell.config)
        self.latch = EmergencyStopLatch()
        self.limits = Limits()
        self._hand = self._new_hand()
        self._latency_s = 0.0
        self._past = self._new_past()
        self._setting = DistortionSetting()
        self._image_gate: tuple[str, float] | None = None
        self._policies: dict[str, Policy] = {}
        self._models: dict[str, VisionLanguageModel] = {}
        self._path: list[tuple[float, float, float]] = []
        self.on_slice: Callable[[], None] = lambda: None

    def reset(self, task: str, scene: int) -> str:
        self.latch.reset(StopEvent.RESET_BY_EXPERIMENT)
        instruction = self.cell.reset(task, scene).command.instruction
        self.cameras.begin_scene()
        self._hand = self._new_hand()
        self._past = self._new_past()
        return instruction

    def set_sensor(self, name: str) -> None:
        self.cameras.imitate(SENSORS[name])

    def set_latency(self, latency_s: float) -> None:
        """Have views show the cell as it was `latency_s` before, to a slice of `SLICE_S`, from the next reset on."""
        self._latency_s = latency_s

    def set_image_gate(self, metric: str, minimum: float) -> None:
        self._image_gate = (metric, minimum) if minimum else None

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Distort every camera from now on; raises InfrastructureError for an unknown distortion."""
        try:
            self._setting = DistortionSetting(name, level, seed)
        except InputError as error:
            raise InfrastructureError(str(error)) from None

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        cell, color = self.cell, self.cameras.names if color is None else color
        if cell.scene is None:
            raise InfrastructureError("the cell has no scene yet: reset it first")
        seen, scene = self._seen() if color else Instant.of(cell), cell.scene
        base_from_tool0 = kinematics_of(cell.config).forward(seen.joints_rad)
        reference, distorted = {}, {}
        for name in color:
            deep = depth is None or name in depth
            speeds = seen.joint_velocities
            view = self.cameras.render(
                scene.task, scene.seed, seen.qpos, name, seen.time_ns, depth=deep, joint_velocities=speeds
            )
            self.cameras.keep_exposure(name)
            pose = cell.config.base_from_camera(name, base_from_tool0)
            depth_m = None if view.depth_m is None else whole_millimetres(view.depth_m)
            reference[name] = replace(view, depth_m=depth_m, base_from_camera=pose)
            distorted[name] = self._setting.apply_to(reference[name])
        opened = self.gripper.gripper_open(seen.gripper_opening_m)
        tcp = base_from_tcp(seen.joints_rad, cell.config)
        return CellView(cell.time_ns, reference, distorted, seen.joints_rad, tcp, opened, *cell.judged())

    def things(self, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of a camera's newest image that belong to the region "things"."""
        if self.cell.scene is None:
            raise InfrastructureError("the cell has no scene yet: reset it first")
        return self.cameras.things(self.cell.scene.task, self.cell.scene.seed, self._seen().qpos, camera)

    def answer(self, model: str, image: Image, question: str, side: Side) -> Answer:
        """Ask a VLM of the catalogue; raises InvalidAnswerError if it fails, or its output is not an answer.

        Raises InfrastructureError if a server, an extra or weights are missing: that says nothing about the model.
        """
        if model not in self._models:
            self._models[model] = MODELS[model].build()
        try:
            limit = MODELS[model].limit()
            return spoken(checked_answer(self._models[model].answer([image], question, limit), model), limit)
        except Exception as error:  # a model may raise anything
            kind = InfrastructureError if is_infrastructure(error) else InvalidAnswerError
            raise kind(reason_of(error)) from error

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        """Have a policy of the catalogue decide; raises InvalidActionError for everything it cannot do.

        Raises InfrastructureError if a server, an extra or weights are missing.
        """
        if model not in self._policies:
            self._policies[model] = POLICIES[model].build()
        views = observation.views.items()
        observation = replace(
            observation,
            views={name: replace(view, base_from_camera=as_transported(view.base_from_camera)) for name, view in views},
            base_from_tcp=as_transported(observation.base_from_tcp),
            scene=self._scene() if POLICIES[model].needs_scene else None,
        )
        try:
            chunk = self._policies[model].act(observation)
            step_s = round(chunk.step_s * 1e9) / 1e9 if np.isfinite(chunk.step_s) else chunk.step_s
            checked = checked_chunk(
                chunk.deltas, step_s, frame=chunk.frame, model=model, latency_s=chunk.latency_s, done=chunk.done
            )
            return replace(checked, images={name: view.stamp_ns for name, view in views})
        except Exception as error:  # a model may raise anything
            kind = InfrastructureError if is_infrastructure(error) else InvalidActionError
            raise kind(reason_of(error)) from error

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: StopRule = "gate") -> Execution:
        """Carry out a chunk in lockstep; a stop by prediction or by contact ends it and latches."""
        self._path, self._past = [], self._new_past()
        self._latch_contact()
        if self.latch.tripped:
            return Execution(0, (), int(self.latch.stop.verdict.code), self.latch.reason)
        if not (refusal := self._images_verdict(chunk, view)).ok:
            return Execution(0, (), int(refusal.code), refusal.message)
        until_contact = stop_rule == "contact"
        carrying = Carrying(
            chunk, self.cell.joints_rad, self._hand, self.cell.config, self.limits, until_contact=until_contact
        )
        for step in carrying.steps(lambda: self.latch.tripped):
            self._carry_out(step)
        motion, verdict = carrying.motion, carrying.motion.verdict
        if self.latch.tripped:
            return Execution(0, tuple(self._path), int(self.latch.stop.verdict.code), self.latch.reason)
        return Execution(motion.executed, tuple(self._path), int(verdict.code), verdict.message)

    def _images_verdict(self, chunk: ActionChunk, view: CellView) -> Verdict:
        """The verdict on the images that the chunk was decided on, as arm_node's."""
        if self._image_gate is None:
            return Verdict()
        if chunk.images is None:
            return quality_verdict(self._image_gate[1], None)
        metric, minimum = self._image_gate
        better = METRICS[metric].better == "higher"
        qualities = {
            camera: ImageQuality(measure(metric, view.distorted[camera].color), metric, better)
            for camera in chunk.images
        }
        return quality_verdict(minimum, qualities)

    def snapshot(self) -> LocalSnapshot:
        """The state between two chunks, for `restore`; raises InputError while the arm is stopped.

        Models have no part in it: they keep no state between calls.
        """
        if self.latch.tripped:
            raise InputError(f"no trial can go on from here: {self.latch.reason}")
        return LocalSnapshot(self.cell.snapshot(), self.cameras.exposures(), self._past.fork(), copy(self._hand))

    def restore(self, snapshot: LocalSnapshot) -> None:
        """Go back to a snapshot of these ports; a stop of the run in between is released."""
        self.latch.reset(StopEvent.RESET_BY_EXPERIMENT)
        self.cell.restore(snapshot.cell)
        self.cameras.restore_exposures(snapshot.exposures)
        self._past, self._hand = snapshot.past.fork(), copy(snapshot.hand)

    def judge(self, trial_id: str, instruction: str, view: CellView) -> Judgement:
        return Judgement(view.success, "cell", progress=view.progress)

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        reference = evidence.reference_tcp
        reference = None if reference is None else as_transported(reference)
        return score(replace(evidence, reference_tcp=reference, final_tcp=as_transported(evidence.final_tcp)), outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the drawing context and the models; the ports cannot be used afterwards."""
        self._models.clear()
        self._policies.clear()
        self.cameras.close()

    def _tcp(self) -> Matrix:
        return base_from_tcp(self.cell.joints_rad, self.cell.config)

    def _scene(self) -> SceneState:
        objects = self.cell.scene_state().objects
        return SceneState(tuple(SceneObject(item.name, as_transported(item.base_from_object)) for item in objects))

    def _new_hand(self) -> Hand:
        return Hand(self.gripper, lambda: self.cell.gripper_opening_m, self._tcp)

    def _new_past(self) -> DelayLine:
        """The past of a motion that begins now."""
        return DelayLine(self._latency_s, Instant.of(self.cell))

    def _seen(self) -> Instant:
        """The instant that images show."""
        return self._past.seen if self._latency_s else Instant.of(self.cell)

    def _carry_out(self, step: Step) -> None:
        """One step of a chunk, until everything has settled."""
        match step:
            case Grip(segment) if segment.gripper is not None:
                self.cell.command_gripper(self.gripper.opening_m(segment.gripper))
            case Move(segment) if segment.moves:
                times_s = np.rint(segment.times_s * 1e9).astype(np.int64) / 1e9
                self.cell.command_trajectory(times_s, segment.joints_rad, segment.velocities_rad_s)
            case PredictedStop(verdict):
                self.latch.trip(StopEvent.COLLISION_PREDICTED, verdict.message, self.cell.halt)
            case _:
                return
        self._run()

    def _run(self) -> None:
        """Physics until everything commanded has been done and has settled."""
        while self.cell.busy:
            self.cell.advance(SLICE_S)
            if self._latency_s:
                self._past.add(Instant.of(self.cell))
            x, y, z = self._tcp()[:3, 3].tolist()
            self._path.append((x, y, z))
            self._latch_contact()
            self.on_slice()

    def _latch_contact(self) -> None:
        """A contact that the cell reports latches the stop."""
        if (contact := self.cell.contact) is not None:
            self.latch.trip(StopEvent.CELL_COLLISION, str(contact))
