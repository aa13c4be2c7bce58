"""Faults of depth over ROS: distortion_node publishes faulty depth while one is set, and a view waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import DistortionInfo
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from merton.experiment.local import LocalPorts
from merton.experiment.ports import CellView
from merton.perception.distortion.depth import Depth
from merton.perception.distortion.stream import DistortionSetting
from merton.world.cell import load_cell
from merton_nodes.cameras.distortion_node import DistortionNode
from merton_nodes.cell.messages import cell_state
from merton_nodes.experiment.view_collector import ViewCollector
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from patience import stretched
from ros import Probe, Ros, up

HOLES = DistortionSetting("depth_holes", 4, 7)


def same(one: Depth | None, other: Depth | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def set_to(node: DistortionNode, setting: DistortionSetting) -> None:
    values = {"name": setting.name, "level": float(setting.level), "seed": setting.seed}
    result = node.set_parameters_atomically([Parameter(name, value=value) for name, value in values.items()])
    assert result.successful, result.reason


def test_faulty_depth_is_published_while_a_fault_of_depth_is_set(ros: Ros, probe: Probe) -> None:
    node = up(ros, DistortionNode, cameras=["top"])
    faulty = probe.listen(Image, names.distorted_depth("top"), names.SENSOR_QOS)
    colors = probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    infos = probe.listen(DistortionInfo, names.distortion_info("top"), names.SENSOR_QOS)
    camera = probe.create_publisher(Image, names.depth("top"), names.SENSOR_QOS)
    depth_m = np.linspace(0.5, 1.5, 48 * 64, dtype=np.float32).reshape(48, 64)
    message = convert.depth_message(depth_m, 5, "frame")
    ros.until(node.depths["top"].get_subscription_count)
    assert camera.get_subscription_count() == 0, "depth costs nothing before the first fault of depth"
    node.on_depth("top", message)
    assert node.counters["depth images"] == 0

    set_to(node, HOLES)
    ros.until(lambda: camera.publish(message) or faulty)
    expected = HOLES.apply_depth("top", convert.depth_array(message))  # type: ignore[arg-type]
    assert same(convert.depth_array(faulty[0]), expected)
    assert (convert.nanoseconds_of(faulty[0].header.stamp), faulty[0].header.frame_id) == (5, "frame")
    color = convert.color_message(np.full((48, 64, 3), 90, np.uint8), 5, "frame")
    ros.until(lambda: node.on_image("top", color) or (colors and infos))
    assert np.array_equal(convert.color_array(colors[-1]), convert.color_array(color))
    assert (infos[-1].name, infos[-1].level) == ("depth_holes", 4.0)

    set_to(node, DistortionSetting("jpeg", 3))
    before = node.counters["depth images"]
    node.on_depth("top", message)
    assert node.counters["depth images"] == before


def test_unusable_depth_is_dropped_and_counted(ros: Ros, probe: Probe) -> None:
    probe.listen(Image, names.distorted_depth("top"), names.SENSOR_QOS)
    node = up(ros, DistortionNode, cameras=["top"], name="depth_shift", level=3.0)
    ros.until(node.depths["top"].get_subscription_count)
    node.on_depth("top", convert.color_message(np.zeros((48, 64, 3), np.uint8), 1, ""))
    assert (node.counters["dropped malformed frames"], node.counters["depth images"]) == (1, 0)
    assert "top: depth encoding 'rgb8'" in node.details["last malformed frame"]


def test_a_fault_of_time_is_none_of_a_stream(ros: Ros) -> None:
    node = up(ros, DistortionNode, cameras=["top"])
    result = node.set_parameters_atomically([Parameter("name", value="late"), Parameter("level", value=3.0)])
    assert (result.successful, "acts on a succession of pictures" in result.reason) == (False, True)


@pytest.fixture
def ports() -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports


def publish(probe: Probe, ports: LocalPorts, view: CellView) -> None:
    """Publish the state of the cell and the reference images of a view at one instant."""
    cell = ports.cell
    assert cell.scene is not None
    joints = convert.joint_state_message(view.stamp_ns, cell.joints_rad, cell.joint_velocities, cell.gripper_opening_m)
    state = cell_state(cell.scene, 1, joints, at_rest=True, qpos=cell.qpos.tolist())
    messages: list[tuple[str, Any]] = [(names.CELL_STATE, state)]
    for camera, seen in view.reference.items():
        messages.append((names.color(camera), convert.color_message(seen.color, view.stamp_ns, "")))
        messages.append((names.color_info(camera), convert.camera_info_message(seen.intrinsics, view.stamp_ns, "")))
        if seen.depth_m is not None:
            messages.append((names.depth(camera), convert.depth_message(seen.depth_m, view.stamp_ns, "")))
    for topic, message in messages:
        qos = names.RELIABLE_QOS if topic == names.CELL_STATE else names.SENSOR_QOS
        known = {publisher.topic_name.lstrip("/"): publisher for publisher in probe.publishers}
        (known.get(topic) or probe.create_publisher(type(message), topic, qos)).publish(message)


@pytest.mark.parametrize(("name", "lockstep"), [("depth_holes", True), ("depth_quantization", False)])
def test_a_view_over_ros_has_the_faulty_depth_of_one_process(
    ros: Ros, probe: Probe, ports: LocalPorts, name: str, lockstep: bool
) -> None:
    """Cameras of a simulated cell, and cameras that run on their own, which always deliver depth."""
    setting, deep = DistortionSetting(name, 5, 11), ("top",) if lockstep else ("top", "side")
    ports.set_distortion(setting.name, 5, setting.seed)
    ports.reset("pick", 0)
    local = ports.view(("top", "side"), deep)
    collector = ViewCollector(ros.add(Node, "experiment_node"), load_cell(), lockstep=lockstep)
    node: Any = up(ros, DistortionNode)
    set_to(node, setting)
    collector.expect(setting.name, 5.0, setting.seed)
    probe.create_timer(0.1, partial(publish, probe, ports, local))
    view = collector.wait(stretched(60), ("top", "side"), deep)
    for camera in ("top", "side"):
        for side in ("reference", "distorted"):
            over_ros, here = view.images(side)[camera], local.images(side)[camera]
            assert np.array_equal(over_ros.color, here.color)
            assert (here.depth_m is None) == (camera not in deep)
            assert same(over_ros.depth_m, here.depth_m)
    assert not same(view.distorted["top"].depth_m, view.reference["top"].depth_m)
