"""The world of a trial over ROS: what it asks of nodes, and looks that wait for every camera.

Used from a worker thread while an executor spins the node; every wait ends by its deadline with an InfrastructureError.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
from merton_interfaces.action import AnswerQuestion, ExecuteActions
from merton_interfaces.msg import ActionChunk as ActionChunkMessage
from merton_interfaces.msg import Answer as AnswerMessage
from merton_interfaces.msg import CellState, DistortionInfo
from merton_interfaces.srv import PredictActions, ResetCell, ScoreTrial
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_srvs.srv import Trigger

from merton.cognition.models.base import Answer
from merton.errors import (
    MODEL_ERRORS,
    ErrorCode,
    InfrastructureError,
    InputError,
    InvalidActionError,
    OperatorStopError,
)
from merton.execution.gate.peaks import parts
from merton.execution.gate.safety import Limits
from merton.execution.kinematics import BASE_LINK_FROM_BASE, UR5, base_from_tcp
from merton.execution.robots.gripper import Gripper
from merton.experiment.ports import Execution, Judgement, Look
from merton.experiment.scoring import Evidence, Scores
from merton.results.records import Outcome
from merton.world.action import ActionChunk
from merton.world.cell import ARM_JOINTS, CellConfig
from merton.world.observation import CameraView
from merton.world.observation import Image as Pixels
from merton_nodes.cameras.free_cameras import PARTS, FreeCameras
from merton_nodes.cell.operator_desk import OperatorDesk
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.asking import Asking
from merton_nodes.ros.latest import Latest

NOT_THE_MODELS_FAULT = (ErrorCode.STALE, ErrorCode.OUT_OF_ORDER)


class RosPorts(Asking):
    """`merton.experiment.ports.Ports` over the topics, services and actions of the graph.

    Args:
        node: spun by somebody else.
        cell: geometry of the cell.
        deadline_s: how long any answer may take; motions get more.
        operator: judges whether a task is done; None leaves that to the cell.
        lockstep: whether all that is seen of an instant has one stamp; else cameras run on their own, and anything they
            saw since the cell came to rest will do.
        reset_limit_s: how long a reset may take; 0 is `deadline_s`.
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
    ) -> None:
        super().__init__(node, deadline_s)
        self.cell, self.operator = cell, operator
        self.reset_limit_s = reset_limit_s or deadline_s
        self.free_cameras = None if lockstep else FreeCameras(cell.camera_names)
        self.rested_ns = 0
        """With cameras that run on their own: since when the cell has been seen at rest in this look; 0 if not yet."""
        self.gripper = Gripper.from_cell(cell)
        self.latest = Latest()
        self.wanted: tuple[str, float, int] = ("reference", 0.0, 0)
        self.minimum_stamp_ns = 0
        self.minimum_scene = 0
        self.command_trial, self.command_sequence = uuid.uuid4().hex, 0
        """What the arm knows a command by. Not the trial's id: a trial that is run again sends new commands."""
        self.subscribe()
        self.looked: Look | None = None
        sides = ("reference", "distorted")
        self.said = {s: node.create_publisher(AnswerMessage, names.answers(s), names.KEPT_QOS) for s in sides}
        self.decided = {s: node.create_publisher(ActionChunkMessage, names.chunks(s), names.KEPT_QOS) for s in sides}
        create = node.create_client
        self.reset_cell = create(ResetCell, names.CELL_RESET)
        self.release_collision = create(Trigger, names.RELEASE_COLLISION)
        self.distortion = create(SetParametersAtomically, f"{names.DISTORTION_NODE}/set_parameters_atomically")
        self.predict = create(PredictActions, names.PREDICT)
        self.scorer = create(ScoreTrial, names.SCORE)
        self.answers = ActionClient(node, AnswerQuestion, names.ANSWER)
        self.arm = ActionClient(node, ExecuteActions, names.EXECUTE)

    def subscribe(self) -> None:
        """Keep the newest of everything a look needs."""
        sub, keep = self.node.create_subscription, self.latest.keep
        sub(CellState, names.CELL_STATE, keep("state"), names.RELIABLE_QOS)
        sub(JointState, names.JOINT_STATES, keep("joints"), names.RELIABLE_QOS)
        for camera in self.cell.camera_names:
            kinds = (Image, Image, CameraInfo, Image, DistortionInfo)
            topics = (
                names.color(camera), names.depth(camera), names.color_info(camera), names.distorted(camera),
                names.distortion_info(camera),
            )  # fmt: skip
            for part, kind, topic in zip(PARTS, kinds, topics, strict=True):
                callback = keep(f"{camera} {part}")
                if self.free_cameras is not None:
                    callback = self.latest.keep_with(self.free_cameras.add, camera, part)
                sub(kind, topic, callback, names.SENSOR_QOS)

    # merton.experiment.ports.Ports

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Set all three parameters of distortion_node at once."""
        parameters = [Parameter("level", value=float(level)), Parameter("seed", value=seed)]
        if level:
            parameters.append(Parameter("name", value=name))
        request = SetParametersAtomically.Request(parameters=[p.to_parameter_msg() for p in parameters])
        response = self.call(self.distortion, request)
        if not response.result.successful:
            raise InfrastructureError(f"distortion_node refused {name} {level}: {response.result.reason}")
        self.wanted = (name if level else "reference", float(level), seed)

    def reset(self, task: str, scene: int) -> str:
        """Release a stop that a collision caused, put the cell into the start state, forget everything older."""
        self.command_trial, self.command_sequence = uuid.uuid4().hex, 0
        released = self.call(self.release_collision, Trigger.Request())
        if not released.success:
            raise OperatorStopError(f"the arm was stopped: {released.message}; call {names.RESET_STOP}, then resume")
        request = ResetCell.Request(task=task, seed=scene)
        state = self.call(self.reset_cell, request, self.reset_limit_s, again=self.free_cameras is None).state
        self.minimum_stamp_ns, self.minimum_scene = convert.nanoseconds_of(state.header.stamp), state.scene
        return str(state.instruction)

    def look(self) -> Look:
        """Wait for a cell at rest, joint states and all images of that very instant, distorted as wanted.

        With cameras that run on their own: of any instant since it was seen at rest.
        """
        self.rested_ns = 0
        self.looked = self.latest.wait(self.complete_look, self.deadline_s, self.missing)
        return self.looked

    def side(self, image: Pixels) -> str:
        """Whether an image is a "reference" or a "distorted" one of the last look."""
        views = self.looked.reference.values() if self.looked else ()
        return "reference" if any(image is view.color for view in views) else "distorted"

    def complete_look(self, messages: dict[str, Any]) -> Look | None:
        """A look, if everything it needs carries the stamp of the state at rest."""
        state = messages.get("state")
        if state is None or not state.at_rest or state.scene < self.minimum_scene:
            self.rested_ns = 0
            return None
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        if stamp_ns < self.minimum_stamp_ns:
            return None
        if self.free_cameras is not None:
            self.rested_ns = self.rested_ns or stamp_ns
            messages = {**messages, **self.free_cameras.messages(self.rested_ns, self.wanted)}
            if self.unseen(messages):
                return None
            stamp_ns = min(
                convert.nanoseconds_of(messages[f"{camera} color"].header.stamp) for camera in self.cell.camera_names
            )
        elif self.stale(stamp_ns):
            return None
        try:
            return self.look_at(state, stamp_ns, messages)
        except InputError as error:
            raise InfrastructureError(f"the cell sends what cannot be used: {error}") from None

    def look_at(self, state: CellState, stamp_ns: int, messages: dict[str, Any]) -> Look:
        """The messages of one instant as a look."""
        joints, opening_m = convert.joints_of(messages["joints"])
        base_from_tool0 = BASE_LINK_FROM_BASE @ UR5.forward(joints)
        reference, distorted = {}, {}
        for camera in self.cell.camera_names:
            reference[camera] = CameraView(
                camera,
                convert.color_array(messages[f"{camera} color"]),
                convert.depth_array(messages[f"{camera} depth"]),
                convert.intrinsics_of(messages[f"{camera} camera_info"]),
                self.cell.base_from_camera(camera, base_from_tool0),
                stamp_ns,
            )
            view = reference[camera]
            distorted[camera] = CameraView(
                camera, convert.color_array(messages[f"{camera} distorted"]),
                view.depth_m, view.intrinsics, view.base_from_camera, stamp_ns,
            )  # fmt: skip
        return Look(
            stamp_ns,
            reference,
            distorted,
            joints,
            base_from_tcp(joints, self.cell.tool0_from_tcp),
            self.gripper.gripper_open(opening_m),
            bool(state.success),
        )

    def unseen(self, messages: dict[str, Any]) -> list[str]:
        """Which cameras that run on their own, or joints, have not been seen since the cell came to rest."""
        assert self.free_cameras is not None
        joints = messages.get("joints")
        late = joints is None or convert.nanoseconds_of(joints.header.stamp) < self.rested_ns
        return self.free_cameras.unseen(self.rested_ns, self.wanted) + ["the joints"] * late

    def stale(self, stamp_ns: int) -> list[str]:
        """What has not been seen with this stamp, or not distorted as wanted."""
        keys = ["joints"]
        for camera in self.cell.camera_names:
            keys += [f"{camera} {part}" for part in PARTS]
        messages = self.latest.messages

        def fits(key: str) -> bool:
            message = messages.get(key)
            if message is None or convert.nanoseconds_of(message.header.stamp) != stamp_ns:
                return False
            is_info = key.endswith("distortion info")
            return not is_info or (message.name, message.level, message.seed) == self.wanted

        return [key for key in keys if not fits(key)]

    def missing(self) -> str:
        """What a look is still waiting for, in words."""
        state = self.latest.messages.get("state")
        if state is None:
            return f"{names.CELL_STATE}, which nobody publishes"
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        if not state.at_rest or stamp_ns < self.minimum_stamp_ns or state.scene < self.minimum_scene:
            return "the cell to come to rest"
        if self.free_cameras is not None:
            return "anything seen since the cell came to rest of " + ", ".join(self.unseen(self.latest.messages))
        return "images and joint states of one instant; stale: " + ", ".join(self.stale(stamp_ns))

    def answer(self, model: str, image: Pixels, question: str) -> Answer:
        """Ask vlm_node; a model that fails answers nothing, which scores as such."""
        goal = AnswerQuestion.Goal(
            model_id=model, image=convert.color_message(image, 0, ""), question=question, max_tokens=32
        )
        result = self.act_on(self.answers, goal, names.ANSWER, self.deadline_s)
        if result.error_code and result.error_code not in MODEL_ERRORS:
            raise InfrastructureError(f"{names.ANSWER}: {result.error_msg}")
        stamp_ns = self.looked.stamp_ns if self.looked else 0
        self.said[self.side(image)].publish(
            AnswerMessage(
                header=convert.header(stamp_ns, ""),
                model_id=model, question=question, answer=result.answer, latency=result.latency,
            )
        )  # fmt: skip
        return Answer(result.answer, convert.nanoseconds_of(result.latency) / 1e9)

    def act(
        self, model: str, views: Mapping[str, CameraView], look: Look, instruction: str, step: int, seed: int
    ) -> ActionChunk:
        """Ask vla_node."""
        request = PredictActions.Request(
            model_id=model,
            views=[convert.view_message(view) for view in views.values()],
            state=JointState(name=list(ARM_JOINTS), position=look.joints_rad.tolist()),
            tcp=convert.pose_stamped(look.base_from_tcp, look.stamp_ns),
            gripper=look.gripper_open,
            instruction=instruction,
            step=step,
            seed=seed,
        )
        response = self.call(self.predict, request)
        if response.error_code:
            raise InvalidActionError(response.error_msg)
        chunk = convert.chunk_of(response.chunk)
        shown = [view.color for view in views.values()]
        self.decided[self.side(shown[0]) if shown else "distorted"].publish(response.chunk)
        return chunk

    def execute(self, chunk: ActionChunk, look: Look) -> Execution:
        """Send the chunk to arm_node and wait for the arm to rest; sent twice, it is carried out once."""
        self.command_sequence += 1
        goal = ExecuteActions.Goal(
            chunk=convert.chunk_message(chunk, look.stamp_ns), trial=self.command_trial, sequence=self.command_sequence
        )
        result = self.act_on(self.arm, goal, names.EXECUTE, longest_s(chunk, self.gripper) + 3 * self.deadline_s)
        if result.error_code >= ErrorCode.INFRASTRUCTURE or result.error_code in NOT_THE_MODELS_FAULT:
            raise InfrastructureError(f"{names.EXECUTE}: {result.error_msg}")
        self.minimum_stamp_ns = max(self.minimum_stamp_ns, convert.nanoseconds_of(result.final_pose.header.stamp))
        path = tuple((p.x, p.y, p.z) for p in result.path)
        return Execution(result.executed, path, result.error_code, result.error_msg)

    def judge(self, trial_id: str, instruction: str, look: Look) -> Judgement:
        """What the operator says, if there is one, else what the cell says."""
        if self.operator is None:
            return Judgement(look.success, "cell")
        return self.operator.ask(trial_id, instruction)

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        """Call scorer_node."""
        request = ScoreTrial.Request(
            evidence=convert.evidence_message(evidence, 0), outcome=convert.outcome_constant(outcome)
        )
        return convert.scores_of(self.call(self.scorer, request))


def longest_s(chunk: ActionChunk, gripper: Gripper) -> float:
    """How long arm_node may take to carry out a chunk that it slows down, and whose gripper moves [s]."""
    commands = sum(command is not None for *_, command in parts(np.array([np.nan, *chunk.deltas[:, 6]])))
    return Limits().most_slowdown * chunk.step_s * len(chunk.deltas) + gripper.travel_time_s * commands
