"""The display of a graph that `merton run` or `merton up` starts: nodes coming up, and the operator's page."""

from __future__ import annotations

import os
import socket
import threading
import time
import webbrowser

from merton.cli.console import STDERR, print_err
from merton.graph.spec import NodeSpec
from merton.graph.supervisor import Exit, Supervisor, ready_nodes

MONITOR = "monitor_node"
MONITOR_PORT = 8090
POLL_S = 0.3
"""Period of looking at the logs of the nodes that start [s]."""
LINE_PERIOD_S = 4.0
"""Least time between two lines about them where no terminal shows one that changes [s]."""


def operator_page() -> tuple[NodeSpec, str]:
    """The process that serves the operator's page, and the address of the page.

    The page is at port `MONITOR_PORT` of this machine, or at another one if that is taken.
    """
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", MONITOR_PORT))
        except OSError:
            trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    return NodeSpec(name=MONITOR, executable=MONITOR, parameters={"port": port}), f"http://127.0.0.1:{port}/"


def has_display() -> bool:
    """Whether this process can open a window."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_once_ready(supervisor: Supervisor, address: str) -> None:
    """Open the operator's page in a browser once its node is ready, if there is a display."""
    if not has_display():
        return

    def work() -> None:
        while supervisor.processes[MONITOR].poll() is None:
            if ready_nodes(supervisor.logs, [MONITOR]):
                webbrowser.open(address)
                return
            time.sleep(POLL_S)

    threading.Thread(target=work, name="browser", daemon=True).start()


def starting(ready: int, total: int) -> str:
    """Such as "starting nodes: 5 of 9 ready"."""
    return f"starting nodes: {ready} of {total} ready"


def exit_before_ready(supervisor: Supervisor) -> Exit | None:
    """Show the nodes coming up until all are ready: None, or the first process that ended before."""
    names = [node.name for node in supervisor.graph.nodes]
    said_s, said = time.monotonic(), 0
    with STDERR.status(starting(0, len(names))) as status:
        while (ready := len(ready_nodes(supervisor.logs, names))) < len(names):
            status.update(starting(ready, len(names)))
            if not STDERR.is_terminal and ready > said and time.monotonic() > said_s + LINE_PERIOD_S:
                said_s, said = time.monotonic(), ready
                print_err(starting(ready, len(names)))
            if (ended := supervisor.next_exit(POLL_S)) is not None:
                return ended
    return None
