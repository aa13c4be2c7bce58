"""The world of a trial over ROS: topics, services and actions of the graph behind the ports.

Used from a worker thread while an executor spins the node; every wait ends by its deadline with an InfrastructureError.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from merton_interfaces.action import AnswerQuestion, ExecuteActions
from merton_interfaces.msg import ActionChunk as ActionChunkMessage
from merton_interfaces.msg import Answer as AnswerMessage
from merton_interfaces.msg import CellState
from merton_interfaces.srv import GetPastState, PredictActions, ResetCell, ScoreTrial, SegmentThings
from numpy.typing import NDArray
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from merton.cognition.models.base import MAX_TOKENS, Answer
from merton.errors import (
    ErrorCode,
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    LoadingError,
    OperatorStopError,
)
from merton.execution.gate.peaks import gripper_intervals
from merton.execution.gate.safety import Limits
from merton.execution.robots.gripper import Gripper
from merton.experiment.ports import SIDES, CellView, Execution, Judgement, Side, StopRule
from merton.experiment.scoring import Evidence, Scores
from merton.results.records import Outcome
from merton.world.action import ActionChunk
from merton.world.cell import ARM_JOINTS, CellConfig
from merton.world.observation import Image as Pixels
from merton.world.observation import Observation
from merton_nodes.cell.operator_desk import OperatorDesk
from merton_nodes.experiment.view_collector import ViewCollector
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names, trial_messages
from merton_nodes.ros.service_caller import ServiceCaller, usable

Result = TypeVar("Result")

LOADING_LIMIT_S = 1800.0
"""Time limit for a model to load at its first request [s]: gigabytes from a slow disk."""
NOT_THE_MODELS_FAULT = (ErrorCode.STALE, ErrorCode.OUT_OF_ORDER)


class RosPorts(ServiceCaller):
    """`merton.experiment.ports.Ports` over the topics, services and actions of the graph.

    Args:
        node: spun by another thread.
        cell: geometry of the cell.
        deadline_s: how long any answer may take [s]; motions get more.
        operator: judges whether a task is done; None leaves that to the cell.
        lockstep: false for cameras that run on their own; see `ViewCollector`.
        reset_limit_s: how long a reset may take [s]; 0 is `deadline_s`.
        renders: whether camera_node renders the cell, which then has sensors, images of the past and pixels of things.

    Attributes:
        knows_scene: the cell itself judges, so that it knows where everything is.
    """

    def __init__(
        self,
        node: Node,
        cell: CellConfig,
        deadline_s: float,
        operator: OperatorDesk | None = None,
        *,
        lockstep: bool = True,
        reset_limit_s: float = 0.0,
        renders: bool = False,
    ) -> None:
        super().__init__(node, deadline_s)
        self.operator = operator
        self.knows_scene = operator is None
        self.lockstep = lockstep
        self.renders = renders
        self.reset_limit_s = reset_limit_s or deadline_s
        self.views = ViewCollector(node, cell, lockstep)
        self.gripper = self.views.gripper
        self.view_stamp_ns = 0  # of the newest view
        self.latency_ns = 0
        self.chunk_begin_ns = 0
        """The beginning of the last chunk, or the reset: no image is older."""
        self.command_trial, self.command_sequence = uuid.uuid4().hex, 0
        """Identify a command to the arm. Not the trial's id: a trial that is run again sends new commands."""
        create_publisher = node.create_publisher
        self.answers = {side: create_publisher(AnswerMessage, names.answers(side), names.KEPT_QOS) for side in SIDES}
        self.chunks = {side: create_publisher(ActionChunkMessage, names.chunks(side), names.KEPT_QOS) for side in SIDES}
        create = node.create_client
        self.reset_cell = create(ResetCell, names.CELL_RESET)
        self.release_collision = create(Trigger, names.RELEASE_COLLISION)
        self.distortion = create(SetParametersAtomically, f"{names.DISTORTION_NODE}/set_parameters_atomically")
        self.stop_rule = create(SetParametersAtomically, f"{names.ARM_NODE}/set_parameters_atomically")
        self.arm_stops_by: StopRule | None = None  # unknown
        self.arm_parameters = create(GetParameters, f"{names.ARM_NODE}/get_parameters")
        self.quality_parameters = create(GetParameters, f"{names.QUALITY_NODE}/get_parameters")
        self.image_gate: tuple[str, float] | None = None
        """Metric and least quality that the graph is known to have."""
        self.past_state = create(GetPastState, names.CELL_PAST_STATE)
        self.segment = create(SegmentThings, names.SEGMENT_THINGS)
        self.sensor = create(SetParametersAtomically, f"{names.CAMERA_NODE}/set_parameters_atomically")
        self.predict = create(PredictActions, names.PREDICT)
        self.scorer = create(ScoreTrial, names.SCORE)
        self.vlm = ActionClient(node, AnswerQuestion, names.ANSWER)
        self.arm = ActionClient(node, ExecuteActions, names.EXECUTE)

    def set_sensor(self, name: str) -> None:
        """Set the parameter of camera_node. Cameras that render no cell are what they are: that is "ideal"."""
        if self.renders:
            self.set_parameters(self.sensor, [Parameter("sensor", value=name)])
        elif name != "ideal":
            raise InfrastructureError(f"the cameras of this cell cannot imitate a sensor {name!r}: choose 'ideal'")

    def set_latency(self, latency_s: float) -> None:
        """As `Ports.set_latency`. Only images that are rendered can be of the past."""
        if latency_s and not self.renders:
            raise InfrastructureError(
                f"this cell has no images of the past, so a latency of {latency_s:g} s is refused"
            )
        self.latency_ns = round(latency_s * 1e9)

    def set_image_gate(self, metric: str, minimum: float) -> None:
        """As `Ports.set_image_gate`. The gate is arm_node's, and set when the graph starts: it must be this one.

        Raises InputError if it is another one.
        """
        if not minimum or self.image_gate == (metric, minimum):
            return
        found = self.parameter_of(self.arm_parameters, "min_image_quality").double_value
        by = self.parameter_of(self.quality_parameters, "metric").string_value if found else metric
        if (by, found) != (metric, minimum):
            raise InputError(
                f"the experiment wants min_image_quality {minimum:g} by {metric}, and in this graph it is {found:g} by "
                f"{by}: start one with --set quality_metric={metric} --set min_image_quality={minimum:g}"
            )
        self.image_gate = metric, minimum

    def parameter_of(self, client: Any, name: str) -> ParameterValue:
        """A parameter of another node."""
        return self.call(client, GetParameters.Request(names=[name])).values[0]

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Set all three parameters of distortion_node at once."""
        parameters = [Parameter("level", value=float(level)), Parameter("seed", value=seed)]
        if level:
            parameters.append(Parameter("name", value=name))
        self.set_parameters(self.distortion, parameters)
        self.views.expect(name if level else "reference", float(level), seed)

    def set_parameters(self, client: Any, parameters: list[Parameter]) -> None:
        """Set parameters of another node at once; raises InfrastructureError if it refuses."""
        request = SetParametersAtomically.Request(parameters=[p.to_parameter_msg() for p in parameters])
        result = self.call(client, request).result
        if not result.successful:
            refused = ", ".join(f"{p.name} {p.value}" for p in parameters)
            raise InfrastructureError(f"{client.srv_name} refused {refused}: {result.reason}")

    def reset(self, task: str, scene: int) -> str:
        """Release a stop that a collision caused, put the cell into the start state, and accept no older view."""
        self.command_trial, self.command_sequence = uuid.uuid4().hex, 0
        released = self.call(self.release_collision, Trigger.Request())
        if not released.success:
            raise OperatorStopError(f"the arm was stopped: {released.message}; call {names.RESET_STOP}, then resume")
        request = ResetCell.Request(task=task, seed=scene, id=self.command_trial)
        state = self.call(self.reset_cell, request, self.reset_limit_s, again=self.lockstep).state
        self.views.minimum_stamp_ns = self.chunk_begin_ns = convert.nanoseconds_of(state.header.stamp)
        self.views.minimum_scene = state.scene
        return str(state.instruction)

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        past = None
        if self.latency_ns and (color is None or color):
            self.views.minimum_stamp_ns = rest_ns = self.views.wait(self.deadline_s, ()).stamp_ns
            past = self.state_at(max(self.chunk_begin_ns, rest_ns - self.latency_ns))
        view = self.views.wait(self.deadline_s, color, depth, past)
        self.view_stamp_ns = view.stamp_ns
        return view

    def state_at(self, stamp_ns: int) -> CellState:
        """The cell as cameras and joint sensors saw it at the newest instant up to `stamp_ns` of the scene."""
        return self.call(self.past_state, GetPastState.Request(stamp=convert.time_message(stamp_ns))).state

    def things(self, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of a camera's image of the newest view that belong to the region "things"."""
        if not self.renders:
            raise InfrastructureError(
                "distort.regions: the images of this cell do not say which pixels show which thing"
            )
        request = SegmentThings.Request(camera=camera, state=self.views.seen)
        return convert.mask_array(self.call(self.segment, request).things)

    def once_loaded(self, ask: Callable[[], Result]) -> Result:
        """The answer of a model, asked again while it is being loaded; raises LoadingError after `LOADING_LIMIT_S`."""
        end_s = time.monotonic() + LOADING_LIMIT_S
        while True:
            try:
                return ask()
            except LoadingError as error:
                if time.monotonic() > end_s:
                    raise
                self.node.get_logger().info(str(error))

    def answer(self, model: str, image: Pixels, question: str, side: Side) -> Answer:
        """Ask vlm_node; raises InvalidAnswerError if the model fails, which is published as no answer."""
        goal = AnswerQuestion.Goal(
            model_id=model, image=convert.color_message(image, 0, ""), question=question, max_tokens=MAX_TOKENS
        )
        result = self.once_loaded(
            lambda: usable(self.act_on(self.vlm, goal, names.ANSWER, self.deadline_s), names.ANSWER)
        )
        self.answers[side].publish(
            AnswerMessage(
                header=convert.header(self.view_stamp_ns, ""),
                model_id=model,
                question=question,
                answer=trial_messages.answer_text(None if result.error_code else result.answer),
                latency=result.latency,
            )
        )
        if result.error_code:
            raise InvalidAnswerError(result.error_msg)
        return Answer(result.answer, convert.nanoseconds_of(result.latency) / 1e9)

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        request = PredictActions.Request(
            model_id=model,
            views=[convert.view_message(view) for view in observation.views.values()],
            state=JointState(name=list(ARM_JOINTS), position=observation.joints.tolist()),
            tcp=convert.pose_stamped(observation.tool, self.view_stamp_ns),
            gripper=observation.opened,
            instruction=observation.instruction,
            step=observation.step,
            seed=observation.noise_seed,
        )
        response = self.once_loaded(lambda: self.call(self.predict, request))
        if response.error_code:
            raise InvalidActionError(response.error_msg)
        chunk = convert.chunk_of(response.chunk)
        self.chunks[side].publish(response.chunk)
        return replace(chunk, images={name: view.stamp_ns for name, view in observation.views.items()})

    def set_stop_rule(self, rule: StopRule) -> None:
        """Set it in arm_node, before every chunk if it is not the node's default, which holds again if it is restarted.

        Raises InfrastructureError if arm_node refuses it.
        """
        if rule == self.arm_stops_by == "gate":
            return
        self.set_parameters(self.stop_rule, [Parameter("stop_rule", value=rule)])
        self.arm_stops_by = rule

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: StopRule = "gate") -> Execution:
        """Send the chunk to arm_node and wait until the arm is at rest; sent twice, it is carried out once."""
        self.set_stop_rule(stop_rule)
        self.command_sequence += 1
        self.chunk_begin_ns = view.stamp_ns
        goal = ExecuteActions.Goal(
            chunk=convert.chunk_message(chunk, view.stamp_ns),
            trial=self.command_trial,
            sequence=self.command_sequence,
            images=[convert.header(at, names.optical_frame(camera)) for camera, at in (chunk.images or {}).items()],
            blind=chunk.images is not None and not chunk.images,
        )
        result = self.act_on(self.arm, goal, names.EXECUTE, longest_s(chunk, self.gripper) + 3 * self.deadline_s)
        if result.error_code >= ErrorCode.INFRASTRUCTURE or result.error_code in NOT_THE_MODELS_FAULT:
            raise InfrastructureError(f"{names.EXECUTE}: {result.error_msg}")
        final_stamp_ns = convert.nanoseconds_of(result.final_pose.header.stamp)
        self.views.minimum_stamp_ns = max(self.views.minimum_stamp_ns, final_stamp_ns)
        path = tuple((p.x, p.y, p.z) for p in result.path)
        return Execution(result.executed, path, result.error_code, result.error_msg)

    def judge(self, trial_id: str, instruction: str, view: CellView) -> Judgement:
        """The operator's judgement, if there is one, else the cell's."""
        if self.operator is None:
            return Judgement(view.success, "cell", progress=view.progress)
        return self.operator.ask(trial_id, instruction)

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        request = ScoreTrial.Request(
            evidence=trial_messages.evidence_message(evidence, 0), outcome=trial_messages.outcome_constant(outcome)
        )
        return trial_messages.scores_of(self.call(self.scorer, request))


def longest_s(chunk: ActionChunk, gripper: Gripper) -> float:
    """The longest time that arm_node may take for a chunk [s]: slowed down, and with every gripper command in full."""
    commands = sum(command is not None for *_, command in gripper_intervals(np.array([np.nan, *chunk.deltas[:, 6]])))
    return Limits().most_slowdown * chunk.step_s * len(chunk.deltas) + gripper.travel_time_s * commands
