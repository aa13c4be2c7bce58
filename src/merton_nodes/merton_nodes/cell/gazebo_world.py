"""Gazebo's own messages and services, as ros_gz_bridge passes them on. The only place that needs ros_gz_interfaces."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Bool

from merton.errors import MissingDependencyError
from merton.simulation.gazebo import Touch, link_of, model_name, normal_force_n
from merton.simulation.gazebo_props import prop_sdf
from merton.world.cell import CellConfig
from merton.world.geometry import Matrix
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

PLACING_SERVICE = "ros_gz_interfaces/srv/SetEntityPose"
"""Type of the service as ros_gz_bridge names it."""


def require_service_that_places() -> None:
    """Raises MissingDependencyError if a ros_gz_bridge is installed that has no service that moves models.

    Ours: looks into its library, because the bridge itself writes a line and goes on without.
    """
    try:
        prefix = Path(get_package_prefix("ros_gz_bridge"))
        library = (prefix / "lib" / "libros_gz_bridge.so").read_bytes()
    except (PackageNotFoundError, FileNotFoundError):
        return  # absent, or built otherwise: not for this function to say
    if PLACING_SERVICE.encode() in library:
        return
    version = ElementTree.parse(prefix / "share" / "ros_gz_bridge" / "package.xml").findtext("version")
    raise MissingDependencyError(
        f"ros_gz_bridge {version} has no service that places things ({PLACING_SERVICE}), 1.0.11 is the first that has; "
        "run: sudo apt-get update && sudo apt-get install ros-jazzy-ros-gz"
    )


class GazeboWorld:
    """The world behind the bridge: runs it, moves its models, adds and removes props, and lets its cameras take frames.

    Args:
        node: gets the subscription, the publisher and the clients.
        cell: sizes of the props.
        on_touches: called with the contacts of the robot's links, if there are any, and the simulated instant [ns].

    Raises:
        MissingDependencyError: ros_gz_interfaces is not installed.
    """

    def __init__(self, node: Node, cell: CellConfig, on_touches: Callable[[list[Touch], int], None]) -> None:
        try:
            from ros_gz_interfaces.msg import Contacts, Entity
            from ros_gz_interfaces.srv import ControlWorld, DeleteEntity, SetEntityPose, SpawnEntity
        except ImportError:
            raise MissingDependencyError(
                "not installed: ros_gz_interfaces; run: sudo apt-get install ros-jazzy-ros-gz"
            ) from None
        self._entity, self._set_pose, self._control = Entity, SetEntityPose, ControlWorld
        self._spawn, self._delete = SpawnEntity, DeleteEntity
        self._cell = cell
        self._places = node.create_client(SetEntityPose, names.GAZEBO_SET_POSE)
        self._creates = node.create_client(SpawnEntity, names.GAZEBO_CREATE)
        self._removes = node.create_client(DeleteEntity, names.GAZEBO_REMOVE)
        self._controls = node.create_client(ControlWorld, names.GAZEBO_CONTROL)
        self._trigger = node.create_publisher(Bool, names.GAZEBO_TRIGGER, names.RELIABLE_QOS)
        self._on_contacts = lambda message: on_touches(*touches_in(message))
        self._contacts = node.create_subscription(
            Contacts, names.GAZEBO_CONTACTS, self._on_contacts, names.RELIABLE_QOS
        )

    def ready(self) -> bool:
        return self._places.service_is_ready() and self._controls.service_is_ready()

    def take_touches(self) -> None:
        """Handle the contacts that have arrived already, however many wait for their turn in the executor.

        While the fingers hold a thing there are more messages of contacts than of all else.
        """
        while (taken := self._contacts.handle.take_message(self._contacts.msg_type, self._contacts.raw)) is not None:
            self._on_contacts(taken[0])

    def trigger_cameras(self) -> None:
        """Let every camera take a frame now."""
        self._trigger.publish(Bool(data=True))

    def place(self, name: str, base_from_model: Matrix) -> Future:
        """Move a thing to a pose (4, 4) in `base_link`; the result's `success` says whether that worked."""
        request = self._set_pose.Request(entity=self._model(name), pose=convert.pose_message(base_from_model))
        return self._places.call_async(request)

    def add(self, name: str, base_from_model: Matrix) -> Future:
        """Add a prop at a pose (4, 4) in `base_link`; `success` says whether the world will try that."""
        request = self._spawn.Request()
        request.entity_factory.sdf = prop_sdf(name, self._cell)
        request.entity_factory.pose = convert.pose_message(base_from_model)
        return self._creates.call_async(request)

    def remove(self, name: str) -> Future:
        """Remove a prop; `success` says whether the world will try that. It is gone after the next step."""
        return self._removes.call_async(self._delete.Request(entity=self._model(name)))

    def _model(self, name: str) -> Any:
        return self._entity(name=model_name(name), type=self._entity.MODEL)

    def run_to(self, stamp_ns: int) -> Future:
        """Let simulated time pass up to an instant [ns], then stand still.

        The instant must lie ahead: Gazebo ignores one that has passed, and would run without end.
        """
        request = self._control.Request()
        request.world_control.run_to_sim_time = convert.time_message(stamp_ns)
        return self._controls.call_async(request)


def touches_in(message: Any) -> tuple[list[Touch], int]:
    """The contacts of a ros_gz_interfaces/Contacts, the reporting link first, and its stamp [ns]."""
    touches = []
    for contact in message.contacts:
        forces = [(w.body_1_wrench.force.x, w.body_1_wrench.force.y, w.body_1_wrench.force.z) for w in contact.wrenches]
        normals = [(normal.x, normal.y, normal.z) for normal in contact.normals]
        link, other = link_of(contact.collision1.name), link_of(contact.collision2.name)
        touches.append(Touch(link, other, normal_force_n(forces, normals)))
    return touches, convert.nanoseconds_of(message.header.stamp)
