"""Has experiment_node run an experiment, and shows its progress."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import rclpy
from action_msgs.msg import GoalStatus
from merton_interfaces.action import RunExperiment
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text
from unique_identifier_msgs.msg import UUID

from merton.graph.supervisor import ready_nodes
from merton.results.text import harmless
from merton_nodes.ros import names
from merton_nodes.ros.runtime import Spinner, on_signals

START_LIMIT_S = 300.0
"""Timeout of the start of experiment_node [s]; a process that dies at its start ends the graph at once."""
LOADING_LIMIT_S = 1800.0
"""Timeout of the start of all nodes with models to be loaded [s]: gigabytes from a slow disk."""
POLL_S = 0.25
LINE_PERIOD_S = 4.0
"""Time between the first two lines of progress where no terminal shows a bar [s]; each further one is twice as long."""
LONGEST_LINE_PERIOD_S = 30.0
RESEND_PERIOD_S = 10.0
"""Period of sending the goal again [s]: while nodes are discovering each other, an answer can get lost."""
RECORDER_LIMIT_S = 120.0
CANCEL_LIMIT_S = 1.0
"""Timeout of the answer to a cancelled goal [s]: the nodes may be ending as well."""


class Line(ProgressColumn):
    """Such as "37 of 528 trials, 0:01:12 elapsed, about 15 min left: servo.pick.0.jpeg.5", cut to fit the terminal."""

    def render(self, task: Task) -> Text:
        elapsed = f"{timedelta(seconds=int(task.finished_time or task.elapsed or 0))} elapsed"
        if task.total is None:
            return Text(f"{elapsed}: {task.description}", no_wrap=True, overflow="ellipsis")
        parts = [f"{task.completed:.0f} of {task.total:.0f} trials", elapsed]
        if left := remaining_text(task):
            parts.append(left)
        return Text(f"{', '.join(parts)}: {task.description}", no_wrap=True, overflow="ellipsis")


def remaining_text(task: Task) -> str:
    """Such as "about 3 min left"; empty if it is not known, or nothing is left."""
    left_s = task.time_remaining
    if left_s is None or task.finished:
        return ""
    return f"about {left_s:.0f} s left" if left_s < 90 else f"about {left_s / 60:.0f} min left"


class Client(Node):
    """An action client whose waits have limits."""

    def __init__(self, **options: Any) -> None:
        super().__init__("run_experiment", **options)
        self.client = ActionClient(self, RunExperiment, names.RUN_EXPERIMENT)
        self.finished = threading.Event()
        self.result: Any = None
        self.status = GoalStatus.STATUS_UNKNOWN
        self.goal: Any = None
        self.said_s, self.line_period_s = -math.inf, LINE_PERIOD_S

    def say(self, progress: Progress, text: str) -> None:
        """Print a line of progress where no terminal shows a bar, unless the last one is fresh."""
        now_s = time.monotonic()
        if not progress.console.is_terminal and now_s >= self.said_s + self.line_period_s:
            self.said_s, self.line_period_s = now_s, min(2 * self.line_period_s, LONGEST_LINE_PERIOD_S)
            progress.console.print(text, highlight=False, markup=False)

    def wait_for_recorder(self) -> bool:
        """Wait for a subscriber of the evidence of trials, which only a recorder is; false after a timeout."""
        end_s = time.monotonic() + RECORDER_LIMIT_S
        while self.context.ok() and time.monotonic() < end_s:
            if self.count_subscribers(names.TRIAL_EVIDENCE):
                return True
            self.finished.wait(0.05)
        return False

    def wait_for_nodes(self, progress: Progress, logs: Path | None, nodes: Sequence[str], loading: str) -> str:
        """Wait until all nodes are ready; returns an empty text, or one sentence after a timeout.

        Args:
            logs: folder of the nodes' logs; without it the wait is for experiment_node alone.
            nodes: their names.
            loading: models that are loaded meanwhile, in words.
        """
        task = progress.add_task("starting nodes", total=None)
        limit_s = LOADING_LIMIT_S if loading else START_LIMIT_S
        end_s = time.monotonic() + limit_s
        while self.context.ok():
            has_server = self.client.wait_for_server(timeout_sec=POLL_S)
            ready = ready_nodes(logs, nodes) if logs is not None else []
            if has_server and (logs is None or len(ready) == len(nodes)):
                break
            text = f"starting nodes: {len(ready)} of {len(nodes)} ready" if nodes else "waiting for the nodes"
            text += f"; loading {loading}" if loading else ""
            progress.update(task, description=text)
            self.say(progress, text)
            if time.monotonic() > end_s:
                missing = ", ".join(name for name in nodes if name not in ready) or "experiment_node"
                return f"{missing} did not come up within {limit_s:g} s"
            self.finished.wait(POLL_S)
        progress.remove_task(task)
        return ""

    def sender(self, goal: RunExperiment.Goal, progress: Progress) -> Callable[[], None]:
        """A function that sends the goal at each call; `finished` is set on a result or a refusal."""
        goal_id = UUID(uuid=list(uuid4().bytes))
        task = progress.add_task("waiting for experiment_node", total=None)

        def on_feedback(message: Any) -> None:
            f = message.feedback
            if f.stage != "trials":
                progress.console.print(harmless(f.stage), highlight=False, markup=False)
                return
            if progress.tasks[0].total is None:  # only from here on do elapsed and remaining time count
                progress.reset(task, total=f.total, completed=f.completed)
            progress.update(task, completed=f.completed, total=f.total, description=f.trial_id)
            left = remaining_text(progress.tasks[0])
            self.say(progress, f"{f.completed} of {f.total} trials{f', {left}' if left else ''}")

        def on_result(future: Any) -> None:
            self.status = future.result().status
            self.result = None if self.status == GoalStatus.STATUS_UNKNOWN else future.result().result
            if self.status == GoalStatus.STATUS_SUCCEEDED:
                total = progress.tasks[0].total or self.result.trials
                progress.update(task, completed=total, total=total, description="done")
            self.finished.set()

        def on_accepted(future: Any) -> None:
            if self.goal is not None:
                return
            self.goal = future.result()
            # a repeated goal of this id is not accepted either; the result of a goal that was never accepted is unknown
            self.goal.get_result_async().add_done_callback(on_result)

        def send() -> None:
            self.client.send_goal_async(goal, on_feedback, goal_id).add_done_callback(on_accepted)

        return lambda: self.in_executor(send)

    def in_executor(self, work: Callable[[], object]) -> None:
        """Have `work` done in the executor's thread, where requests must be sent: see `ServiceCaller.act_on`."""
        assert self.executor is not None, "the node is not spun"
        self.executor.create_task(work)

    def cancel(self) -> None:
        """Ask for the end of the run after the current trial, if the goal was accepted."""
        if self.goal is None:
            return
        answered = threading.Event()
        goal = self.goal
        self.in_executor(lambda: goal.cancel_goal_async().add_done_callback(lambda _: answered.set()))
        answered.wait(CANCEL_LIMIT_S)


def main() -> None:
    """Entry point: exit code 0 if every trial was run, 1 if the run ended with an error, 130 or 143 if interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--resume", action="store_true", help="go on with a run that has results already")
    parser.add_argument("--logs", type=Path, help="folder of the nodes' logs, which say when they are ready")
    parser.add_argument("--nodes", nargs="*", default=[], help="the nodes to wait for, by their logs")
    parser.add_argument("--loading", default="", help="models that are loaded meanwhile, in words")
    parser.add_argument("--recorded", action="store_true", help="do not begin before a recorder listens")
    arguments = parser.parse_args(remove_ros_args(sys.argv)[1:])
    # not rclpy's handlers: they would end the context, and with it the way to cancel the goal
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    on_signals(lambda number, _: sys.exit(128 + number))
    node, spinner = Client(), Spinner()
    spinner.executor.add_node(node)
    code: Any = 1
    try:
        code = run(node, arguments, spinner.start("client"))
    except SystemExit as interrupted:
        code = interrupted.code
        node.cancel()
    finally:
        on_signals(signal.SIG_IGN)
        spinner.end()
        node.destroy_node()
        rclpy.try_shutdown()
    sys.exit(code)


def run(node: Client, arguments: argparse.Namespace, spinner: threading.Thread) -> int:
    """Send the goal, show progress, return the exit code."""
    with Progress(BarColumn(12), Line(), console=Console(stderr=True)) as progress:
        if missing := node.wait_for_nodes(progress, arguments.logs, arguments.nodes, arguments.loading):
            print(missing, file=sys.stderr)
            return 1
        if arguments.recorded and not node.wait_for_recorder():
            print(f"no recorder listens after {RECORDER_LIMIT_S:g} s: the run begins without", file=sys.stderr)
        goal = RunExperiment.Goal(run_directory=str(arguments.run_directory.resolve()), resume=arguments.resume)
        send, send_at_s = node.sender(goal, progress), time.monotonic()
        accepted_by_s = send_at_s + START_LIMIT_S
        while not node.finished.is_set():
            if not node.context.ok() or not spinner.is_alive():
                return 1
            now_s = time.monotonic()
            if node.goal is None and now_s > accepted_by_s:
                print(f"experiment_node did not accept the goal within {START_LIMIT_S:g} s", file=sys.stderr)
                return 1
            if node.goal is None and now_s >= send_at_s:
                send()
                send_at_s = now_s + RESEND_PERIOD_S
            node.finished.wait(0.5)
    if node.result is None:
        print("experiment_node refused the goal: it is busy or not active", file=sys.stderr)
        return 1
    if node.status == GoalStatus.STATUS_SUCCEEDED:
        return 0
    cancelled = node.status == GoalStatus.STATUS_CANCELED
    said = harmless(node.result.error_msg) or "experiment_node failed: see its log"
    print("cancelled" if cancelled else said, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
