"""The SROS 2 policy and the graph agree: all endpoints of nodes are allowed, and no other process commands the arm."""

from __future__ import annotations

import contextlib
import importlib
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import UInt8
from trajectory_msgs.msg import JointTrajectoryPoint

from merton.graph.lab import lab_variant
from merton.graph.spec import load_graph
from merton.graph.supervisor import claim_domain, enclave, ros_arguments
from merton_nodes.cameras.calibration_collector import CalibrationCollector
from merton_nodes.cell.ur_driver_reports import DriverMessages
from merton_nodes.experiment.run_experiment import Client
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode
from ros import Probe, Ros
from security import KINDS, POLICY, Permissions, enclaves, used

GRAPHS = ("sim", "replay", "lab")
"""Gazebo and its bridges have no part in the policy: they are a simulator on one machine."""
CAMERAS = ["wrist", "top", "side"]
PARAMETERS: dict[str, dict[str, Any]] = {
    "experiment_node": {"success": "operator"},
    "arm_node": {"watch_cameras": CAMERAS},
}
"""Parameters with which a node uses all of its endpoints."""
BESIDE = {"arm_node": ["stop_node"], "monitor_node": ["monitor_controls"], "ur_driver_node": ["ur_driver_guard"]}
"""Nodes that live in the process of another, or in one that it starts with its own keys."""
FOREIGN = {"robot_state_publisher", "operator"}
"""Processes whose nodes are not Merton's."""
WITHOUT_HARDWARE = ("gripper_opening_m", 0.1), ("reading", None), ("error", "")


class NoHardware:
    """In place of the connections to arm and gripper: answers nothing."""

    def __init__(self, *_: object) -> None:
        vars(self).update(WITHOUT_HARDWARE)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def programs() -> list[str]:
    """Every program of the graphs, those an argument adds included."""
    graphs = [load_graph(name) for name in GRAPHS]
    graphs.append(lab_variant(load_graph("lab"), "ros2_control"))
    return sorted({node.executable for graph in graphs for node in (*graph.nodes, *graph.optional)} | {"monitor_node"})


def stand_in_messages() -> DriverMessages:
    """The driver's are not among the wheels; keys know names, not types."""
    return DriverMessages(UInt8, UInt8, lambda _: JointTrajectoryPoint())


def stage_class(program: str) -> type[StageNode]:
    """The node of a program."""
    (entry,) = entry_points(group="console_scripts", name=program)
    module = importlib.import_module(entry.module)
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, StageNode)]
    return next(kind for kind in kinds if kind.__module__ == module.__name__)


@pytest.fixture
def ros(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ros]:
    """In an unused domain: the graph remembers killed nodes of earlier tests for a while."""
    domain, claim = claim_domain()
    with claim:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        ros = Ros()
        try:
            yield ros
        finally:
            ros.close()


@pytest.fixture
def started(ros: Ros, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    """Every node of the graphs, active, and one that observes them."""
    monkeypatch.setattr("merton_nodes.cell.ur_robot_node.RtdeRobot", NoHardware)
    monkeypatch.setattr("merton_nodes.cell.robot_node.UrcapGripper", NoHardware)
    files = {
        "recorder_node": {"path": str(tmp_path / "recording.mcap")},
        "monitor_node": {"port": 0, "log": str(tmp_path / "presses.jsonl")},
        "arm_node": {"min_image_quality": 0.5},  # else it does not listen to it
    }
    for program in programs():
        overrides = [Parameter(name, value=value) for name, value in (PARAMETERS | files).get(program, {}).items()]
        own = {"messages": stand_in_messages} if program == "ur_driver_node" else {}
        node = stage_class(program)(context=ros.context, parameter_overrides=overrides, **own)
        ros.nodes.append(node)  # and no executor: they need not do anything
        assert node.trigger_configure().name == "SUCCESS", program
        assert node.trigger_activate().name == "SUCCESS", program
    ros.add(Client)
    ros.add(CalibrationCollector, "top", tmp_path)
    probe = ros.add(Probe)
    ros.until(lambda: "ur_driver_guard" in probe.get_node_names())  # a process: it takes its time
    return probe


def test_the_policy_allows_exactly_the_endpoints_of_the_nodes(ros: Ros, started: Node) -> None:
    policy = enclaves()
    all_programs = [*programs(), "run_experiment", "calibration_collector"]
    assert [program for program in all_programs if program not in policy] == [], "policy.xml lacks an enclave"
    uses: dict[str, Permissions] = {}

    def idle() -> list[str]:
        """Rights without a holder so far: endpoints are discovered bit by bit."""
        uses.update({program: used(started, [program, *BESIDE.get(program, [])]) for program in all_programs})
        known = {name for use in uses.values() for how in KINDS for name in getattr(use, how)}
        return [
            f"{program} may {how} {pattern}"
            for program in sorted(policy.keys() - FOREIGN)
            for how in KINDS
            for pattern in sorted(getattr(policy[program], how))
            if not any(Permissions(**{how: {pattern}}).allow(how, name) for name in known)
        ]

    with contextlib.suppress(AssertionError):
        ros.until(lambda: not idle())
    assert idle() == [], "policy.xml has rights without a holder"
    for program, use in uses.items():
        assert use.publish, f"{program} is not there"
        for how in KINDS:
            refused = {name for name in getattr(use, how) if not policy[program].allow(how, name)}
            assert not refused, f"policy.xml must allow {program} to {how}: {sorted(refused)}"


def may(how: str, name: str) -> set[str]:
    return {program for program, permissions in enclaves().items() if permissions.allow(how, f"/{name}")}


def test_distortion_node_may_listen_to_depth_before_it_does() -> None:
    """It subscribes with the first fault of depth, so an idle node does not hold this right."""
    assert "distortion_node" in may("subscribe", names.depth("top")) & may("publish", names.distorted_depth("top"))


def test_one_process_commands_the_arm() -> None:
    assert may("publish", names.TRAJECTORY) == {"arm_node"}
    assert may("publish", names.GRIPPER) == {"arm_node"}
    assert may("publish", names.HEARTBEAT) == {"arm_node"}
    assert may("publish", names.ARM_SAFETY) == {"arm_node"}
    assert may("publish", names.DRIVER_TRAJECTORY) == {"ur_driver_node"}
    assert may("request", names.DRIVER_UNLOCK) == {"ur_driver_node", "operator"}
    for service in (names.STOP, names.RESET_STOP, names.RELEASE_COLLISION):
        assert may("reply", service) == {"arm_node"}


def test_all_may_stop_and_few_may_release() -> None:
    assert may("request", names.STOP) == set(enclaves())
    assert may("request", names.RESET_STOP) == {"operator", "monitor_node"}
    assert may("request", names.RELEASE_COLLISION) == {"experiment_node", "operator"}
    assert may("request", names.CELL_RELEASE) == {"arm_node", "operator"}
    assert may("request", names.CELL_RESET) == {"experiment_node", "operator"}
    assert may("request", names.CONFIRM) == may("request", names.ARRANGED) == {"monitor_node", "operator"}
    assert may("request", f"{names.EXECUTE}/_action/send_goal") == {"experiment_node", "lab_cell_node", "operator"}


def test_only_a_person_changes_states_and_parameters() -> None:
    """But for the stop rule of arm_node, its only parameter that is not fixed."""
    for node in ("arm_node", "stop_node", "experiment_node"):
        for service in ("change_state", "set_parameters", "set_parameters_atomically"):
            rule = {"experiment_node"} if (node, service) == ("arm_node", "set_parameters_atomically") else set()
            assert may("request", f"{node}/{service}") == {"operator"} | rule


@pytest.mark.parametrize("name", GRAPHS)
def test_every_process_is_started_with_its_keys(name: str) -> None:
    graph, policy = load_graph(name), enclaves()
    for node in (*graph.nodes, *graph.optional):
        assert ros_arguments(node, graph)[:2] == ["--enclave", f"/merton/{node.name}"]
        assert node.name in policy


def test_the_policy_avoids_known_faults_of_sros2() -> None:
    """Measured with sros2 0.13: a comment between enclaves is taken for one, and xi:include crashes lxml."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(POLICY, parser).getroot()
    between = root.find("enclaves")
    assert between is not None
    assert {child.tag for child in between} == {"enclave"}
    assert "XInclude" not in POLICY.read_text(encoding="utf-8")


def test_the_policy_is_valid_for_sros2() -> None:
    """Validated against its own schema; the tool is no part of the wheels."""
    policy = pytest.importorskip("sros2.policy", reason="sros2 comes with a ROS installation, not with the wheels")
    assert policy.load_policy(POLICY) is not None


def test_a_process_without_the_right_keys_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real keys, a real DDS: the camera's process may not publish trajectories, the arm's may."""
    keystore = pytest.importorskip("sros2.keystore", reason="sros2 comes with a ROS installation, not with the wheels")
    import rclpy
    from rclpy._rclpy_pybind11 import RCLError
    from trajectory_msgs.msg import JointTrajectory

    for variable, value in (("ENABLE", "true"), ("STRATEGY", "Enforce"), ("KEYSTORE", str(tmp_path))):
        monkeypatch.setenv(f"ROS_SECURITY_{variable}", value)
    keystore.create_keystore(tmp_path)
    for program, refused in (("camera_node", True), ("arm_node", False)):
        keystore.create_enclave(tmp_path, f"/merton/{program}")
        keystore.create_permission(tmp_path, f"/merton/{program}", POLICY)
        context = rclpy.Context()
        rclpy.init(args=["--ros-args", *enclave(program)], context=context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        try:
            node = Node("talker", context=context, enable_rosout=False, start_parameter_services=False)
        except RCLError as error:
            pytest.skip(f"this DDS was built without security: {error}")
        try:
            node.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
            assert not refused, f"{program} could publish {names.TRAJECTORY}"
        except RCLError:
            assert refused, f"{program} could not publish {names.TRAJECTORY}"
        finally:
            node.destroy_node()
            context.try_shutdown()
