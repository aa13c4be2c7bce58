"""Stores results, and rates agents and test cases from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from merton_interfaces.msg import Rating, RatingArray, TrialResult
from merton_interfaces.srv import RecordTrial
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from merton.errors import ErrorCode, InputError, MertonError
from merton.experiment.run import RunDirectory
from merton.leaderboard.snapshot.live import LiveBoard, LiveBoards, ShownBoard
from merton.results.store import ResultStore
from merton_nodes.ros import names, trial_messages
from merton_nodes.ros.runtime import StageNode, run

POLL_PERIOD_S = 0.2


class AggregatorNode(StageNode):
    """Acknowledges a result once it is durable; publishes ratings and the board, which another process computes."""

    def __init__(self, **options: Any) -> None:
        super().__init__("aggregator_node", **options)

    def set_up(self) -> None:
        self.stores: dict[Path, ResultStore] = {}
        self.boards = LiveBoards(
            self.parameter(
                "record",
                "",
                "record that every result is merged into and that ratings are of, from the start on: a run's "
                "directory, an SQLite file or a postgresql:// URL; empty: ratings are of the last result's run",
            ),
            messages,
        )
        self.closing.callback(self.close_stores)
        self.problem = ""
        self.ratings = self.create_publisher(RatingArray, names.RATINGS, names.LATCHED_QOS)
        self.board = self.create_publisher(String, names.LEADERBOARD, names.LATCHED_QOS)
        self.results = self.create_publisher(TrialResult, names.TRIAL_RESULTS, names.KEPT_QOS)
        self.create_service(RecordTrial, names.RECORD, self.on_record)
        self.create_timer_s(POLL_PERIOD_S, self.publish_ratings)

    def close_stores(self) -> None:
        """Close every store, publish the last board, merge the results that a shared record still lacks into it."""
        for store in self.stores.values():
            store.close()
        self.show(self.boards.last(*self.stamp()))
        if problem := self.boards.close():
            self.get_logger().error(problem)

    def on_record(self, request: RecordTrial.Request, response: RecordTrial.Response) -> RecordTrial.Response:
        """Service: make a result durable; answered only then."""
        path = Path(request.run_directory) / "results.sqlite"
        try:
            if path in self.stores and not path.exists():  # the run was deleted under the store
                self.stores.pop(path).close()
            if path not in self.stores:
                if not path.parent.is_dir():
                    raise InputError(f"there is no run at {path.parent}")
                self.stores[path] = self.opened(path)
            response.stored = self.stores[path].record(trial_messages.record_of(request.result))
            self.counters["results"] += 1
            self.boards.changed(str(path))
            self.results.publish(request.result)
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.NOT_STORED, str(error)
            self.counters["errors"] += 1
        return response

    def opened(self, path: Path) -> ResultStore:
        """The record of a run, with the run and its agents entered."""
        store = ResultStore(path)
        if (path.parent / "experiment.yaml").is_file():
            try:
                RunDirectory(path.parent).register(store)
            except MertonError as error:  # the results matter more than the description of their agents
                self.get_logger().warning(f"the record does not say who the agents of {path.parent} are: {error}")
        return store

    def publish_ratings(self) -> None:
        """Publish new ratings, once they have been computed."""
        self.show(self.boards.poll(*self.stamp()))

    def stamp(self) -> tuple[int, int]:
        """Seconds and nanoseconds of the node's clock."""
        now = self.get_clock().now().to_msg()
        return now.sec, now.nanosec

    def show(self, made: ShownBoard | None) -> None:
        """Publish a board, if there is a new one."""
        if made is None:
            return
        if made.problem and made.problem != self.problem:
            self.get_logger().error(made.problem)
        self.counters["errors"] += made.problem != ""
        self.problem = self.details["shared record"] = made.problem
        if made.shown is not None:
            ratings, text = made.shown
            self.ratings.publish(ratings)
            self.board.publish(String(data=text))


def messages(board: LiveBoard, sec: int, nanosec: int) -> tuple[bytes, str] | None:
    """A board as it is published: a serialised RatingArray and the text; None if it is empty.

    Runs in the process that rates, because 5,000 ratings take 0.1 to 0.2 s; the stamp is the start of the rating.
    """
    if not board.text:
        return None
    array = RatingArray(experiment_id=board.experiment)
    array.header.stamp.sec, array.header.stamp.nanosec = sec, nanosec
    for kind, players in ((Rating.AGENT, board.agents), (Rating.TEST_CASE, board.cases)):
        array.ratings += [
            Rating(id=line.id, kind=kind, mean=line.mean, deviation=line.deviation, matches=line.matches)
            for line in players
        ]
    return serialize_message(array), board.text


def main() -> None:
    sys.exit(run(AggregatorNode, shared_memory=False))
