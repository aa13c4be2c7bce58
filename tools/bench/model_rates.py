"""Rates of the small models: in this process, in their node, and behind each protocol.

One request is under way at a time; a rate is the inverse of the median time. Images are 640x480, and 224x224 from
openpi's client. Behind a protocol the model is in a process of `merton model serve`, on loopback. The actions of a
policy there are not judged, because no protocol has the camera's calibration.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from model_nodes import SIZE_PX, asker, large

VLMS = ("gaze", "describe")
VLAS = ("glance", "servo")
MOST, LONGEST_S = 100, 4.0
"""Most calls for one rate, and the limit of their total duration [s]."""
VARIABLE = "MERTON_BENCH_MODEL"
"""Environment variable with the name of the served model."""
CAMERA = "top"
CONVENTION = "bridge"


class Served:
    """A model of the catalogue in the form of a class for `merton model serve`."""

    def __init__(self) -> None:
        from merton.cognition.models.base import MODELS
        from merton.decision.models.base import POLICIES

        name = os.environ[VARIABLE]
        self.model: Any = (POLICIES if name in POLICIES else MODELS)[name].build()
        self.model.warm_up()

    def act(self, observation: dict[str, Any]) -> Any:
        """Deltas (n, 7) on an image under the key `image`."""
        from lens import lens_of

        from merton.world.observation import CameraView

        image, seen = observation["image"], self.model.make_example()
        height, width = image.shape[:2]
        view = CameraView(CAMERA, image, None, lens_of(width, height), seen.views[CAMERA].base_from_camera)
        return self.model.act(replace(seen, views={CAMERA: view})).deltas

    def answer(self, images: list[Any], question: str, max_tokens: int) -> str:
        """The text of a VLM's answer."""
        return str(self.model.answer(images, question, max_tokens).text)


@contextmanager
def served(model: str, protocol: str) -> Iterator[str]:
    """A server of one model; yields its address."""
    serve = ["merton", "model", "serve", "model_rates:Served", "--protocol", protocol, "--port", "0"]
    command = [sys.executable, "-m", *serve]
    environment = {**os.environ, VARIABLE: model}
    process = subprocess.Popen(command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(10)


def per_second(work: Callable[[], Any]) -> float:
    """Calls per second, one after the other, after a first call to warm up."""
    work()
    times_s: list[float] = []
    while len(times_s) < MOST and sum(times_s) < LONGEST_S:
        started_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - started_s)
    return 1.0 / statistics.median(times_s)


def of_vlm(name: str, ros: Any) -> dict[str, Any]:
    """Answers per second of a VLM."""
    import cv2

    from merton.cognition.models.base import MODELS
    from merton.cognition.models.openai_chat import ChatSettings, OpenAIChat

    model = MODELS[name].build()
    asked = model.make_example()
    image = cv2.resize(asked.images[0], SIZE_PX, interpolation=cv2.INTER_NEAREST)
    send = ros.answer(name, image, asked.text)
    rates = {
        "in_process_per_s": per_second(lambda: model.answer([image], asked.text)),
        "through_ros_per_s": per_second(lambda: ros.ask(send)),
    }
    with served(name, "chat") as url:
        chat = OpenAIChat(name, ChatSettings(url=url + "/v1", model="Served"))
        rates["chat_per_s"] = per_second(lambda: chat.answer([image], asked.text))
    return rates


def of_policy(name: str, ros: Any) -> dict[str, Any]:
    """Actions per second of a policy; without protocols if it needs depth, which none of them has."""
    from merton.decision.models.base import POLICIES
    from merton.decision.models.conventions import CONVENTIONS
    from merton.decision.models.openpi import Dialect, OpenPi, OpenPiSettings
    from merton.decision.models.openvla_rest import ActSettings, OpenVlaRest

    entry = POLICIES[name]
    policy = entry.build()
    seen = large(policy.make_example(), entry.needs_depth)
    send = ros.act(name, seen)
    rates = {
        "in_process_per_s": per_second(lambda: policy.act(seen)),
        "through_ros_per_s": per_second(lambda: ros.ask(send)),
    }
    if entry.needs_depth:
        return rates
    with served(name, "openpi") as url:
        dialect = Dialect(images=("image",))
        openpi = OpenPi(name, OpenPiSettings(url=url, dialect=dialect), CONVENTIONS[CONVENTION], (CAMERA,))
        rates["openpi_per_s"] = per_second(lambda: openpi.act(seen))
    with served(name, "act") as url:
        act = OpenVlaRest(name, ActSettings(url=url), CONVENTIONS[CONVENTION], CAMERA)
        rates["act_per_s"] = per_second(lambda: act.act(seen))
    return rates


def measure() -> dict[str, Any]:
    """The rates of every model of the catalogue, or the missing extra as a reason."""
    with asker() as ros:
        from merton.cognition.models.base import MODELS
        from merton.decision.models.base import POLICIES
        from merton.errors import MissingDependencyError

        result: dict[str, Any] = {}
        for name in (*VLMS, *VLAS):
            try:
                if name in MODELS:
                    result[name] = of_vlm(name, ros)
                elif name in POLICIES:
                    result[name] = of_policy(name, ros)
            except MissingDependencyError as error:
                result[name] = {"skipped": str(error)}
        return {**result, "load_during": os.getloadavg()[0]}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
