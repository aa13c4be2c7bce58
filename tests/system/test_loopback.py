"""Nothing of the graph `sim` can be reached from another machine, as long as nobody asks for that."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rclpy.node import Node

from merton.graph.spec import load_graph
from merton.graph.supervisor import Supervisor, environment
from merton.resources import resource

linux = pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="open sockets are read from Linux' /proc")
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
    with Supervisor(load_graph("sim"), tmp_path_factory.mktemp("logs"), environment()) as supervisor:
        yield supervisor


@linux
@pytest.mark.xdist_group("system")
def test_nothing_is_heard_that_does_not_come_through_loopback(graph: Supervisor, ros: Any) -> None:
    """DDS binds ports beyond loopback to send; what arrives there waits in the system, and is never read."""
    node = ros.add(Node, "observer")
    expected = {spec.name for spec in graph.graph.nodes} | {"stop_node"}
    ros.until(lambda: expected <= set(node.get_node_names()), 120)
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


def test_the_open_profile_is_the_closed_one_without_its_list_of_interfaces() -> None:
    closed, opened = (
        resource("merton_bringup", f"config/dds/{name}.xml").read_text() for name in ("fastdds", "fastdds_network")
    )
    start, end = closed.index("        <interfaces>"), closed.index("</interfaces>") + len("</interfaces>\n")
    without = closed[:start] + closed[end:]
    assert without.split("-->", 1)[1] == opened.split("-->", 1)[1]


@pytest.mark.parametrize(
    ("variables", "profile"),
    [
        ({}, "fastdds.xml"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, "fastdds.xml"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, "fastdds_network.xml"),
        ({"ROS_STATIC_PEERS": "192.0.2.20"}, "fastdds_network.xml"),
    ],
)
def test_other_machines_take_part_only_if_somebody_asks(
    variables: dict[str, str], profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Path(environment()["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == profile
    assert Path(environment(7)["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "fastdds.xml"
