"""What a node adds to the model in it: the same question put to the model here, and to the same model in its node.

vlm_node and vla_node run in processes of their own, images are 640x480, and one request is on its way at a time. The
model here and the node are asked in turn, so that both meet the same load. A view is what a trial sends: colour, and
where it says so depth. The overhead is the difference of the medians: messages there and back, queue and threads.
What the node itself says it took, from the arrival of a request to its answer, is `inside`.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLES = 200
WARM_UP = 10
IN_FLIGHT = 4
NODES = ("vlm_node", "vla_node")
LIMIT_S = 60.0


def measure(vlm: str = "describe", vla: str = "hold", samples: int = SAMPLES) -> dict[str, Any]:
    """Medians and 99th percentiles [ms] of both nodes and their models, and what they answer per second."""
    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment

    graph = load_graph("sim")
    graph = graph.model_copy(update={"nodes": tuple(node for node in graph.nodes if node.name in NODES)})
    domain, claim = claim_domain()
    variables = environment(domain)
    os.environ.update(variables)  # before anything of ROS, or numpy, is imported
    with claim, tempfile.TemporaryDirectory() as logs, Supervisor(graph, Path(logs), variables, claim):
        return _measure(vlm, vla, samples)


def _measure(vlm: str, vla: str, samples: int) -> dict[str, Any]:
    import cv2
    import numpy as np
    import rclpy
    from merton_interfaces.action import AnswerQuestion
    from merton_interfaces.srv import PredictActions
    from rclpy.action import ActionClient
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    from merton.cell import ARM_JOINTS
    from merton.cognition.models.base import MODELS, example_question
    from merton.decision.models.base import POLICIES, example_observation
    from merton.observation import CameraView, Intrinsics, Observation
    from merton_nodes import conversions as convert
    from merton_nodes import names

    rclpy.init(args=[])
    node = Node("asker")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    spinner = threading.Thread(target=executor.spin, daemon=True)
    spinner.start()
    answers = ActionClient(node, AnswerQuestion, names.ANSWER)
    predict = node.create_client(PredictActions, names.PREDICT)
    asked = example_question()
    image = np.ascontiguousarray(cv2.resize(asked.images[0], (640, 480), interpolation=cv2.INTER_NEAREST))
    intrinsics = Intrinsics(640, 480, 320.0, 320.0, 319.5, 239.5)
    depth = np.ones((480, 640), np.float32)

    def looking(cameras: int, with_depth: bool) -> Observation:
        seen = example_observation("pick up the red cube", ("top", "wrist")[:cameras])
        views = {
            name: CameraView(name, image, depth if with_depth else None, intrinsics, view.base_from_camera)
            for name, view in seen.views.items()
        }
        return Observation(views, seen.joints_rad, seen.base_from_tcp, 1.0, seen.instruction)

    def answer(done: Callable[[Any], None]) -> None:
        goal = AnswerQuestion.Goal(model_id=vlm, image=convert.color_message(image, 0, ""), question=asked.text)

        def on_handle(future: Any) -> None:
            future.result().get_result_async().add_done_callback(lambda f: done(f.result().result))

        answers.send_goal_async(goal).add_done_callback(on_handle)

    def act(seen: Observation, done: Callable[[Any], None]) -> None:
        request = PredictActions.Request(
            model_id=vla,
            views=[convert.view_message(view) for view in seen.views.values()],
            state=JointState(name=list(ARM_JOINTS), position=seen.joints_rad.tolist()),
            tcp=convert.pose_stamped(seen.base_from_tcp, 0),
            gripper=1.0,
            instruction=seen.instruction,
        )
        predict.call_async(request).add_done_callback(lambda f: done(f.result()))

    def ask(send: Callable[[Callable[[Any], None]], None]) -> Any:
        """Send from the executor's thread and return the answer; one that got lost while nodes meet is asked again."""
        for _ in range(5):
            arrived = threading.Event()
            replies: list[Any] = []

            def done(reply: Any, replies: list[Any] = replies, arrived: threading.Event = arrived) -> None:
                replies.append(reply)
                arrived.set()

            executor.create_task(send, done)
            if arrived.wait(LIMIT_S / 5):
                if replies[0].error_code:
                    raise RuntimeError(replies[0].error_msg)
                return replies[0]
        raise RuntimeError("the node did not answer")

    def compared(bare: Callable[[], Any], send: Callable[[Callable[[Any], None]], None]) -> dict[str, float]:
        times_s: dict[str, list[float]] = {"model": [], "node": [], "inside": []}
        for _ in range(samples + WARM_UP):
            for name, work in (("model", bare), ("node", lambda: ask(send))):
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

    def per_second(send: Callable[[Callable[[Any], None]], None]) -> float:
        """With `IN_FLIGHT` requests on the way at any time."""
        left, finished, begin_s = [samples], threading.Event(), time.perf_counter()

        def done(_: Any) -> None:
            left[0] -= 1
            if left[0] >= IN_FLIGHT:
                send(done)
            elif left[0] == 0:
                finished.set()

        for _ in range(IN_FLIGHT):
            executor.create_task(send, done)
        if not finished.wait(LIMIT_S):
            raise RuntimeError(f"{left[0]} answers did not come")
        return samples / (time.perf_counter() - begin_s)

    try:
        if not (answers.wait_for_server(LIMIT_S) and predict.wait_for_service(LIMIT_S)):
            raise RuntimeError("vlm_node and vla_node did not come up")
        model, policy = MODELS[vlm].build(), POLICIES[vla].build()
        one, two = looking(1, False), looking(2, True)
        return {
            "vlm": {"model": vlm} | compared(lambda: model.answer([image], asked.text), answer)
            | {"answers_per_s_through_ros": per_second(answer)},
            "vla_one_view": {"model": vla} | compared(lambda: policy.act(one), lambda done: act(one, done))
            | {"actions_per_s_through_ros": per_second(lambda done: act(one, done))},
            "vla_two_views_with_depth": {"model": vla} | compared(lambda: policy.act(two), lambda done: act(two, done)),
            "load_during": os.getloadavg()[0],
        }  # fmt: skip
    finally:
        executor.shutdown(timeout_sec=5)
        spinner.join(5)
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
