"""The ROS entities that a node makes from a moment on, to be destroyed together."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

DESTROY = {
    "publishers": "destroy_publisher",
    "subscriptions": "destroy_subscription",
    "clients": "destroy_client",
    "services": "destroy_service",
    "timers": "destroy_timer",
    "guards": "destroy_guard_condition",
}
"""Attribute of a node that keeps its entities, to the method that destroys one of them."""


class NewEntities:
    """The entities that a node has now are kept; `destroy` ends those that it has made since."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._kept = [entity for kind in (*DESTROY, "waitables") for entity in getattr(node, kind)]

    def destroy(self) -> None:
        """From the thread that spins the node, or while it is not spun."""
        kept = {id(entity) for entity in self._kept}
        for kind, destroy in DESTROY.items():
            for entity in [entity for entity in getattr(self._node, kind) if id(entity) not in kept]:
                getattr(self._node, destroy)(entity)
        actions: list[Any] = [waitable for waitable in self._node.waitables if id(waitable) not in kept]
        for end in actions:  # servers and clients
            end.destroy()
