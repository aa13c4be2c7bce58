"""The embedded MuJoCo cell behind the topics of the hardware: the arm of the cell with its gripper.

Lockstep: physics runs while something is commanded to move, as fast as it can, then the clock stands still. It stands
as well while the commander's heartbeat is silent: the motion is late then, and goes on as if nothing had happened.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from merton_interfaces.msg import CellState, SafetyState
from merton_interfaces.srv import ResetCell
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import ErrorCode, InputError, MertonError
from merton.execution.robots.watchdog import Watchdog
from merton.simulation.cell import SimulatedCell
from merton.simulation.delay import Instant
from merton.simulation.model import urdf
from merton.world.cell import ARM_JOINTS
from merton_nodes.cell.cell_past import CellPast, joints_message
from merton_nodes.cell.guarded_commands import GuardedCommands
from merton_nodes.cell.messages import cell_safety, cell_state, is_carried_out, spline_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.declared_cell import declared_cell
from merton_nodes.ros.runtime import StageNode, run

SLICE_S = 0.02
"""Physics between two rounds of callbacks [s of simulated time]: how late a stop may take effect."""


class MujocoCellNode(StageNode):
    """The embedded cell as a set of ROS interfaces."""

    def __init__(self, **options: Any) -> None:
        super().__init__("mujoco_cell_node", sole_topic=names.JOINT_STATES, **options)

    def set_up(self) -> None:
        self.real_time_factor = self.parameter(
            "real_time_factor", 0.0, "pace of simulated time; 0 runs as fast as it can", minimum=0.0, maximum=100.0
        )
        rate_hz = self.parameter(
            "state_rate_hz",
            2.0,
            "cell/state per simulated second during motion; watched cameras render each",
            minimum=0.1,
            maximum=50.0,
        )
        idle_s = self.parameter(
            "idle_period_s", 0.2, "pause between repetitions at rest [s]", minimum=0.02, maximum=10.0
        )
        heartbeat_timeout_s = self.parameter(
            "heartbeat_timeout_s",
            0.5,
            "wall time without arm/heartbeat after which the clock stands until the next one [s]; 0: never",
            minimum=0.0,
            maximum=60.0,
        )
        self.commander = ""
        """The process whose heartbeat came last."""
        self.waits_for_heartbeat = False
        """Whether the clock stands in the middle of a motion."""
        self.watchdog = Watchdog([names.HEARTBEAT], heartbeat_timeout_s) if heartbeat_timeout_s else None
        self.fault = ""
        self.state_period_ns = round(1e9 / rate_hz)
        self.cell = SimulatedCell(linkage=declared_cell(self).gripper.linkage)
        self.scenes, self.reset_id = 0, ""
        self.next_state_ns = 0
        self.reported_stop = False
        self.clock_publisher = self.create_publisher(ClockMessage, names.CLOCK, names.RELIABLE_QOS)
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.JOINTS_QOS)
        self.state = self.create_publisher(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        self.safety = self.create_publisher(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.description = self.create_publisher(String, names.ROBOT_DESCRIPTION, names.LATCHED_QOS)
        self.guarded = GuardedCommands(self, self.on_trajectory, self.on_gripper)
        if self.watchdog is not None:
            self.create_subscription(Header, names.HEARTBEAT, self.on_heartbeat, names.RELIABLE_QOS)
        self.create_service(ResetCell, names.CELL_RESET, self.on_reset)
        self.create_service(Trigger, names.CELL_RELEASE, self.on_release)
        self.past = CellPast(self, self.cell)
        pause_s = SLICE_S / self.real_time_factor if self.real_time_factor else 1e-4
        self.motion = self.create_timer_s(pause_s, self.advance, autostart=False)
        self.idle = self.create_timer_s(idle_s, self.publish_all)

    def start(self) -> None:
        self.description.publish(String(data=urdf(linkage=self.cell.config.gripper.linkage)))
        self.reset("reach", 0)

    def reset(self, task: str, seed: int) -> None:
        """Put the cell into a scene and publish it; raises InputError while it is held for a fault."""
        if self.fault:
            raise InputError(f"the arm is held, {self.fault}: call {names.RESET_STOP} first")
        self.cell.reset(task, seed)
        self.scenes += 1
        self.past.begin_scene(self.scenes)
        self.motion.cancel()
        self.waits_for_heartbeat = False
        self.publish_safety()
        self.publish_all()

    def on_reset(self, request: ResetCell.Request, response: ResetCell.Response) -> ResetCell.Response:
        """Service: start state of a scene."""
        try:
            if not is_carried_out(request, self.reset_id):
                self.reset(request.task, request.seed)
                self.reset_id = request.id
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.RESET_REFUSED, str(error)
        if self.scenes:
            response.state = self.state_message()
        return response

    def on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: let the arm move again after a stop."""
        self.cell.release_stop()
        self.fault = ""
        self.publish_safety()
        response.success = True
        return response

    def on_trajectory(self, message: JointTrajectory) -> None:
        """A new trajectory replaces the running one; an empty one stops the arm where it is, until the next."""
        if not self.active:
            return
        if not message.points:
            self.cell.halt()
        elif list(message.joint_names) != list(ARM_JOINTS):
            self.counters["dropped trajectories with other joints"] += 1
            return
        else:
            try:
                spline = spline_of(message)
                self.cell.command_trajectory(spline.times_s, spline.joints_rad, spline.velocities_rad_s)
            except MertonError as error:
                self.counters["dropped malformed trajectories"] += 1
                self.get_logger().warning(str(error))
                return
        self.publish_safety()
        self.move()

    def on_gripper(self, message: Float64MultiArray) -> None:
        """One number: the position of the finger joint [m], half the opening."""
        if not self.active or len(message.data) != 1 or not np.isfinite(message.data[0]):
            self.counters["dropped gripper commands"] += 1
            return
        self.cell.command_gripper(2 * float(message.data[0]))
        self.move()

    def move(self) -> None:
        """Let physics run; from now on the commander's heartbeat is required."""
        if self.watchdog is not None and self.motion.is_canceled():
            self.watchdog.start()
        self.waits_for_heartbeat = False
        self.motion.reset()

    def on_heartbeat(self, message: Header) -> None:
        """The commander is alive; another one than before has not commanded the motion under way, which ends."""
        assert self.watchdog is not None
        self.watchdog.feed(names.HEARTBEAT)
        if self.cell.busy and not self.cell.stopped and self.commander not in ("", message.frame_id):
            self.fault = "arm_node was started again during a motion"
            self.counters["errors: motions held"] += 1
            self.cell.stop()
        self.commander = message.frame_id
        if self.waits_for_heartbeat:
            self.move()

    def advance(self) -> None:
        """One slice of physics; at the end of the motion everything is published and the clock stops."""
        if self.watchdog is not None and self.watchdog.silence(time.monotonic()):
            self.waits_for_heartbeat = True
            self.counters["waits for the heartbeat"] += 1
            self.motion.cancel()
            return
        self.cell.advance(SLICE_S)
        self.past.add()
        if self.cell.stopped != self.reported_stop:
            self.publish_safety()
        if not self.cell.busy:
            self.motion.cancel()
            self.idle.reset()
            self.publish_all()
            return
        self.publish_joints()
        if self.cell.time_ns >= self.next_state_ns:
            self.state.publish(self.state_message())
            self.next_state_ns = self.cell.time_ns + self.state_period_ns

    def joints_message(self) -> JointState:
        return joints_message(Instant.of(self.cell), linkage=self.cell.config.gripper.linkage)

    def publish_joints(self) -> None:
        """Publish joint states, as a robot does all the time, and the clock to its subscribers, if there are any."""
        if self.clock_publisher.get_subscription_count():
            self.clock_publisher.publish(ClockMessage(clock=convert.time_message(self.cell.time_ns)))
        self.joints.publish(self.joints_message())

    def publish_all(self) -> None:
        """At rest, publish joint states and the cell's state; repeatedly, for subscribers that come late.

        In motion both come from `advance` alone: joint states with the stamp of the last mean that the clock stands.
        """
        if self.scenes and not self.cell.busy:
            self.publish_joints()
            self.state.publish(self.state_message())

    def state_message(self) -> CellState:
        """The simulator's own knowledge."""
        cell = self.cell
        assert cell.scene is not None
        return cell_state(
            cell.scene,
            self.scenes,
            self.joints_message(),
            at_rest=not cell.busy,
            objects=cell.scene_state(),
            qpos=cell.qpos.tolist(),
            judged=cell.judged(),
        )

    def publish_safety(self) -> None:
        """Publish the contact that stopped the arm, or the fault for which the cell holds it."""
        contact = self.cell.contact
        if contact is not None:
            self.counters["contacts"] += not self.reported_stop
        mode = SafetyState.FAULT if self.fault else SafetyState.NORMAL
        self.reported_stop = self.cell.stopped
        self.safety.publish(cell_safety(self.cell.time_ns, contact, mode, self.fault))


def main() -> None:
    sys.exit(run(MujocoCellNode))
