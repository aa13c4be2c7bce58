"""Makes a cell of Gazebo: adds scenes, their state, the stop at a contact, and the lockstep.

From the first reset on simulated time passes only while something is commanded to move. Where it stops the cameras take
a frame: joint states, images and `cell/state` then have one stamp, as in the embedded cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from merton_interfaces.msg import CellState, SafetyState
from merton_interfaces.srv import ResetCell
from rclpy.callback_groups import ReentrantCallbackGroup
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import ErrorCode, InfrastructureError, MertonError
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.gripper import Gripper
from merton.simulation.gazebo import FRAME_PERIOD_S, Judge, Touch, Touches, gazebo_scene, moving_models
from merton.simulation.gazebo_props import movable_props
from merton.simulation.scene import Scene
from merton.world.geometry import Array
from merton_nodes.cell.gazebo_cameras import GazeboCameras
from merton_nodes.cell.gazebo_fingers import GazeboFingers
from merton_nodes.cell.gazebo_joints import GazeboJoints
from merton_nodes.cell.gazebo_things import GazeboThings
from merton_nodes.cell.gazebo_watch import GazeboWatch
from merton_nodes.cell.gazebo_world import GazeboWorld
from merton_nodes.cell.guarded_commands import GuardedCommands
from merton_nodes.cell.lockstep import Lockstep
from merton_nodes.cell.messages import arm_state_of, cell_safety, cell_state, is_carried_out, motion_to, stop_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.declared_cell import declared_cell
from merton_nodes.ros.runtime import StageNode, run
from merton_nodes.ros.waits import Waits

PERIOD_NS = round(FRAME_PERIOD_S * 1e9)
SLICE_NS = 20_000_000
"""Ours: the controllers' time, which they get by messages, is late by some ms of it even on a busy machine."""
HOME_RAD_S, HOME_TOLERANCE_RAD, ATTEMPTS = 1.0, 0.02, 3
MARGIN_S, SETTLE_S = 0.1, 0.5
"""Greatest delay of a command to a controller; time for objects to settle that were just placed [s simulated]."""


class GazeboCellNode(StageNode):
    """Scenes, safety state and time of the cell in Gazebo; its controllers and bridges do the rest."""

    def __init__(self, make_world: Callable[..., Any] = GazeboWorld, **options: Any) -> None:
        super().__init__("gazebo_cell_node", sole_topic=names.JOINT_STATES, **options)
        self.make_world = make_world

    def set_up(self) -> None:
        idle_s = self.parameter(
            "idle_period_s", 0.5, "wall time between two frames while nothing moves [s]", minimum=0.1, maximum=60.0
        )
        self.patience_s = self.parameter(
            "patience_s", 30.0, "wall time after which Gazebo counts as dead [s]", minimum=1.0, maximum=600.0
        )
        self.cell = declared_cell(self)
        self.gripper_times = Gripper.from_cell(self.cell)
        self.touches, self.judge = Touches(self.cell), Judge(self.cell)
        self.joints = JointState()
        self.joints_rad: Array | None = None
        self.scenes, self.reset_id, self.resetting = 0, "", False
        self.world = self.make_world(self, self.cell, self.on_touches)
        self.time = Lockstep(self.run_to, PERIOD_NS, SLICE_NS, "joints")
        self.cameras = GazeboCameras(self, self.world, self.time, self.cell, partial(self.pass_time, "renderer"))
        self.waits = Waits(self)
        self.things = GazeboThings(self.world, self.time, self.waits, self.cell, self.patience_s)
        self.arm = self.create_publisher(JointTrajectory, names.GAZEBO_ARM, names.RELIABLE_QOS)
        self.fingers = GazeboFingers(self, self.cell)
        self.state = self.create_publisher(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        self.safety = self.create_publisher(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        GazeboJoints(self, self.on_joints)
        self.guarded = GuardedCommands(self, self.on_trajectory, self.on_gripper)
        for model in (*moving_models(), *movable_props()):
            topic = names.gazebo_pose(model)
            self.create_subscription(PoseStamped, topic, partial(self.on_pose, model), names.RELIABLE_QOS)
        self.create_service(ResetCell, names.CELL_RESET, self.on_reset, callback_group=ReentrantCallbackGroup())
        self.create_service(Trigger, names.CELL_RELEASE, self.on_release)
        self.create_timer_s(idle_s, self.idle)
        GazeboWatch(self, self.time, self.patience_s)

    def start(self) -> None:
        self.publish_safety()

    def on_joints(self, message: JointState, joints_rad: Array, stamp_ns: int) -> None:
        self.joints, self.joints_rad = message, joints_rad
        self.pass_time("joints", stamp_ns)

    def run_to(self, stamp_ns: int) -> None:
        """Let time pass up to an instant [ns], after what has happened until now."""
        self.world.take_touches()
        self.world.run_to(stamp_ns)

    def pass_time(self, source: str, stamp_ns: int) -> None:
        """Update the time by a message of Gazebo; publish the state once the requested time has passed."""
        if ended := self.time.update(source, stamp_ns):
            self.world.take_touches()
        self.waits.check()
        if ended and not self.resetting:
            self.cameras.take_frames()
            self.publish_state()

    def idle(self) -> None:
        """Another frame, for late subscribers; one before time is under control, as the very first one is black."""
        if self.active and not self.time.engaged:
            self.cameras.take_frames()
        elif self.active and self.time.stands and not self.resetting:
            self.time.run_for(0.0)

    def on_trajectory(self, message: JointTrajectory) -> None:
        """Pass a motion on; an empty one is a halt, which the controller itself would not understand."""
        if not message.points or self.touches.stopped:
            self.halt()
        else:
            self.carry_out(message)

    def on_gripper(self, message: Float64MultiArray) -> None:
        """Move the fingers, and let time pass for it."""
        self.move_fingers(2 * message.data[0])
        self.time.run_for(self.gripper_times.travel_time_s + MARGIN_S)

    def move_fingers(self, opening_m: float) -> None:
        """Open or close the gripper [m]; the caller lets time pass."""
        self.fingers.move(opening_m, convert.joints_of(self.joints)[1])

    def halt(self) -> None:
        """Brake the arm."""
        if self.joints_rad is not None:
            self.carry_out(stop_of(*arm_state_of(self.joints)))

    def carry_out(self, motion: JointTrajectory) -> None:
        """Give the arm's controller a motion, in place of the one under way, and let time pass for it."""
        self.arm.publish(motion)
        travel_s = convert.nanoseconds_of(motion.points[-1].time_from_start) / 1e9
        self.time.run_for(travel_s + self.cell.simulation.settle_s + MARGIN_S)

    def on_touches(self, touches: list[Touch], stamp_ns: int) -> None:
        """Update the contacts of the robot's links; one with table or wall stops it, except during a reset."""
        if not self.resetting and self.touches.update(touches, stamp_ns):
            self.halt()
            self.counters["contacts"] += 1
            self.publish_safety()

    def on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: let the arm move again after a stop."""
        self.touches.release(self.time.stamp_ns)
        self.publish_safety()
        response.success = True
        return response

    async def on_reset(self, request: ResetCell.Request, response: ResetCell.Response) -> ResetCell.Response:
        """Service: start state of a scene."""
        try:
            scene = gazebo_scene(request.task, request.seed)
            await self.require(lambda: not self.resetting, "another reset to end")
            if not is_carried_out(request, self.reset_id):
                self.resetting = True
                try:
                    await self.reset(scene)
                finally:
                    self.resetting = False
                    self.waits.check()
                self.reset_id = request.id
                self.publish_safety()
                self.publish_state()
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.RESET_REFUSED, str(error)
        if self.judge.scene is not None:
            response.state = self.state_message()
        return response

    async def reset(self, scene: Scene) -> None:
        """Clear the table, send the arm home, put the scene's things in their places, and let them settle."""
        await self.require(
            self.world.ready, f"{names.GAZEBO_SET_POSE} and {names.GAZEBO_CONTROL}, which no node offers"
        )
        await self.require(lambda: self.joints_rad is not None, f"{names.GAZEBO_JOINT_STATES}, which no node publishes")
        await self.require(lambda: self.arm.get_subscription_count() > 0, "the arm's controller")
        await self.require(lambda: self.fingers.publisher.get_subscription_count() > 0, "the gripper's controller")
        self.time.engaged = True
        await self.things.clear()
        await self.go_home()
        await self.things.put(scene)
        self.time.run_for(SETTLE_S)
        await self.require(lambda: self.time.stands, "the poses of the objects")
        if not self.scenes:  # a camera's very first picture is black: on a busy machine, it comes no sooner than this
            self.cameras.take_frames()
            self.time.run_for(0.0)
            await self.require(lambda: self.time.stands, "the cameras' first frames")
        self.judge.begin(scene, self.tcp_m())
        self.cameras.take_frames()
        self.touches.clear()
        self.scenes += 1

    async def go_home(self) -> None:
        """Open the gripper and send the arm home; raises InfrastructureError if it does not get there."""
        assert self.joints_rad is not None
        for _ in range(ATTEMPTS):
            self.move_fingers(self.cell.gripper.stroke)
            away_rad = float(np.abs(self.cell.home_joints - self.joints_rad).max())
            travel_s = max(away_rad / HOME_RAD_S, self.gripper_times.travel_time_s)
            self.carry_out(motion_to(self.cell.home_joints, travel_s))
            await self.require(lambda: self.time.stands, "simulated time to pass")
            if np.abs(self.cell.home_joints - self.joints_rad).max() < HOME_TOLERANCE_RAD:
                return
        raise InfrastructureError(f"the arm did not get home in {ATTEMPTS} attempts: is its controller active?")

    async def require(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition, at most `patience_s` of wall time."""
        await self.waits.require(condition, self.patience_s, what)

    def on_pose(self, model: str, message: PoseStamped) -> None:
        self.judge.poses[model] = convert.matrix_of(message.pose)
        self.pass_time(model, convert.nanoseconds_of(message.header.stamp))

    def publish_state(self) -> None:
        if self.judge.scene is not None:
            self.state.publish(self.state_message())

    def state_message(self) -> CellState:
        """The simulator's own knowledge; `qpos` is MuJoCo's and stays empty."""
        scene = self.judge.scene
        assert scene is not None
        judged = self.judge.judged(self.tcp_m(), self.touches, self.time.stamp_ns)
        objects = self.judge.scene_state()
        return cell_state(scene, self.scenes, self.joints, at_rest=self.time.stands, objects=objects, judged=judged)

    def tcp_m(self) -> Array:
        """Position (3,) of the tool centre point [m]."""
        assert self.joints_rad is not None
        return base_from_tcp(self.joints_rad, self.cell)[:3, 3]

    def publish_safety(self) -> None:
        """Publish the contact that stopped the arm, if there was one."""
        self.safety.publish(cell_safety(self.time.stamp_ns, self.touches.contact))


def main() -> None:
    sys.exit(run(GazeboCellNode))
