"""Gazebo's files, checked without Gazebo: robot, world, controllers and bridges fit each other.

`check_urdf` (Debian: liburdfdom-tools) and `ign sdf` (ignition-tools, libsdformat-dev) look at the files as Gazebo's
own parsers do, where they are installed.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pinocchio
import pytest
import xacro
from ruamel.yaml import YAML

from merton.errors import InputError, UnknownNameError
from merton.execution.kinematics import ROBOTS
from merton.files import resource
from merton.simulation import gazebo
from merton.simulation.gazebo import FRAME_PERIOD_S, Judge, Touch, Touches, link_of, normal_force_n
from merton.simulation.gazebo_props import movable_props
from merton.simulation.model import FINGER_LINKS, MATS, OBJECTS, urdf
from merton.simulation.scene import make_scene
from merton.simulation.surfaces import FRICTION, PAD_FRICTION, RGB
from merton.world import linkage
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, load_cell
from merton.world.geometry import Matrix, from_rpy, inverse, transform
from merton.world.tasks import PAD_LINKS, TASKS
from merton_nodes.ros import names
from patience import stretched
from sdf import numbers, sdformat

UR5 = ROBOTS["UR5"]

CELL = load_cell()
CAMERAS = ("top", "side", "wrist")
MOVING = ("shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link")
HAND = ("camera_wrist_link", "gripper_base_link", *FINGER_LINKS)
# From the table in ros_gz_bridge/README.md, branch jazzy (739cb42): ROS type to Gazebo type.
BRIDGED_TYPES = {
    "geometry_msgs/msg/PoseStamped": "gz.msgs.Pose",
    "ros_gz_interfaces/msg/Contacts": "gz.msgs.Contacts",
    "rosgraph_msgs/msg/Clock": "gz.msgs.Clock",
    "sensor_msgs/msg/CameraInfo": "gz.msgs.CameraInfo",
    "sensor_msgs/msg/Image": "gz.msgs.Image",
    "sensor_msgs/msg/JointState": "gz.msgs.Model",
    "std_msgs/msg/Bool": "gz.msgs.Boolean",
}
# What RgbdCameraSensor.cc of gz-sensors8 appends to a sensor's topic, and the types it sends.
CAMERA_TOPICS = {"image": "gz.msgs.Image", "depth_image": "gz.msgs.Image", "camera_info": "gz.msgs.CameraInfo"}
# File name to class name, as registered in gz-sim8 and gz_ros2_control (jazzy).
PLUGINS = {
    "gz-sim-physics-system": "gz::sim::systems::Physics",
    "gz-sim-user-commands-system": "gz::sim::systems::UserCommands",
    "gz-sim-scene-broadcaster-system": "gz::sim::systems::SceneBroadcaster",
    "gz-sim-contact-system": "gz::sim::systems::Contact",
    "gz-sim-sensors-system": "gz::sim::systems::Sensors",
    "gz-sim-joint-state-publisher-system": "gz::sim::systems::JointStatePublisher",
    "gz-sim-pose-publisher-system": "gz::sim::systems::PosePublisher",
    "gz_ros2_control-system": "gz_ros2_control::GazeboSimROS2ControlPlugin",
}
# Controller type to what it listens to and which command interfaces it takes (ros2_controllers, branch jazzy).
CONTROLLERS = {
    "joint_trajectory_controller/JointTrajectoryController": "joint_trajectory",
}


VARIANTS = [(hardware, fingers) for hardware in ("none", "gazebo") for fingers in ("sliding", "linkage")]


@lru_cache
def description(hardware: str, fingers: str = "sliding") -> str:
    source = resource("merton_description", "urdf/cell.urdf.xacro")
    mappings = {"hardware": hardware, "gripper_linkage": str(fingers == "linkage").lower()}
    return str(xacro.process_file(str(source), mappings=mappings).toprettyxml(indent="  "))


@lru_cache
def world_text() -> str:
    source = resource("merton_description", "urdf/worlds/cell.sdf.xacro")
    return str(xacro.process_file(str(source)).toprettyxml(indent="  "))


@pytest.fixture(scope="module")
def robot() -> ElementTree.Element:
    return ElementTree.fromstring(description("gazebo"))


@pytest.fixture(scope="module")
def world() -> ElementTree.Element:
    found = ElementTree.fromstring(world_text()).find("world")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> ElementTree.Element:
    """The robot as SDF: what Gazebo makes of the URDF."""
    file = tmp_path_factory.mktemp("converted") / "robot.urdf"
    file.write_text(description("gazebo"))
    model = ElementTree.fromstring(sdformat("-p", file)).find("model")
    assert model is not None
    return model


def pose_of(element: ElementTree.Element) -> Matrix:
    """The <pose> of an element of SDF, identity if it has none."""
    values = numbers(element.findtext("pose")) or [0.0] * 6
    return from_rpy(values[:3], values[3:])


def load(relative: str) -> object:
    return YAML(typ="safe").load(resource("merton_bringup", relative))


def shown(light: Sequence[float]) -> list[float]:
    """The sRGB values 0 .. 1 of a pixel in which a camera of Gazebo sees an amount of light (IEC 61966-2-1)."""
    return [12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055 for part in light]


# The robot ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hardware", "fingers"), VARIANTS)
def test_every_variant_passes_check_urdf(hardware: str, fingers: str, tmp_path: Path) -> None:
    tool = shutil.which("check_urdf")
    if tool is None:
        pytest.skip("no `check_urdf`: apt install liburdfdom-tools")
    file = tmp_path / "robot.urdf"
    file.write_text(description(hardware, fingers))
    ran = subprocess.run([tool, str(file)], capture_output=True, text=True, timeout=stretched(60))
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert "Successfully Parsed XML" in ran.stdout


def test_another_variant_is_refused() -> None:
    with pytest.raises(xacro.XacroException):
        description("moon")


def test_the_embedded_cell_simulates_the_plain_variant() -> None:
    assert description("none") == urdf()
    assert "gazebo" not in {element.tag for element in ElementTree.fromstring(description("none"))}


@pytest.mark.parametrize(("hardware", "fingers"), VARIANTS)
def test_kinematics_are_those_merton_computes_with(hardware: str, fingers: str) -> None:
    cell = load_cell(linkage=fingers == "linkage")
    model = pinocchio.buildModelFromXML(description(hardware, fingers))
    data = model.createData()
    for joints in np.random.default_rng(7).uniform(-np.pi, np.pi, (50, 6)):
        configuration = pinocchio.neutral(model)
        for name, angle in zip(ARM_JOINTS, joints, strict=True):
            configuration[model.joints[model.getJointId(name)].idx_q] = angle
        pinocchio.framesForwardKinematics(model, data, configuration)
        base, tool0, tcp = (data.oMf[model.getFrameId(name)].homogeneous for name in ("base_link", "tool0", "tcp"))
        expected = UR5.forward(joints)
        np.testing.assert_allclose(inverse(base) @ tool0, expected, atol=1e-9)
        np.testing.assert_allclose(inverse(base) @ tcp, expected @ cell.tool0_from_tcp, atol=1e-9)


@pytest.mark.parametrize(("hardware", "fingers"), VARIANTS)
def test_masses_and_inertias_are_those_of_solid_things(hardware: str, fingers: str) -> None:
    for link in ElementTree.fromstring(description(hardware, fingers)).findall("link"):
        inertial, name = link.find("inertial"), link.get("name")
        if inertial is None:
            assert not link.findall("collision"), f"{name} can be touched but weighs nothing"
            continue
        mass_kg = float(inertial.find("mass").get("value"))
        assert 0.0005 <= mass_kg <= 50, name
        value = {key: float(text) for key, text in inertial.find("inertia").attrib.items()}
        rows = [("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz")]
        moments = np.linalg.eigvalsh([[value[key] for key in row] for row in rows])
        assert moments[0] > 0, name
        assert moments[0] + moments[1] >= moments[2] * (1 - 1e-12), name
        if shapes := link.findall("collision"):
            low, high = bounding_box(shapes)
            if name == "base_link":
                high[2] = 0.08  # drawn lower than it is: the upper half of the real one is in the shoulder's drawing
            centre = np.array(numbers(inertial.find("origin").get("xyz")))
            assert (centre >= low).all(), name
            assert (centre <= high).all(), name
            assert moments[2] <= mass_kg * np.sum(((high - low) / 2) ** 2), name  # all of it in the corners


def bounding_box(shapes: list[ElementTree.Element]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box around URDF shapes, in the frame of their link [m]."""
    corners = []
    for shape in shapes:
        origin, solid = shape.find("origin"), shape.find("geometry")[0]
        if solid.tag == "box":
            half = np.array(numbers(solid.get("size"))) / 2
        else:
            radius = float(solid.get("radius"))
            half = np.array([radius, radius, float(solid.get("length")) / 2])
        place = from_rpy(numbers(origin.get("xyz")), numbers(origin.get("rpy")))
        signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
        corners.append(signs * half @ place[:3, :3].T + place[:3, 3])
    return np.concatenate(corners).min(axis=0) - 1e-9, np.concatenate(corners).max(axis=0) + 1e-9


def test_colours_of_the_robot_are_the_same_in_gazebo(converted: ElementTree.Element) -> None:
    """After the conversion to SDF, which divides them by 0.8."""
    plain = ElementTree.fromstring(description("none")).iterfind("material/color")
    expected = np.array([numbers(color.get("rgba")) for color in plain])[:, :3]
    seen = [shown(numbers(diffuse.text)[:3]) for diffuse in converted.iterfind(".//visual/material/diffuse")]
    assert len(seen) > 10
    for color in seen:
        assert np.abs(expected - color).max(axis=1).min() < 2e-3, color


@pytest.mark.parametrize("fingers", ["sliding", "linkage"])
def test_the_gripper_never_reaches_a_limit_of_a_joint(fingers: str) -> None:
    """A servo of DART (6.12) at its end, at 1e-9 m beyond, or at its greatest speed, does not follow its command."""
    driven, *others = [linkage.JOINT, *linkage.MIMICS] if fingers == "linkage" else FINGER_JOINTS
    plain, limits = (
        {
            joint.get("name"): joint.find("limit").attrib
            for joint in ElementTree.fromstring(text).findall("joint[limit]")
        }
        for text in (description("none", fingers), description("gazebo", fingers))
    )
    for name in (driven, *others):
        real, here = ({key: float(text) for key, text in limit[name].items()} for limit in (plain, limits))
        assert here["lower"] <= real["lower"] - 0.001
        assert here["upper"] >= real["upper"] + 0.001
        assert here["velocity"] >= 5 * real["velocity"]
        assert here["effort"] == real["effort"] * (1 if name == driven else 2), "a joint that mimics has to follow"


def test_gazebo_loses_no_link_joint_or_shape(robot: ElementTree.Element, converted: ElementTree.Element) -> None:
    """A link without mass takes all that hangs on it with it: so it was before frames had a gram."""
    moving = [joint.get("name") for joint in robot.findall("joint") if joint.get("type") != "fixed"]
    assert [joint.get("name") for joint in converted.findall("joint") if joint.get("type") != "fixed"] == moving
    assert len(converted.findall("link/collision")) == len(robot.findall("link/collision"))
    assert {link.get("name") for link in converted.findall("link")} == {"base_link", *MOVING, *HAND}
    mass_kg = sum(float(link.findtext("inertial/mass")) for link in converted.findall("link"))
    assert mass_kg == pytest.approx(sum(float(link.find("mass").get("value")) for link in robot.iter("inertial")))


def test_every_shape_that_moves_reports_its_touches(converted: ElementTree.Element) -> None:
    for link in converted.findall("link"):
        shapes = [shape.get("name") for shape in link.findall("collision")]
        for shape in shapes:
            if link.get("name") != "base_link":  # which stands on the table, always
                assert link_of(f"cell::{link.get('name')}::{shape}") == link.get("name")
        sensed = [
            shape.text
            for sensor in link.findall("sensor[@type='contact']")
            for shape in sensor.findall("contact/collision")
        ]
        assert sensed == ([] if link.get("name") == "base_link" else shapes)
        assert {topic.text for topic in link.iterfind("sensor/contact/topic")} <= {"/cell/contacts"}


def test_cameras_look_where_the_configuration_says(converted: ElementTree.Element) -> None:
    sensors = {
        sensor.get("name"): (link, sensor)
        for link in converted.findall("link")
        for sensor in link.findall("sensor[@type='rgbd_camera']")
    }
    assert set(sensors) == {f"camera_{name}" for name in CAMERAS} == {f"camera_{name}" for name in CELL.camera_names}
    optical_from_sensor = np.eye(4)
    optical_from_sensor[:3, :3] = [[0, -1, 0], [0, 0, -1], [1, 0, 0]]  # x forward, y left, z up
    for name in CAMERAS:
        link, sensor = sensors[f"camera_{name}"]
        assert sensor.findtext("topic") == f"camera/{name}"
        assert sensor.findtext("camera/optical_frame_id") == names.optical_frame(name)
        if name == "wrist":  # its housing stays a link of its own, whose place is checked with the URDF
            assert link.get("name") == "camera_wrist_link"
            np.testing.assert_allclose(pose_of(sensor), np.eye(4), atol=1e-5)
        else:
            assert link.get("name") == "base_link"
            expected = CELL.base_from_camera(name) @ optical_from_sensor
            np.testing.assert_allclose(pose_of(sensor), expected, atol=1e-5)
        width = float(sensor.findtext("camera/image/width"))
        assert (width, float(sensor.findtext("camera/image/height"))) == (CELL.cameras.width, CELL.cameras.height)
        fov_rad = float(sensor.findtext("camera/horizontal_fov"))
        assert width / 2 / math.tan(fov_rad / 2) == pytest.approx(CELL.cameras.fx, rel=1e-5)


def test_frames_come_at_instants_that_physics_has(robot: ElementTree.Element, world: ElementTree.Element) -> None:
    triggered = [camera.text for camera in robot.iterfind("gazebo/sensor[@type='rgbd_camera']/camera/triggered")]
    assert triggered == ["true"] * 3, "no frame but those that gazebo_cell_node asks for"
    step_s = float(world.findtext("physics/max_step_size"))
    assert FRAME_PERIOD_S / step_s == pytest.approx(round(FRAME_PERIOD_S / step_s))
    controllers = load("config/gazebo/controllers.yaml")
    assert controllers["controller_manager"]["ros__parameters"]["update_rate"] * step_s == 1


# Controllers ----------------------------------------------------------------------------------------------------------


def test_ros2_control_has_every_joint_and_starts_at_home(robot: ElementTree.Element) -> None:
    control = robot.find("ros2_control")
    assert control.findtext("hardware/plugin") == "gz_ros2_control/GazeboSimSystem"
    joints = {joint.get("name"): joint for joint in control.findall("joint")}
    assert tuple(joints) == ARM_JOINTS + FINGER_JOINTS
    assert set(joints) <= {joint.get("name") for joint in robot.findall("joint")}
    start = [float(joint.findtext("state_interface/param")) for joint in joints.values()]
    np.testing.assert_allclose(start, [*CELL.home_joints, *[CELL.gripper.stroke / 2] * 2])
    commanded = [name for name, joint in joints.items() if joint.find("command_interface") is not None]
    assert commanded == [*ARM_JOINTS, FINGER_JOINTS[0]], "a joint that mimics another must not be commanded"
    mimic = robot.find(f"joint[@name='{FINGER_JOINTS[1]}']/mimic")
    assert mimic.get("joint") == FINGER_JOINTS[0]
    for joint in joints.values():
        assert {interface.get("name") for interface in joint.findall("state_interface")} == {"position", "velocity"}


def test_controllers_have_the_joints_and_topics_of_the_cell(robot: ElementTree.Element) -> None:
    config = load("config/gazebo/controllers.yaml")
    manager = config["controller_manager"]["ros__parameters"]
    types = {name: entry["type"] for name, entry in manager.items() if isinstance(entry, dict)}
    topics = {f"{name}/{CONTROLLERS[kind]}" for name, kind in types.items() if CONTROLLERS[kind]}
    assert topics == {names.GAZEBO_ARM, names.GAZEBO_FINGERS, names.GAZEBO_LINKAGE}
    assert set(config) <= {"controller_manager", *types}
    joints = {joint.get("name"): joint for joint in robot.findall("ros2_control/joint")}
    arm, gripper = (
        config[topic.split("/")[0]]["ros__parameters"] for topic in (names.GAZEBO_ARM, names.GAZEBO_FINGERS)
    )
    assert tuple(arm["joints"]) == ARM_JOINTS
    assert gripper["joints"] == [FINGER_JOINTS[0]]
    for joint in [*arm["joints"], *gripper["joints"]]:
        interfaces = {interface.get("name") for interface in joints[joint].findall("command_interface")}
        assert set(arm["command_interfaces"]) == set(gripper["command_interfaces"]) == interfaces == {"position"}
        states = {interface.get("name") for interface in joints[joint].findall("state_interface")}
        assert set(arm["state_interfaces"]) == set(gripper["state_interfaces"]) == states
    launch = (Path(__file__).parents[3] / "launch/gazebo.launch.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in launch for name in types), "the launch file must activate every controller"


def test_a_linkage_is_driven_by_its_own_controller_and_seen_with_all_its_joints() -> None:
    robot = ElementTree.fromstring(description("gazebo", "linkage"))
    joints = {joint.get("name"): joint for joint in robot.findall("ros2_control/joint")}
    assert set(joints) == {*ARM_JOINTS, linkage.JOINT, *linkage.MIMICS}
    assert {float(joints[name].findtext("state_interface/param")) for name in (linkage.JOINT, *linkage.MIMICS)} == {0.0}
    commanded = [name for name, joint in joints.items() if joint.find("command_interface") is not None]
    assert commanded == [*ARM_JOINTS, linkage.JOINT], "a joint that mimics another must not be commanded"
    controller = load("config/gazebo/controllers.yaml")[names.GAZEBO_LINKAGE.split("/")[0]]["ros__parameters"]
    assert (controller["joints"], controller["command_interfaces"]) == ([linkage.JOINT], ["position"])


@pytest.mark.parametrize("fingers", ["sliding", "linkage"])
def test_every_shape_of_the_hand_is_in_a_contact_sensor(fingers: str) -> None:
    robot = ElementTree.fromstring(description("gazebo", fingers))
    for link in robot.findall("link"):
        name, shapes = link.get("name"), len(link.findall("collision"))
        sensed = robot.findall(f"gazebo[@reference='{name}']/sensor[@type='contact']/contact/collision")
        if name.startswith("gripper_"):
            assert shapes
            assert [shape.text for shape in sensed] == [
                f"{name}_collision{f'_{number}' if number else ''}" for number in range(shapes)
            ]


# The world ------------------------------------------------------------------------------------------------------------


def test_the_world_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "cell.sdf"
    file.write_text(world_text())
    assert sdformat("-k", file).strip() == "Valid."


def test_the_converted_robot_is_valid(converted: ElementTree.Element, tmp_path: Path) -> None:
    file = tmp_path / "robot.sdf"
    file.write_text(f'<sdf version="1.9">{ElementTree.tostring(converted, encoding="unicode")}</sdf>')
    assert sdformat("-k", file).strip() == "Valid."


def test_version_and_plugins(robot: ElementTree.Element, world: ElementTree.Element) -> None:
    assert ElementTree.fromstring(world_text()).get("version") == "1.9"
    assert world.get("name") == gazebo.WORLD
    assert f"/world/{gazebo.WORLD}/set_pose" == names.GAZEBO_SET_POSE
    assert f"/world/{gazebo.WORLD}/control" == names.GAZEBO_CONTROL
    assert f"/world/{gazebo.WORLD}/create" == names.GAZEBO_CREATE
    assert f"/world/{gazebo.WORLD}/remove" == names.GAZEBO_REMOVE
    plugins = {plugin.get("filename"): plugin.get("name") for tree in (robot, world) for plugin in tree.iter("plugin")}
    assert {file: plugins[file] for file in plugins if file} == PLUGINS
    assert world.findtext("plugin/render_engine") == "ogre2"


def test_table_and_walls_are_those_of_the_robot_description(world: ElementTree.Element) -> None:
    plain = ElementTree.fromstring(description("none"))
    fixtures = {"table", *(f"wall_{wall.name}" for wall in CELL.walls)}
    for name in fixtures:
        model, link = world.find(f"model[@name='{name}']"), plain.find(f"link[@name='{name}']")
        assert model.findtext("static") == "true"
        box = link.find("collision")
        assert numbers(model.findtext("link/collision/geometry/box/size")) == pytest.approx(
            numbers(box.find("geometry/box").get("size"))
        )
        np.testing.assert_allclose(pose_of(model)[:3, 3], numbers(box.find("origin").get("xyz")), atol=1e-12)
        friction = float(model.findtext("link/collision/surface/friction/ode/mu"))
        assert friction == FRICTION[0] < PAD_FRICTION[0], "the lesser of two surfaces' counts"
    assert fixtures.isdisjoint(link.get("name") for link in ElementTree.fromstring(description("gazebo")))
    floor = world.find("model[@name='floor']")
    assert pose_of(floor)[2, 3] == CELL.floor.z


def test_the_world_has_the_pool_of_objects_and_mats(world: ElementTree.Element) -> None:
    models = {model.get("name"): model for model in world.findall("model")}
    parked = gazebo.parked(CELL)
    assert set(parked) == {*OBJECTS, *MATS}
    fixtures = {"floor", "table", *(f"wall_{wall.name}" for wall in CELL.walls)}
    assert set(models) == {gazebo.model_name(name) for name in parked} | fixtures
    sizes, mass_kg = CELL.objects, CELL.objects.mass
    for name, place in parked.items():
        model = models[gazebo.model_name(name)]
        color, shape = name.split()
        np.testing.assert_allclose(pose_of(model), place, atol=1e-9)
        assert shown(numbers(model.findtext("link/visual/material/diffuse"))[:3]) == pytest.approx(RGB[color], abs=1e-3)
        if shape == "mat":
            assert model.findtext("static") == "true"
            assert model.find("link/collision") is None, "a mat is paint"
            assert float(model.findtext("link/visual/geometry/cylinder/radius")) == sizes.mat_radius
            continue
        assert float(model.findtext("link/inertial/mass")) == mass_kg
        assert float(model.findtext("link/collision/surface/friction/ode/mu")) == PAD_FRICTION[0]
        inertia = {part.tag: float(part.text) for part in model.find("link/inertial/inertia")}
        geometry = model.find("link/collision/geometry")
        if shape == "cube":
            assert numbers(geometry.findtext("box/size")) == [sizes.cube_edge] * 3
            across = along = mass_kg * sizes.cube_edge**2 / 6
        else:
            radius, height = sizes.cylinder_diameter / 2, sizes.cylinder_height
            assert float(geometry.findtext("cylinder/radius")) == pytest.approx(radius)
            assert float(geometry.findtext("cylinder/length")) == pytest.approx(height)
            across, along = mass_kg * (3 * radius**2 + height**2) / 12, mass_kg * radius**2 / 2
        assert (inertia["ixx"], inertia["iyy"], inertia["izz"]) == pytest.approx((across, across, along))
        assert model.findtext("plugin/publish_model_pose") == "true"
        assert model.findtext("plugin/use_pose_vector_msg") == "false"


def test_parked_things_are_in_no_fixed_camera_s_view() -> None:
    for name in ("top", "side"):
        camera_from_base = inverse(CELL.base_from_camera(name))
        for place in gazebo.parked(CELL).values():
            point = (camera_from_base @ place)[:3, 3]
            if point[2] <= 0:
                continue
            u_px, v_px = CELL.intrinsics.project(point)
            assert not (-20 < u_px < CELL.intrinsics.width + 20 and -20 < v_px < CELL.intrinsics.height + 20)


# Bridges --------------------------------------------------------------------------------------------------------------


def test_joint_states_come_from_the_simulator_itself(robot: ElementTree.Element) -> None:
    plugin = robot.find(".//plugin[@filename='gz-sim-joint-state-publisher-system']")
    assert tuple(joint.text for joint in plugin.findall("joint_name")) == ARM_JOINTS + FINGER_JOINTS
    assert plugin.find("update_rate") is None, "every step: frames too have one"


def test_poses_are_reported_at_every_frame(world: ElementTree.Element) -> None:
    for rate in world.iterfind(".//plugin[@filename='gz-sim-pose-publisher-system']/update_frequency"):
        assert (FRAME_PERIOD_S * float(rate.text)).is_integer()


def test_the_renderer_is_asked_at_every_step(world: ElementTree.Element) -> None:
    """gz-sim 8 hangs after a trigger if a step asks for no rendering: see docs/lab/gazebo.md."""
    (sensor,) = world.iter("sensor")
    assert (sensor.get("type"), sensor.findtext("topic")) == ("camera", "renderer/image")
    assert sensor.find("camera/triggered") is None
    assert float(sensor.findtext("update_rate")) * float(world.findtext("physics/max_step_size")) == 1
    bridged = {bridge["gz_topic_name"]: bridge["ros_topic_name"] for bridge in load("config/gazebo/bridge.yaml")}
    assert bridged["/" + sensor.findtext("camera/camera_info_topic")] == names.GAZEBO_RENDERER
    assert "/renderer/image" not in bridged, "it is never rendered"


def test_bridges_carry_gazebo_s_topics_to_those_of_the_cell(
    robot: ElementTree.Element, world: ElementTree.Element
) -> None:
    offered = {"/clock": "gz.msgs.Clock"}
    for sensor in robot.iter("sensor"):
        if sensor.get("type") == "contact":
            offered[sensor.findtext("contact/topic")] = "gz.msgs.Contacts"
        else:
            offered |= {f"/{sensor.findtext('topic')}/{part}": kind for part, kind in CAMERA_TOPICS.items()}
    for plugin in robot.iterfind(".//plugin[@filename='gz-sim-joint-state-publisher-system']"):
        offered[plugin.findtext("topic")] = "gz.msgs.Model"
    for model in world.findall("model"):
        if model.find("plugin[@filename='gz-sim-pose-publisher-system']") is not None:
            offered[f"/model/{model.get('name')}/pose"] = "gz.msgs.Pose"
    offered["/renderer/camera_info"] = "gz.msgs.CameraInfo"
    offered |= {f"/model/{prop}/pose": "gz.msgs.Pose" for prop in movable_props()}
    bridges = load("config/gazebo/bridge.yaml")
    triggers = {trigger.text for trigger in robot.iter("trigger_topic")}
    (trigger,) = [bridge for bridge in bridges if bridge["direction"] == "ROS_TO_GZ"]
    bridges.remove(trigger)
    assert {trigger["gz_topic_name"]} == triggers
    assert (trigger["ros_topic_name"], trigger["ros_type_name"]) == (names.GAZEBO_TRIGGER, "std_msgs/msg/Bool")
    assert BRIDGED_TYPES[trigger["ros_type_name"]] == trigger["gz_type_name"]
    for bridge in bridges:
        assert set(bridge) == {"ros_topic_name", "gz_topic_name", "ros_type_name", "gz_type_name", "direction"}
        assert bridge["direction"] == "GZ_TO_ROS"
        assert BRIDGED_TYPES[bridge["ros_type_name"]] == bridge["gz_type_name"]
        assert offered.pop(bridge["gz_topic_name"]) == bridge["gz_type_name"]
    assert not offered, "published and not bridged"
    wanted = {names.CLOCK, names.GAZEBO_CONTACTS, names.GAZEBO_JOINT_STATES, names.GAZEBO_RENDERER}
    wanted |= {names.gazebo_pose(model) for model in (*gazebo.moving_models(), *movable_props())}
    wanted |= {topic(camera) for camera in CAMERAS for topic in (names.color, names.color_info, names.depth)}
    assert {bridge["ros_topic_name"] for bridge in bridges} == wanted
    assert len(bridges) == len(wanted)
    by_topic = {bridge["ros_topic_name"]: bridge["gz_topic_name"] for bridge in bridges}
    for camera in CAMERAS:
        assert by_topic[names.color(camera)] == f"/camera/{camera}/image"
        assert by_topic[names.depth(camera)] == f"/camera/{camera}/depth_image"
        assert by_topic[names.color_info(camera)] == f"/camera/{camera}/camera_info"
    for name in OBJECTS:
        model = gazebo.model_name(name)
        assert by_topic[names.gazebo_pose(model)] == f"/model/{model}/pose"


# What the library makes of it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fingers", ["sliding", "linkage"])
def test_gazebo_gets_the_robot_without_mimics_and_else_as_it_is(fingers: str) -> None:
    """Its physics engine has none, and says so in an error at every start; gz_ros2_control has its own."""
    text = description("gazebo", fingers)
    whole, bare = ElementTree.fromstring(text), ElementTree.fromstring(gazebo.without_mimics(text))
    mimicking = whole.findall("joint[mimic]")
    assert len(mimicking) == (1 if fingers == "sliding" else 5)
    assert bare.find(".//mimic") is None
    for joint in mimicking:
        joint.remove(joint.find("mimic"))
    assert ElementTree.canonicalize(ElementTree.tostring(bare), strip_text=True) == ElementTree.canonicalize(
        ElementTree.tostring(whole), strip_text=True
    )
    interfaces = bare.findall("ros2_control/joint")
    assert {joint.get("name") for joint in mimicking} <= {joint.get("name") for joint in interfaces}


@pytest.mark.parametrize("fingers", ["sliding", "linkage"])
def test_gazebo_makes_every_joint_and_shape_of_that_file(fingers: str, tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text(gazebo.without_mimics(description("gazebo", fingers)))
    whole = ElementTree.fromstring(description("gazebo", fingers))
    model = ElementTree.fromstring(sdformat("-p", file)).find("model")
    assert model is not None
    assert model.find(".//mimic") is None
    moving = [
        sorted(str(joint.get("name")) for joint in tree.findall("joint") if joint.get("type") != "fixed")
        for tree in (whole, model)
    ]
    assert moving[0] == moving[1]
    assert len(model.findall("link/collision")) == len(whole.findall("link/collision"))


def test_the_tasks_of_the_quickstart_of_gazebo_run_there() -> None:
    tasks = load("config/experiments/gazebo_quickstart.yaml")["tasks"]
    assert set(tasks) <= set(gazebo.tasks_in_gazebo()) < set(TASKS)
    for task in gazebo.tasks_in_gazebo():
        scene = gazebo.gazebo_scene(task, 5)
        assert scene == make_scene(task, 5)
        objects = gazebo.places(scene, CELL).keys() - set(scene.props)
        assert objects <= gazebo.parked(CELL).keys()
    with pytest.raises(InputError, match=r"no beads .*'pour'.*reach"):
        gazebo.gazebo_scene("pour", 0)
    with pytest.raises(UnknownNameError):
        gazebo.gazebo_scene("juggle", 0)


def test_things_stand_where_the_scene_says() -> None:
    scene = make_scene("place", 4)
    standing = gazebo.places(scene, CELL)
    for name, (x, y, yaw) in scene.placements.items():
        height = CELL.objects.cube_edge if name.endswith("cube") else CELL.objects.cylinder_height
        np.testing.assert_allclose(standing[name][:3, 3], (x, y, height / 2))
        np.testing.assert_allclose(standing[name][:3, 0], (math.cos(yaw), math.sin(yaw), 0), atol=1e-12)
    for name, (x, y) in scene.mats.items():
        np.testing.assert_allclose(standing[name], transform((x, y, 0)))


def test_names_of_collision_shapes() -> None:
    assert link_of("cell::forearm_link::forearm_link_collision_1") == "forearm_link"
    assert link_of("red_cube::red_cube::red_cube_collision") == "red_cube"
    with pytest.raises(InputError, match="model::link::shape"):
        link_of("table")


def test_force_along_the_normal() -> None:
    assert normal_force_n([(1, 2, 3), (0, 0, -4)], [(0, 0, 1), (0, 0, 1)]) == pytest.approx(7)
    assert normal_force_n([(3, 0, 4)], []) == pytest.approx(5)
    assert math.isnan(normal_force_n([], []))


def test_which_touch_stops_the_arm() -> None:
    limit_n = CELL.simulation.pad_force_limit
    for link, other, force_n, stops in [
        ("forearm_link", "table", 0.1, True),
        ("forearm_link", "wall_left", math.nan, True),
        ("forearm_link", "table", 0.0, False),
        ("forearm_link", "red_cube", 50.0, False),
        ("gripper_left_pad", "table", limit_n - 0.1, False),
        ("gripper_left_pad", "table", limit_n + 0.1, True),
        ("gripper_left_pad", "table", math.nan, False),
    ]:
        touches = Touches(CELL)
        assert touches.update([Touch(link, other, force_n)], 1_000_000_000) is stops, (link, other, force_n)
        assert touches.stopped is stops
    touches = Touches(CELL)
    halves = [Touch("gripper_left_finger", "table", 0.6 * limit_n)] * 2
    assert touches.update(halves, 0), "two shapes of a link press together"
    assert touches.contact.force_n == pytest.approx(1.2 * limit_n)
    assert not touches.update([Touch("forearm_link", "table", 9.0)], 1), "the first reason stays"
    assert touches.contact.link_a == "gripper_left_finger"


def test_after_a_release_links_may_go_on_touching_until_they_have_parted() -> None:
    touches, pressed = Touches(CELL), [Touch("forearm_link", "table", 5.0)]
    assert touches.update(pressed, 0)
    touches.release(10_000_000)
    assert not touches.stopped
    for stamp_ns in range(12_000_000, 100_000_000, 2_000_000):
        assert not touches.update(pressed, stamp_ns)
    assert touches.update(pressed, 500_000_000), "they had parted"
    touches.clear()
    assert not touches.stopped


def models(poses: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """Poses of things by the names of their models."""
    return {gazebo.model_name(name): pose for name, pose in poses.items()}


def test_the_judge_is_that_of_the_embedded_cell() -> None:
    scene = make_scene("reach", 2)
    judge, touches = Judge(CELL), Touches(CELL)
    assert not judge.judged(np.zeros(3), touches, 0).success
    assert judge.scene_state().objects == ()
    judge.poses |= models(gazebo.parked(CELL) | gazebo.places(scene, CELL))
    judge.begin(scene, np.zeros(3))
    goal = judge.poses[gazebo.model_name(scene.command.object)][:3, 3]
    assert judge.judged(np.add(goal, (0, 0, 0.1)), touches, 0).success
    assert not judge.judged(np.add(goal, (0, 0, 0.2)), touches, 0).success
    assert {item.name for item in judge.scene_state().objects} == set(scene.placements)

    scene = make_scene("pick", 2)
    judge.poses |= models(gazebo.places(scene, CELL))
    judge.begin(scene, np.zeros(3))
    name = scene.command.object
    model = gazebo.model_name(name)
    judge.poses[model] = transform((0, 0, 0.1)) @ judge.poses[model]
    assert not judge.judged(goal, touches, 0).success, "lifted, but not by the gripper"
    for pad in PAD_LINKS:
        touches.update([Touch(pad, model, 20.0)], 0)
    assert not touches.stopped
    assert touches.touching(name, 10_000_000) == set(PAD_LINKS)
    assert judge.judged(goal, touches, 10_000_000).success
    assert not judge.judged(goal, touches, 900_000_000).success, "let go"
