"""The real robot_state_publisher moves the gripper's linkage by the joint states of the lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rclpy.node import Node
from sensor_msgs.msg import JointState

from merton.simulation.model import urdf
from merton.world.cell import load_cell
from merton.world.geometry import Matrix, from_quaternion, inverse
from merton.world.linkage import tip_height_m
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

pytestmark = pytest.mark.needs("robot_state_publisher", "tf2_msgs")

CELL = load_cell(linkage=True)


class Tree:
    """The newest transform into every frame, from its parent."""

    def __init__(self, node: Node) -> None:
        from tf2_msgs.msg import TFMessage

        self.steps: dict[str, tuple[str, Matrix]] = {}
        node.create_subscription(TFMessage, "/tf", self.on_message, names.RELIABLE_QOS)
        node.create_subscription(TFMessage, "/tf_static", self.on_message, names.LATCHED_QOS)

    def on_message(self, message: Any) -> None:
        for entry in message.transforms:
            t, q = entry.transform.translation, entry.transform.rotation
            pose = from_quaternion((t.x, t.y, t.z), (q.x, q.y, q.z, q.w))
            self.steps[entry.child_frame_id] = entry.header.frame_id, pose

    def pose(self, frame: str) -> Matrix:
        """Pose (4, 4) of a frame in the root of the tree; raises KeyError while its branch is not complete."""
        pose = np.eye(4)
        while frame != "world":
            frame, step = self.steps[frame]
            pose = step @ pose
        return pose

    def tool0_from(self, frame: str) -> Matrix:
        return inverse(self.pose("tool0")) @ self.pose(frame)


@pytest.mark.parametrize("opening_m", [0.14, 0.045, 0.0])
def test_the_pads_are_in_tf_where_the_formula_has_them(
    opening_m: float, ros: Any, processes: Any, tmp_path: Path
) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_text(
        yaml.dump({"robot_state_publisher": {"ros__parameters": {"robot_description": urdf(linkage=True)}}})
    )
    publisher = processes.start(
        "ros2", "run", "robot_state_publisher", "robot_state_publisher", "--ros-args", "--params-file", str(file)
    )
    node = ros.add(Node, "lab")
    tree = Tree(node)
    joints = node.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)

    def seen() -> bool:
        publisher.check()
        stamp_ns = node.get_clock().now().nanoseconds
        joints.publish(convert.joint_state_message(stamp_ns, CELL.home_joints, np.zeros(6), opening_m, linkage=True))
        return {"gripper_left_pad", "gripper_right_pad", "tcp", "gripper_left_outer_knuckle"} <= tree.steps.keys()

    ros.until(seen)
    left, right = (tree.tool0_from(f"gripper_{side}_pad") for side in ("left", "right"))
    assert left[0, 3] - right[0, 3] - 0.005 == pytest.approx(opening_m, abs=1e-6)
    base_m = CELL.tool.tcp_from_tool0_z + 0.008 - tip_height_m(0.0)
    for pad in (left, right):
        assert pad[2, 3] + 0.0175 - base_m == pytest.approx(tip_height_m(opening_m), abs=1e-6)
    np.testing.assert_allclose(tree.tool0_from("tcp"), CELL.tool0_from_tcp, atol=1e-6)
    assert "[WARN]" not in publisher.output, publisher.output
