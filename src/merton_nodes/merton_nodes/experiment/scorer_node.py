"""Scores each trial against its reference run."""

from __future__ import annotations

import sys
from typing import Any

from merton_interfaces.srv import ScoreTrial

from merton.errors import ErrorCode, MertonError
from merton.experiment.scoring import score
from merton_nodes.ros import names, trial_messages
from merton_nodes.ros.runtime import StageNode, run


class ScorerNode(StageNode):
    """`merton.experiment.scoring.score` as a service."""

    def __init__(self, **options: Any) -> None:
        super().__init__("scorer_node", **options)

    def set_up(self) -> None:
        self.create_service(ScoreTrial, names.SCORE, self.on_score)

    def on_score(self, request: ScoreTrial.Request, response: ScoreTrial.Response) -> ScoreTrial.Response:
        """Service: the scores of a trial from its evidence and its outcome."""
        try:
            scores = score(trial_messages.evidence_of(request.evidence), trial_messages.outcome_of(request.outcome))
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.SCORING_FAILED, str(error)
            self.counters["errors"] += 1
            return response
        self.counters["trials"] += 1
        return trial_messages.scores_response(scores)


def main() -> None:
    sys.exit(run(ScorerNode, shared_memory=False))
