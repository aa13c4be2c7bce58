"""Draws docs/images/monitor.jpg: the operator's page in headless Chromium, amid a trial of the embedded cell.

    .venv/bin/python tools/draw_monitor.py

It starts the graph `sim` in a ROS domain of its own, in real time, the page's node and one trial of `oracle`, and takes
the picture once the arm has carried out actions for a second.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from monitor_stop_latency import address

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "monitor.jpg"
SIZE = {"width": 1440, "height": 1120}
QUALITY = 82
LIMIT_MS = 180_000
IN_MOTION = "() => document.querySelector('#timeline')?.innerText.includes('execution 1')"


def run_trial() -> None:
    """One trial, in which the arm picks up a cube that it sees through blur."""
    import rclpy
    from merton_interfaces.action import RunTrial
    from rclpy.action import ActionClient
    from rclpy.node import Node

    from merton_nodes.ros import names

    rclpy.init()
    node = Node("draw_monitor")
    client: Any = ActionClient(node, RunTrial, names.RUN_TRIAL)
    client.wait_for_server()
    goal = RunTrial.Goal(
        agent_id="oracle", vlm_id="describe", vla_id="oracle", task="place", scene_seed=3, distortion="gaussian_blur"
    )
    goal.level, goal.seed, goal.max_steps = 4, 1, 8
    sent = client.send_goal_async(goal)
    rclpy.spin_until_future_complete(node, sent)
    rclpy.spin_until_future_complete(node, sent.result().get_result_async())


def main() -> None:
    from playwright.sync_api import sync_playwright

    from merton.graph.spec import load_graph
    from merton.graph.supervisor import Supervisor, claim_domain, environment, find_executable

    graph = load_graph("sim").with_arguments({"real_time_factor": "1.0"})
    domain, claim = claim_domain()
    variables = environment(domain)
    os.environ.update(variables)  # before anything of ROS is imported
    with claim, tempfile.TemporaryDirectory() as folder, Supervisor(graph, Path(folder), variables, claim) as nodes:
        program = str(find_executable("merton_nodes", "monitor_node"))
        nodes.start("monitor_node", [program, "--ros-args", "-p", "port:=0", "-p", f"log:={folder}/presses.jsonl"])
        url = address(Path(folder) / "monitor_node.log")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            page.goto(url)
            page.locator("#safety.normal").wait_for(timeout=LIMIT_MS)
            threading.Thread(target=run_trial, daemon=True).start()
            page.locator("#timeline-trial", has_text="gaussian_blur").wait_for(timeout=LIMIT_MS)
            page.wait_for_function(IN_MOTION, timeout=LIMIT_MS)
            page.screenshot(path=IMAGE, type="jpeg", quality=QUALITY)
            browser.close()
    print(IMAGE)


if __name__ == "__main__":
    main()
