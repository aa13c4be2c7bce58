"""MoveIt as the planner of the ways between the poses of a chunk; each of its ways passes the gate afterwards.

It runs in a process of its own: a search can take a second, and the stop path must not wait for it.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, MissingDependencyError
from merton.execution.gate.collision import HeldObject
from merton.execution.trajectory import JointSpline
from merton.files import resource
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS

GROUP = "arm"
HELD = "held"
"""Name of the held object in MoveIt's scene."""
PIPELINES = (("pilz_industrial_motion_planner", "PTP"), ("ompl", "RRTConnect"))
"""Tried in this order: a straight way in joint space, then a search around obstacles."""
PLANNING_TIME_S = 1.0
START_LIMIT_S, ANSWER_LIMIT_S = 60.0, 5.0
_FILES = ("kinematics", "joint_limits", "pipelines")


@dataclass(frozen=True)
class Request:
    """A way to plan: between joint angles (6,) [rad], with the fingers `opening_m` apart and the object they hold."""

    start_rad: NDArray[np.float64]
    goal_rad: NDArray[np.float64]
    opening_m: float
    held: HeldObject | None


class Backend(Protocol):
    """Plans one request; returns times (n,) [s], joints (n, 6) [rad], velocities (n, 6) [rad/s], or a sentence."""

    def __call__(self, request: Request) -> tuple[Any, Any, Any] | str: ...


def configuration() -> dict[str, Any]:
    """Parameters of MoveItPy: the robot of the cell, with table and walls in it, and the files of config/moveit."""
    import xacro
    from ruamel.yaml import YAML

    folder = resource("merton_bringup", "config/moveit")
    kinematics, limits, pipelines = (YAML(typ="safe").load(folder / f"{name}.yaml") for name in _FILES)
    source = resource("merton_description", "urdf/cell.urdf.xacro")
    return {
        "robot_description": xacro.process_file(str(source)).toxml(),
        "robot_description_semantic": (folder / "cell.srdf").read_text(encoding="utf-8"),
        "robot_description_kinematics": kinematics,
        "robot_description_planning": limits,
        **pipelines,
    }


class MoveIt:
    """The planning scene and the pipelines of moveit_py. A `Backend`."""

    def __init__(self) -> None:
        import rclpy
        from moveit.planning import MoveItPy, PlanRequestParameters

        rclpy.init()
        self._moveit = MoveItPy(node_name="moveit_planner", config_dict=configuration())
        self._arm = self._moveit.get_planning_component(GROUP)
        self._parameters = []
        for pipeline, planner in PIPELINES:
            parameters = PlanRequestParameters(self._moveit, "")
            parameters.planning_pipeline, parameters.planner_id = pipeline, planner
            parameters.planning_time, parameters.planning_attempts = PLANNING_TIME_S, 1
            parameters.max_velocity_scaling_factor = parameters.max_acceleration_scaling_factor = 1.0
            self._parameters.append(parameters)

    def __call__(self, request: Request) -> tuple[Any, Any, Any] | str:
        self._attach(request.held)
        self._arm.set_start_state(robot_state=self._state(request.start_rad, request.opening_m))
        self._arm.set_goal_state(robot_state=self._state(request.goal_rad, request.opening_m))
        for parameters in self._parameters:
            if plan := self._arm.plan(single_plan_parameters=parameters):
                return arrays_of(plan.trajectory.get_robot_trajectory_msg().joint_trajectory)
        return "MoveIt found no way"

    def _state(self, joints_rad: NDArray[np.float64], opening_m: float) -> Any:
        from moveit.core.robot_state import RobotState

        state = RobotState(self._moveit.get_robot_model())
        state.set_joint_group_positions(GROUP, np.asarray(joints_rad))
        state.joint_positions = dict.fromkeys(FINGER_JOINTS, opening_m / 2)
        state.update()
        return state

    def _attach(self, held: HeldObject | None) -> None:
        """Put the held object between the fingers, or remove it from the scene."""
        from geometry_msgs.msg import Pose
        from moveit_msgs.msg import AttachedCollisionObject, CollisionObject
        from shape_msgs.msg import SolidPrimitive

        attached = AttachedCollisionObject(link_name="tcp")
        attached.touch_links = ["gripper_base_link", "tcp"]
        attached.touch_links += [f"gripper_{side}_{part}" for side in ("left", "right") for part in ("finger", "pad")]
        attached.object.id = HELD
        attached.object.header.frame_id = "tcp"
        attached.object.operation = CollisionObject.REMOVE
        if held is not None:
            attached.object.operation = CollisionObject.ADD
            size = [held.width_m, held.width_m, 2 * held.beyond_tcp_m]
            attached.object.primitives = [SolidPrimitive(type=SolidPrimitive.BOX, dimensions=size)]
            attached.object.primitive_poses = [Pose()]
            attached.object.primitive_poses[0].orientation.w = 1.0
        with self._moveit.get_planning_scene_monitor().read_write() as scene:
            scene.process_attached_collision_object(attached)
            scene.current_state.update()


def arrays_of(trajectory: Any) -> tuple[Any, Any, Any]:
    """Times (n,), joints (n, 6), velocities (n, 6) of a trajectory_msgs/JointTrajectory, in the arm's order."""
    order = [list(trajectory.joint_names).index(name) for name in ARM_JOINTS]
    times = [point.time_from_start.sec + point.time_from_start.nanosec / 1e9 for point in trajectory.points]
    joints = [[point.positions[index] for index in order] for point in trajectory.points]
    velocities = [[point.velocities[index] for index in order] for point in trajectory.points]
    return times, joints, velocities


def serve(link: Connection, make_backend: Callable[[], Backend]) -> None:
    """Body of the process: one answer to each request, until the other end of the link is closed."""
    try:
        plan = make_backend()
        link.send("ready")
        while True:
            request = link.recv()
            try:
                link.send(plan(request))
            except Exception as error:  # after any error the chunk must end with a sentence
                link.send(f"MoveIt failed: {type(error).__name__}: {error}")
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass


class MoveItPlanner:
    """MoveIt in its process.

    Args:
        make_backend: makes the planner of that process.

    Raises:
        MissingDependencyError: moveit_py is not installed.
        InfrastructureError: it does not start.
    """

    def __init__(self, make_backend: Callable[[], Backend] = MoveIt) -> None:
        if make_backend is MoveIt and find_spec("moveit") is None:
            raise MissingDependencyError(
                "not installed: moveit_py; run: sudo apt-get install ros-jazzy-moveit ros-jazzy-moveit-py"
            )
        context = multiprocessing.get_context("spawn")
        self._link, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, make_backend), name="moveit", daemon=True)
        self._process.start()
        there.close()
        self._lock = threading.Lock()
        if self._answer(START_LIMIT_S) != "ready":
            self.close()
            raise InfrastructureError("MoveIt did not start: the log has its reasons")

    def plan(self, request: Request) -> JointSpline:
        """A way from the start to the goal; raises InfrastructureError if there is none, or no answer."""
        with self._lock:
            try:
                self._link.send(request)
            except OSError:
                raise InfrastructureError("MoveIt has ended") from None
            answer = self._answer(ANSWER_LIMIT_S)
        if answer is None:
            self.close()  # a late answer must not be taken for that to the next request
            raise InfrastructureError(f"MoveIt did not answer within {ANSWER_LIMIT_S:g} s")
        if isinstance(answer, str):
            raise InfrastructureError(answer)
        return JointSpline(*answer)

    def close(self) -> None:
        self._link.close()
        self._process.kill()
        self._process.join()

    def _answer(self, limit_s: float) -> Any:
        try:
            return self._link.recv() if self._link.poll(limit_s) else None
        except (EOFError, OSError):
            return None
