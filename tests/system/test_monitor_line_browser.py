"""The band of the operator's page in a browser, when the connection or the node behind it fails. There is no graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")

from merton.monitor.buttons import PressReply
from merton.monitor.hub import Hub
from merton.monitor.server import MonitorServer
from patience import stretched

LIMIT_MS = 60_000
NORMAL = {"mode": "NORMAL", "message": "", "links": [], "clearance_mm": None, "force_n": None}
WATCH = """setInterval(() => {
  const [band, line] = ["safety", "line"].map((id) => document.getElementById(id)?.className);
  if (band?.includes("normal") && line?.includes("lost")) window.lied = true;
}, 10);"""
"""Notes whether the page ever says NORMAL beside a lost connection."""


class Controls:
    def stop(self) -> Future[PressReply]:
        pending: Future[PressReply] = Future()
        pending.set_result(PressReply(True, "stopped"))
        return pending

    reset = confirm = arranged = stop


class Node:
    """What monitor_node does for the band: the state once, and a look at the stop path ten times a second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hub, self.hangs = folder, Hub(), threading.Event()
        self.hub.put("safety", NORMAL)
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self.hangs.wait(0.1):
            self.hub.put("stop_path", True)

    @contextmanager
    def served(self, port: int = 0) -> Iterator[str]:
        server = MonitorServer(self.hub, Controls(), self.folder / "presses.jsonl", port=port)  # type: ignore[arg-type]
        server.start()
        try:
            yield server.address
        finally:
            server.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.hangs.set()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.set_default_timeout(stretched(LIMIT_MS))
    page.add_init_script(WATCH)
    yield page
    page.close()


def test_a_lost_connection_is_never_shown_as_normal(node: Node, page: Any) -> None:
    with node.served() as address:
        page.goto(address)
        page.locator("#safety.normal").wait_for()
    page.locator("#line.lost").wait_for()
    page.locator("#safety.unknown", has_text="Last known: NORMAL").wait_for()
    assert page.locator("#safety-mode").inner_text() == "UNKNOWN"
    refused: list[Any] = []
    page.route_web_socket("**/ws", lambda socket: (refused.append(socket), socket.close()))
    with node.served(int(address.rstrip("/").rpartition(":")[2])):  # answers, but its WebSocket is refused each time
        while len(refused) < 2:
            page.wait_for_timeout(50)
        page.locator("#safety.unknown").wait_for()
        assert page.evaluate("window.lied") is None


def test_old_states_are_not_shown_as_present_though_the_line_is_live(node: Node, page: Any) -> None:
    with node.served() as address:
        page.goto(address)
        page.locator("#safety.normal").wait_for()
        node.hangs.set()
        page.locator("#safety.unknown", has_text="monitor_node is silent").wait_for()
        assert page.locator("#line").inner_text() == "live"
        assert page.locator("#safety-age").inner_text().startswith("Last known: NORMAL, ")
