"""Cognition: answers questions about images."""

from __future__ import annotations

import sys
import time
from typing import Any

from merton_interfaces.action import AnswerQuestion
from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from sensor_msgs.msg import Image

from merton.cognition.final_answer import spoken
from merton.cognition.models.base import MAX_TOKENS, MODELS, Answer, Question, checked_answer
from merton_nodes.models.model_node import Cancelled, ModelNode, reading
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import run

RESULT_LIFETIME_S = 10.0
"""Time for which a finished result is kept [s]; a client that comes later must send the goal again.

Ours: longer than a busy machine keeps a client waiting. Each status message lists all goals that are kept, 20 us each
to read: some ten, and in rclpy's default of 900 s thousands.
"""


class VlmNode(ModelNode[Question, Answer]):
    """Every model of the catalogue behind one action; one that is not preloaded is loaded at its first request."""

    def __init__(self, **options: Any) -> None:
        super().__init__("vlm_node", **options)

    def set_up(self) -> None:
        self.serve(MODELS, ["describe"])
        self.server = ActionServer(
            self,
            AnswerQuestion,
            names.ANSWER,
            self.on_answer,
            cancel_callback=self.on_cancel,
            result_timeout=RESULT_LIFETIME_S,
        )
        self.closing.callback(self.server.destroy)

    def on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        """Accept always: a queued request is dropped, and so is the result of a running call."""
        self.waits.wake()  # once rclpy has marked the goal, after this callback
        return CancelResponse.ACCEPT

    async def on_answer(self, goal: ServerGoalHandle) -> AnswerQuestion.Result:
        """Action: answer a question about an image. A model's failure is in the result, never an exception."""
        result, request = AnswerQuestion.Result(), goal.request
        started = time.monotonic()
        try:
            with reading():
                image = convert.color_array(request.image)
            limit = self.entry(request.model_id).limit(request.max_tokens or MAX_TOKENS)
            question = Question((image,), request.question, limit)
            if not goal.is_cancel_requested:
                output = await self.ask(request.model_id, question, lambda: goal.is_cancel_requested)
                result.answer = spoken(checked_answer(output, request.model_id), limit).text
                self.counters["answers"] += 1
        except Cancelled:
            pass
        except Exception as error:  # a model may raise any type; the node goes on
            result.error_code, result.error_msg = self.failure(error)
        request.image = Image()  # rclpy keeps the request as long as the result: free its memory for the next image
        if goal.is_cancel_requested:
            self.counters["cancelled"] += 1
            goal.canceled()
            return AnswerQuestion.Result()
        result.latency = convert.duration_message(time.monotonic() - started)
        goal.succeed()
        return result


def main() -> None:
    sys.exit(run(VlmNode))
