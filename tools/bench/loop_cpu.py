"""Processor seconds a trial of `merton run` takes, by process, beside the same trials in one process.

A part of the quickstart runs in the graph `sim`, as `merton run` runs it. The processor time of every node, its worker
processes included, is read after the first trials, when all models are loaded, and after the last one.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

WARM_TRIALS = 8
"""Trials before the measurement begins."""
PART = {
    "tasks": ("test-place", "test-press"),
    "distortions": ("gaussian_blur", "jpeg"),
    "levels": (0, 2, 4),
    "scenes": 2,
    "reference_scenes": 1,
}
LIMIT_S = 600.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure() -> dict[str, Any]:
    """Processor seconds per trial of each process and of all, and in one process."""
    from merton.config import load
    from merton.experiment.plan import ExperimentSpec
    from merton.experiment.run import RunDirectory
    from merton.files import resource
    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment, find_executable

    quickstart = load(resource("merton_bringup", "config/experiments/quickstart.yaml"), ExperimentSpec)
    spec = quickstart.model_copy(update=PART)
    domain, claim = claim_domain()
    variables = environment(domain)
    with tempfile.TemporaryDirectory() as folder, claim:
        part = Path(folder) / "part.yaml"
        part.write_text(json.dumps(spec.model_dump(mode="json")), encoding="utf-8")  # JSON is YAML
        directory = RunDirectory.create(Path(folder), part, "part")
        with Supervisor(load_graph("sim"), directory.path / "logs", variables, claim) as supervisor:
            client = str(find_executable("merton_nodes", "run_experiment"))
            supervisor.start("run_experiment", [client, str(directory.path)])
            trials, seconds = _over_ros(directory, supervisor)
    total_s = sum(seconds.values())
    in_process_s = _in_process(spec)
    return {
        "trials": trials,
        "over_ros_s": total_s / trials,
        "in_process_s": in_process_s,
        "times_in_process": total_s / trials / in_process_s,
        **{f"{name}_s": used_s / trials for name, used_s in sorted(seconds.items(), key=lambda item: -item[1])},
    }


def _over_ros(directory: Any, supervisor: Any) -> tuple[int, dict[str, float]]:
    """Run the experiment; returns the measured trials, and the processor time of each node in them [s]."""
    deadline_s = time.monotonic() + LIMIT_S
    while directory.recorded() < WARM_TRIALS:
        assert time.monotonic() < deadline_s, "the first trials did not end"
        time.sleep(0.05)
    nodes = {name: process.pid for name, process in supervisor.processes.items() if name != "run_experiment"}
    before, begin = {name: session_seconds(pid) for name, pid in nodes.items()}, directory.recorded()
    while supervisor.processes["run_experiment"].poll() is None:
        assert time.monotonic() < deadline_s, "the run did not end"
        time.sleep(0.05)
    after = {name: session_seconds(pid) for name, pid in nodes.items()}
    return directory.recorded() - begin, {name: after[name] - before[name] for name in nodes}


def session_seconds(pid: int) -> float:
    """Processor time of a process that leads a session, and of all its children, the ended ones included [s]."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == pid:
            user, system, of_children, system_of_children = (int(field) for field in fields[11:15])
            total += user + system + of_children + system_of_children
    return total / TICKS_PER_S


def _in_process(spec: Any) -> float:
    """Processor seconds of a trial with everything in this process, models loaded."""
    from merton.experiment.local import LocalPorts
    from merton.experiment.runner import Runner

    runner, trials = Runner(spec, "part", LocalPorts()), spec.trials()
    for trial in trials[:WARM_TRIALS]:
        runner.run(trial)
    begin_s = time.process_time()
    for trial in trials[WARM_TRIALS:]:
        runner.run(trial)
    return (time.process_time() - begin_s) / (len(trials) - WARM_TRIALS)


if __name__ == "__main__":
    print(json.dumps(measure()))
