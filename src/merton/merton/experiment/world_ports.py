"""The ports of a trial over any world, in one process and without ROS: models, distortions and scores are here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from merton.cognition.final_answer import spoken
from merton.cognition.models.base import MODELS, Answer, ModelEntry, VisionLanguageModel, checked_answer
from merton.decision.models.base import POLICIES, Policy, PolicyEntry
from merton.errors import (
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    is_infrastructure,
    reason_of,
)
from merton.execution.gate.image_quality import ImageQuality, quality_verdict
from merton.execution.gate.safety import Verdict
from merton.experiment.ports import CellView, Execution, Judgement, Side, StopRule
from merton.experiment.scoring import Evidence, Scores, score
from merton.perception.distortion.stream import DistortionSetting
from merton.perception.quality import METRICS, measure
from merton.results.records import Outcome
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import Matrix, as_transported
from merton.world.observation import CameraView, Image, Observation
from merton.worlds.base import (
    DelayedWorld,
    ExpertWorld,
    ForkableWorld,
    KnownWorld,
    RobotState,
    SegmentedWorld,
    SensedWorld,
    World,
)

EXPERT_ROWS = 10
"""Rows of a chunk of a world's own expert. Ours: it looks at the state between two chunks, as a policy at pictures."""
WorldType = TypeVar("WorldType", bound=World)


class WorldPorts(Generic[WorldType]):
    """`merton.experiment.ports.Ports` of a world. A context manager, which closes it.

    Attributes:
        world: where trials happen.
        judge_name: the judge in a trial's report.
        pace: called with a model's entry before it is asked, such as to wait for its rate limit.
    """

    judge_name = "world"
    pace: Callable[[ModelEntry | PolicyEntry], None]

    def __init__(self, world: WorldType) -> None:
        self.world = world
        self.pace = lambda entry: None
        self._setting = DistortionSetting()
        self._image_gate: tuple[str, float] | None = None
        self._policies: dict[tuple[str, Side | None], Policy] = {}
        self._models: dict[str, VisionLanguageModel] = {}

    @property
    def knows_scene(self) -> bool:
        """See `Ports`."""
        return bool({"scene", "expert"} & set(self.world.abilities))

    def reset(self, task: str, scene: int) -> str:
        """See `Ports`; models that keep a state forget it."""
        for policy in self._policies.values():
            policy.begin_trial()
        return self.world.reset(task, scene)

    def set_sensor(self, name: str) -> None:
        """See `Ports`."""
        if isinstance(self.world, SensedWorld):
            self.world.imitate(name)
        elif name != "ideal":
            raise InfrastructureError(f"the cameras of {self.world.name} cannot imitate a sensor: {name}")

    def set_latency(self, latency_s: float) -> None:
        """See `Ports`."""
        if isinstance(self.world, DelayedWorld):
            self.world.set_latency(latency_s)
        elif latency_s:
            raise InfrastructureError(f"{self.world.name} has no pictures of the past, as latency_s needs them")

    def set_image_gate(self, metric: str, minimum: float) -> None:
        """See `Ports`."""
        self._image_gate = (metric, minimum) if minimum else None

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Distort every camera from now on; raises InfrastructureError for an unknown distortion."""
        try:
            self._setting = DistortionSetting(name, level, seed)
        except InputError as error:
            raise InfrastructureError(str(error)) from None

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        """See `Ports`; renders the cameras that are asked for, and no other."""
        state = self._state(is_seen=color is None or bool(color))
        cameras = self.world.camera_names if color is None else color
        reference = {name: self._look(name, depth is None or name in depth) for name in cameras}
        distorted = {name: self._setting.apply_to(view) for name, view in reference.items()}
        judged = self.world.judged()
        return CellView(
            state.time_ns,
            reference,
            distorted,
            state.joints_rad,
            state.base_from_tool,
            state.gripper_open,
            judged.success,
            judged.progress,
            state.point,
            self._robot(state),
        )

    def things(self, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of a camera's newest image that belong to the region "things"."""
        if "things" not in self.world.abilities or not isinstance(self.world, SegmentedWorld):
            raise InfrastructureError(f"{self.world.name} does not know which pixels show which thing")
        return self.world.things(camera)

    def answer(self, model: str, image: Image, question: str, side: Side) -> Answer:
        """Ask a VLM of the catalogue; raises InvalidAnswerError if it fails, or its output is not an answer.

        Raises InfrastructureError if a server, an extra or weights are missing: that says nothing about the model.
        """
        self.pace(MODELS[model])
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
        entry = POLICIES[model]
        self.pace(entry)
        views = observation.views.items()
        policy = self._policy(model, side)
        own_names = dict(zip(entry.among(self.world.camera_names).cameras, entry.cameras, strict=True))
        observation = replace(
            observation,
            views={own_names.get(name, name): _transported_view(view) for name, view in views},
            base_from_tcp=_transported(observation.base_from_tcp),
        )
        if entry.needs_scene:
            observation = self._informed(observation)
        try:
            chunk = policy.act(observation)
            step_s = round(chunk.step_s * 1e9) / 1e9 if np.isfinite(chunk.step_s) else chunk.step_s
            checked = checked_chunk(
                chunk.deltas, step_s, frame=chunk.frame, model=model, latency_s=chunk.latency_s, done=chunk.done
            )
            spread = None if observation.action is None else observation.action.spread
            return replace(checked, images={name: view.stamp_ns for name, view in views}, spread=spread)
        except Exception as error:  # a model may raise anything
            kind = InfrastructureError if is_infrastructure(error) else InvalidActionError
            raise kind(reason_of(error)) from error

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: StopRule = "gate") -> Execution:
        """See `Ports`."""
        if not (refusal := self._images_verdict(chunk, view)).ok:
            return Execution(0, (), int(refusal.code), refusal.message)
        carried = self.world.carry_out(chunk, stop_rule)
        path = tuple((x, y, z) for x, y, z in carried.points.tolist())
        return Execution(carried.rows, path, carried.error_code, carried.error_message, carried.ended)

    def snapshot(self) -> Any:
        """The state between two chunks, for `restore`; raises InputError while the arm is stopped.

        Models have no part in it: they keep no state between calls.
        """
        return self._forkable().save()

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot of these ports."""
        self._forkable().load(snapshot)

    def judge(self, trial_id: str, instruction: str, view: CellView) -> Judgement:
        """See `Ports`: as the world judges."""
        return Judgement(view.success, self.judge_name, progress=view.progress)

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        """See `Ports`."""
        reference, final = _transported(evidence.reference_tcp), _transported(evidence.final_tcp)
        return score(replace(evidence, reference_tcp=reference, final_tcp=final), outcome)

    def _state(self, is_seen: bool) -> RobotState:
        """The state of the robot; `is_seen`: at the instant that pictures show."""
        return self.world.state()

    def _look(self, camera: str, depth: bool) -> CameraView:
        """A view, with depth if the world has it."""
        return self.world.look(camera, depth and "depth" in self.world.abilities)

    def _robot(self, state: RobotState) -> dict[str, Any]:
        """The parts of an observation that the UR5 cell does not have."""
        if self.world.action is None:
            return {}
        return {"action": self.world.action, "rest_row": state.rest_row, "extra": state.extra}

    def _policy(self, model: str, side: Side) -> Policy:
        """The policy of a name; of one that keeps a state between calls, the one of this side."""
        key = model, side if POLICIES[model].stateful else None
        if key not in self._policies:
            self._policies[key] = POLICIES[model].build()
        return self._policies[key]

    def _informed(self, observation: Observation) -> Observation:
        """With all that the world knows, for a yardstick alone."""
        if isinstance(self.world, KnownWorld):
            return replace(observation, scene=self.world.scene_state())
        if "expert" in self.world.abilities and isinstance(self.world, ExpertWorld):
            return replace(observation, expert=partial(self.world.expert, EXPERT_ROWS))
        return observation

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

    def _forkable(self) -> ForkableWorld:
        if "fork" not in self.world.abilities or not isinstance(self.world, ForkableWorld):
            raise InputError(f"{self.world.name} cannot go back to an earlier instant")
        return self.world

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release world and models; the ports cannot be used afterwards."""
        self._models.clear()
        self._policies.clear()
        self.world.close()


def _transported(pose: Matrix | None) -> Matrix | None:
    """A pose as a message carries it; None of a robot that has none."""
    return None if pose is None else as_transported(pose)


def _transported_view(view: CameraView) -> CameraView:
    return replace(view, base_from_camera=_transported(view.base_from_camera))
