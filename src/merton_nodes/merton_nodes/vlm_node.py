"""Cognition: answers questions about images."""

from __future__ import annotations

import sys
import time
from typing import Any

from merton_interfaces.action import AnswerQuestion
from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle

from merton.cognition.models.base import MODELS, VisionLanguageModel
from merton.errors import InfrastructureError
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.runtime import StageNode, run

MODEL_FAILED = 100
NOT_SERVED = 400


class VlmNode(StageNode):
    """Every model of the catalogue behind one action; a model is built when it is first asked."""

    def __init__(self, **options: Any) -> None:
        super().__init__("vlm_node", **options)

    def set_up(self) -> None:
        """Build the models named for preloading, offer the action."""
        self.models: dict[str, VisionLanguageModel] = {}
        for name in self.parameter("preload", ["describe"], f"models to build at start, of: {', '.join(MODELS)}"):
            self.model(name)
        self.server = ActionServer(self, AnswerQuestion, names.ANSWER, self.on_answer)

    def tear_down(self) -> None:
        """End the action server."""
        if hasattr(self, "server"):
            self.server.destroy()

    def model(self, name: str) -> VisionLanguageModel:
        """The model called `name`; raises UnknownNameError with the names there are."""
        if name not in self.models:
            self.models[name] = MODELS[name].build()
        return self.models[name]

    def on_answer(self, goal: ServerGoalHandle) -> AnswerQuestion.Result:
        """Action: look and answer. A model's failure is in the result, never an exception."""
        result, request = AnswerQuestion.Result(), goal.request
        started = time.monotonic()
        try:
            if not self.active:
                raise InfrastructureError("vlm_node is not active")
            image = convert.color_array(request.image)
            model = self.model(request.model_id)
            result.answer = model.answer([image], request.question, request.max_tokens or 32).text
            self.counters["answers"] += 1
        except InfrastructureError as error:
            result.error_code, result.error_msg = NOT_SERVED, self.explain(error)
        except Exception as error:  # a model may raise anything; the node goes on
            result.error_code, result.error_msg = MODEL_FAILED, self.explain(error)
        latency_s = time.monotonic() - started
        result.latency = convert.duration_message(latency_s)
        self.details["last latency"] = f"{1000 * latency_s:.1f} ms"
        goal.succeed()
        return result


def main() -> None:
    """Entry point."""
    sys.exit(run(VlmNode))
