"""The names in the configurations of RViz, rqt and Foxglove exist. The programs are not needed: their files are read.

Classes of plugins are those of the public packages: rviz_default_plugins/plugins_description.xml and
rviz_common/src/rviz_common/panel_factory.cpp of ros2/rviz; plugin.xml of rqt_image_view, rqt_plot, rqt_service_caller
and rqt_runtime_monitor of ros-visualization. The keys of a perspective are those of qt_gui_core
(perspective_manager.py, plugin_manager.py) and of the plugins' restore_settings; panels of Foxglove as in its
documentation of panels and layouts.
"""

from __future__ import annotations

import ast
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import pytest
from merton_interfaces.msg import SafetyState
from merton_interfaces.srv import ConfirmSuccess
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from ruamel.yaml import YAML
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from merton.files import resource
from merton.simulation.model import urdf
from merton.world.cell import load_cell
from merton_nodes.arm.markers import MODES, safety_marker
from merton_nodes.recording.recorder_node import recorded_topics
from merton_nodes.ros import names

CAMERAS = load_cell().camera_names
TOPICS = {f"/{topic.lstrip('/')}": (kind, qos) for topic, kind, qos in recorded_topics(CAMERAS)}
SERVICES = {f"/{names.STOP}": Trigger, f"/{names.RESET_STOP}": Trigger, f"/{names.CONFIRM}": ConfirmSuccess}
MARKERS = {"path", "capsules", "contact", "safety"}
RVIZ_CLASSES = {
    "rviz_common/Displays",
    "rviz_common/Views",
    "rviz_common/Time",
    "rviz_default_plugins/Grid",
    "rviz_default_plugins/RobotModel",
    "rviz_default_plugins/TF",
    "rviz_default_plugins/MarkerArray",
    "rviz_default_plugins/Image",
    "rviz_default_plugins/MoveCamera",
    "rviz_default_plugins/Select",
    "rviz_default_plugins/FocusCamera",
    "rviz_default_plugins/Measure",
    "rviz_default_plugins/Orbit",
}
RQT_PLUGINS = {
    "rqt_image_view/ImageView",
    "rqt_plot/Plot",
    "rqt_runtime_monitor/RuntimeMonitor",
    "rqt_service_caller/ServiceCaller",
}
FOXGLOVE_PANELS = {"3D", "Image", "Plot", "StateTransitions", "RawMessages", "DiagnosticSummary", "CallService"}


def read(path: str) -> str:
    return resource("merton_bringup", f"config/{path}").read_text(encoding="utf-8")


def field(topic: str, path: str) -> str:
    """The type of a field of a topic's message; fails if there is none."""
    fields = TOPICS[topic][0].get_fields_and_field_types()
    assert path in fields, f"{topic} has no field {path}, but {', '.join(fields)}"
    return str(fields[path])


@pytest.fixture(scope="module")
def links() -> set[str]:
    return {str(link.get("name")) for link in ElementTree.fromstring(urdf()).findall("link")}


@pytest.fixture(scope="module")
def rviz() -> dict[str, Any]:
    return YAML(typ="safe").load(read("rviz/merton.rviz"))


def found(tree: Any, key: str) -> Iterator[Any]:
    """Every value of a key, however deep."""
    if isinstance(tree, dict):
        if key in tree:
            yield tree[key]
        for value in tree.values():
            yield from found(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from found(value, key)


def displays(rviz: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one for one in rviz["Visualization Manager"]["Displays"] if one["Class"].endswith(f"/{kind}")]


def test_rviz_uses_plugins_that_exist(rviz: dict[str, Any]) -> None:
    assert set(found(rviz, "Class")) - {""} == RVIZ_CLASSES


def test_rviz_subscribes_to_existing_topics_with_a_fitting_delivery(rviz: dict[str, Any]) -> None:
    wanted = {"RobotModel": String, "MarkerArray": MarkerArray, "Image": Image}
    for kind, message in wanted.items():
        for display in displays(rviz, kind):
            settings = display["Description Topic" if kind == "RobotModel" else "Topic"]
            published, qos = TOPICS[settings["Value"]]
            assert published is message
            if settings["Reliability Policy"] == "Reliable":
                assert qos.reliability == ReliabilityPolicy.RELIABLE, f"{settings['Value']} would never arrive"
            if settings["Durability Policy"] == "Transient Local":
                assert qos.durability == DurabilityPolicy.TRANSIENT_LOCAL, f"{settings['Value']} would never arrive"
    shown = {display["Topic"]["Value"] for display in displays(rviz, "Image")}
    assert shown == {f"/{topic(camera)}" for camera in CAMERAS for topic in (names.color, names.distorted)}


def test_rviz_names_frames_and_markers_that_exist(rviz: dict[str, Any], links: set[str]) -> None:
    assert {rviz["Visualization Manager"]["Global Options"]["Fixed Frame"], *found(rviz, "Target Frame")} <= links
    shown = {link for link in links if re.search(displays(rviz, "TF")[0]["Filter (whitelist)"], link)}
    assert shown == {"base_link", "tcp", *(names.optical_frame(camera) for camera in CAMERAS)}
    assert set(displays(rviz, "MarkerArray")[0]["Namespaces"]) == MARKERS


def test_rviz_opens_with_room_for_its_view(rviz: dict[str, Any]) -> None:
    """Seen in RViz 14.1.5: without a stored layout all docks lie over one another and leave the 3D view no width, and a
    dock that is shown enables its display. `Value` of an Image comes into effect before the QoS of its topic."""
    window = rviz["Window Geometry"]
    assert window["QMainWindow State"]
    assert (window["Hide Left Dock"], window["Hide Right Dock"]) == (False, False)
    images = {display["Name"]: display for display in displays(rviz, "Image")}
    assert {name for name, display in images.items() if display["Enabled"]} == {"Top, reference", "Top, distorted"}
    assert not any("Value" in display for display in images.values())


def test_the_safety_state_in_words() -> None:
    assert set(MODES) == {
        SafetyState.NORMAL,
        SafetyState.REDUCED,
        *range(SafetyState.COLLISION_STOP, SafetyState.FAULT + 1),
    }
    calm = safety_marker(SafetyState(mode=SafetyState.REDUCED))
    alarm = safety_marker(SafetyState(mode=SafetyState.EMERGENCY_STOP, message="stopped by request"))
    assert (calm.type, calm.ns, calm.text) == (Marker.TEXT_VIEW_FACING, "safety", "reduced")
    assert alarm.text == "EMERGENCY STOP: stopped by request"
    assert alarm.color.r > alarm.color.g
    assert calm.color.g > calm.color.r


def test_rqt_opens_plugins_that_exist_on_names_that_exist() -> None:
    manager = json.loads(read("rqt/merton.perspective"))["groups"]["pluginmanager"]
    running = ast.literal_eval(manager["keys"]["running-plugins"]["repr"])
    assert set(running) == RQT_PLUGINS
    groups = manager["groups"]
    expected = {f"plugin__{plugin.replace('/', '__')}__{n}" for plugin, numbers in running.items() for n in numbers}
    assert set(groups) == expected
    images, services = set(), set()
    for group, content in groups.items():
        keys = content["groups"]["plugin"]["keys"]
        values = {key: ast.literal_eval(value["repr"]) for key, value in keys.items()}
        if "ImageView" in group:
            assert TOPICS[values["topic"]][0] is Image
            images.add(values["topic"])
        elif "ServiceCaller" in group:
            services.add(values["current_service_name"])
        elif "Plot" in group:
            for path in values["topics"]:
                topic, _, name = path.rpartition("/")
                assert field(topic, name) in ("uint8", "double")
    assert images == {f"/{names.color('top')}", f"/{names.distorted('top')}"}
    assert services == set(SERVICES)


@pytest.fixture(scope="module")
def foxglove() -> dict[str, Any]:
    return json.loads(read("foxglove/merton.json"))


def test_foxglove_places_every_panel_once(foxglove: dict[str, Any]) -> None:
    placed: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, str):
            placed.append(node)
            return
        assert node["direction"] in ("row", "column")
        assert 0 < node["splitPercentage"] < 100
        walk(node["first"])
        walk(node["second"])

    walk(foxglove["layout"])
    assert sorted(placed) == sorted(foxglove["configById"])
    assert {panel.split("!")[0] for panel in placed} == FOXGLOVE_PANELS


def test_foxglove_shows_names_that_exist(foxglove: dict[str, Any], links: set[str]) -> None:
    panels = foxglove["configById"]
    scene = panels["3D!cell"]
    assert scene["followTf"] in links
    assert set(scene["topics"]) <= set(TOPICS)
    assert set(scene["topics"][f"/{names.ARM_MARKERS}"]["namespaces"]) == MARKERS
    assert TOPICS[scene["layers"]["robot"]["topic"]][0] is String
    for mode in found(panels, "imageMode"):
        assert TOPICS[mode["imageTopic"]][0] is Image
        if "calibrationTopic" in mode:
            assert TOPICS[mode["calibrationTopic"]][0] is CameraInfo
    for path in [entry["value"] for paths in found(panels, "paths") for entry in paths]:
        field(*path.split("."))
    for path in found(panels, "topicPath"):
        topic, _, name = path.partition(".")
        assert topic in TOPICS
        assert not name or field(topic, name)
    assert set(found(panels, "topicToRender")) == {"/diagnostics"}


def test_foxglove_calls_services_with_requests_they_take(foxglove: dict[str, Any]) -> None:
    called = {}
    for name, panel in foxglove["configById"].items():
        if name.startswith("CallService!"):
            kind = SERVICES[panel["serviceName"]]
            request = json.loads(panel["requestPayload"])
            assert set(request) == set(kind.Request.get_fields_and_field_types())
            called[panel["serviceName"]] = panel
    assert set(called) == set(SERVICES)
    assert not called[f"/{names.STOP}"]["editingMode"], "a button, and nothing but a button"


def test_the_monitor_opens_these_files() -> None:
    launch = resource("merton_bringup", "launch/monitor.launch.py")
    source = launch.read_text(encoding="utf-8")
    assert "config/rqt/merton.perspective" in source
    required = set(re.findall(r'"(rqt_\w+)"', source))
    assert required - {"rqt_gui"} == {plugin.split("/")[0] for plugin in RQT_PLUGINS}
