"""A ROS user's hands: `ros2` commands and tf2 against the graph `sim`, as `ros2 launch` starts it.

A warning that they print about Merton fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from rclpy.time import Time
from sensor_msgs.msg import JointState

from merton.execution.kinematics import ROBOTS
from merton.graph.spec import load_graph
from merton.world.cell import ARM_JOINTS
from merton_nodes.ros import names
from patience import until
from ros import Probe, Ros
from sessions import Processes, Started

UR5 = ROBOTS["UR5"]

pytestmark = pytest.mark.needs("ros2launch", "launch_ros", "ros2cli", "ros2topic", programs=("ros2",))

NODES = {f"/{spec.name}" for spec in load_graph("sim").nodes}
LEVEL = ("/distortion_node", "level")
TRIAL = "merton_interfaces/action/RunTrial"
OURS = re.compile(r"(?i)traceback|incompatible|deprecat|\[warn|\[error(?!.*emergency stop: stopped by request)")
"""What a command or a node prints if something is wrong with a topic, a name or a file of ours. A stop is an error."""

Command = Callable[..., str]


@pytest.fixture(scope="module")
def graph(domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Processes, Started]]:
    """The launch; every node is active. The daemon of `ros2` in this domain is ended with it."""
    processes = Processes(tmp_path_factory.mktemp("logs"))
    try:
        launch = processes.start("ros2", "launch", "merton_bringup", "sim.launch.py")

        def states() -> str:
            launch.check()
            command = processes.start("ros2", "lifecycle", "get")
            command.wait()
            return command.output

        until(lambda: states().count(": active [3]") == len(NODES), pause_s=0.5)
        yield processes, launch
        assert not OURS.search(launch.output), launch.output
    finally:
        processes.start("ros2", "daemon", "stop").wait()
        processes.end()


@pytest.fixture
def ros2(graph: tuple[Processes, Started]) -> Command:
    """Runs `ros2` with arguments and returns its output. Fails on another exit code than 0, and on warnings."""

    def run(*arguments: str, code: int = 0) -> str:
        command = graph[0].start("ros2", *arguments)
        assert command.wait() == code, command.output
        assert not OURS.search(command.output), command.output
        return command.output

    return run


def test_every_node_is_seen(ros2: Command) -> None:
    until(lambda: {*NODES, "/stop_node"} <= set(ros2("node", "list").split()), pause_s=0.5)
    assert "/arm/execute: merton_interfaces/action/ExecuteActions" in ros2("node", "info", "/arm_node")


def test_a_node_is_taken_out_and_back_as_by_a_lifecycle_manager(ros2: Command) -> None:
    steps = {
        "deactivate": "inactive [2]",
        "cleanup": "unconfigured [1]",
        "configure": "inactive [2]",
        "activate": "active [3]",
    }
    for step, state in steps.items():
        assert ros2("lifecycle", "set", "/vlm_node", step) == "Transitioning successful\n"
        assert ros2("lifecycle", "get", "/vlm_node") == f"{state}\n"


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (names.JOINT_STATES, "position"),
        (names.CLOCK, "nanosec"),
        (names.ARM_SAFETY, "frame_id: base_link"),
        (names.ROBOT_DESCRIPTION, "<robot name="),
        (names.color("wrist"), "encoding: rgb8"),
        (names.distorted("top"), "encoding: rgb8"),
    ],
)
def test_a_topic_is_echoed_without_a_word_on_its_qos(ros2: Command, topic: str, expected: str) -> None:
    assert expected in ros2("topic", "echo", "--once", "--no-arr", "--full-length", f"/{topic.lstrip('/')}")


@pytest.mark.parametrize("topic", [names.JOINT_STATES, names.color("side"), names.HEARTBEAT])
def test_the_rate_of_a_topic_is_measured(graph: tuple[Processes, Started], topic: str) -> None:
    command = graph[0].start("ros2", "topic", "hz", f"/{topic}")
    command.wait_for("average rate: ")
    command.end()
    assert not OURS.search(command.output), command.output


def test_publishers_and_subscribers_agree_on_their_qos(ros2: Command) -> None:
    report = ros2("doctor", "--report")
    statuses = set(re.findall(r"compatibility status\s*: (.*)", report))
    assert statuses == {"OK"}, report


def test_a_level_is_typed_as_an_integer(ros2: Command) -> None:
    refused = ros2("param", "set", *LEVEL, "3")
    assert "level 3 of 'reference', which has level 0 only: choose first one of: block_exchange" in refused
    assert "successful" in ros2("param", "set", LEVEL[0], "name", "jpeg")
    assert "successful" in ros2("param", "set", *LEVEL, "3")
    assert ros2("param", "get", *LEVEL) == "Double value is: 3.0\n"
    assert "Setting parameter failed" in ros2("param", "set", *LEVEL, "9")
    assert "choose one of: block_exchange" in ros2("param", "set", LEVEL[0], "name", "no such")
    assert "0 (untouched) .. 5 (worst)" in ros2("param", "describe", *LEVEL)
    assert "successful" in ros2("param", "set", *LEVEL, "0")


def test_a_trial_is_run_by_send_goal(ros2: Command) -> None:
    assert "uint64 scene_seed" in ros2("interface", "show", TRIAL)
    goal = "{vla_id: oracle, task: reach, scene_seed: 3, distortion: jpeg, level: 3}"
    said = ros2("action", "send_goal", "--feedback", "/experiment/run_trial", TRIAL, goal)
    assert "stage: execution" in said
    assert "outcome: 0" in said
    assert "trial_id: oracle.reach.3.jpeg.3" in said
    assert said.endswith("Goal finished with status: SUCCEEDED\n")


@pytest.mark.needs("robot_state_publisher", "tf2_ros_py")
def test_a_listener_that_comes_late_sees_arm_gripper_and_cameras(
    graph: tuple[Processes, Started], ros: Ros, probe: Probe
) -> None:
    """The clock of a cell at rest stands still, and all joint states have one stamp."""
    from tf2_ros import Buffer, TransformListener

    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    clock_ns = {Time.from_msg(state.header.stamp).nanoseconds for state in ros.until(lambda: joints[2:] and joints)}
    assert len(clock_ns) == 1
    buffer = Buffer()
    listener = TransformListener(buffer, probe)
    for frame in ("tool0", "gripper_left_finger", *map(names.optical_frame, ("wrist", "top", "side"))):
        ros.until(lambda frame=frame: buffer.can_transform(names.BASE_FRAME, frame, Time()))
    seen = buffer.lookup_transform(names.BASE_FRAME, "tool0", Time()).transform.translation
    joint_rad = [joints[-1].position[joints[-1].name.index(name)] for name in ARM_JOINTS]
    np.testing.assert_allclose([seen.x, seen.y, seen.z], UR5.forward(np.array(joint_rad))[:3, 3], atol=1e-5)
    listener.unregister()


def test_the_arm_is_stopped_and_released_by_hand(ros2: Command) -> None:
    assert "success=True, message='stopped" in ros2("service", "call", "/arm/stop", "std_srvs/srv/Trigger")
    assert "stopped by request" in ros2("topic", "echo", "--once", "/arm/safety_state")
    assert "success=True, message='released'" in ros2("service", "call", "/arm/reset_stop", "std_srvs/srv/Trigger")
