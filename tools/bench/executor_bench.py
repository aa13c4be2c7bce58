"""Processor time of one message in a node with the entities of experiment_node: our executor and rclpy's, in turn."""

from __future__ import annotations

import json
import os
import statistics
import time
from typing import Any

MESSAGES = 500
ROUNDS = 3


def measure() -> dict[str, float]:
    """Microseconds from `spin_once` to its return after the callback, per message; the publisher is not counted."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "OFF"  # before anything of ROS is imported
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    from merton_nodes.ros.executor import NodeExecutor

    rclpy.init(args=[])
    node, heard = _node()
    publisher = rclpy.create_node("publisher").create_publisher(_message_type(), "topic_0", 10)
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    times_us: dict[str, list[float]] = {"merton": [], "rclpy": []}
    for _ in range(ROUNDS):
        for name, make in (("merton", NodeExecutor), ("rclpy", SingleThreadedExecutor)):
            executor = make()
            executor.add_node(node)
            times_us[name].append(_microseconds(executor, publisher, heard))
            executor.remove_node(node)
            executor.shutdown()
    ours_us, theirs_us = (statistics.median(times_us[name]) for name in ("merton", "rclpy"))
    rclpy.shutdown()
    return {
        "merton_us": ours_us,
        "rclpy_single_threaded_us": theirs_us,
        "times_faster_than_rclpy": theirs_us / ours_us,
    }


def _message_type() -> Any:
    from std_msgs.msg import Header

    return Header


def _node() -> tuple[Any, list[Any]]:
    """A node with subscriptions, services, clients, a timer and two action clients; and the messages heard."""
    import rclpy
    from merton_interfaces.action import ExecuteActions
    from rclpy.action import ActionClient
    from std_srvs.srv import Trigger

    node, heard = rclpy.create_node("listener"), []
    for index in range(18):
        node.create_subscription(_message_type(), f"topic_{index}", heard.append, 10)
    for index in range(6):
        node.create_service(Trigger, f"service_{index}", lambda _, response: response)
        node.create_client(Trigger, f"service_{index}")
    for index in range(2):
        ActionClient(node, ExecuteActions, f"action_{index}")
    node.create_timer(1.0, lambda: None)
    return node, heard


def _microseconds(executor: Any, publisher: Any, heard: list[Any]) -> float:
    """Processor time of this thread per message [us]."""
    for _ in range(20):  # entities that were just added
        executor.spin_once(timeout_sec=0)
    spun_s = 0.0
    for _ in range(MESSAGES):
        count = len(heard)
        publisher.publish(_message_type()())
        begin_s = time.thread_time()
        while len(heard) == count:
            executor.spin_once()
        spun_s += time.thread_time() - begin_s
    return 1e6 * spun_s / MESSAGES


if __name__ == "__main__":
    print(json.dumps(measure()))
