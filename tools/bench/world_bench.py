"""The time that a world in a process of its own adds to a request: messages there and back, without its own work.

    .venv/bin/python tools/bench/world_bench.py [--requests 1000]

`Still` below does nothing: it is served by the host, in this interpreter. `chunk`: carry out ten rows of seven columns,
with the state afterwards; `look`: a picture of 256 x 256 pixels; `fork`: save and load. `busy`: while every core also
runs a process that computes without end. `start`: from nothing to the description. Milliseconds. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from merton.worlds.client import HostedWorld

PICTURE = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
ROWS = np.zeros((10, 7))


class Still:
    """A world in which nothing moves."""

    def describe(self) -> dict[str, Any]:
        columns = [{"name": f"c{n}", "unit": "1", "low": -1.0, "high": 1.0, "spread": 1.0} for n in range(7)]
        return {
            "cameras": [{"name": "front", "width_px": 256, "height_px": 256}],
            "tasks": [{"name": "wait", "instruction": "wait", "scenes": 1, "group": "wait", "max_rows": 10**9}],
            "action": {"form": "tool_deltas", "columns": columns, "period_s": 0.05, "spread_from": "nothing"},
            "frame": "base [m]",
            "distorted_at": "as it is",
            "versions": {},
        }

    def reset(self, task: str, scene: int) -> str:
        return "wait"

    def look(self, camera: str) -> np.ndarray:
        return PICTURE

    def step(self, row: np.ndarray) -> None:
        return None

    def state(self) -> dict[str, Any]:
        return {"joints_rad": np.zeros(7), "base_from_tool": np.eye(4), "gripper_open": 1.0, "point": np.zeros(3)}

    def success(self) -> bool:
        return False

    def save(self) -> None:
        return None

    def load(self, snapshot: None) -> None:
        return None


def compute() -> None:
    """Keep a core busy."""
    while True:
        sum(range(100_000))


def timed(call: Callable[[], object], requests: int) -> dict[str, float]:
    """p50 and p99 of calls."""
    took_ms = []
    for _ in range(requests):
        began_s = time.perf_counter()
        call()
        took_ms.append(1e3 * (time.perf_counter() - began_s))
    p50, p99 = np.quantile(took_ms, (0.5, 0.99)).tolist()
    return {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3), "n": requests}


def measured(world: HostedWorld, requests: int) -> dict[str, dict[str, float]]:
    """Kind of request to its quantiles."""
    world.reset("wait", 0)
    return {
        "chunk": timed(lambda: world.carry_out_rows(ROWS), requests),
        "look": timed(lambda: world.look("front"), requests),
        "fork": timed(lambda: world.load(world.save()), requests),
    }


def main() -> None:
    """Measure idle and busy."""
    from merton.processes import usable_cores  # not in the process of the world, which has its own environment
    from merton.worlds.client import HostedWorld
    from merton.worlds.link import Program

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    requests = parser.parse_args().requests

    def begin() -> HostedWorld:
        world = HostedWorld("still", Program(sys.executable, f"{__file__}:Still"))
        assert world.description.abilities
        return world

    found: dict[str, Any] = {"start": timed(lambda: begin().close(), 5)}
    world = begin()
    found["idle"] = measured(world, requests)
    busy = [multiprocessing.Process(target=compute, daemon=True) for _ in range(usable_cores())]
    for process in busy:
        process.start()
    found["busy"] = measured(world, requests)
    for process in busy:
        process.kill()
    world.close()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
