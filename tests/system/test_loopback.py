"""The two DDS profiles: which one a process takes, and how they differ. `test_sim_graph.py` tests the closed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from merton.files import resource
from merton.graph.supervisor import environment


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
def test_other_machines_take_part_only_on_request(
    variables: dict[str, str], profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Path(environment()["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == profile
    assert Path(environment(7)["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "fastdds.xml"
