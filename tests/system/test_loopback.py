"""The two DDS profiles: which one a process takes, and how they differ. `test_sim_graph.py` tests the closed one."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from merton.files import resource
from merton.graph.supervisor import PROFILE, RANGE, environment, without_shared_memory


def test_the_open_profile_is_the_closed_one_without_its_list_of_interfaces() -> None:
    closed, opened = (
        resource("merton_bringup", f"config/dds/{name}.xml").read_text() for name in ("fastdds", "fastdds_network")
    )
    start, end = closed.index("        <interfaces>"), closed.index("</interfaces>") + len("</interfaces>\n")
    without = closed[:start] + closed[end:]
    assert without.split("-->", 1)[1] == opened.split("-->", 1)[1]


@pytest.mark.parametrize("name", ["fastdds", "fastdds_network"])
def test_the_profiles_of_nodes_without_images_have_the_same_udp_and_no_shared_memory(name: str) -> None:
    images, robot = (
        ElementTree.parse(resource("merton_bringup", f"config/dds/{name}{end}.xml")).getroot() for end in ("", "_udp")
    )
    kinds = [[kind.text for kind in profile.iterfind(".//{*}type")] for profile in (images, robot)]
    assert kinds == [["SHM", "UDPv4"], ["UDPv4"]]
    for place in ("interfaces", "discovery_config"):
        here, there = ([part.text for part in profile.iterfind(f".//{{*}}{place}//*")] for profile in (images, robot))
        assert "".join(map(str, here)).split() == "".join(map(str, there)).split()


def test_a_node_gives_up_shared_memory_only_where_ros_does_not_bring_it_back() -> None:
    def changes(name: str, discovery_range: str) -> dict[str, str]:
        profile = str(resource("merton_bringup", "config/dds/fastdds.xml").with_name(name))
        changed = without_shared_memory({PROFILE: profile, RANGE: discovery_range})
        return {key: Path(value).name for key, value in changed.items()}

    assert changes("fastdds.xml", "LOCALHOST") == {PROFILE: "fastdds_udp.xml", RANGE: "SYSTEM_DEFAULT"}
    assert changes("fastdds.xml", "OFF") == {PROFILE: "fastdds_udp.xml"}
    assert changes("fastdds_network.xml", "SUBNET") == {PROFILE: "fastdds_network_udp.xml"}
    assert changes("fastdds_network.xml", "LOCALHOST") == {}, "with peers elsewhere, which SYSTEM_DEFAULT would ignore"
    assert changes("a_users_own.xml", "LOCALHOST") == {}
    assert without_shared_memory({}) == {}


@pytest.mark.parametrize(
    ("variables", "profile"),
    [
        ({}, "fastdds.xml"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, "fastdds.xml"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, "fastdds_network.xml"),
        ({"ROS_STATIC_PEERS": "192.0.2.20"}, "fastdds_network.xml"),
    ],
)
def test_other_machines_take_part_only_on_request(
    variables: dict[str, str], profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Path(environment()["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == profile
    assert Path(environment(7)["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "fastdds.xml"
