"""Processes that are stopped for seconds (SIGSTOP), as a laptop that sleeps stops them: the run goes on to the same
results."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from merton_interfaces.msg import CellState
from sensor_msgs.msg import JointState

from merton.graph.spec import load_graph
from merton.graph.supervisor import Supervisor, environment, find_executable, last_lines
from merton.results.comparison import compare
from merton_nodes.ros import names
from ros import Probe, Ros
from runs import TRIALS, records, small_run, undisturbed_run

STALL_S = 3.0
"""How long each process is stopped: six times as long as the cell may miss a heartbeat."""
CLIENT = "run_experiment"


@pytest.mark.timeout(900)
@pytest.mark.skipif("MERTON_STALL_EVERY_NODE" not in os.environ, reason="three minutes: set MERTON_STALL_EVERY_NODE")
def test_a_run_in_which_every_process_stalls_has_the_results_of_a_quiet_one(
    ros: Ros, probe: Probe, tmp_path: Path
) -> None:
    """Each process twice: in mid-motion, and while the arm rests and models think."""
    run, quiet = small_run(tmp_path, "stalled"), undisturbed_run(tmp_path)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)

    def moves() -> bool:
        return bool(joints) and bool(np.abs(joints[-1].velocity[:6]).max() > 0.05)

    def rests() -> bool:
        return bool(states) and states[-1].scene > 1 and states[-1].at_rest

    graph = load_graph("sim").with_arguments({"real_time_factor": "1.0"})
    client = [str(find_executable("merton_nodes", CLIENT)), str(run.path)]
    with Supervisor(graph, run.path / "logs", environment()) as supervisor:
        supervisor.start(CLIENT, client)
        for name in [*(node.name for node in graph.nodes), CLIENT]:
            for moment in (moves, rests):
                ros.until(rests)
                ros.until(moment)
                stall(supervisor.processes[name].pid)
        assert len(records(run)) < TRIALS, "the experiment is too short for this many stalls"
        ended = supervisor.next_exit(600)
    why = last_lines(run.path / "logs" / f"{CLIENT}.log", 20) + last_lines(
        run.path / "logs" / "experiment_node.log", 20
    )
    assert ended is not None, why
    assert (ended.name, ended.code) == (CLIENT, 0), why
    assert compare(records(run), records(quiet)) == []


def stall(pid: int) -> None:
    """Stop a process for `STALL_S`."""
    os.kill(pid, signal.SIGSTOP)
    try:
        threading.Event().wait(STALL_S)
    finally:
        os.kill(pid, signal.SIGCONT)
