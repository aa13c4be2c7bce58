"""The lab's cell: an operator arranges its scenes; joint states show whether the arm is at rest.

Nothing moves before the operator has confirmed that the cell is clear. The way home leads through the gate of arm_node.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import CellState
from merton_interfaces.srv import ResetCell
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from sensor_msgs.msg import Image, JointState

from merton.errors import ErrorCode, InfrastructureError, MertonError
from merton.execution.robots.homing import STEP_S, deltas_home, is_home
from merton.execution.stillness import Stillness
from merton.simulation import layout
from merton.simulation.scene import Scene, make_plain_scene
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.cell.messages import cell_state
from merton_nodes.cell.operator_desk import OperatorDesk
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run
from merton_nodes.ros.waits import Waits

PERIOD_S = 0.05
STILL_S = 0.15
"""Time without movement after which the arm counts as at rest [s]."""
START_S, TIMEOUT_S = 60.0, 10.0
"""Timeouts of the robot's node to start, and of arm_node to answer [s]."""
HOME = "home"
"""Name of the request before the arm goes home, in place of a scene's."""


class LabCellNode(StageNode):
    """`cell/reset` through the operator, and `cell/state` without objects, whose places a real cell does not know."""

    def __init__(self, **options: Any) -> None:
        super().__init__("lab_cell_node", sole_topic=names.CELL_STATE, **options)

    def set_up(self) -> None:
        limit_s = self.parameter(
            "arrangement_limit_s",
            600.0,
            "how long the operator may take for each request [s]",
            minimum=0.1,
            maximum=3600.0,
        )
        self.cell = load_cell()
        self.desk = OperatorDesk(self, limit_s, names.AWAITING_ARRANGEMENT, names.ARRANGED)
        self.scene: Scene | None = None
        self.scenes = 0
        self.requested: tuple[str, int] | None = None
        """Task and seed of the reset in progress."""
        self.reset_error: Future = Future()
        """Resolved with the sentence of its error, empty if there was none."""
        self.waits = Waits(self)
        self.joints = JointState()
        self.joints_rad: NDArray[np.float64] | None = None
        self.stamp_ns = 0
        self.stillness = Stillness()
        self.state = self.create_publisher(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        self.layout_publisher = self.create_publisher(Image, names.WANTED_LAYOUT, names.LATCHED_QOS)
        self.arm = ActionClient(self, ExecuteActions, names.EXECUTE)
        self.closing.callback(self.arm.destroy)
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.RELIABLE_QOS)
        self.create_service(ResetCell, names.CELL_RESET, self.on_reset, callback_group=ReentrantCallbackGroup())
        self.create_timer_s(PERIOD_S, self.publish_state)

    def unfinished(self) -> str:
        return "a reset is under way" if self.requested is not None else ""

    def on_joints(self, message: JointState) -> None:
        """Store the joint states, and how long the arm has stood still."""
        try:
            self.joints_rad, _ = convert.joints_of(message)
        except MertonError:
            self.counters["dropped joint states"] += 1
            return
        self.joints, self.stamp_ns = message, convert.nanoseconds_of(message.header.stamp)
        self.stillness.update(self.joints_rad, self.stamp_ns)
        self.waits.check()

    def publish_state(self) -> None:
        if self.scene is not None and self.active:
            self.state.publish(self.state_message())

    async def on_reset(self, request: ResetCell.Request, response: ResetCell.Response) -> ResetCell.Response:
        """Service: send the arm home, have the operator arrange the scene; answered when both are done or one failed.

        A second request for the same scene, such as that of an experiment killed and resumed, gets the same answer.
        """
        wanted = (request.task, request.seed)
        try:
            scene = make_plain_scene(*wanted, "the lab")
            if self.requested is None:
                self.requested, self.reset_error = wanted, Future()
                self.reset_error.set_result(await self.error_of_reset(scene))
                self.requested = None
            elif self.requested != wanted:
                raise InfrastructureError(f"the operator is still being asked about another scene: {self.requested}")
            if error := await self.reset_error:
                raise InfrastructureError(error)
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.RESET_REFUSED, str(error)
        if self.scene is not None:
            response.state = self.state_message()
        return response

    async def error_of_reset(self, scene: Scene) -> str:
        """Prepare a scene; returns the sentence of the error, empty if there was none."""
        try:
            await self.reset(scene)
        except Exception as error:  # of any type: the client waits for an answer, and the next reset must start
            return self.describe(error)
        return ""

    async def reset(self, scene: Scene) -> None:
        """Send the arm home, if it is not there; then have the scene arranged."""
        await self.waits.require(
            lambda: self.joints_rad is not None, START_S, f"{names.JOINT_STATES}: is the robot's node running?"
        )
        assert self.joints_rad is not None
        if not is_home(self.joints_rad, self.cell):
            text = "stand clear, with no person in reach: the gripper opens, what it holds drops, the arm goes home"
            await self.ask_operator(HOME, text)
            await self.go_home()
        self.scene = None  # from here on hands are in the cell
        stamp_ns = self.get_clock().now().nanoseconds
        self.layout_publisher.publish(convert.color_message(layout.draw(scene, self.cell), stamp_ns, names.BASE_FRAME))
        places = layout.places(scene)
        await self.ask_operator(
            f"{scene.task}.{scene.seed}",
            f"arrange the scene of {scene.command.instruction!r}, take your hands out, and stand clear:\n{places}",
        )
        self.scene, self.scenes = scene, self.scenes + 1
        self.stamp_ns = max(self.stamp_ns, self.get_clock().now().nanoseconds)  # a frame from before does not count

    async def ask_operator(self, what: str, text: str) -> None:
        """Have the operator do something; raises InfrastructureError unless they confirm it."""
        answer: Future = Future()
        threading.Thread(target=lambda: answer.set_result(self.desk.ask(what, text)), daemon=True).start()
        judgement = await self.waits.result(answer, self.desk.limit_s + TIMEOUT_S, "the operator")
        if not judgement.judge:
            raise InfrastructureError(f"no operator answered about {what} within {self.desk.limit_s:g} s")
        if not judgement.success:
            raise InfrastructureError(f"{judgement.judge} says that this cannot be done: {what}")
        self.counters["answers of the operator"] += 1

    async def go_home(self) -> None:
        """Send the arm home through arm_node's gate; raises InfrastructureError if it does not get there."""
        assert self.joints_rad is not None
        arrival_ns = await self.execute(deltas_home(self.joints_rad, self.cell))
        await self.waits.require(lambda: self.stamp_ns >= arrival_ns, TIMEOUT_S, names.JOINT_STATES)
        if len(deltas_home(self.joints_rad, self.cell)) > 2:  # a delta up and one across: less than 3 cm each
            raise InfrastructureError("the arm did not get home, though it was not stopped: look at the robot")
        if not is_home(self.joints_rad, self.cell):
            raise InfrastructureError("the arm is in home's pose, but bent another way: jog its joints home")

    async def execute(self, deltas: NDArray[np.float64]) -> int:
        """Have arm_node carry out deltas (n, 7) of `STEP_S`; returns the stamp of its final pose [ns].

        Raises:
            InfrastructureError: arm_node is absent or busy, refuses, or takes too long: then the motion is cancelled.
        """
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(checked_chunk(deltas, STEP_S), self.stamp_ns))
        if not self.arm.server_is_ready():
            raise InfrastructureError(f"no node offers {names.EXECUTE}")
        handle = await self.waits.result(self.arm.send_goal_async(goal), TIMEOUT_S, names.EXECUTE)
        if not handle.accepted:
            raise InfrastructureError(f"{names.EXECUTE} is busy or not active")
        limit_s = 2 * STEP_S * len(deltas) + 4 * TIMEOUT_S
        try:
            result = (await self.waits.result(handle.get_result_async(), limit_s, "the arm to go home")).result
        except InfrastructureError:
            handle.cancel_goal_async()  # nothing may move after the refusal of the reset
            raise
        if result.error_code:
            raise InfrastructureError(f"the arm did not get home: {result.error_msg}")
        return convert.nanoseconds_of(result.final_pose.header.stamp)

    def state_message(self) -> CellState:
        """The scene, and whether the arm is at rest; no objects, and never a success: the operator judges."""
        assert self.scene is not None
        at_rest = self.joints_rad is not None and self.stillness.duration_s >= STILL_S
        return cell_state(self.scene, self.scenes, self.joints, at_rest=at_rest)


def main() -> None:
    sys.exit(run(LabCellNode))
