"""What a real cell cannot do by itself: a person arranges its scenes; and whether the arm is at rest.

Nothing moves before a person has said that the cell is clear. The way home leads through the gate of arm_node.
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

from merton.errors import InfrastructureError, MertonError
from merton.execution.robots.homing import STEP_S, deltas_home, is_home
from merton.simulation import layout
from merton.simulation.scene import Scene, make_scene
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.cell.messages import cell_state
from merton_nodes.cell.operator_desk import OperatorDesk
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run

PERIOD_S = 0.05
STILL_S, STILL_RAD = 0.15, 0.002
"""An arm at rest has moved no joint by more than this for so long."""
START_S, PATIENCE_S = 60.0, 10.0
"""For the robot's node to start, and for arm_node to answer at all [s]."""
HOME = "home"
"""What the operator is asked about before the arm goes home, in place of a scene."""


class LabCellNode(StageNode):
    """`cell/reset` by the hands of the operator, `cell/state` as far as it is known: nobody knows the objects."""

    def __init__(self, **options: Any) -> None:
        super().__init__("lab_cell_node", **options)

    def set_up(self) -> None:
        """Wire the topics."""
        limit_s = self.parameter(
            "arrangement_limit_s", 600.0, "how long the operator may take for each request [s]", minimum=0.1,
            maximum=3600.0,
        )  # fmt: skip
        self.cell = load_cell()
        self.desk = OperatorDesk(self, limit_s, names.AWAITING_ARRANGEMENT, names.ARRANGED)
        self.scene: Scene | None = None
        self.scenes = 0
        self.under_way: tuple[str, int] | None = None
        self.trouble: Future = Future()
        self.seen: Future = Future()
        """Resolved with the next joint states."""
        self.joints_rad: NDArray[np.float64] | None = None
        self.stamp_ns = self.moved_ns = 0
        self.rested_rad = np.full(6, np.inf)
        self.waiting: list[tuple[Future, float, Future]] = []
        self.state = self.create_publisher(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        self.picture = self.create_publisher(Image, names.WANTED_LAYOUT, names.LATCHED_QOS)
        self.arm = ActionClient(self, ExecuteActions, names.EXECUTE)
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.RELIABLE_QOS)
        self.create_service(ResetCell, names.CELL_RESET, self.on_reset, callback_group=ReentrantCallbackGroup())
        self.every(PERIOD_S, self.look)

    def tear_down(self) -> None:
        """End the action client."""
        if hasattr(self, "arm"):
            self.arm.destroy()

    def on_joints(self, message: JointState) -> None:
        """Where the arm is, and since when it has been there."""
        try:
            self.joints_rad, _ = convert.joints_of(message)
        except MertonError:
            self.counters["dropped joint states"] += 1
            return
        self.stamp_ns = convert.nanoseconds_of(message.header.stamp)
        seen, self.seen = self.seen, Future()
        seen.set_result(None)
        if np.abs(self.joints_rad - self.rested_rad).max() > STILL_RAD:
            self.rested_rad, self.moved_ns = self.joints_rad, self.stamp_ns

    @property
    def at_rest(self) -> bool:
        """Whether the arm stands still, as far as its joints have been seen."""
        return self.joints_rad is not None and self.stamp_ns - self.moved_ns >= STILL_S * 1e9

    def look(self) -> None:
        """Show the state once there is a scene, and end waits that have become too long."""
        if self.scene is not None and self.active:
            self.state.publish(self.state_message())
        now_s = self.get_clock_s()
        for awaited, limit_s, over in self.waiting:
            if (awaited.done() or now_s > limit_s) and not over.done():
                over.set_result(None)
        self.waiting = [entry for entry in self.waiting if not entry[2].done()]

    def get_clock_s(self) -> float:
        """Now, on the monotonic clock [s]."""
        return self.wall_clock.now().nanoseconds / 1e9

    async def within(self, awaited: Future, limit_s: float, what: str) -> Any:
        """The result of a future; raises InfrastructureError if it takes longer."""
        over: Future = Future()
        self.waiting.append((awaited, self.get_clock_s() + limit_s, over))
        await over
        if not awaited.done():
            raise InfrastructureError(f"waited {limit_s:g} s for {what}")
        return awaited.result()

    async def on_reset(self, request: ResetCell.Request, response: ResetCell.Response) -> ResetCell.Response:
        """Service: the arm home, the scene arranged by the operator; answered when both are done, or cannot be."""
        wanted = (request.task, request.seed)
        try:
            scene = make_scene(*wanted)
            if self.under_way is None:
                self.under_way, self.trouble = wanted, Future()
                self.trouble.set_result(await self.trouble_with(scene))
                self.under_way = None
            elif self.under_way != wanted:
                raise InfrastructureError(f"the operator is still being asked about another scene: {self.under_way}")
            if trouble := await self.trouble:  # for a second asker too: an experiment that was killed, and resumed
                raise InfrastructureError(trouble)
        except MertonError as error:
            response.error_code, response.error_msg = 400, str(error)
        if self.scene is not None:
            response.state = self.state_message()
        return response

    async def trouble_with(self, scene: Scene) -> str:
        """What went wrong when a scene was to be prepared; empty if nothing did."""
        try:
            await self.reset(scene)
        except Exception as error:  # whatever it was: somebody waits for an answer, and the next reset must be taken
            return self.explain(error)
        return ""

    async def reset(self, scene: Scene) -> None:
        """Home, if the arm is not there; then the things in their places."""
        if self.joints_rad is None:
            await self.within(self.seen, START_S, f"{names.JOINT_STATES}: is the robot's node running?")
        if not is_home(self.joints_rad, self.cell):
            text = "stand clear, with nobody in reach: the gripper opens, what it holds drops, the arm goes home"
            await self.operator(HOME, text)
            await self.go_home()
        self.scene = None  # from here on hands are in the cell
        stamp_ns = self.get_clock().now().nanoseconds
        self.picture.publish(convert.color_message(layout.draw(scene, self.cell), stamp_ns, names.BASE_FRAME))
        places = layout.places(scene)
        await self.operator(
            f"{scene.task}.{scene.seed}",
            f"arrange the scene of {scene.command.instruction!r}, take your hands out, and stand clear:\n{places}",
        )
        self.scene, self.scenes = scene, self.scenes + 1
        self.stamp_ns = max(self.stamp_ns, self.get_clock().now().nanoseconds)  # what was seen before does not count

    async def operator(self, what: str, text: str) -> None:
        """Ask, and wait for somebody to say that it is done; raises InfrastructureError if it is not."""
        asked: Future = Future()
        threading.Thread(target=lambda: asked.set_result(self.desk.ask(what, text)), daemon=True).start()
        judgement = await self.within(asked, self.desk.limit_s + PATIENCE_S, "the operator")
        if not judgement.judge:
            raise InfrastructureError(f"no operator answered about {what} within {self.desk.limit_s:g} s")
        if not judgement.success:
            raise InfrastructureError(f"{judgement.judge} says that this cannot be done: {what}")
        self.counters["answers of the operator"] += 1

    async def go_home(self) -> None:
        """Home through arm_node's gate; raises InfrastructureError if the arm does not get there."""
        deltas = deltas_home(self.joints_rad, self.cell)
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(checked_chunk(deltas, STEP_S), self.stamp_ns))
        if not self.arm.server_is_ready():
            raise InfrastructureError(f"no node offers {names.EXECUTE}")
        handle = await self.within(self.arm.send_goal_async(goal), PATIENCE_S, names.EXECUTE)
        if not handle.accepted:
            raise InfrastructureError(f"{names.EXECUTE} is busy or not active")
        longest_s = 2 * STEP_S * len(deltas) + 4 * PATIENCE_S
        try:
            result = (await self.within(handle.get_result_async(), longest_s, "the arm to go home")).result
        except InfrastructureError:
            handle.cancel_goal_async()  # nothing moves any more once the reset has been refused
            raise
        if result.error_code:
            raise InfrastructureError(f"the arm did not get home: {result.error_msg}")
        while self.stamp_ns < convert.nanoseconds_of(result.final_pose.header.stamp):
            await self.within(self.seen, PATIENCE_S, names.JOINT_STATES)
        if len(deltas_home(self.joints_rad, self.cell)) > 2:  # a delta up and one across: less than 3 cm each
            raise InfrastructureError("the arm did not get home, though nobody stopped it: look at the robot")
        if not is_home(self.joints_rad, self.cell):
            raise InfrastructureError("the arm is in home's pose, but bent another way: jog its joints home")

    def state_message(self) -> CellState:
        """The scene, and whether the arm is at rest; no objects, and never a success: the operator judges."""
        assert self.scene is not None
        return cell_state(self.scene, self.scenes, self.stamp_ns, at_rest=self.at_rest)


def main() -> None:
    """Entry point."""
    sys.exit(run(LabCellNode))
