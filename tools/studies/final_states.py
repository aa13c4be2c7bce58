"""Positions of all things at the end of each trial, beside a running experiment, in any simulator.

.venv/bin/python tools/studies/final_states.py FILE.json

Listens to `cell/state` and `trial_results`, and ends with Ctrl-C. The file has, by the id of the trial, the position of
each thing in `base_link` [m].
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import rclpy
from merton_interfaces.msg import CellState, TrialResult
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from merton_nodes.ros import names


class FinalStates(Node):
    """Keeps the newest state, and writes it down when its trial has ended."""

    def __init__(self, file: Path) -> None:
        super().__init__("final_states")
        self.file, self.state = file, CellState()
        self.found: dict[str, dict[str, list[float]]] = {}
        self.create_subscription(CellState, names.CELL_STATE, self.on_state, names.RELIABLE_QOS)
        self.create_subscription(TrialResult, names.TRIAL_RESULTS, self.on_result, names.RELIABLE_QOS)

    def on_state(self, state: CellState) -> None:
        if state.at_rest:
            self.state = state

    def on_result(self, result: TrialResult) -> None:
        if (result.task, result.scene_seed) == (self.state.task, self.state.seed):
            places = {thing.name: thing.pose.position for thing in self.state.objects}
            self.found[result.trial_id] = {name: [place.x, place.y, place.z] for name, place in places.items()}
            self.file.write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rclpy.init()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(FinalStates(Path(sys.argv[1])))
