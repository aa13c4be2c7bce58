"""The SROS 2 policy as sets of names, and the real endpoints of the nodes."""

from __future__ import annotations

import fnmatch
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rclpy.node import Node

POLICY = Path(__file__).parents[1] / "config" / "sros2" / "policy.xml"
ACTION_SERVICES = ("send_goal", "cancel_goal", "get_result")
ACTION_TOPICS = ("feedback", "status")
KINDS = ("publish", "subscribe", "reply", "request")


@dataclass
class Permissions:
    """Names, or patterns of names, that a process may use in each of four ways; actions are taken apart."""

    publish: set[str] = field(default_factory=set)
    subscribe: set[str] = field(default_factory=set)
    reply: set[str] = field(default_factory=set)
    request: set[str] = field(default_factory=set)

    def allow(self, how: str, name: str) -> bool:
        """Whether a name may be used like that; DDS matches patterns as a shell does, and `*` takes slashes too."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in getattr(self, how))


def enclaves() -> dict[str, Permissions]:
    """Every enclave of the policy, without the /merton/ in front."""
    found = {}
    for element in ElementTree.parse(POLICY).getroot().iter("enclave"):
        permissions = Permissions()
        for profile in element.iter("profile"):
            for how, name in _entries(profile):
                getattr(permissions, how).add(name)
        found[element.attrib["path"].removeprefix("/merton/")] = permissions
    return found


def _entries(profile: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for rule in profile:
        for how, verdict in rule.attrib.items():
            assert verdict == "ALLOW", "the policy denies by default: a DENY would only hide what is allowed"
            for element in rule:
                name = _full(profile.attrib["ns"], profile.attrib["node"], (element.text or "").strip())
                if how not in ("call", "execute"):
                    yield how, name
                    continue
                yield from ((_SERVICE[how], f"{name}/_action/{part}") for part in ACTION_SERVICES)
                yield from ((_TOPIC[how], f"{name}/_action/{part}") for part in ACTION_TOPICS)


_SERVICE = {"call": "request", "execute": "reply"}
_TOPIC = {"call": "subscribe", "execute": "publish"}


def _full(namespace: str, node: str, name: str) -> str:
    if name.startswith("/"):
        return name
    return f"{namespace.rstrip('/')}/{node}{name[1:]}" if name.startswith("~") else f"{namespace.rstrip('/')}/{name}"


def used(observer: Node, names: Iterable[str]) -> Permissions:
    """The endpoints of nodes of these names, as `ros2 node info` finds them from another node."""
    found = Permissions()
    queries: dict[str, Any] = {
        "publish": observer.get_publisher_names_and_types_by_node,
        "subscribe": observer.get_subscriber_names_and_types_by_node,
        "reply": observer.get_service_names_and_types_by_node,
        "request": observer.get_client_names_and_types_by_node,
    }
    for name in names:
        for how, query in queries.items():
            getattr(found, how).update(topic for topic, _ in query(name, "/"))
    return found
