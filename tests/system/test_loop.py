"""A whole run over real processes: killed, resumed, and compared with one in a single process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from merton.experiment.run import RunDirectory
from merton.files import locked_folder
from merton.graph.spec import load_graph
from merton.results.comparison import compare
from merton.results.records import Outcome
from merton.results.store import ResultStore
from patience import stretched, until
from runs import EXPERIMENT, TRIALS, details, records, small_run, undisturbed_run

STATEFUL = ("mujoco_cell_node", "arm_node", "aggregator_node", "experiment_node")
"""Nodes with a state that a kill loses."""
MERTON = [sys.executable, "-m", "merton"]


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Ends the processes of a failed test; the nodes end with their supervisor."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=stretched(30))
    STARTED.clear()


def merton(*arguments: object) -> subprocess.Popen[str]:
    variables = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    process = subprocess.Popen(
        [*MERTON, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        start_new_session=True,
    )
    STARTED.append(process)
    return process


def children(pid: int) -> dict[str, int]:
    """Program name to process id of the direct children of a process."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            found |= {Path(word).name: int(child) for word in words if "/lib/merton_nodes/" in word}
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run in one process, without ROS."""
    return undisturbed_run(tmp_path_factory.mktemp("local"))


@pytest.mark.timeout(1800)
def test_a_run_killed_at_every_node_has_the_results_of_an_undisturbed_one(
    undisturbed: RunDirectory, tmp_path: Path
) -> None:
    """kill -9 of one node after the other: the run names the dead node and loses no result.

    One stateless node stands for all, unless `MERTON_KILL_EVERY_NODE` is set: each takes 15 s.
    """
    run = small_run(tmp_path, "killed")
    every = [node.executable for node in load_graph("sim").nodes]
    assert set(STATEFUL) < set(every)
    for victim in every if os.environ.get("MERTON_KILL_EVERY_NODE") else [*STATEFUL, "camera_node"]:
        before = {record.id: record for record in records(run)}
        process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
        until(lambda before=before: len(records(run)) > len(before), 300)
        os.kill(children(process.pid)[victim], signal.SIGKILL)
        output, _ = process.communicate(timeout=stretched(180))
        assert process.returncode == 3, output
        assert re.search(rf"{victim} was ended by SIGKILL", output), output
        after = {record.id: record for record in records(run)}
        assert before.items() <= after.items(), "an acknowledged result was lost"
        assert f"{len(after)} results are safe" in output
        assert len(after) < TRIALS, "the experiment is too short to be killed this often"
    process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
    output, _ = process.communicate(timeout=stretched(180))
    assert process.returncode == 0, output
    assert (run.path / "report.html").stat().st_size > 50_000

    finished = records(run)
    assert len(finished) == TRIALS
    assert compare(finished, records(undisturbed)) == [], (
        "over ROS, killed and resumed: the same numbers as in one process"
    )
    outcomes = {record.agent: set() for record in finished}
    for record in finished:
        outcomes[record.agent].add(record.outcome)
    assert outcomes["oracle"] == {Outcome.SUCCESS}
    assert outcomes["plunge"] == {Outcome.EMERGENCY_STOP}
    assert all(record.execution == 0 for record in finished if record.agent == "plunge")

    process = merton("compare", "--identical", run.path, undisturbed.path)
    output, _ = process.communicate(timeout=stretched(180))
    assert process.returncode == 0, output
    assert f"identical: {TRIALS} trials" in output
    assert run_is_complete(run)


DESIGN = f"""{EXPERIMENT.replace("levels: [0, 5]", "levels: one")}
distort: {{cameras: [top], steps: [0]}}
couple: vlm -> vla
prompt: "Give the robot its instruction in one sentence, for this task: {{instruction}}."
stop_rule: contact
"""


FAULTS = """
name: faults
seed: 5
agents: [{id: servo, vla: servo}]
tasks: [reach, pick]
distortions: [depth_holes, depth_scale, depth_lag, late, torn, out_of_order]
levels: [0, 3, 5]
sensor: d455
"""


@pytest.mark.skipif(not os.environ.get("MERTON_DESIGNS"), reason="half a minute: set MERTON_DESIGNS=1")
def test_a_run_with_faults_of_another_design_has_the_results_of_one_process(tmp_path: Path) -> None:
    """Faults of depth act in distortion_node over ROS, faults of time in the trial: equal to one process."""
    local, run = undisturbed_run(tmp_path, FAULTS), small_run(tmp_path, "graph", FAULTS)
    process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
    output, _ = process.communicate(timeout=stretched(300))
    assert process.returncode == 0, output
    assert compare(records(run), records(local)) == []
    assert len(details(run)) == 2 * (1 + 6 * 2)
    assert details(run) == details(local)
    severe = {(record.case.distortion, record.outcome) for record in records(run) if record.case.level == 5}
    assert ("late", Outcome.FAILURE) in severe


GATED = """
name: gated
seed: 5
agents: [{id: servo, vla: servo}, {id: oracle, vla: oracle}]
tasks: [reach]
distortions: [gaussian_blur]
levels: [1, 5]
latency_s: 0.1
quality_metric: blur_effect
min_image_quality: 0.6
"""


@pytest.mark.skipif(not os.environ.get("MERTON_DESIGNS"), reason="half a minute: set MERTON_DESIGNS=1")
def test_a_run_of_another_design_with_a_gate_of_images_has_the_results_of_one_process(tmp_path: Path) -> None:
    """Over ROS quality_node measures and arm_node refuses; images of the past are known by their own stamps."""
    local, run = undisturbed_run(tmp_path, GATED), small_run(tmp_path, "graph", GATED)
    process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
    output, _ = process.communicate(timeout=stretched(300))
    assert process.returncode == 0, output
    assert compare(records(run), records(local)) == []
    outcomes = {(record.agent, record.case.level): record.outcome for record in records(run)}
    assert outcomes["servo", 5] is Outcome.ABSTAINED
    assert outcomes["servo", 1] is outcomes["oracle", 5] is Outcome.SUCCESS


@pytest.mark.skipif(not os.environ.get("MERTON_DESIGNS"), reason="half a minute: set MERTON_DESIGNS=1")
def test_a_run_of_another_design_has_the_results_of_one_process(tmp_path: Path) -> None:
    """Every field that is not at its default, over ROS and in one process: equal to the last point of every path."""
    local, run = undisturbed_run(tmp_path, DESIGN), small_run(tmp_path, "graph", DESIGN)
    process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
    output, _ = process.communicate(timeout=stretched(300))
    assert process.returncode == 0, output
    assert compare(records(run), records(local)) == []
    assert details(run) == details(local)
    assert all("touched table" in record.error_message for record in records(run) if record.agent == "plunge")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_node_is_left_after_any_signal(number: signal.Signals, code: int, tmp_path: Path) -> None:
    run = small_run(tmp_path, "ended")
    process = merton("run", run.path / "experiment.yaml", "--resume", "--runs", run.path.parent, "--name", run.id)
    until(lambda: records(run), 300)
    nodes = children(process.pid)
    assert len(nodes) == len(load_graph("sim").nodes) + 1
    process.send_signal(number)
    output, _ = process.communicate(timeout=stretched(180))
    assert process.returncode == code, output
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in nodes.values()))
    if number == signal.SIGINT:
        assert f"--resume --runs {run.path.parent} --name {run.id}" in output
    assert "finished" not in (run.path / "run.json").read_text()


def test_a_moved_run_keeps_its_results_and_an_empty_one_is_refused(undisturbed: RunDirectory, tmp_path: Path) -> None:
    import shutil

    moved = tmp_path / "elsewhere"
    shutil.copytree(undisturbed.path, moved)
    assert RunDirectory(moved).id == undisturbed.id
    process = merton("compare", "--identical", moved, undisturbed.path)
    output, _ = process.communicate(timeout=stretched(180))
    assert (process.returncode, f"identical: {TRIALS} trials" in output) == (0, True), output
    empty = small_run(tmp_path, "empty")
    with ResultStore(empty.database):
        pass
    process = merton("report", empty.path)
    output, _ = process.communicate(timeout=stretched(180))
    assert (process.returncode, "has no results" in output) == (2, True), output
    other = tmp_path / "other.yaml"
    other.write_text(EXPERIMENT.replace("seed: 5", "seed: 6"))
    process = merton("run", other, "--resume", "--runs", empty.path.parent, "--name", empty.id)
    output, _ = process.communicate(timeout=stretched(180))
    assert (process.returncode, "a run of another experiment" in output) == (2, True), output
    with locked_folder(empty.path, "merton run"):
        process = merton("run", empty.path / "experiment.yaml", "--resume", "--runs", empty.path.parent)
        output, _ = process.communicate(timeout=stretched(180))
    assert (process.returncode, "another merton run is at work" in output) == (2, True), output


def run_is_complete(run: RunDirectory) -> bool:
    """Every trial has its details and its pictures."""
    for trial in run.spec.trials():
        folder = run.path / "trials" / trial.id
        assert (folder / "trial.json").is_file()
        assert (folder / "00_top_reference.jpg").stat().st_size > 1000
        assert (folder / "00_top_distorted.jpg").stat().st_size > 1000
    return True


def test_a_changed_score_is_reported(undisturbed: RunDirectory) -> None:
    from dataclasses import replace

    right = records(undisturbed)
    wrong = [replace(right[0], cognition=0.123), *right[1:]]
    assert any("cognition" in difference for difference in compare(right, wrong))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nowhere.yaml"], "there is no experiment 'nowhere.yaml'"),
        (["report", "nowhere"], "there is no run 'nowhere'"),
        (["up", "moon"], "unknown graph 'moon'; choose one of: gazebo, lab, replay, sim"),
        (
            ["up", "sim", "--set", "speed=3"],
            "unknown argument 'speed'; choose one of: deadline_s, min_image_quality, quality_metric, real_time_factor",
        ),
        (["launch"], "`merton` has no command 'launch'"),
    ],
)
def test_wrong_usage_is_answered_with_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    process = merton(*arguments)
    output, _ = process.communicate(timeout=stretched(180))
    assert process.returncode == 2, output
    assert says in output
    assert "Traceback" not in output


def test_doctor_finds_no_fault() -> None:
    process = merton("doctor")
    output, _ = process.communicate(timeout=stretched(180))
    assert process.returncode == 0, output
    assert "fail" not in output
