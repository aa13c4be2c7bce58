"""MoveIt as the planner of the ways between the poses of a chunk; each of its ways passes the gate afterwards.

MoveIt checks the shapes of the URDF, the gate keeps a margin around the capsules that enclose them: of the ways that
MoveIt finds around an obstacle the gate refuses some. A search is random, so that another one finds another way.

It runs in a process of its own: a search can take a second, and the stop path must not wait for it.
"""

from __future__ import annotations

import copy
import multiprocessing
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.machinery import PathFinder
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, MissingDependencyError
from merton.execution.gate.collision import SET_DOWN_M, HeldObject
from merton.execution.trajectory import JointSpline
from merton.files import resource
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS
from merton.world.linkage import joint_positions

GROUP = "arm"
HELD = "held"
"""Name of the held object in MoveIt's scene."""
PLANNERS = ("straight", "search")
"""Pipelines of config/moveit/pipelines.yaml, in order: a straight way in joint space, a search around obstacles."""
ATTEMPTS = 8
"""Most ways that are asked for until one is accepted. Around a wall one in five is refused."""
START_LIMIT_S, ANSWER_LIMIT_S = 60.0, 5.0
ENDED = "MoveIt has ended: the log has its reasons"
_FILES = ("kinematics", "joint_limits", "pipelines")
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """A way to plan: between joint angles (6,) [rad], with the fingers `opening_m` apart and the object they hold.

    `search`: without trying the straight way first.
    """

    start_rad: NDArray[np.float64]
    goal_rad: NDArray[np.float64]
    opening_m: float
    held: HeldObject | None
    search: bool = False


class Backend(Protocol):
    """Plans one request.

    Returns:
        times (n,) [s], joints (n, 6) [rad], velocities (n, 6) [rad/s].

    Raises:
        InfrastructureError: there is no way.
    """

    def __call__(self, request: Request) -> tuple[Any, Any, Any]: ...


def configuration(*, linkage: bool = False) -> dict[str, Any]:
    """Parameters of MoveItPy: the robot of the cell, with table and walls in it, and the files of config/moveit.

    `linkage`: the gripper has the linkage of the real one.
    """
    import xacro
    from ruamel.yaml import YAML

    folder = resource("merton_bringup", "config/moveit")
    kinematics, limits, pipelines = (YAML(typ="safe", pure=True).load(folder / f"{name}.yaml") for name in _FILES)
    gripper = {"gripper_linkage": str(linkage).lower()}
    robot, semantic = (
        xacro.process_file(str(source), mappings=gripper).toxml()
        for source in (resource("merton_description", "urdf/cell.urdf.xacro"), folder / "cell.srdf.xacro")
    )
    return {
        "robot_description": without_visuals(robot),
        "robot_description_semantic": semantic,
        "robot_description_kinematics": kinematics,
        "robot_description_planning": limits,
        **pipelines,
    }


class MoveIt:
    """The planning scene and the pipelines of moveit_py. A `Backend`; `linkage` as of `configuration`."""

    def __init__(self, *, linkage: bool = False) -> None:
        import rclpy
        from moveit.planning import MoveItPy, PlanRequestParameters

        rclpy.init()
        self._linkage, described = linkage, configuration(linkage=linkage)
        self._hand = links_beyond(described["robot_description"], "wrist_3_link")
        self._moveit = MoveItPy(node_name="moveit_planner", config_dict=described)
        self._arm = self._moveit.get_planning_component(GROUP)
        # bounds of a base that drives [m]; without any MoveIt warns at each plan, although this base is fixed
        self._arm.set_workspace(-1.0, -1.0, -1.0, 1.0, 1.0, 1.0)
        self._straight, self._search = (PlanRequestParameters(self._moveit, name) for name in PLANNERS)

    def __call__(self, request: Request) -> tuple[Any, Any, Any]:
        scene = self._scene(request)
        self._arm.set_start_state(robot_state=scene.current_state)
        self._arm.set_goal_state(robot_state=self._state(request.goal_rad, request.opening_m))
        for parameters in (self._search,) if request.search else (self._straight, self._search):
            if plan := self._arm.plan(single_plan_parameters=parameters, planning_scene=scene):
                return arrays_of(plan.trajectory.get_robot_trajectory_msg().joint_trajectory)
        raise InfrastructureError("MoveIt found no way")

    def _scene(self, request: Request) -> Any:
        """A copy of MoveIt's scene with the arm at the start of a request, and in its gripper only what it holds now.

        A copy, because MoveIt leaves what it detaches in its scene, as an obstacle between the fingers.
        """
        with self._moveit.get_planning_scene_monitor().read_only() as monitored:
            scene = copy.deepcopy(monitored)
        scene.current_state = self._state(request.start_rad, request.opening_m)
        held = request.held
        if held is not None and not scene.process_attached_collision_object(attached(held, self._hand)):
            raise InfrastructureError("MoveIt's scene did not take the held object")
        return scene

    def _state(self, joints_rad: NDArray[np.float64], opening_m: float) -> Any:
        from moveit.core.robot_state import RobotState

        state = RobotState(self._moveit.get_robot_model())
        fingers = joint_positions(opening_m) if self._linkage else dict.fromkeys(FINGER_JOINTS, opening_m / 2)
        # numbers, no arrays: Ubuntu's moveit_py is compiled for NumPy 1, and one of NumPy 2 ends the process
        state.joint_positions = dict(zip(ARM_JOINTS, joints_rad.tolist(), strict=True)) | fingers
        state.update()
        return state


def without_visuals(robot_description: str) -> str:
    """A URDF with collision shapes alone, with which MoveIt plans: it warns of a link that has only visual ones."""
    robot = ElementTree.fromstring(robot_description)
    for link in robot.findall("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    return ElementTree.tostring(robot, encoding="unicode")


def links_beyond(robot_description: str, link: str) -> list[str]:
    """Names of the links of a URDF that move with a link, nearest first, itself left out."""
    joints = ElementTree.fromstring(robot_description).findall("joint")
    parents = {one.find("child").get("link"): one.find("parent").get("link") for one in joints}  # type: ignore[union-attr]
    found = [link]
    for parent in found:
        found += [str(child) for child in parents if parents[child] == parent]
    return found[1:]


def attached(held: HeldObject, touch_links: list[str]) -> Any:
    """The held object as a moveit_msgs/AttachedCollisionObject: the cylinder that the gate checks.

    Args:
        touch_links: links that it may touch: those that move with it.
    """
    from geometry_msgs.msg import Point, Pose
    from moveit_msgs.msg import AttachedCollisionObject, CollisionObject
    from shape_msgs.msg import SolidPrimitive

    message = AttachedCollisionObject(link_name="tcp", touch_links=touch_links)
    message.object.id, message.object.operation = HELD, CollisionObject.ADD
    message.object.header.frame_id = "tcp"
    size = [held.length_m, held.radius_m]
    message.object.primitives = [SolidPrimitive(type=SolidPrimitive.CYLINDER, dimensions=size)]
    center_m = held.beyond_tcp_m - SET_DOWN_M - held.length_m / 2
    message.object.primitive_poses = [Pose(position=Point(z=center_m))]
    return message


def arrays_of(trajectory: Any) -> tuple[Any, Any, Any]:
    """Times (n,), joints (n, 6), velocities (n, 6) of a trajectory_msgs/JointTrajectory, in the arm's order.

    Pilz samples every 0.1 s and the end once more: of two points at one time the later one counts.
    """
    order = [list(trajectory.joint_names).index(name) for name in ARM_JOINTS]
    points = {point.time_from_start.sec + point.time_from_start.nanosec / 1e9: point for point in trajectory.points}
    joints = [[point.positions[index] for index in order] for point in points.values()]
    velocities = [[point.velocities[index] for index in order] for point in points.values()]
    return list(points), joints, velocities


def is_installed() -> bool:
    """Whether moveit_py is installed; a folder `moveit` beside a lab's catalogue of models, as in config, is not it."""
    package = find_spec("moveit")  # not of moveit.planning: that would load MoveIt into this process
    return (
        package is not None and PathFinder.find_spec("moveit.planning", package.submodule_search_locations) is not None
    )


def serve(link: Connection, make_backend: Callable[[], Backend]) -> None:
    """Body of the process: one answer to each request, until the other end of the link is closed."""
    try:
        plan = make_backend()
        link.send("ready")
        while True:
            request = link.recv()
            try:
                link.send(plan(request))
            except InfrastructureError as error:
                link.send(str(error))
            except Exception as error:  # after any error the chunk must end with a sentence
                link.send(f"MoveIt failed: {type(error).__name__}: {error}")
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass


class MoveItPlanner:
    """MoveIt in its process.

    Args:
        make_backend: makes the planner of that process; MoveIt if None.
        linkage: of MoveIt's robot, as of `configuration`.

    Raises:
        MissingDependencyError: moveit_py is not installed.
        InfrastructureError: it does not start.
    """

    def __init__(self, make_backend: Callable[[], Backend] | None = None, *, linkage: bool = False) -> None:
        if make_backend is None and not is_installed():
            raise MissingDependencyError(
                "not installed: moveit_py; run: sudo apt-get install ros-jazzy-moveit ros-jazzy-moveit-py"
            )
        self._make_backend = make_backend or partial(MoveIt, linkage=linkage)
        self._lock, self._closed = threading.Lock(), False
        self._begin()

    def plan(self, request: Request, accept: Callable[[JointSpline], T]) -> T:
        """The result of `accept` for the first way from the start to the goal that it accepts, of `ATTEMPTS` at most.

        After its end, or a request without an answer, MoveIt is started again for the next request.

        Args:
            accept: raises InfrastructureError for a way that it refuses.

        Raises:
            InfrastructureError: there is no way, no answer, or none of the ways was accepted.
        """
        for attempt in range(ATTEMPTS):
            way = self._way(replace(request, search=request.search or attempt > 0))
            try:
                return accept(way)
            except InfrastructureError as error:
                refusal = error
        raise refusal

    def _way(self, request: Request) -> JointSpline:
        """MoveIt's way, or InfrastructureError."""
        with self._lock:
            if not self._process.is_alive() and not self._closed:
                self._begin()
            try:
                self._link.send(request)
                answer = self._answer(ANSWER_LIMIT_S)
            except OSError:
                raise InfrastructureError(ENDED) from None
            if answer is None:
                self._end()  # a late answer must not be taken for that to the next request
                raise InfrastructureError(f"MoveIt did not answer within {ANSWER_LIMIT_S:g} s")
        if isinstance(answer, str):
            raise InfrastructureError(answer)
        return JointSpline(*answer)

    def close(self) -> None:
        """End it for good, also while a request is under way."""
        self._closed = True
        self._end()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._link, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, self._make_backend), name="moveit", daemon=True)
        self._process.start()
        there.close()
        try:
            ready = self._answer(START_LIMIT_S)
        except InfrastructureError:
            ready = None
        if ready is None:
            self._end()
            raise InfrastructureError("MoveIt did not start: the log has its reasons")

    def _end(self) -> None:
        self._link.close()
        self._process.kill()
        self._process.join()

    def _answer(self, limit_s: float) -> Any:
        """The next answer, None if there is none within the limit; raises InfrastructureError if the process ends."""
        try:
            return self._link.recv() if self._link.poll(limit_s) else None
        except (EOFError, OSError):
            self._end()
            raise InfrastructureError(ENDED) from None
