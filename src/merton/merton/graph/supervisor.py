"""Starts the processes of a graph, watches them, and ends them together."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from merton.errors import InfrastructureError, MissingDependencyError
from merton.graph.spec import GraphSpec, NodeSpec
from merton.resources import resource

GRACE_S = ((signal.SIGINT, 8.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0))
"""How a process is asked to end, and how long it may take at each step."""
FIRST_DOMAIN, LAST_DOMAIN = 1, 100
"""Domains whose ports lie below Linux' ephemeral ones."""


@dataclass(frozen=True)
class Exit:
    """A process that ended: its name, exit code (negative: the signal that ended it), and its log."""

    name: str
    code: int
    log: Path

    def __str__(self) -> str:
        if self.code < 0:
            how = f"was ended by {signal.Signals(-self.code).name}"
        else:
            how = f"ended with exit code {self.code}"
        return f"{self.name} {how}"


def claim_domain() -> tuple[int, socket.socket]:
    """A ROS domain no other Merton on this machine uses, held for as long as the returned socket is open.

    Raises InfrastructureError if all are taken.
    """
    for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", 31000 + domain))
            return domain, holder
        except OSError:
            holder.close()
    raise InfrastructureError(f"all ROS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use on this machine")


def environment(domain: int | None = None) -> dict[str, str]:
    """The environment for nodes: images get through (Fast DDS profile), nothing leaves this machine unless asked.

    What the user has set already stays. `domain` replaces ROS_DOMAIN_ID if given.
    """
    variables = dict(os.environ)
    variables.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(resource("merton_bringup", "config/dds/fastdds.xml")))
    variables.setdefault("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    variables.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    # two cores are shared by nine processes: pools of threads in each would only get in each other's way
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
        variables.setdefault(name, "1")
    if domain is not None:
        variables["ROS_DOMAIN_ID"] = str(domain)
    return variables


def find_executable(package: str, executable: str) -> Path:
    """The program `ros2 run package executable` would start; raises MissingDependencyError if it is not installed."""
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        path = Path(prefix) / "lib" / package / executable
        if path.exists():
            return path
    raise MissingDependencyError(f"{package} {executable} is not installed: run `make setup`, or source the workspace")


def ros_arguments(node: NodeSpec, graph: GraphSpec) -> list[str]:
    """What follows `--ros-args`: parameter file, remappings, parameters; for `merton up` and for `ros2 launch`."""
    arguments = ["--params-file", str(graph.parameter_file)]
    for name, target in node.remappings.items():
        arguments += ["-r", f"{name}:={target}"]
    for name, value in node.parameters.items():
        # rcl reads YAML, of which JSON's true, numbers and quoted strings are a part
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    return arguments


def command(node: NodeSpec, graph: GraphSpec) -> list[str]:
    """The command line of a node."""
    return [str(find_executable(node.package, node.executable)), "--ros-args", *ros_arguments(node, graph)]


class Supervisor:
    """The processes of a graph. Use as a context manager: leaving it ends them all.

    Args:
        graph: what to start.
        logs: directory for `<node>.log`.
        variables: environment of the processes.
    """

    def __init__(self, graph: GraphSpec, logs: Path, variables: dict[str, str]) -> None:
        self.graph, self.logs, self.variables = graph, logs, variables
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._exits: queue.Queue[Exit] = queue.Queue()

    def __enter__(self) -> Supervisor:
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(f"cannot write logs to {self.logs}: {error.strerror}") from None
        try:
            for node in self.graph.nodes:
                self.start(node.name, command(node, self.graph))
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self, name: str, arguments: Sequence[str], *, logged: bool = True) -> None:
        """Start a process in a session of its own; its output goes to its log, or to ours if not `logged`."""
        log = self.logs / f"{name}.log"
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if logged else None
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT if logged else None,
                env=self.variables, start_new_session=True,
            )  # fmt: skip
        self.processes[name] = process

        def watch() -> None:
            self._exits.put(Exit(name, process.wait(), log))

        threading.Thread(target=watch, name=f"watch {name}", daemon=True).start()

    def next_exit(self, timeout_s: float | None = None) -> Exit | None:
        """The next process that ended, or None after `timeout_s`."""
        try:
            return self._exits.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def end(self) -> None:
        """Ask every process to end, all at once, first kindly."""
        for number, limit_s in GRACE_S:
            running = [process for process in self.processes.values() if process.poll() is None]
            if not running:
                return
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + limit_s
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log, for error texts; empty if there is none."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
    except OSError:
        return ""
