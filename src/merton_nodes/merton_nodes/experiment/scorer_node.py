"""Scores each stage against the undistorted run."""

from __future__ import annotations

import math
import sys
from typing import Any

from merton_interfaces.srv import ScoreCognition, ScoreDecision, ScoreExecution

from merton.cognition.score import score as score_cognition
from merton.decision.score import score as score_decision
from merton.errors import MertonError
from merton.execution.score import position_distance_m
from merton.execution.score import score as score_execution
from merton.experiment.scoring import cider_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run

SCORING_FAILED = 500


class ScorerNode(StageNode):
    """One service for each stage."""

    def __init__(self, **options: Any) -> None:
        super().__init__("scorer_node", **options)

    def set_up(self) -> None:
        """Offer the services."""
        self.create_service(ScoreCognition, names.SCORE_COGNITION, self.on_cognition)
        self.create_service(ScoreDecision, names.SCORE_DECISION, self.on_decision)
        self.create_service(ScoreExecution, names.SCORE_EXECUTION, self.on_execution)

    def on_cognition(
        self, request: ScoreCognition.Request, response: ScoreCognition.Response
    ) -> ScoreCognition.Response:
        """Service: likeness of two answers; CIDEr is NaN where it has no say."""
        try:
            score = score_cognition(request.reference, request.candidate, cider_of(tuple(request.corpus)))
            response.score, response.bleu, response.rouge = score.total, score.bleu, score.rouge_l
            response.cider = math.nan if score.cider is None else score.cider
            self.counters["cognition"] += 1
        except MertonError as error:
            self.fail(response, error)
        return response

    def on_decision(self, request: ScoreDecision.Request, response: ScoreDecision.Response) -> ScoreDecision.Response:
        """Service: likeness of two chunks."""
        try:
            score = score_decision(convert.chunk_of(request.reference), convert.chunk_of(request.candidate))
            response.score, response.position, response.rotation = score.total, score.position, score.rotation
            response.state = score.state
            self.counters["decision"] += 1
        except MertonError as error:
            self.fail(response, error)
        return response

    def on_execution(
        self, request: ScoreExecution.Request, response: ScoreExecution.Response
    ) -> ScoreExecution.Response:
        """Service: success, distance or stop, as 0..100; NaN for an outcome that is no score."""
        try:
            outcome = convert.outcome_of(request.outcome)
            response.distance = position_distance_m(
                convert.matrix_of(request.reference), convert.matrix_of(request.candidate)
            )
            score = score_execution(outcome, response.distance)
            response.score = math.nan if score is None else score
            self.counters["execution"] += 1
        except MertonError as error:
            self.fail(response, error)
        return response

    def fail(
        self, response: ScoreCognition.Response | ScoreDecision.Response | ScoreExecution.Response, error: MertonError
    ) -> None:
        """Put an error into a response."""
        response.error_code, response.error_msg = SCORING_FAILED, str(error)
        self.counters["errors"] += 1


def main() -> None:
    """Entry point."""
    sys.exit(run(ScorerNode))
