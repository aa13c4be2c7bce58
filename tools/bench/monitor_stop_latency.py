"""Time from a click on the page's stop button to the last moving command, in a real browser, while images flow.

The load and the two times are those of `stop_latency.py`: images of three cameras, a VLM that is never idle, an arm in
mid-motion. The stop is a mouse button that goes down on the page of `merton monitor` in headless Chromium. The times
count from before the browser is told to press, so they include the way into the browser (a few milliseconds).

    .venv/bin/python tools/bench/monitor_stop_latency.py [number of stops]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import stop_latency

STOPS = 30
START_LIMIT_S = 60.0


class Finger:
    """Presses the page's button where `stop_latency` would call the service."""

    def __init__(self, page: Any) -> None:
        self.page = page
        box = page.locator("#stop").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def call_async(self, _: Any) -> Finger:
        """Press; the page acts when the button goes down."""
        self.page.mouse.down()
        return self

    def done(self) -> bool:
        """A finger does not wait."""
        return True


def measure(stops: int = STOPS) -> dict[str, Any]:
    """Percentiles [ms] over `stops` clicks in mid-motion, and the load they happened under."""
    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment, find_executable

    graph = load_graph("sim").with_arguments({"real_time_factor": "1.0"})
    cell = graph.nodes[0]
    busy = cell.model_copy(update={"parameters": {**cell.parameters, "state_rate_hz": stop_latency.STATE_RATE_HZ}})
    graph = graph.model_copy(update={"nodes": (busy, *graph.nodes[1:])})
    domain, claim = claim_domain()
    variables = environment(domain)
    os.environ.update(variables)  # before anything of ROS is imported
    with claim, tempfile.TemporaryDirectory() as folder, Supervisor(graph, Path(folder), variables, claim) as nodes:
        program = str(find_executable("merton_nodes", "monitor_node"))
        parameters = ["-p", "port:=0", "-p", f"log:={folder}/presses.jsonl"]
        nodes.start("monitor_node", [program, "--ros-args", *parameters])
        return in_browser(address(Path(folder) / "monitor_node.log"), stops)


def address(log: Path) -> str:
    """Address of the page, which the node logs when it is up."""
    pause, end_s = threading.Event(), time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s:
        if found := re.search(r"page is at (http://\S+)", log.read_text(encoding="utf-8")):
            return found[1]
        pause.wait(0.1)
    raise RuntimeError(f"monitor_node did not come up: {log.read_text(encoding='utf-8')}")


def in_browser(url: str, stops: int) -> dict[str, Any]:
    """The page, opened and pressed."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("there is no chromium (apt install chromium)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.locator("#line.live").wait_for(timeout=1e3 * START_LIMIT_S)
        try:
            return pressed(page, stops)
        finally:
            browser.close()


def pressed(page: Any, stops: int) -> dict[str, Any]:
    """As `stop_latency` measures, with a finger on the page."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    rclpy.init(args=[])
    operator = stop_latency._operator()
    executor = SingleThreadedExecutor()
    executor.add_node(operator.node)
    spinner = threading.Thread(target=executor.spin, daemon=True)
    spinner.start()
    try:
        operator.prepare()
        operator.stop = Finger(page)
        samples = []
        with stop_latency.Load() as load:
            for index in range(stops):
                samples.append(operator.stop_once(index))
                page.mouse.up()
                page.locator("#safety.normal").wait_for()
        counts = page.locator("#cameras canvas").evaluate_all(
            "items => items.map((item) => Number(item.dataset.count))"
        )
        command_ms, held_ms = (1e3 * np.array(column) for column in zip(*samples, strict=True))
        return {
            "stops": stops,
            "command": stop_latency._percentiles(command_ms),
            "held": stop_latency._percentiles(held_ms),
            "pictures_shown": sum(counts),
            **load.seen,
            "load_during": os.getloadavg()[0],
        }
    finally:
        executor.shutdown(timeout_sec=5)
        spinner.join(5)
        operator.node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else STOPS), indent=1))
