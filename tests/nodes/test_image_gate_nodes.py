"""The gate of images over ROS: a chunk that was decided on a bad image never reaches the arm of the simulated cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import ImageQuality
from rclpy.node import Node
from sensor_msgs.msg import Image
from trajectory_msgs.msg import JointTrajectory

from merton import __version__
from merton.errors import ErrorCode, InfrastructureError, InputError
from merton.experiment.local import LocalPorts
from merton.perception.quality import measure
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cameras.camera_node import CameraNode
from merton_nodes.cameras.distortion_node import DistortionNode
from merton_nodes.cameras.quality_node import QualityNode
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up

STAMP_NS = 5_000_000_000
MINIMUM = 0.6
"""By blur_effect, of which lower is better: clean images of the cell have 0.3, at gaussian_blur 5 they have 0.8."""


@pytest.fixture
def camera_node(ros: Ros) -> Iterator[None]:
    """A camera_node that draws, and so begins and ends, in the executor's thread."""
    node = ros.add(CameraNode)

    def begin() -> None:
        assert node.trigger_configure().name == node.trigger_activate().name == "SUCCESS"

    ros.result(ros.executor.create_task(begin))
    yield
    ros.result(ros.executor.create_task(node.closing.close))


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (48, 64, 3), np.uint8)


def test_the_quality_of_an_image_bears_its_stamp_and_frame(ros: Ros, probe: Probe) -> None:
    node = up(ros, QualityNode, cameras=["top"], metric="blur_effect", min_image_quality=MINIMUM)
    heard = probe.listen(ImageQuality, names.quality("top"), names.RELIABLE_QOS)
    camera = probe.create_publisher(Image, names.distorted("top"), names.SENSOR_QOS)
    message = convert.color_message(picture(1), STAMP_NS, names.optical_frame("top"))
    ros.until(lambda: camera.publish(message) or len(heard) >= 2)
    first, again = heard[:2]
    assert first.header == message.header
    assert (first.value, first.metric, first.version) == (
        measure("blur_effect", picture(1)),
        "blur_effect",
        __version__,
    )
    assert (first.worst, first.best, first.minimum) == (1.0, 0.0, MINIMUM)
    assert again == first
    assert len(node.latencies_ms) == 1, "a repeated image is measured once"

    tiny = convert.color_message(np.zeros((4, 4, 3), np.uint8), STAMP_NS, "")
    ros.until(lambda: camera.publish(tiny) or node.counters["dropped malformed frames"])
    node.observe()
    assert "top: blur_effect needs at least" in node.details["last malformed frame"]
    assert node.details["blur_effect of top"] == f"{first.value:.3f}"
    assert "p50" in node.details["latency"]


@pytest.mark.usefixtures("camera_node")
def test_a_bad_image_never_reaches_the_arm(ros: Ros, probe: Probe) -> None:
    """Real nodes from the cell to the arm, and one process beside them: the same verdict in the same words."""
    cell = up(ros, MujocoCellNode, real_time_factor=0.0)
    up(ros, DistortionNode)
    up(ros, QualityNode, metric="blur_effect", min_image_quality=MINIMUM)
    arm = up(ros, ArmNode, min_image_quality=MINIMUM)
    ports = RosPorts(ros.add(Node, "experiment_node"), load_cell(), 30.0)
    commands = probe.listen(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
    ports.set_image_gate("blur_effect", MINIMUM)
    for metric, minimum in (("blur_effect", 0.5), ("noise_sigma", MINIMUM)):
        with pytest.raises(InputError, match=r"in this graph it is 0\.6 by blur_effect"):
            ports.set_image_gate(metric, minimum)
    up_m = checked_chunk([[0, 0, 0.02, 0, 0, 0, 1.0]], 0.2)

    def looked(world: Any, name: str, level: int) -> Any:
        """The chunk's execution after a look at images with this distortion."""
        world.set_distortion(name, level, 0)
        world.reset("reach", 0)
        view = world.view(("top", "wrist"), ())
        images = {camera: seen.stamp_ns for camera, seen in view.distorted.items()}
        return world.execute(replace(up_m, images=images), view)

    refused = looked(ports, "gaussian_blur", 5)
    assert (refused.executed, refused.error_code) == (0, ErrorCode.IMAGE_QUALITY)
    assert commands == []
    assert arm.stop.state.tripped is False
    still = cell.cell.joints_rad.copy()

    carried_out = looked(ports, "reference", 0)
    assert (carried_out.executed, carried_out.error_code) == (1, 0)
    ros.until(lambda: commands)
    assert not np.allclose(cell.cell.joints_rad, still)

    view = ports.view((), ())
    with pytest.raises(InfrastructureError, match="does not name the images"):
        ports.execute(up_m, view)
    assert ports.execute(replace(up_m, images={}), view).error_code == 0, "the oracle looks at no image"

    with LocalPorts() as local:
        local.set_image_gate("blur_effect", MINIMUM)
        assert looked(local, "gaussian_blur", 5) == refused
        assert looked(local, "reference", 0).executed == 1


def test_of_two_qualities_of_one_stamp_the_worse_counts_and_a_missing_one_is_waited_for(ros: Ros, probe: Probe) -> None:
    """The distortion may change while the arm rests: the image that was decided on may have been the worse one."""
    up(ros, MujocoCellNode, real_time_factor=0.0)
    arm = up(ros, ArmNode, min_image_quality=MINIMUM, patience_s=0.5, max_observation_age_s=600.0)
    ros.until(lambda: arm.arm.joints_rad is not None)
    chunk = checked_chunk([[0, 0, 0.02, 0, 0, 0, 1.0]], 0.2)
    stamp_ns = arm.arm.stamp_ns
    image = convert.header(stamp_ns, names.optical_frame("top"))

    def quality(value: float) -> ImageQuality:
        return ImageQuality(header=image, value=value, metric="sharpness", worst=0.0, best=1.0)

    def code(sequence: int, meanwhile: Callable[[], object] = lambda: None) -> int:
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(chunk, stamp_ns), images=[image])
        goal.trial, goal.sequence = "trial", sequence
        meanwhile()
        return ros.act(probe, ExecuteActions, names.EXECUTE, goal).error_code

    assert code(1) == ErrorCode.STALE, "after the patience of the arm"
    arm.images.on_quality(image.frame_id, quality(0.1))
    arm.images.on_quality(image.frame_id, quality(0.9))
    assert code(2) == ErrorCode.IMAGE_QUALITY
    arm.images.known.clear()
    arm.images.on_quality(image.frame_id, quality(0.9))
    assert code(3) == 0
