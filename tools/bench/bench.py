"""Measure what speed matters for, as JSON: `make bench`, or tools/bench/bench.py build/bench.json [SUITE ...].

Each figure is the median over repetitions in one process; the machine's load at the start is in the file, because two
cores that are shared with something else measure something else.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as every node and worker has it; numpy reads it once

import cv2
import numpy as np
from distortion_bench import distortions
from distortion_bench import peers as distortion_peers
from kinematics_bench import kinematics
from lens import lens_of
from numpy.typing import NDArray
from quality_bench import qualities
from rating_bench import ratings
from sensor_bench import sensors
from text_bench import text
from timing import cpu_seconds, seconds

from merton import __version__
from merton.config import load
from merton.execution.gate.collision import Guard, HeldObject
from merton.execution.gate.planner import plan
from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.runner import Runner
from merton.files import resource
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.cell import load_cell


def physics() -> dict[str, float]:
    """Simulated seconds per second while the arm moves."""
    cell = SimulatedCell()
    cell.reset("pick", 0)
    goal = cell.joints_rad + 0.2
    start = cell.joints_rad.copy()

    def move() -> None:
        cell.command_trajectory(np.array([0.0, 2.0]), np.array([cell.joints_rad, start if move.there else goal]))
        move.there = not move.there
        cell.advance(2.0)

    move.there = False
    return {"real_time_factor": 2.0 / seconds(move)}


def rendering() -> dict[str, float]:
    """Milliseconds per frame, colour and depth together."""
    cell = SimulatedCell()
    cell.reset("pick", 0)
    result = {}
    for width, height in ((424, 240), (640, 480)):
        cameras = SceneCameras(width, height)
        result[f"{width}x{height}_ms"] = 1e3 * seconds(lambda c=cameras: c.render("pick", 0, cell.qpos, "top"))
        cameras.close()
    return result


def safety() -> dict[str, float]:
    """The gate: verdicts per second, milliseconds for a chunk of 12 deltas, configurations checked per second.

    A configuration is every watched pair: arm and gripper to table, walls and itself, the nearest of each kind found.
    """
    cell = load_cell()
    rng = np.random.default_rng(0)
    across, down = np.zeros((12, 7)), np.zeros((12, 7))
    across[:, 1], down[:, 2] = 0.025, -0.0225  # far from everything; down to 3 cm above the table
    shaky = rng.normal(0, 0.02, (12, 7)) * (1, 1, 1, 3, 3, 3, 0)
    held = HeldObject(0.045, 0.022)
    guard = Guard(cell)
    joints = cell.home_joints + rng.normal(0, 0.5, (1000, 6))
    openings = rng.uniform(0, cell.gripper.stroke, 1000)

    def gate(deltas: NDArray[np.float64], held: HeldObject | None = None) -> Any:
        return plan(cell.home_joints, deltas, 0.2, "base_link", cell, None, 0.0, held)

    def check() -> Any:
        return guard.clearances(joints, openings), guard.self_clearances(joints, openings)

    assert gate(across).verdict.ok
    assert gate(down, held).verdict.ok
    chunk_s = cpu_seconds(lambda: gate(across), 50)
    return {
        "chunk_of_12_ms": 1e3 * chunk_s,
        "chunk_of_12_near_the_table_ms": 1e3 * cpu_seconds(lambda: gate(down), 50),
        "chunk_of_12_holding_ms": 1e3 * cpu_seconds(lambda: gate(down, held), 50),
        "chunk_of_12_shaky_ms": 1e3 * cpu_seconds(lambda: gate(shaky), 50),
        "chunk_refused_as_no_action_ms": 1e3 * cpu_seconds(lambda: gate(across * np.nan), 50),
        "verdicts_per_s": 1 / chunk_s,
        "configurations_per_s": len(joints) / cpu_seconds(check),
        "distances_per_s": guard.pairs * len(joints) / cpu_seconds(check),
    }


def trials() -> dict[str, float]:
    """Seconds per trial of the quickstart in one process, by agent."""
    spec = load(resource("merton_bringup", "config/experiments/quickstart.yaml"), ExperimentSpec)
    runner = Runner(spec, "bench", LocalPorts())
    result = {}
    for agent in spec.agents:
        mine = [Trial(agent, case) for case in spec.cases() if case.is_reference]
        started = time.perf_counter()
        for trial in mine:
            runner.run(trial)
        result[f"{agent.id}_s"] = (time.perf_counter() - started) / len(mine)
    return result


class Trivial:
    """The model that `protocols` serves, which takes no time."""

    def act(self, observation: dict[str, Any]) -> Any:
        """A chunk of DROID's form, or OpenVLA's action."""
        return np.zeros((10, 8)) if "prompt" in observation else np.zeros(7)

    def answer(self, images: list[Any], question: str, max_tokens: int) -> str:
        """Always the same."""
        return "red cube near left; lower gripper, close, lift"


def protocols() -> dict[str, float]:
    """Answers and actions per second over loopback, 640x480 PNG or arrays, the model in a process of its own.

    The model takes no time, so this is encoding, wire, decoding and conversion. "openpi_224" sends images that need no
    resizing.
    """
    import subprocess
    from concurrent.futures import ThreadPoolExecutor
    from dataclasses import replace

    import httpx2  # noqa: F401
    import msgpack  # noqa: F401
    import websockets  # noqa: F401

    from merton.cognition.models.base import Question
    from merton.cognition.models.openai_chat import ChatSettings, OpenAIChat
    from merton.decision.models.base import example_observation
    from merton.decision.models.conventions import CONVENTIONS
    from merton.decision.models.openpi import OpenPi, OpenPiSettings
    from merton.decision.models.openvla_rest import ActSettings, OpenVlaRest

    rng = np.random.default_rng(0)

    def photo(height: int, width: int) -> NDArray[np.uint8]:
        return cv2.GaussianBlur(rng.integers(0, 255, (height, width, 3), np.uint8), (0, 0), 3)

    def looking(height: int, width: int) -> Any:
        seen = example_observation("pick up the red cube", ("side", "wrist"))
        lens = lens_of(width, height)
        views = {
            name: replace(view, color=photo(height, width), depth_m=None, intrinsics=lens)
            for name, view in seen.views.items()
        }
        return replace(seen, views=views)

    processes, urls = [], {}
    try:
        for protocol in ("chat", "act", "openpi"):
            serve = ["merton", "model", "serve", "bench:Trivial", "--protocol", protocol, "--port", "0"]
            command = [sys.executable, "-m", *serve]
            processes.append(subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True))
            urls[protocol] = processes[-1].stdout.readline().split()[-1]
        chat = OpenAIChat("chat", ChatSettings(url=urls["chat"] + "/v1", model="Trivial", parallel=4))
        act = OpenVlaRest("act", ActSettings(url=urls["act"]), CONVENTIONS["bridge"], "side")
        openpi = OpenPi("pi", OpenPiSettings(url=urls["openpi"]), CONVENTIONS["droid"], ("side", "wrist"), "joints")
        image, large, small = photo(480, 640), looking(480, 640), looking(224, 224)
        questions = [Question((image,), "what is where?")] * 32
        with ThreadPoolExecutor(2) as pool:
            return {
                "chat_answers_per_s": 1 / seconds(lambda: chat.answer([image], "what is where?"), 50),
                "chat_batch_answers_per_s": len(questions) / seconds(lambda: chat.answer_batch(questions), 3),
                "act_actions_per_s": 1 / seconds(lambda: act.act(large), 50),
                "openpi_actions_per_s": 1 / seconds(lambda: openpi.act(large), 50),
                "openpi_224_actions_per_s": 1 / seconds(lambda: openpi.act(small), 50),
                "openpi_224_two_callers_per_s": 2 / seconds(lambda: list(pool.map(openpi.act, [small] * 2)), 50),
            }
    finally:
        for process in processes:
            process.terminate()
            process.wait(10)


def from_script(name: str) -> dict[str, Any]:
    """Measurements of a script beside this one, in a process of its own: it needs a graph's ROS."""
    script = Path(__file__).with_name(name)
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def stop_latency() -> dict[str, Any]:
    """Milliseconds from a stop request to the last moving command."""
    return from_script("stop_latency.py")


def model_nodes() -> dict[str, Any]:
    """The time that vlm_node and vla_node add to their models at 640x480 [ms]: see `model_nodes.py`."""
    return from_script("model_nodes.py")


def executor() -> dict[str, Any]:
    """Processor microseconds of one message in a node with as many entities as experiment_node."""
    return from_script("executor_bench.py")


def curation() -> dict[str, Any]:
    """A pool of A2Eval's size, 24,519 questions with synthetic vectors of 896 numbers, curated in one thread, once.

    Seconds to vote (five voters) and to keep 500 of each of eight dimensions, and the peak memory of the process. The
    peer of the largest dimension is scikit-learn's KMeans without ordering and matching.
    """
    return from_script("curation_bench.py")


def growth() -> dict[str, Any]:
    """Processor seconds and peak memory [MB] of whole commands on records of 1e3 to 1e6 trials that were never run.

    Eight agents, two tasks, six distortions at five levels; more trials are more scenes. `s_1e4_1e5`: b, where the time
    grows by n^b from 1e4 to 1e5; `mb_`: the same of the memory that was added to what the imports take. One thread, a
    process each. `resume`: from opening the run to the list of trials that are left. `board`: `leaderboard show
    --json`; `site`: `leaderboard build`, with pages for the 5,000 hardest cases; `report`: of trials that left no
    files, `report_with_files`: with a trial.json of 2 kB each. `cache`: of annotate, 40 responses a transaction, each
    durable. The figures at 1e3 and 1e4 hold what is made once, such as compiled code. Empty: not measured, because each
    trial.json takes 4 kB of the disk, or no growth of memory, because the work added less than 10 MB. See
    `growth_bench.py`.
    """
    return from_script("growth_bench.py")


def people() -> dict[str, Any]:
    """Fifty raters save 10,000 answers over HTTP while their server is killed twenty times at random [ms and counts].

    `saving`, `dealing`: requests between two kills, as the raters see them. `ledger`: threads that save without a
    pause. See `people_bench.py`.
    """
    return from_script("people_bench.py")


def proxy() -> dict[str, Any]:
    """Milliseconds that `merton proxy` adds to an observation of 256x256 pixels, by protocol and condition.

    1,000 requests each, half of them under white_noise at level 3; harness, proxy and policy are three processes.
    `added` is without the distortion, `added_to_first` of first observations alone, `end_to_end` the harness's whole
    wait. See `proxy_bench.py`.
    """
    return from_script("proxy_bench.py")


def worlds() -> dict[str, Any]:
    """Milliseconds that a world in a process of its own adds to a request; the world itself does nothing.

    `chunk`: ten rows, with the state afterwards; `look`: a picture of 256x256 pixels; `fork`: save and load; `busy`:
    beside a process per core that computes without end. See `world_bench.py`.
    """
    return from_script("world_bench.py")


def loop_over_ros() -> dict[str, Any]:
    """Processor seconds of a trial of `merton run`, by node, and of the same trials in one process."""
    return from_script("loop_cpu.py")


def scale() -> dict[str, Any]:
    """80 trials without ROS by one worker, by two of which one is killed, and by two of Ray if installed.

    The same record and files each time. Beside it the parts that bound many workers: bytes of a trial, files and rows
    a second, CIDEr's frequencies, rating. See `scale_bench.py` and docs/use/scale.md, which has 2,000 trials.
    """
    return from_script("scale_bench.py")


def models() -> dict[str, Any]:
    """Answers and actions per second, at 640x480, of the models that run anywhere: here, in a node, behind protocols.

    One request at a time; openpi's client makes images 224x224 first. See `model_rates.py`.
    """
    return from_script("model_rates.py")


SUITES: dict[str, Callable[[], dict[str, Any]]] = {
    "physics": physics,
    "rendering": rendering,
    "sensors": sensors,
    "distortions": distortions,
    "distortion_peers": distortion_peers,
    "qualities": qualities,
    "kinematics": kinematics,
    "safety": safety,
    "ratings": ratings,
    "text": text,
    "curation": curation,
    "growth": growth,
    "people": people,
    "proxy": proxy,
    "worlds": worlds,
    "protocols": protocols,
    "trials": trials,
    "stop_latency": stop_latency,
    "executor": executor,
    "loop_over_ros": loop_over_ros,
    "scale": scale,
    "model_nodes": model_nodes,
    "models": models,
}


def main() -> None:
    """Run every suite, or those named, and write the file after each. A failure costs no others; the exit code is 1."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.path.append("build/peers")
    result: dict[str, Any] = {
        "merton": __version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "load_at_start": os.getloadavg()[0],
    }
    for name in sys.argv[2:] or SUITES:
        suite = SUITES[name]
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            result[name] = suite()
        except ImportError as error:
            result[name] = {"skipped": str(error)}
        except Exception as error:  # whatever a suite raises
            traceback.print_exc()
            result[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(result[name], indent=1), file=sys.stderr)
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(path)
    if failed := [name for name in result if isinstance(result[name], dict) and "failed" in result[name]]:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
