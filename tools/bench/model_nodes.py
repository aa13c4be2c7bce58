"""The time that a node adds to its model: the same request to a model in this process, and to the model in its node.

vlm_node and vla_node run in separate processes, images are 640x480, and one request is under way at a time. Requests to
the model and to the node alternate, so that both have the same load. A view is that of a trial: colour, and depth where
a name says so. The overhead is the difference of the medians: messages in both directions, queue and threads. `inside`
is the node's own measurement, from the arrival of a request to its answer.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

SAMPLES = 200
WARM_UP = 10
IN_FLIGHT = 4
NODES = ("vlm_node", "vla_node")
LIMIT_S = 60.0
SIZE_PX = (640, 480)

Done = Callable[[Any], None]
Send = Callable[[Done], None]


class Asker:
    """A client of vlm_node and vla_node, like experiment_node."""

    def __init__(self) -> None:
        import rclpy
        from merton_interfaces.action import AnswerQuestion
        from merton_interfaces.srv import PredictActions
        from rclpy.action import ActionClient
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node

        from merton_nodes.ros import names
        from merton_nodes.ros.runtime import keep_freed_memory

        keep_freed_memory()  # as every node does
        rclpy.init(args=[])
        self.node = Node("asker")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.spinner = threading.Thread(target=self.executor.spin, daemon=True)
        self.spinner.start()
        self.answers = ActionClient(self.node, AnswerQuestion, names.ANSWER)
        self.predict = self.node.create_client(PredictActions, names.PREDICT)
        if not (self.answers.wait_for_server(LIMIT_S) and self.predict.wait_for_service(LIMIT_S)):
            raise RuntimeError("vlm_node and vla_node did not come up")

    def answer(self, model: str, image: Any, text: str) -> Send:
        """A function that sends a question to vlm_node."""
        from merton_interfaces.action import AnswerQuestion

        from merton_nodes.ros import conversions as convert

        def send(done: Done) -> None:
            goal = AnswerQuestion.Goal(model_id=model, image=convert.color_message(image, 0, ""), question=text)

            def on_handle(future: Any) -> None:
                future.result().get_result_async().add_done_callback(lambda f: done(f.result().result))

            self.answers.send_goal_async(goal).add_done_callback(on_handle)

        return send

    def act(self, model: str, seen: Any) -> Send:
        """A function that sends an observation to vla_node."""
        from merton_interfaces.srv import PredictActions
        from sensor_msgs.msg import JointState

        from merton.world.cell import ARM_JOINTS
        from merton_nodes.ros import conversions as convert

        def send(done: Done) -> None:
            request = PredictActions.Request(
                model_id=model,
                views=[convert.view_message(view) for view in seen.views.values()],
                state=JointState(name=list(ARM_JOINTS), position=seen.joints_rad.tolist()),
                tcp=convert.pose_stamped(seen.base_from_tcp, 0),
                gripper=1.0,
                instruction=seen.instruction,
            )
            self.predict.call_async(request).add_done_callback(lambda f: done(f.result()))

        return send

    def ask(self, send: Send) -> Any:
        """Send from the executor's thread and return the answer.

        A request that discovery lost is sent again, and one that came while the model was being loaded.
        """
        from merton.errors import ErrorCode

        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            arrived = threading.Event()
            replies: list[Any] = []

            def done(reply: Any, replies: list[Any] = replies, arrived: threading.Event = arrived) -> None:
                replies.append(reply)
                arrived.set()

            self.executor.create_task(send, done)
            if not arrived.wait(LIMIT_S / 4) or replies[0].error_code == ErrorCode.LOADING:
                continue
            if replies[0].error_code:
                raise RuntimeError(replies[0].error_msg)
            return replies[0]
        raise RuntimeError("the node did not answer")

    def per_second(self, send: Send) -> float:
        """Answers per second with `IN_FLIGHT` requests under way at any time."""
        left, finished, begin_s = [SAMPLES], threading.Event(), time.perf_counter()

        def done(_: Any) -> None:
            left[0] -= 1
            if left[0] >= IN_FLIGHT:
                send(done)
            elif left[0] == 0:
                finished.set()

        for _ in range(IN_FLIGHT):
            self.executor.create_task(send, done)
        if not finished.wait(LIMIT_S):
            raise RuntimeError(f"{left[0]} answers did not come")
        return SAMPLES / (time.perf_counter() - begin_s)

    def close(self) -> None:
        """End ROS in this process."""
        import rclpy

        self.executor.shutdown(timeout_sec=5)
        self.spinner.join(5)
        self.node.destroy_node()
        rclpy.try_shutdown()


@contextmanager
def asker() -> Iterator[Asker]:
    """A client of vlm_node and vla_node, which run in separate processes; to be entered before ROS is imported."""
    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment

    graph = load_graph("sim")
    graph = graph.model_copy(update={"nodes": tuple(node for node in graph.nodes if node.name in NODES)})
    domain, claim = claim_domain()
    variables = environment(domain)
    os.environ.update(variables)
    with claim, tempfile.TemporaryDirectory() as logs, Supervisor(graph, Path(logs), variables, claim):
        made = Asker()
        try:
            yield made
        finally:
            made.close()


def large(seen: Any, with_depth: bool = True) -> Any:
    """An observation with views resized to `SIZE_PX`, with depth or without."""
    import cv2
    import numpy as np
    from lens import lens_of

    def enlarged(view: Any) -> Any:
        width, height = SIZE_PX
        color = np.ascontiguousarray(cv2.resize(view.color, SIZE_PX, interpolation=cv2.INTER_NEAREST))
        depth_m = np.ones((height, width), np.float32) if with_depth else None
        return replace(view, color=color, depth_m=depth_m, intrinsics=lens_of(width, height))

    return replace(seen, views={name: enlarged(view) for name, view in seen.views.items()})


def compared(bare: Callable[[], Any], through_ros: Callable[[], Any]) -> dict[str, float]:
    """Times [ms] of a model in this process and in its node, by alternating requests."""
    import numpy as np

    from merton_nodes.ros import conversions as convert

    times_s: dict[str, list[float]] = {"model": [], "node": [], "inside": []}
    for _ in range(SAMPLES + WARM_UP):
        for name, work in (("model", bare), ("node", through_ros)):
            started_s = time.perf_counter()
            reply = work()
            times_s[name].append(time.perf_counter() - started_s)
        latency = reply.latency if hasattr(reply, "latency") else reply.chunk.latency
        times_s["inside"].append(convert.nanoseconds_of(latency) / 1e9)
    result = {}
    for name, values in times_s.items():
        p50, p99 = 1e3 * np.percentile(values[WARM_UP:], [50, 99])
        result |= {f"{name}_p50_ms": float(p50), f"{name}_p99_ms": float(p99)}
    return {**result, "overhead_p50_ms": result["node_p50_ms"] - result["model_p50_ms"]}


def measure(vlm: str = "describe", vla: str = "hold") -> dict[str, Any]:
    """Medians and 99th percentiles [ms] of both nodes and their models, and their answers per second."""
    from merton.cognition.models.base import MODELS, example_question
    from merton.decision.models.base import POLICIES, example_observation

    with asker() as ros:
        import cv2
        import numpy as np

        asked = example_question()
        image = np.ascontiguousarray(cv2.resize(asked.images[0], SIZE_PX, interpolation=cv2.INTER_NEAREST))
        model, policy = MODELS[vlm].build(), POLICIES[vla].build()
        answer = ros.answer(vlm, image, asked.text)
        result: dict[str, Any] = {
            "vlm": {"model": vlm} | compared(lambda: model.answer([image], asked.text), lambda: ros.ask(answer))
            | {"answers_per_s_through_ros": ros.per_second(answer)},
        }  # fmt: skip
        for name, cameras, with_depth in (
            ("vla_one_view", ("top",), False),
            ("vla_two_views", ("top", "wrist"), False),
            ("vla_two_views_with_depth", ("top", "wrist"), True),
        ):
            seen = large(example_observation("pick up the red cube", cameras), with_depth)
            act = ros.act(vla, seen)
            result[name] = {"model": vla}
            result[name] |= compared(lambda seen=seen: policy.act(seen), lambda act=act: ros.ask(act))
            result[name]["actions_per_s_through_ros"] = ros.per_second(act)
        return {**result, "load_during": os.getloadavg()[0]}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
