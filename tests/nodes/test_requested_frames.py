"""Frames of a simulated cell: rendered at the request of a trial or for a viewer, and collected into views."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from merton_interfaces.msg import CellState, DistortionInfo, FrameRequest
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import String

from merton.errors import InfrastructureError, InputError
from merton.experiment.ports import CellView
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.sensor import D455, IDEAL
from merton.world.cell import load_cell
from merton.world.observation import Intrinsics
from merton_nodes.cameras.camera_node import CameraNode
from merton_nodes.cameras.distortion_node import DistortionNode
from merton_nodes.cell.messages import cell_state
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.experiment.experiment_node import ExperimentNode
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.experiment.view_collector import ViewCollector
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from patience import stretched
from ros import Probe, Ros, up

CAMERAS = load_cell().camera_names
WIDTH, HEIGHT = 64, 48


@pytest.fixture(scope="module")
def cell() -> SimulatedCell:
    cell = SimulatedCell()
    cell.reset("reach", 0)
    return cell


def state_of(cell: SimulatedCell, stamp_ns: int, *, at_rest: bool) -> CellState:
    joints = convert.joint_state_message(stamp_ns, cell.joints_rad, cell.joint_velocities, cell.gripper_opening_m)
    assert cell.scene is not None
    return cell_state(cell.scene, 1, joints, at_rest=at_rest, qpos=cell.qpos.tolist())


def request(stamp_ns: int, color: list[str], depth: list[str]) -> FrameRequest:
    return FrameRequest(header=convert.header(stamp_ns, ""), color=color, depth=depth)


def images_of(node: Node, topics: list[str]) -> dict[str, list[Image]]:
    """The images that a node receives on topics from now on."""
    heard: dict[str, list[Image]] = {topic: [] for topic in topics}
    for topic in topics:
        node.create_subscription(Image, topic, heard[topic].append, names.SENSOR_QOS)
    return heard


def test_a_camera_that_no_model_looks_at_is_not_rendered(ros: Ros, cell: SimulatedCell) -> None:
    trial = ros.add(Node, "experiment_node")
    topics = [topic(camera) for camera in CAMERAS for topic in (names.color, names.depth)]
    heard = images_of(trial, topics)
    node = up(ros, CameraNode, width=WIDTH, height=HEIGHT)
    up(ros, DistortionNode)
    ros.until(
        lambda: all(p.get_subscription_count() == 2 - (p is d) for p, _, d in node.outputs.values() for p in (p, d))
    )
    source: Any = node.source

    def rendered() -> tuple[int, int]:
        return node.counters["frames rendered"], node.counters["depth images rendered"]

    source.find_viewers()
    source.on_state(state_of(cell, 1000, at_rest=True))
    source.on_state(state_of(cell, 2000, at_rest=False))
    assert rendered() == (0, 0), "subscribers of a trial are no viewers"
    source.on_request(request(1500, ["top"], []))
    assert rendered() == (0, 0), "the arm still moves"
    source.on_state(state_of(cell, 3000, at_rest=True))
    assert rendered() == (1, 0)
    source.on_state(state_of(cell, 3000, at_rest=True))
    source.on_request(request(3500, ["side"], []))
    assert rendered() == (1, 0), "answered once; and the next instant has not come"
    source.on_request(request(3000, ["top"], []))
    assert rendered() == (1, 0), "published again, not rendered again"
    source.on_request(request(3000, ["side", "top"], ["top"]))
    assert rendered() == (3, 1)
    ros.until(lambda: len(heard[names.color("top")]) == 3 and heard[names.depth("top")] and heard[names.color("side")])
    assert {topic for topic in topics if not heard[topic]} == {
        names.color("wrist"),
        names.depth("wrist"),
        names.depth("side"),
    }
    assert all(convert.nanoseconds_of(image.header.stamp) == 3000 for images in heard.values() for image in images)


def test_viewers_get_their_cameras_during_motion(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    """As the operator's page, a recorder and RViz do: by subscribing."""
    node = up(ros, CameraNode, width=WIDTH, height=HEIGHT)
    up(ros, DistortionNode)
    source: Any = node.source
    side = probe.listen(Image, names.color("side"), names.SENSOR_QOS)
    distorted = probe.listen(Image, names.distorted("top"), names.SENSOR_QOS)
    deep = probe.listen(Image, names.depth("wrist"), names.SENSOR_QOS)
    ros.until(lambda: source.viewed == ({"side", "top"}, {"wrist"}))
    stamps = iter(range(1000, 10**6, 1000))
    ros.until(
        lambda: source.on_state(state_of(cell, next(stamps), at_rest=False)) or (side and distorted and deep),
    )
    assert convert.color_array(side[0]).std() > 10, "a blank picture"
    assert 0.2 < float(np.median(convert.depth_array(deep[0]))) < 2.0
    assert node.counters["frames rendered"] == 3 * node.counters["depth images rendered"]


def test_a_sensor_is_imitated_as_in_one_process_with_and_without_viewers(
    ros: Ros, probe: Probe, cell: SimulatedCell
) -> None:
    """Three states of a scene, at rest, in motion and at rest again, of which the second is for a viewer alone."""
    node = up(ros, CameraNode, width=WIDTH, height=HEIGHT)
    source: Any = node.source
    heard = probe.listen(Image, names.color("top"), names.SENSOR_QOS)
    ros.until(lambda: source.viewed[0] == {"top"})
    assert node.set_parameters([Parameter("sensor", value="d455")])[0].successful

    stamps_ns = (10**9, 1_300_000_000, 1_600_000_000)
    for stamp_ns in stamps_ns:
        at_rest = stamp_ns != stamps_ns[1]
        if at_rest:
            source.on_request(request(stamp_ns, ["top"], []))
        source.on_state(state_of(cell, stamp_ns, at_rest=at_rest))
    ros.until(lambda: len(heard) == len(stamps_ns))

    cameras = SceneCameras(WIDTH, HEIGHT)
    cameras.imitate(D455)
    for stamp_ns, image in ((stamps_ns[0], heard[0]), (stamps_ns[2], heard[2])):
        view = cameras.render("reach", 0, cell.qpos, "top", stamp_ns, joint_velocities=cell.joint_velocities)
        cameras.keep_exposure("top")
        assert np.array_equal(convert.color_array(image), view.color)
    cameras.imitate(IDEAL)
    rendered = cameras.render("reach", 0, cell.qpos, "top")
    cameras.close()
    assert not np.array_equal(convert.color_array(heard[0]), rendered.color)

    refused = node.set_parameters([Parameter("sensor", value="kinect")])[0]
    assert (refused.successful, refused.reason) == (False, "unknown sensor 'kinect'; choose one of: d455, ideal")
    assert node.set_parameters([Parameter("sensor", value="ideal")])[0].successful
    source.on_state(state_of(cell, stamps_ns[2], at_rest=True))
    ros.until(lambda: len(heard) == len(stamps_ns) + 1)
    assert np.array_equal(convert.color_array(heard[-1]), rendered.color)


def test_cameras_that_render_nothing_imitate_nothing(ros: Ros, probe: Probe, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "grey.png"), np.full((HEIGHT, WIDTH, 3), 90, np.uint8))
    node = up(ros, CameraNode, source="folder", folder=str(tmp_path))
    refused = node.set_parameters([Parameter("sensor", value="d455")])[0]
    assert (refused.successful, refused.reason) == (False, "only cameras of the simulated cell imitate a sensor")
    ports = RosPorts(ros.add(Node, "experiment_node"), load_cell(), 1.0)
    ports.set_sensor("ideal")
    with pytest.raises(InfrastructureError, match="the cameras of this cell cannot imitate a sensor 'd455'"):
        ports.set_sensor("d455")


def test_images_without_a_subscriber_are_not_distorted(ros: Ros, probe: Probe) -> None:
    node = up(ros, DistortionNode, cameras=["top"], name="jpeg", level=3.0)
    message = convert.color_message(np.zeros((48, 64, 3), np.uint8), 1, "")
    node.on_image("top", message)
    assert node.counters["frames"] == 0
    infos = probe.listen(DistortionInfo, names.distortion_info("top"), names.SENSOR_QOS)
    ros.until(lambda: node.on_image("top", message) or infos)


def test_the_clock_of_a_cell_is_published_to_subscribers_alone(ros: Ros, probe: Probe) -> None:
    node = up(ros, MujocoCellNode)
    sent: list[Clock] = []
    publish = node.clock_publisher.publish
    node.clock_publisher.publish = lambda message: sent.append(message) or publish(message)  # type: ignore[method-assign]
    node.publish_joints()
    assert not sent
    heard = probe.listen(Clock, names.CLOCK, names.RELIABLE_QOS)
    ros.until(lambda: heard)
    assert convert.nanoseconds_of(heard[0].clock) == node.cell.time_ns


def test_a_cell_whose_gripper_has_a_linkage_is_published_with_it(ros: Ros, probe: Probe) -> None:
    up(ros, MujocoCellNode, gripper_linkage=True)
    described = probe.listen(String, names.ROBOT_DESCRIPTION, names.LATCHED_QOS)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: described and joints)
    assert 'name="finger_joint"' in described[-1].data
    assert joints[-1].name[6:] == ["gripper_left_finger_joint", "finger_joint"]


def test_a_cell_whose_gripper_has_a_linkage_is_rendered_with_it(ros: Ros, probe: Probe) -> None:
    cell = SimulatedCell(linkage=True)
    cell.reset("reach", 0)
    camera = up(ros, CameraNode, width=WIDTH, height=HEIGHT, gripper_linkage=True)
    wrist = probe.listen(Image, names.color("wrist"), names.SENSOR_QOS)
    ros.until(lambda: camera.source.viewed[0] == {"wrist"})
    camera.source.on_state(state_of(cell, 1000, at_rest=True))  # in the thread that has made the renderer
    ros.until(lambda: wrist)
    assert convert.color_array(wrist[-1]).std() > 10, "a blank picture"


def test_an_experiment_is_not_woken_by_joint_states_and_clock(ros: Ros) -> None:
    node = up(ros, ExperimentNode)
    topics = {subscription.topic_name.lstrip("/") for subscription in node.subscriptions}
    assert names.CELL_STATE in topics
    assert not topics & {names.JOINT_STATES, names.CLOCK.lstrip("/")}


class Simulation:
    """A cell with cameras, as a collector of views sees it."""

    def __init__(self, ros: Ros, probe: Probe) -> None:
        self.ros = ros
        self.collector = ViewCollector(ros.add(Node, "experiment_node"), load_cell(), lockstep=True)
        self.requests: list[FrameRequest] = probe.listen(FrameRequest, names.FRAME_REQUEST, names.RELIABLE_QOS)
        self.state = probe.create_publisher(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        create, qos = probe.create_publisher, names.SENSOR_QOS
        self.outputs = {
            camera: (
                create(Image, names.color(camera), qos),
                create(CameraInfo, names.color_info(camera), qos),
                create(Image, names.depth(camera), qos),
                create(Image, names.distorted(camera), qos),
                create(DistortionInfo, names.distortion_info(camera), qos),
            )
            for camera in CAMERAS
        }
        publishers = [self.state, *(publisher for five in self.outputs.values() for publisher in five)]
        ros.until(lambda: all(publisher.get_subscription_count() for publisher in publishers))
        ros.until(lambda: self.collector.requests.get_subscription_count())
        self.views: list[CellView] = []

    def look(self, *cameras: Any) -> threading.Thread:
        """Wait for a view in a thread."""
        thread = threading.Thread(target=lambda: self.views.append(self.collector.wait(stretched(60), *cameras)))
        thread.start()
        return thread

    def expose(self, camera: str, stamp_ns: int, *, depth: bool) -> None:
        """Publish the messages of a camera at one instant."""
        color, info, deep, distorted, distortion = self.outputs[camera]
        image = convert.color_message(np.full((HEIGHT, WIDTH, 3), 9, np.uint8), stamp_ns, "")
        color.publish(image)
        distorted.publish(image)
        info.publish(convert.camera_info_message(Intrinsics(WIDTH, HEIGHT, 50.0, 50.0, 31.5, 23.5), stamp_ns, ""))
        distortion.publish(DistortionInfo(header=image.header, name="reference"))
        if depth:
            deep.publish(convert.depth_message(np.ones((HEIGHT, WIDTH), np.float32), stamp_ns, ""))


def test_a_view_has_the_cameras_that_were_asked_for(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    simulation = Simulation(ros, probe)
    simulation.state.publish(state_of(cell, 1000, at_rest=True))
    waiting = simulation.look(("top", "side"), ("top",))
    ros.until(lambda: simulation.requests)
    assert (list(simulation.requests[0].color), list(simulation.requests[0].depth)) == (["top", "side"], ["top"])
    for camera in ("top", "side"):
        simulation.expose(camera, 1000, depth=camera == "top")
    waiting.join(stretched(60))
    view = simulation.views[0]
    assert list(view.reference) == list(view.distorted) == ["top", "side"]
    assert {camera: image.depth_m is not None for camera, image in view.reference.items()} == {
        "top": True,
        "side": False,
    }
    assert (view.joints_rad == cell.joints_rad).all(), "they come with the state"


def test_a_view_is_of_one_frame_and_of_the_matrix_of_its_topic(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    """Depth of another frame is not aligned; a rectified image, by a remapped topic, is described by P."""
    collector = Simulation(ros, probe).collector
    collector.color = collector.depth = ("top",)
    image = convert.color_message(np.full((HEIGHT, WIDTH, 3), 9, np.uint8), 1000, "top_color")
    info = convert.camera_info_message(Intrinsics(WIDTH, HEIGHT, 50.0, 50.0, 31.5, 23.5), 1000, "top_color")
    info.p[0] = 40.0
    messages: dict[str, Any] = {"top color": image, "top distorted": image, "top camera_info": info}
    deep = np.ones((HEIGHT, WIDTH), np.float32)
    messages["top depth"] = convert.depth_message(deep, 1000, "top_depth")
    with pytest.raises(InputError, match="depth is in the frame 'top_depth', colour in 'top_color'"):
        collector._view_of(state_of(cell, 1000, at_rest=True), 1000, messages)
    messages["top depth"] = convert.depth_message(deep, 1000, "top_color")
    view = collector._view_of(state_of(cell, 1000, at_rest=True), 1000, messages)
    assert (view.reference["top"].intrinsics.fx, collector.rectified) == (50.0, set())
    collector.rectified = {"top"}
    view = collector._view_of(state_of(cell, 1000, at_rest=True), 1000, messages)
    assert (view.reference["top"].intrinsics.fx, view.reference["top"].intrinsics.fy) == (40.0, 50.0)


def test_a_lost_request_is_repeated_with_the_state(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    simulation = Simulation(ros, probe)
    waiting = simulation.look(("side",), ())
    ros.until(lambda: len(simulation.requests) == 1)
    simulation.state.publish(state_of(cell, 1000, at_rest=True))
    ros.until(lambda: simulation.state.publish(state_of(cell, 1000, at_rest=True)) or len(simulation.requests) > 1)
    ros.until(lambda: simulation.expose("side", 1000, depth=False) or simulation.views)
    waiting.join(stretched(60))
    assert simulation.views[0].stamp_ns == 1000


def test_a_view_of_the_past_is_of_its_own_request(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    """Images of the same instant that an earlier view has left do not count; what was judged is of the present."""
    simulation = Simulation(ros, probe)
    past, rest = (state_of(cell, stamp_ns, at_rest=stamp_ns == 3000) for stamp_ns in (1000, 3000))
    past.joints.position = [position + 0.01 for position in past.joints.position]
    past.progress, rest.success = 0.5, True
    simulation.expose("top", 1000, depth=False)
    ros.until(lambda: len(simulation.collector.latest.messages) == 4)
    simulation.state.publish(rest)
    waiting = simulation.look(("top",), (), past)
    ros.until(lambda: simulation.requests)
    assert simulation.requests[0].past == past
    assert not simulation.collector.latest.messages.keys() & {"top color", "top distorted"}
    simulation.expose("top", 3000, depth=False)
    ros.until(lambda: len(simulation.collector.latest.messages) == 5)
    assert waiting.is_alive()
    simulation.expose("top", 1000, depth=False)
    waiting.join(30)
    view = simulation.views[0]
    assert (view.stamp_ns, view.reference["top"].stamp_ns, view.success) == (3000, 1000, True)
    assert (view.joints_rad == past.joints.position[:6]).all()
    assert len(simulation.requests) == 1


def test_a_view_without_cameras_waits_for_the_rest_alone(ros: Ros, probe: Probe, cell: SimulatedCell) -> None:
    simulation = Simulation(ros, probe)
    simulation.collector.minimum_stamp_ns = 2000
    waiting = simulation.look((), ())
    simulation.state.publish(state_of(cell, 1000, at_rest=True))
    simulation.state.publish(state_of(cell, 2000, at_rest=False))
    simulation.state.publish(state_of(cell, 3000, at_rest=True))
    waiting.join(stretched(60))
    assert [(view.stamp_ns, dict(view.reference)) for view in simulation.views] == [(3000, {})]
    assert not simulation.requests
