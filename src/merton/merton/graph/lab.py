"""The variants of the graph `lab`, by the driver of the arm and the place of the gripper."""

from __future__ import annotations

from merton.errors import InputError, UnknownNameError
from merton.graph.spec import GraphSpec, NodeSpec

ARMS = ("rtde", "ros2_control", "moveit")
"""RTDE directly; the UR ROS 2 driver's controller; the same with MoveIt as the planner."""
GRIPPERS = ("urcap", "sim")
"""The socket of the gripper's URCap; a simulated one on this machine."""
SIMULATED_GRIPPER = "127.0.0.1"


def lab_variant(graph: GraphSpec, arm: str = "rtde", gripper: str = "urcap") -> GraphSpec:
    """The graph `lab`, its arguments put in, with another arm or gripper.

    Raises:
        UnknownNameError: no such arm or gripper.
        InputError: the gripper is to be simulated, and its address was given all the same.
    """
    if arm not in ARMS:
        raise UnknownNameError("arm", arm, ARMS)
    if gripper not in GRIPPERS:
        raise UnknownNameError("gripper", gripper, GRIPPERS)
    own = next(node for node in graph.nodes if node.name == "ur_robot_node").parameters
    gripper_ip = own.get("gripper_hostname", "")
    if gripper == "sim":
        if gripper_ip:
            raise InputError(f"gripper_ip is {gripper_ip}, and the gripper simulated: choose one of the two")
        gripper_ip = SIMULATED_GRIPPER
    nodes = []
    for node in graph.nodes:
        if node.name == "ur_robot_node" and arm != "rtde":
            parameters = {"gripper_hostname": gripper_ip or own.get("hostname", "127.0.0.1")}
            node = NodeSpec(name="ur_driver_node", executable="ur_driver_node", parameters=parameters)
        elif node.name == "ur_robot_node" and gripper_ip:
            node = node.with_parameters(gripper_hostname=gripper_ip)
        elif node.name == "arm_node" and arm == "moveit":
            node = node.with_parameters(planner="moveit")
        nodes.append(node)
    return graph.model_copy(update={"nodes": tuple(nodes)})
