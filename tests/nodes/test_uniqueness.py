"""One graph in a ROS domain: a node's look at the ROS graph before it starts, and while it runs."""

from __future__ import annotations

import time

import pytest
from rclpy.node import Node
from sensor_msgs.msg import JointState

from merton.errors import InfrastructureError
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode
from merton_nodes.ros.uniqueness import NEW_S, PATIENCE_S
from ros import Probe, Ros, up


def test_a_name_that_is_taken_is_refused_and_another_or_another_namespace_is_not(ros: Ros) -> None:
    ros.add(Node, "scorer_node")
    ros.add(Node, "vla_node", namespace="second_cell")
    for name in ("vla_node", "vlm_node"):
        ros.add(StageNode, name).uniqueness.wait(0.1)
    second = ros.add(StageNode, "scorer_node")
    second.uniqueness.wait(0.0)
    second.uniqueness.start_s -= NEW_S
    second.uniqueness.require()  # it was there first
    second.uniqueness.start_s += NEW_S
    with pytest.raises(InfrastructureError, match="another /scorer_node runs"):
        second.uniqueness.require()
    with pytest.raises(InfrastructureError, match=r"another /scorer_node runs in ROS domain \d+, on this machine or"):
        second.uniqueness.wait()


def test_a_topic_of_one_publisher_that_is_taken_is_refused(ros: Ros, probe: Probe) -> None:
    probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    cell = ros.add(MujocoCellNode)
    with pytest.raises(InfrastructureError, match=r"/probe publishes /joint_states in ROS domain"):
        cell.uniqueness.wait()
    remappings = ["--ros-args", "-r", "__node:=second_cell", "-r", "joint_states:=second_cell/joint_states"]
    moved = ros.add(MujocoCellNode, cli_args=remappings)
    moved.uniqueness.wait(0.1)


def test_a_latecomer_that_finds_the_first_late_ends_and_the_first_bears_it_for_a_while(ros: Ros, probe: Probe) -> None:
    """On a busy machine, or on two networks that are joined later."""
    cell = up(ros, MujocoCellNode)
    cell.uniqueness.wait(0.0)
    cell.uniqueness.start_s -= NEW_S
    cell.uniqueness.require()
    probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: cell.uniqueness.second_s)
    cell.uniqueness.second_s += 600.0
    cell.uniqueness.require()
    cell.uniqueness.start_s += NEW_S
    both = "/mujoco_cell_node and /probe publish /joint_states in ROS domain"
    with pytest.raises(InfrastructureError, match=both):
        cell.uniqueness.require()
    with pytest.raises(InfrastructureError, match=both):  # the node looks by itself
        ros.until(lambda: False)
    ros.error = None


def test_a_second_publisher_that_stays_ends_the_first(ros: Ros, probe: Probe) -> None:
    cell = up(ros, MujocoCellNode)
    cell.uniqueness.wait(0.0)
    cell.uniqueness.start_s -= NEW_S
    probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    with pytest.raises(InfrastructureError, match="/mujoco_cell_node and /probe publish /joint_states in ROS domain"):
        ros.until(lambda: False)
    assert time.monotonic() - cell.uniqueness.second_s >= PATIENCE_S
    ros.error = None
