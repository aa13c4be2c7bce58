"""The graph `sim`, started once: used from another process, stopped, and unreachable from other machines."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from merton_interfaces.action import RunExperiment, RunTrial
from merton_interfaces.msg import SafetyState, TrialResult
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_srvs.srv import Trigger
from typer.testing import CliRunner

from merton.cli.main import app
from merton.graph.spec import load_graph
from merton.graph.supervisor import Supervisor, environment, last_lines
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.uniqueness import LEAST_PATIENCE_S
from patience import stretched
from runs import details, small_run, undisturbed_run

LINUX = pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="open sockets are read from Linux' /proc")
TCP_LISTEN = "0A"
FAKE = b"not a message of DDS"


@dataclass(frozen=True)
class Socket:
    """A line of /proc/net."""

    protocol: str
    address: str
    port: int
    state: str
    waiting_bytes: int
    inode: str

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def listens(self) -> bool:
        """Anybody may send to a UDP socket, but connect to a TCP socket only if it listens."""
        return self.protocol.startswith("udp") or self.state == TCP_LISTEN


def sockets(pid: int) -> list[Socket]:
    """The open IP sockets of a process."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        table = Path(f"/proc/net/{protocol}")
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            fields = line.split()
            if fields[9] in inodes:
                host, port = fields[1].split(":")
                words = [int(host[i : i + 8], 16) for i in range(0, len(host), 8)]
                packed = struct.pack(f"={len(words)}I", *words)
                waiting = int(fields[4].split(":")[1], 16)
                address = str(ipaddress.ip_address(packed))
                found.append(Socket(protocol, address, int(port, 16), fields[3], waiting, fields[9]))
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """`merton up sim`, as a library call."""
    with Supervisor(load_graph("sim"), tmp_path_factory.mktemp("logs"), environment()) as supervisor:
        yield supervisor


def test_a_second_process_sees_nodes_and_cameras_and_runs_trials(graph: Supervisor, ros: Any) -> None:
    node = ros.add(Node, "observer")
    ros.action_client(node, RunTrial, names.RUN_TRIAL)
    expected = {spec.name for spec in graph.graph.nodes} | {"stop_node"}
    ros.until(lambda: expected <= set(node.get_node_names()), 240)

    seen: dict[str, Any] = {}
    for camera in ("wrist", "top", "side"):
        for name, kind in (
            (names.color(camera), Image),
            (names.depth(camera), Image),
            (names.color_info(camera), CameraInfo),
            (names.distorted(camera), Image),
        ):
            node.create_subscription(kind, name, lambda m, name=name: seen.setdefault(name, m), names.SENSOR_QOS)
    ros.until(lambda: len(seen) == 12, 120)
    assert convert.color_array(seen[names.color("top")]).std() > 10, "a blank picture"
    depth = convert.depth_array(seen[names.depth("top")])
    assert depth is not None
    assert 0.3 < float(depth[depth > 0].min()) < 1.5

    stages: list[str] = []
    goal = RunTrial.Goal(vla_id="oracle", task="pick", scene_seed=3, distortion="jpeg", level=5, seed=9)
    result = ros.act(node, RunTrial, names.RUN_TRIAL, goal, lambda m: stages.append(m.feedback.stage)).result
    assert (result.outcome, result.execution) == (TrialResult.SUCCESS, 100.0)
    assert {"perception", "cognition", "decision", "execution", "scores"} <= set(stages)

    goal.vla_id = "gpt"
    result = ros.act(node, RunTrial, names.RUN_TRIAL, goal).result
    assert result.outcome == TrialResult.INFRASTRUCTURE
    assert "unknown vla 'gpt'; choose one of: " in result.error_msg


LATE = """
name: late
agents: [{id: servo, vla: servo}, {id: glance-twice, vla: glance-twice}]
tasks: [pick]
distortions: [white_noise]
levels: [3]
sensor: d455
latency_s: 0.3
max_steps: 4
"""
THINGS = """
name: things
agents: [{id: servo, vla: servo}]
tasks: [reach, pick]
distortions: [color_noise, depth_shift]
levels: [4]
distort: {regions: [things]}
max_steps: 3
"""
LATE_SURROUNDINGS = """
name: late-surroundings
agents: [{id: servo, vla: servo}]
tasks: [pick]
distortions: [color_noise, late]
levels: [4]
sensor: d455
latency_s: 9.0
distort: {regions: [surroundings]}
max_steps: 3
"""


@pytest.mark.parametrize(
    ("experiment", "trials"), [(LATE, 4), (THINGS, 6), (LATE_SURROUNDINGS, 3)], ids=["late", "things", "both"]
)
def test_latency_and_regions_have_the_results_of_one_process(
    experiment: str, trials: int, graph: Supervisor, ros: Any, tmp_path: Path
) -> None:
    """To the last point of every path and the last byte of every picture."""
    node = ros.add(Node, "observer")
    ros.action_client(node, RunExperiment, names.RUN_EXPERIMENT)
    local, run = undisturbed_run(tmp_path, experiment), small_run(tmp_path, "graph", experiment)
    result = ros.act(node, RunExperiment, names.RUN_EXPERIMENT, RunExperiment.Goal(run_directory=str(run.path)))
    assert (result.error_code, result.error_msg, result.trials) == (0, "", trials)
    assert details(run) == details(local)
    pictures = [
        {file.relative_to(one.path): file.read_bytes() for file in one.path.rglob("*.jpg")} for one in (run, local)
    ]
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) > 2 * trials
    compared = CliRunner().invoke(app, ["compare", "--identical", str(run.path), str(local.path)])
    assert compared.exit_code == 0, compared.output
    assert f"identical: {trials} trials" in compared.output


def test_an_agent_that_dives_is_stopped_and_the_latch_holds(graph: Supervisor, ros: Any) -> None:
    node = ros.add(Node, "observer")
    ros.action_client(node, RunTrial, names.RUN_TRIAL)
    safety: list[SafetyState] = []
    node.create_subscription(SafetyState, names.ARM_SAFETY, safety.append, names.LATCHED_QOS)
    goal = RunTrial.Goal(vla_id="plunge", task="reach", max_steps=20)
    result = ros.act(node, RunTrial, names.RUN_TRIAL, goal).result
    assert (result.outcome, result.execution) == (TrialResult.EMERGENCY_STOP, 0.0)
    ros.until(lambda: safety and safety[-1].mode == SafetyState.COLLISION_STOP)
    assert safety[-1].link_b == "table"
    assert ros.call(node, Trigger, names.RESET_STOP, Trigger.Request()).success
    ros.until(lambda: safety[-1].mode == SafetyState.NORMAL)


def test_a_stop_by_a_person_ends_the_trial_and_the_next_waits_for_that_person(graph: Supervisor, ros: Any) -> None:
    node = ros.add(Node, "observer")
    ros.action_client(node, RunTrial, names.RUN_TRIAL)
    assert ros.call(node, Trigger, names.STOP, Trigger.Request()).success
    safety: list[SafetyState] = []
    node.create_subscription(SafetyState, names.ARM_SAFETY, safety.append, names.LATCHED_QOS)
    ros.until(lambda: safety and safety[-1].mode == SafetyState.EMERGENCY_STOP)
    goal = RunTrial.Goal(vla_id="oracle", task="reach")
    result = ros.act(node, RunTrial, names.RUN_TRIAL, goal).result
    assert result.outcome == TrialResult.INFRASTRUCTURE
    assert "arm was stopped" in result.error_msg
    assert safety[-1].mode == SafetyState.EMERGENCY_STOP, "only a person may release it"
    assert ros.call(node, Trigger, names.RESET_STOP, Trigger.Request()).success
    assert ros.act(node, RunTrial, names.RUN_TRIAL, goal).result.outcome == TrialResult.SUCCESS


def test_a_second_graph_in_the_domain_is_refused_and_the_first_goes_on(graph: Supervisor, ros: Any) -> None:
    """Without a claim of the domain, as from another machine or with `ros2 run`."""
    node = ros.add(Node, "observer")
    ros.action_client(node, RunTrial, names.RUN_TRIAL)
    specs = {spec.name: spec for spec in graph.graph.nodes}
    cell = specs["mujoco_cell_node"].model_copy(update={"remappings": {"__node": "other_cell"}})
    second = graph.graph.model_copy(update={"nodes": (cell, *(specs[name] for name in ("arm_node", "vlm_node")))})
    with Supervisor(second, graph.logs / "second", environment()) as refused:
        ended = [refused.next_exit(stretched(60)) for _ in second.nodes]
    said = {one.name: (one.code, last_lines(one.log, 1)) for one in ended if one is not None}
    assert {name: code for name, (code, _) in said.items()} == {spec.name: 1 for spec in second.nodes}
    where = f"in ROS domain {os.environ['ROS_DOMAIN_ID']}, on this machine or another: end it, or set another ROS_"
    for name, (_, sentence) in said.items():
        assert where in sentence, name
    assert "another /vlm_node runs" in said["vlm_node"][1]
    assert re.search(r"publish(es)? /joint_states", said["mujoco_cell_node"][1])
    assert graph.next_exit(LEAST_PATIENCE_S + 1) is None
    goal = RunTrial.Goal(vla_id="oracle", task="reach", scene_seed=3)
    assert ros.act(node, RunTrial, names.RUN_TRIAL, goal).result.outcome == TrialResult.SUCCESS


@LINUX
def test_a_graph_that_was_cleaned_up_and_configured_again_has_the_same_results(graph: Supervisor, ros: Any) -> None:
    """All nodes through all transitions, as nav2's lifecycle manager does it; nothing is left of the first set-up."""
    node = ros.add(Node, "manager")
    ros.action_client(node, RunTrial, names.RUN_TRIAL)
    goal = RunTrial.Goal(vla_id="servo", vlm_id="describe", task="pick", scene_seed=3, distortion="jpeg", level=5)

    def trial() -> dict[str, Any]:
        result = ros.act(node, RunTrial, names.RUN_TRIAL, goal).result
        return {name: getattr(result, name) for name in result.get_fields_and_field_types() if name != "wall"}

    def held() -> dict[str, tuple[int, ...]]:
        """By node: threads, open files, open IP sockets, publishers, subscriptions, services and clients."""
        counts = {}
        for name, process in graph.processes.items():
            own = Path(f"/proc/{process.pid}")
            ends = ("publisher", "subscriber", "service", "client")
            counts[name] = (
                len(list((own / "task").iterdir())),
                len(list((own / "fd").iterdir())),
                len(sockets(process.pid)),
                *(len(getattr(node, f"get_{end}_names_and_types_by_node")(name, "/")) for end in ends),
            )
        return counts

    def cycle() -> None:
        for step in ("deactivate", "cleanup", "configure", "activate"):
            for name in graph.processes:
                client = node.create_client(ChangeState, f"{name}/change_state")
                ros.until(client.service_is_ready)
                request = ChangeState.Request(transition=Transition(label=step))
                assert ros.result(client.call_async(request)).success, f"{step} of {name}"
                node.destroy_client(client)

    first = trial()
    cycle()
    assert trial() == first
    before = held()
    cycle()
    assert trial() == first
    ros.until(lambda: all(now <= then for name in before for now, then in zip(held()[name], before[name], strict=True)))
    assert all("rror" not in (graph.logs / f"{name}.log").read_text() for name in graph.processes if name != "arm_node")


@LINUX
def test_datagrams_from_beyond_loopback_are_never_read(graph: Supervisor, ros: Any) -> None:
    """DDS binds ports beyond loopback to send; datagrams to them wait in the system, and are never read."""
    node = ros.add(Node, "observer")
    expected = {spec.name for spec in graph.graph.nodes} | {"stop_node"}
    ros.until(lambda: expected <= set(node.get_node_names()), 240)
    processes = [process.pid for process in graph.processes.values()]
    opened = {one for pid in processes for one in sockets(pid)}
    listening = [one for one in opened if one.listens]
    beyond = [one for one in listening if not one.is_loopback]
    exposed = [one for one in beyond if one.protocol != "udp" or one.port in dds_ports()]
    assert not exposed, "other machines reach these"
    assert len(listening) - len(beyond) >= 2 * len(processes), "no sockets of DDS were found"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for one in beyond:
            everywhere = ipaddress.ip_address(one.address).is_unspecified
            stranger.sendto(FAKE, ("127.0.0.1" if everywhere else one.address, one.port))
    inodes = {one.inode for one in beyond}

    def unread() -> set[str]:
        return {one.inode for pid in processes for one in sockets(pid) if one.waiting_bytes and one.inode in inodes}

    ros.until(lambda: unread() == inodes)


def dds_ports() -> range:
    """The ports on which DDS listens in this domain: OMG DDSI-RTPS 2.5, 9.6.2."""
    first = 7400 + 250 * int(os.environ["ROS_DOMAIN_ID"])
    return range(first, first + 250)
