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
from merton_nodes.ros.uniqueness import LEAST_PATIENCE_S, PATIENCE_S, discovery_factor
from ros import Probe, Ros, up


def test_a_name_that_is_taken_is_refused_and_another_or_another_namespace_is_not(ros: Ros) -> None:
    ros.add(Node, "scorer_node")
    ros.add(Node, "vla_node", namespace="second_cell")
    for name in ("vla_node", "vlm_node"):
        ros.add(StageNode, name).uniqueness.wait(0.1)
    second = ros.add(StageNode, "scorer_node")
    with pytest.raises(InfrastructureError, match=r"another /scorer_node runs in ROS domain \d+, on this machine or"):
        second.uniqueness.wait()


def test_a_namesake_ends_a_node_that_is_new_unless_it_ends_itself(ros: Ros) -> None:
    """A graph that is a few seconds old is not ended by one that is about to be refused."""
    node = ros.add(StageNode, "scorer_node")
    watch = node.uniqueness
    watch.wait(0.0)
    watch.start_s -= PATIENCE_S
    latecomer = Node("scorer_node", context=ros.context)
    ros.until(lambda: node.get_node_names().count("scorer_node") == 2)
    watch.require()
    assert watch.second_s is None, "it was there first"
    watch.start_s += PATIENCE_S
    watch.require()
    bears_s = LEAST_PATIENCE_S * discovery_factor() + 1.0
    watch.second_s, watch.start_s = watch.second_s - bears_s, watch.start_s - bears_s
    with pytest.raises(InfrastructureError, match="another /scorer_node runs"):
        watch.require()
    latecomer.destroy_node()
    ros.until(lambda: node.get_node_names().count("scorer_node") == 1)
    watch.require()
    assert watch.second_s is None


def test_a_topic_of_one_publisher_that_is_taken_is_refused(ros: Ros, probe: Probe) -> None:
    probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    cell = ros.add(MujocoCellNode)
    with pytest.raises(InfrastructureError, match=r"/probe publishes /joint_states in ROS domain"):
        cell.uniqueness.wait()
    remappings = ["--ros-args", "-r", "__node:=second_cell", "-r", "joint_states:=second_cell/joint_states"]
    moved = ros.add(MujocoCellNode, cli_args=remappings)
    moved.uniqueness.wait(0.1)


@pytest.mark.parametrize(("age_s", "bears_s"), [(0.0, LEAST_PATIENCE_S), (5.0, 5.0), (60.0, PATIENCE_S)])
def test_of_two_publishers_that_find_each_other_late_the_new_one_ends_first(
    ros: Ros, probe: Probe, age_s: float, bears_s: float
) -> None:
    """On a busy machine, or on two networks that are joined later."""
    cell = up(ros, MujocoCellNode)
    watch = cell.uniqueness
    watch.wait(0.0)
    watch.start_s -= age_s
    watch.require()
    probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: watch.second_s)
    watch.second_s, watch.start_s = watch.second_s - bears_s + 1.0, watch.start_s - bears_s + 1.0
    with pytest.raises(InfrastructureError, match="/mujoco_cell_node and /probe publish /joint_states in ROS domain"):
        ros.until(lambda: False)  # the node looks by itself
    assert time.monotonic() - watch.second_s >= bears_s
    ros.error = None
