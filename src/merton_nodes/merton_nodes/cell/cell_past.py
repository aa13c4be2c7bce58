"""The recent past of the embedded cell, for pictures that are older than the motion they lead to."""

from __future__ import annotations

from merton_interfaces.srv import GetPastState
from sensor_msgs.msg import JointState

from merton.errors import ErrorCode
from merton.simulation.cell import SimulatedCell
from merton.simulation.delay import LONGEST_LATENCY_S, DelayLine, Instant
from merton_nodes.cell.messages import cell_state
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode


class CellPast:
    """Keeps the instants of a scene as far back as a latency may reach, and serves `cell/past_state`.

    Args:
        node: gets the service.
        cell: its owner calls `begin_scene` after each reset, and `add` after each slice of physics.
    """

    def __init__(self, node: StageNode, cell: SimulatedCell) -> None:
        self.cell = cell
        self.scenes = 0
        self.line: DelayLine | None = None
        node.create_service(GetPastState, names.CELL_PAST_STATE, self.on_past_state)

    def begin_scene(self, number: int) -> None:
        """Forget everything before the present instant, the first of the `number`-th scene of this cell."""
        self.scenes, self.line = number, DelayLine(LONGEST_LATENCY_S, Instant.of(self.cell))

    def add(self) -> None:
        """Keep the present instant."""
        assert self.line is not None
        self.line.add(Instant.of(self.cell))

    def on_past_state(self, request: GetPastState.Request, response: GetPastState.Response) -> GetPastState.Response:
        """Service: what cameras and joint sensors show of an instant."""
        if self.line is None or self.cell.scene is None:
            response.error_code, response.error_msg = ErrorCode.INFRASTRUCTURE, "the cell has no scene yet"
            return response
        instant = self.line.at(convert.nanoseconds_of(request.stamp))
        joints = joints_message(instant, linkage=self.cell.config.gripper.linkage)
        response.state = cell_state(self.cell.scene, self.scenes, joints, at_rest=False, qpos=instant.qpos.tolist())
        return response


def joints_message(instant: Instant, *, linkage: bool) -> JointState:
    """The joint states of an instant, of a cell with or without the gripper's linkage."""
    return convert.joint_state_message(
        instant.time_ns, instant.joints_rad, instant.joint_velocities, instant.gripper_opening_m, linkage=linkage
    )
