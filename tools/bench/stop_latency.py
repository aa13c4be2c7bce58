"""Time from the request of a stop to the last moving command, while images and inference load the machine.

The graph `sim` runs in processes of its own at the pace of a real robot, with ten triples of frames a second rendered
and distorted, and a VLM that is asked again as soon as it has answered. The client of images and VLM is a process
of its own, so that the one with the watch does nothing else. An arm in mid-motion is stopped over and over.

Two times count from the moment before the request is sent, on the monotonic clock of this process:
- command: until the stop command has arrived here, as it does at the controller;
- held: until the cell has said that it has taken the command, after which it moves nothing. It is the last moving
  command seen from outside, and includes the way of that message to this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

STOPS = 120
STATE_RATE_HZ = 10.0
DISTORTION = ("gaussian_blur", 3)
SPEED_M_S = 0.1
LIMIT_S = 60.0


def measure(stops: int = STOPS) -> dict[str, Any]:
    """Percentiles [ms] over `stops` stops in mid-motion, and the load they happened under."""
    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment

    graph = load_graph("sim").with_arguments({"real_time_factor": "1.0"})
    cell = graph.nodes[0]
    busy = cell.model_copy(update={"parameters": {**cell.parameters, "state_rate_hz": STATE_RATE_HZ}})
    graph = graph.model_copy(update={"nodes": (busy, *graph.nodes[1:])})
    domain, claim = claim_domain()
    variables = environment(domain)
    os.environ.update(variables)  # before anything of ROS is imported
    with claim, tempfile.TemporaryDirectory() as logs, Supervisor(graph, Path(logs), variables, claim):
        return _measure(stops)


def _measure(stops: int) -> dict[str, Any]:
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    rclpy.init(args=[])
    operator = _operator()
    executor = SingleThreadedExecutor()
    executor.add_node(operator.node)
    spinner = threading.Thread(target=executor.spin, daemon=True)
    spinner.start()
    try:
        operator.prepare()
        with Load() as load:
            samples = [operator.stop_once(index) for index in range(stops)]
            load_during = os.getloadavg()[0]
        command_ms, held_ms = (1e3 * np.array(column) for column in zip(*samples, strict=True))
        return {
            "stops": stops,
            "command": _percentiles(command_ms),
            "held": _percentiles(held_ms),
            **load.seen,
            "load_during": load_during,
        }
    finally:
        executor.shutdown(timeout_sec=5)
        spinner.join(5)
        operator.node.destroy_node()
        rclpy.try_shutdown()


def _percentiles(values_ms: np.ndarray) -> dict[str, float]:
    p50, p99 = np.percentile(values_ms, [50, 99])
    return {"p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(values_ms.max())}


class Load:
    """Keeps a process that runs `make_load` from its first answer on, until the end of the block.

    Attributes:
        seen: after the block: how many frames it saw, and how many answers it got.
    """

    def __enter__(self) -> Load:
        program = [sys.executable, str(Path(__file__)), "load"]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("no node answers, so there would be no load")
        return self

    def __exit__(self, *_: object) -> None:
        said, _ = self.process.communicate(timeout=LIMIT_S)
        self.seen: dict[str, int] = json.loads(said)


def make_load() -> None:
    """Look at the distorted images, and ask the VLM again as soon as it has answered, until standard input ends."""
    import rclpy
    from merton_interfaces.action import AnswerQuestion
    from rclpy.action import ActionClient
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from sensor_msgs.msg import Image

    from merton_nodes.ros import conversions as convert
    from merton_nodes.ros import names

    rclpy.init(args=[])
    node = Node("load")
    vlm = ActionClient(node, AnswerQuestion, names.ANSWER)
    seen = {"frames_seen": 0, "answers": 0}

    def on_frame(_: Image) -> None:
        seen["frames_seen"] += 1

    def ask() -> None:
        image = np.random.default_rng(seen["answers"]).integers(0, 255, (720, 1280, 3), np.uint8)
        goal = AnswerQuestion.Goal(
            model_id="describe",
            image=convert.color_message(image, 0, ""),
            question="Say where the object is and how to pick up the red cube.",
        )
        vlm.send_goal_async(goal).add_done_callback(on_handle)

    def on_handle(future: Any) -> None:
        future.result().get_result_async().add_done_callback(on_answer)

    def on_answer(_: Any) -> None:
        if not seen["answers"]:
            print("ready", flush=True)
        seen["answers"] += 1
        ask()

    for camera in ("wrist", "top", "side"):
        node.create_subscription(Image, names.distorted(camera), on_frame, names.LATEST_QOS)
    if not vlm.wait_for_server(LIMIT_S):
        raise RuntimeError("the VLM did not come up")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.create_task(ask)
    spinner = threading.Thread(target=executor.spin, daemon=True)
    spinner.start()
    sys.stdin.read()
    executor.shutdown(timeout_sec=5)
    spinner.join(5)
    node.destroy_node()
    rclpy.try_shutdown()
    print(json.dumps(seen))


def _operator() -> Any:
    """The client that commands, watches and stops; made here because ROS may only be imported with its environment."""
    from merton_interfaces.action import ExecuteActions
    from merton_interfaces.msg import SafetyState
    from merton_interfaces.srv import ResetCell
    from rcl_interfaces.srv import SetParametersAtomically
    from rclpy.action import ActionClient
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger
    from trajectory_msgs.msg import JointTrajectory

    from merton.world.action import checked_chunk
    from merton_nodes.ros import conversions as convert
    from merton_nodes.ros import names

    class Operator:
        def __init__(self) -> None:
            self.node = node = Node("operator")
            self.arm = ActionClient(node, ExecuteActions, names.EXECUTE)
            self.stop = node.create_client(Trigger, names.STOP)
            self.reset = node.create_client(Trigger, names.RESET_STOP)
            self.scene = node.create_client(ResetCell, names.CELL_RESET)
            self.distort = node.create_client(
                SetParametersAtomically, f"{names.DISTORTION_NODE}/set_parameters_atomically"
            )
            self.speed = 0.0
            self.stamp: Any = None
            self.clock_stands = False
            """Whether the cell has simulated all there was to simulate."""
            self.changed = threading.Condition()
            self.command_s = self.held_s = float("nan")
            node.create_subscription(JointTrajectory, names.TRAJECTORY, self.on_command, names.RELIABLE_QOS)
            node.create_subscription(SafetyState, names.CELL_SAFETY, self.on_cell, names.LATCHED_QOS)
            node.create_subscription(JointState, names.JOINT_STATES, self.on_joints, names.RELIABLE_QOS)

        def on_command(self, message: JointTrajectory) -> None:
            if not message.points:
                self.command_s = time.monotonic()

        def on_cell(self, _: SafetyState) -> None:
            with self.changed:
                self.held_s = time.monotonic()
                self.changed.notify_all()

        def on_joints(self, message: JointState) -> None:
            with self.changed:
                self.speed = max(map(abs, message.velocity[:6]))
                self.clock_stands, self.stamp = message.header.stamp == self.stamp, message.header.stamp
                self.changed.notify_all()

        def wait(self, condition: Any, what: str) -> None:
            with self.changed:
                if not self.changed.wait_for(condition, LIMIT_S):
                    raise RuntimeError(f"waited {LIMIT_S:g} s for {what}")

        def call(self, client: Any, request: Any) -> Any:
            if not client.wait_for_service(LIMIT_S):
                raise RuntimeError(f"no node offers {client.srv_name}")
            done = threading.Event()
            future = client.call_async(request)
            future.add_done_callback(lambda _: done.set())
            if not done.wait(LIMIT_S):
                raise RuntimeError(f"{client.srv_name} did not answer")
            return future.result()

        def prepare(self) -> None:
            """The graph is up, images are distorted."""
            if not self.arm.wait_for_server(LIMIT_S):
                raise RuntimeError("the arm did not come up")
            name, level = DISTORTION
            values = [Parameter("name", value=name), Parameter("level", value=float(level))]
            request = SetParametersAtomically.Request(parameters=[value.to_parameter_msg() for value in values])
            assert self.call(self.distort, request).result.successful

        def stop_once(self, index: int) -> tuple[float, float]:
            """A motion, a stop in the middle of it; seconds until the stop command, and until the cell held the arm."""
            assert self.call(self.scene, ResetCell.Request(task="pick", seed=index)).error_code == 0
            self.speed = 0.0
            delta = [0.0, 0.0, SPEED_M_S * 0.2, 0, 0, 0, 1.0]
            chunk = convert.chunk_message(checked_chunk([delta] * 8, 0.2), 0)
            for _ in range(5):  # an answer may get lost while nodes discover each other
                goal = ExecuteActions.Goal(chunk=chunk)
                self.node.executor.create_task(lambda goal=goal: self.arm.send_goal_async(goal))
                try:
                    self.wait(lambda: self.speed > 0.05, "the arm to move")
                    break
                except RuntimeError:
                    continue
            phase_s = float(np.random.default_rng(index).uniform(0.0, 0.8))
            threading.Event().wait(phase_s)
            self.command_s = self.held_s = float("nan")
            begin_s = time.monotonic()
            stopped = self.stop.call_async(Trigger.Request())
            self.wait(lambda: self.held_s >= begin_s, "the cell to hold the arm")
            held_s = self.held_s
            self.wait(lambda: stopped.done() and self.command_s >= begin_s, "the stop command")
            self.wait(lambda: self.speed < 0.01 or self.clock_stands, "the arm to rest")
            assert self.call(self.reset, Trigger.Request()).success
            return self.command_s - begin_s, held_s - begin_s

    return Operator()


if __name__ == "__main__":
    if sys.argv[1:] == ["load"]:
        make_load()
    else:
        print(json.dumps(measure(), indent=1))
