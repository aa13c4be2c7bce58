"""The operator's page in a browser, on the real graph: pictures, a judgement, a stop and its release, a silent arm."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from merton_interfaces.action import RunTrial
from merton_interfaces.msg import SafetyState, TrialResult

from merton.graph.spec import load_graph
from merton.graph.supervisor import Supervisor, environment, find_executable
from merton_nodes.ros import names
from patience import stretched, until

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")


WINDOWS = {"desktop": (1440, 900), "phone": (390, 844)}
LIMIT_MS = 90_000
CAMERAS = ("wrist", "top", "side")


@dataclass
class Cell:
    """The graph with its monitor."""

    graph: Supervisor
    address: str
    presses: Path

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.presses.read_text(encoding="utf-8").splitlines()]


@dataclass
class Window:
    """A page with its requests and its errors."""

    page: Any
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def cell(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    """`merton up sim`, where an operator judges, and `merton monitor`."""
    folder = tmp_path_factory.mktemp("monitor")
    graph = load_graph("sim")
    asking = {"success": "operator"}
    nodes = tuple(
        n.model_copy(update={"parameters": asking}) if n.name == "experiment_node" else n for n in graph.nodes
    )
    program = str(find_executable("merton_nodes", "monitor_node"))
    with Supervisor(graph.model_copy(update={"nodes": nodes}), folder / "logs", environment()) as supervisor:
        parameters = ["-p", "port:=0", "-p", f"log:={folder / 'presses.jsonl'}", "-p", f"recordings:={folder}"]
        supervisor.start("monitor_node", [program, "--ros-args", *parameters])
        log = folder / "logs" / "monitor_node.log"
        address = re.compile(r"page is at (http://127\.0\.0\.1:\d+/)")
        found = until(lambda: address.search(log.read_text(encoding="utf-8")))
        yield Cell(supervisor, found[1], folder / "presses.jsonl")


@pytest.fixture(params=WINDOWS)
def window(request: pytest.FixtureRequest, browser: Any, cell: Cell) -> Iterator[Window]:
    """The page, live; the test fails on any request to another machine and any error in its log."""
    width, height = WINDOWS[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(stretched(LIMIT_MS))
    window = Window(context.new_page())
    page = window.page
    context.on("request", lambda asking: window.asked.append(asking.url))
    page.on("websocket", lambda socket: window.asked.append(socket.url.replace("ws:", "http:")))
    page.on("console", lambda message: window.complaints.append(message.text))
    page.on("pageerror", lambda error: window.complaints.append(str(error)))
    page.goto(cell.address)
    page.locator("#line.live").wait_for()
    try:
        page.locator("#safety.normal").wait_for()
    except playwright.TimeoutError:
        ended = [name for name, process in cell.graph.processes.items() if process.poll() is not None]
        pytest.fail(f"not normal: {page.locator('#safety').inner_text()!r}; ended: {ended}")
    assert not page.locator("#name").is_visible(), "watching needs no name"
    yield window
    context.close()
    assert any("/ws" in url for url in window.asked)
    assert [url for url in window.asked if not url.startswith((cell.address, "data:", "blob:"))] == []
    assert [text for text in window.complaints if "the server responded with a status of" not in text] == []


def name_herself(page: Any) -> None:
    """Enter the name that the page asks for."""
    page.get_by_label("Your name").fill("Ada Lovelace")
    page.keyboard.press("Enter")
    page.locator("#enter").wait_for(state="hidden")


def fits(page: Any) -> bool:
    """Whether the page fits into the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def wait_for(page: Any, script: str, argument: Any = None) -> None:
    """Until a script is true in the page."""
    page.wait_for_function(script, arg=argument, timeout=stretched(LIMIT_MS))


DIFFERENCE = """camera => {
  const [before, after] = ["before", "after"].map((which) => {
    const shown = document.getElementById(`picture-${camera}-${which}`);
    const copy = new OffscreenCanvas(shown.width, shown.height);
    const drawing = copy.getContext("2d", { willReadFrequently: true });
    drawing.drawImage(shown, 0, 0);
    return drawing.getImageData(0, 0, copy.width, copy.height).data;
  });
  if (before.length !== after.length || before.length < 10000) return NaN;
  return before.reduce((sum, value, i) => sum + Math.abs(value - after[i]), 0) / before.length;
}"""
"""Mean absolute difference of a camera's two pictures, 0 .. 255; NaN if they are none."""


def test_a_trial_is_seen_and_judged(cell: Cell, window: Window, ros: Any) -> None:
    from rclpy.node import Node

    page, node = window.page, ros.add(Node, "observer")
    client = ros.action_client(node, RunTrial, names.RUN_TRIAL)
    ros.until(client.server_is_ready)
    for camera in CAMERAS:
        for which in ("before", "after"):
            wait_for(page, "name => document.getElementById(name).dataset.stamp", f"picture-{camera}-{which}")
    stamp = page.locator("#picture-top-before").get_attribute("data-stamp")
    arm = page.locator("#arm-numbers").inner_text()

    scene = page.viewport_size["width"]  # another one in every window: the arm ends elsewhere
    goal = RunTrial.Goal(vla_id="oracle", task="reach", scene_seed=scene, distortion="white_noise", level=5, seed=9)
    results: list[TrialResult] = []
    thread = threading.Thread(
        target=lambda: results.append(ros.act(node, RunTrial, names.RUN_TRIAL, goal).result), daemon=True
    )
    thread.start()
    for case in ("reference", "white_noise"):  # the reference run is judged first
        page.locator("#confirm-trial", has_text=case).wait_for()
        assert fits(page)
        assert page.locator("#confirm-task").inner_text()
        noisy = case == "white_noise"
        page.locator("#cameras figcaption", has_text="top: white_noise 5" if noisy else "top: not distorted").wait_for()
        wait_for(page, f"least => ({DIFFERENCE})('top') {'>' if noisy else '<'} least", 5 if noisy else 1)
        page.get_by_role("button", name="Success").click()
        if case == "reference":
            name_herself(page)  # the judgement is sent once there is a name
        page.locator("#confirm-trial", has_text=case).wait_for(state="hidden")
    thread.join(60)
    assert results
    assert results[0].outcome == TrialResult.SUCCESS
    assert page.locator("#picture-top-before").get_attribute("data-stamp") != stamp
    assert page.locator("#arm-numbers").inner_text() != arm
    assert page.locator("#answers dd").count() == 2
    assert page.locator("#actions tbody tr").count() >= 2
    assert fits(page)
    judged = cell.logged[-1]
    assert (judged["press"], judged["who"], judged["accepted"]) == ("confirm", "Ada Lovelace", True)
    assert judged["detail"].endswith(": success")


def test_a_scene_requested_by_the_cell_is_confirmed(cell: Cell, window: Window, ros: Any) -> None:
    """In the lab lab_cell_node requests it; here a node of the test does."""
    import numpy as np
    from rclpy.node import Node
    from sensor_msgs.msg import Image

    from merton_nodes.cell.operator_desk import OperatorDesk
    from merton_nodes.ros import conversions as convert

    page, node = window.page, ros.add(Node, "asker")
    desk = OperatorDesk(node, 60.0, names.AWAITING_ARRANGEMENT, names.ARRANGED)
    drawing = node.create_publisher(Image, names.WANTED_LAYOUT, names.LATCHED_QOS)
    drawing.publish(convert.color_message(np.full((120, 160, 3), 200, np.uint8), 1, ""))
    judgements: list[Any] = []
    thread = threading.Thread(target=lambda: judgements.append(desk.ask("pick.3", "the cube there")), daemon=True)
    thread.start()
    page.locator("#arrange-text", has_text="the cube there").wait_for()
    wait_for(page, "() => document.getElementById('picture-layout').width === 160")
    assert fits(page)
    page.get_by_role("button", name="Done, all clear").click()
    name_herself(page)
    page.get_by_role("button", name="Done, all clear").click()
    thread.join(60)
    assert (judgements[0].success, judgements[0].judge) == (True, "Ada Lovelace")
    page.locator("#arrange").wait_for(state="hidden")


@pytest.mark.parametrize("how", ["button", "Space", "Escape"])
def test_a_stop_latches_until_its_release_is_confirmed(cell: Cell, window: Window, ros: Any, how: str) -> None:
    from rclpy.node import Node

    page, node = window.page, ros.add(Node, "observer")
    states: list[SafetyState] = []
    node.create_subscription(SafetyState, names.ARM_SAFETY, states.append, names.LATCHED_QOS)
    ros.until(lambda: states and states[-1].mode == SafetyState.NORMAL)
    if how == "button":
        page.locator("#stop").click()
    else:
        page.keyboard.press(how)
    ros.until(lambda: states[-1].mode == SafetyState.EMERGENCY_STOP)
    page.locator("#safety.stopped", has_text="EMERGENCY STOP").wait_for()
    assert page.locator("#safety").get_attribute("aria-live") == "assertive"
    wait_for(page, "() => document.querySelector('#presses li')?.textContent.includes('unnamed: stop')")

    assert not page.locator("#guard").is_visible()
    page.get_by_role("button", name="Release").click()
    name_herself(page)
    assert states[-1].mode == SafetyState.EMERGENCY_STOP, "one press releases nothing"
    page.keyboard.press("Space")  # stops once more, and must not press the button in focus
    page.locator("#guard").wait_for(state="hidden")
    ros.until(lambda: [one["press"] for one in cell.logged[-2:]] == ["stop", "stop"])
    page.get_by_role("button", name="Release").click()
    page.get_by_role("button", name="All clear").click()
    ros.until(lambda: states[-1].mode == SafetyState.NORMAL)
    page.locator("#safety.normal").wait_for()
    assert fits(page)
    wait_for(page, "() => document.querySelector('#presses li')?.textContent.includes('reset')")
    pressed = [("stop", "unnamed"), ("stop", "Ada Lovelace"), ("reset", "Ada Lovelace")]
    ros.until(lambda: [(one["press"], one["who"]) for one in cell.logged[-3:]] == pressed)


def test_a_recording_is_begun_and_a_space_in_a_name_is_a_space(cell: Cell, window: Window, ros: Any) -> None:
    page, before = window.page, len(cell.logged)
    page.get_by_role("button", name="Record").click()
    name_herself(page)
    ros.until(lambda: cell.logged[-1]["press"] == "record")
    page.get_by_role("button", name="End the recording").click()
    ros.until(lambda: [one["detail"] for one in cell.logged[before:]] == ["begin", "end"])
    before = len(cell.logged)
    page.get_by_role("button", name="change").click()
    page.get_by_label("Your name").fill("")
    page.get_by_label("Your name").press_sequentially("G H")
    page.keyboard.press("Enter")
    assert page.locator("#who-is").inner_text().startswith("G H")
    assert len(cell.logged) == before


@pytest.mark.parametrize("window", ["desktop"], indirect=True)
def test_a_silent_stop_path_is_shown(cell: Cell, window: Window) -> None:
    """Last in this file: arm_node is not restarted."""
    page = window.page
    cell.graph.processes["arm_node"].kill()
    page.locator("#safety.stopped", has_text="would not arrive").wait_for()
    assert page.locator("#safety-mode").inner_text() == "SILENT", "the last message says nothing about the present"
    page.keyboard.press("Escape")
    page.locator("#alarm", has_text="THE STOP IS NOT CONFIRMED").wait_for()
    wait_for(page, "() => document.querySelector('#presses li')?.textContent.includes('FAILED')")
    assert cell.logged[-1]["accepted"] is False
