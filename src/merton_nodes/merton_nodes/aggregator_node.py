"""Keeps results, and rates agents and test cases from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from merton_interfaces.msg import Rating, RatingArray, TrialResult
from merton_interfaces.srv import RecordTrial
from std_msgs.msg import String

from merton.errors import InputError, MertonError
from merton.leaderboard import board
from merton.rating import agi_elo
from merton.results.store import ResultStore
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.runtime import StageNode, run

NOT_STORED = 502
RATING_PERIOD_S = 2.0


class AggregatorNode(StageNode):
    """Acknowledges a result once it is durable; publishes ratings and the board."""

    def __init__(self, **options: Any) -> None:
        super().__init__("aggregator_node", **options)

    def set_up(self) -> None:
        """Offer the service."""
        self.stores: dict[Path, ResultStore] = {}
        self.changed: tuple[Path, str] | None = None
        self.ratings = self.create_publisher(RatingArray, names.RATINGS, names.LATCHED_QOS)
        self.board = self.create_publisher(String, names.LEADERBOARD, names.LATCHED_QOS)
        self.results = self.create_publisher(TrialResult, names.TRIAL_RESULTS, names.RELIABLE_QOS)
        self.create_service(RecordTrial, names.RECORD, self.on_record)
        self.every(RATING_PERIOD_S, self.publish_ratings)

    def tear_down(self) -> None:
        """Close every store."""
        for store in getattr(self, "stores", {}).values():
            store.close()

    def on_record(self, request: RecordTrial.Request, response: RecordTrial.Response) -> RecordTrial.Response:
        """Service: make a result durable. No answer is sent before it is."""
        path = Path(request.run_directory) / "results.sqlite"
        try:
            if path in self.stores and not path.exists():  # the run was deleted under the store
                self.stores.pop(path).close()
            if path not in self.stores:
                if not path.parent.is_dir():
                    raise InputError(f"there is no run at {path.parent}")
                self.stores[path] = ResultStore(path)
            record = convert.record_of(request.result)
            response.stored = self.stores[path].record(record)
            self.counters["results"] += 1
            self.changed = (path, record.experiment)
            self.results.publish(request.result)
        except MertonError as error:
            response.error_code, response.error_msg = NOT_STORED, str(error)
            self.counters["errors"] += 1
        return response

    def publish_ratings(self) -> None:
        """Rate anew if there are new results."""
        if self.changed is None:
            return
        (path, experiment), self.changed = self.changed, None
        records = self.stores[path].records(experiment)
        ratings = agi_elo.rate(agi_elo.matches(records))
        message = RatingArray(experiment_id=experiment)
        message.header.stamp = self.get_clock().now().to_msg()
        for kind, players in ((Rating.AGENT, ratings.agents), (Rating.TEST_CASE, ratings.cases)):
            message.ratings += [
                Rating(id=name, kind=kind, mean=r.mean, deviation=r.deviation, matches=r.matches)
                for name, r in players.items()
            ]
        self.ratings.publish(message)
        self.board.publish(String(data=board.render_text(board.build(records, ratings))))


def main() -> None:
    """Entry point."""
    sys.exit(run(AggregatorNode))
