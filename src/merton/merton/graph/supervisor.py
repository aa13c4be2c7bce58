"""Starts the processes of a graph, watches them, and ends them together."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.files import resource
from merton.graph.spec import GraphSpec, NodeSpec

GRACE_S = ((signal.SIGINT, 8.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0))
"""The signals that end a process, and the time it has after each [s]."""
PROFILE, RANGE = "FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE"
"""Environment variables of Fast DDS and of ROS."""
FIRST_DOMAIN, LAST_DOMAIN = 1, 100
"""Domains whose ports lie below Linux' ephemeral ones."""
LAST_USER_DOMAIN = 232
"""ROS domains beyond have no UDP ports."""
RENEW_CODE = os.EX_TEMPFAIL
"""Exit code of a node whose simulator hangs: both are to be started anew."""

READY = "is ready"
"""In the log of a node once it is active."""
_STARTED = "-- started --"
"""In a log before the output of each process that writes to it."""


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


def users_domain(text: str) -> int:
    """The number of a ROS domain, 0 for an empty text; raises InputError if it is not a valid one."""
    if text and (not text.isdecimal() or int(text) > LAST_USER_DOMAIN):
        raise InputError(f"the ROS domain must be a number from 0 to {LAST_USER_DOMAIN}, got {text!r}")
    return int(text or 0)


def claim_domain(wanted: int | None = None) -> tuple[int, socket.socket]:
    """A ROS domain no other Merton on this machine uses, held for as long as any process has the returned socket.

    Args:
        wanted: this domain and no other; None takes the first free one.

    Raises:
        InfrastructureError: `wanted` is taken, or all are.
    """
    for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1) if wanted is None else (wanted,):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", 31000 + domain))
            return domain, holder
        except OSError:
            holder.close()
    if wanted is not None:
        raise InfrastructureError(
            f"another Merton runs in ROS domain {wanted} of this machine: end it, or set another ROS_DOMAIN_ID"
        )
    raise InfrastructureError(f"all ROS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use on this machine")


def environment(domain: int | None = None) -> dict[str, str]:
    """The environment for nodes: room for images (Fast DDS profile), no traffic beyond this machine unless asked for.

    Args:
        domain: a domain of Merton's own, in which the user's settings for other ROS programs are ignored; None for the
            user's domain, in which they hold.
    """
    variables = dict(os.environ)
    profile = "fastdds.xml" if domain is not None or _stays_here(variables) else "fastdds_network.xml"
    ours = {
        PROFILE: str(resource("merton_bringup", f"config/dds/{profile}")),
        "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp",
        RANGE: "LOCALHOST",
    }
    if domain is None:
        variables = {**ours, **variables}
    else:
        variables |= {**ours, "ROS_DOMAIN_ID": str(domain)}
        for name in ("ROS_LOCALHOST_ONLY", "ROS_DISCOVERY_SERVER", "ROS_STATIC_PEERS"):
            variables.pop(name, None)
    # nine processes share few cores: a pool of threads in each would slow down all of them
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
        variables.setdefault(name, "1")
    return variables


def without_shared_memory(variables: Mapping[str, str]) -> dict[str, str]:
    """Changes to the environment of a node that carries no images, so that no other process can block it.

    Fast DDS 2.14 locks the queue of each process that reads from shared memory. One that is killed while it has the
    lock blocks all that write to it, for good (docs/lab/safety.md: after some 50 kills; never in 246 with UDP alone).

    Args:
        variables: as from `environment`. A profile that is not Merton's is left alone; so are peers on other machines
            beside the range LOCALHOST, for which ROS adds shared memory itself.
    """
    profile = Path(variables.get(PROFILE, ""))
    changed = profile.with_name(f"{profile.stem}_udp.xml") if profile.name else profile
    if profile.stem not in ("fastdds", "fastdds_network") or not changed.is_file():
        return {}
    if variables.get(RANGE) != "LOCALHOST":
        return {PROFILE: str(changed)}
    # rmw_fastrtps adds nothing to the profile for SYSTEM_DEFAULT, not even the peers that a user names
    return {PROFILE: str(changed), RANGE: "SYSTEM_DEFAULT"} if profile.stem == "fastdds" else {}


def _stays_here(variables: dict[str, str]) -> bool:
    """Whether nothing in an environment asks ROS to talk to other machines."""
    if any(variables.get(name) for name in ("ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")):
        return False
    return variables.get(RANGE, "LOCALHOST") in ("LOCALHOST", "OFF")


def find_executable(package: str, executable: str) -> Path:
    """The program of `ros2 run package executable`; raises MissingDependencyError if it is not installed."""
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        path = Path(prefix) / "lib" / package / executable
        if path.exists():
            return path
    raise MissingDependencyError(f"{package} {executable} is not installed: run `make setup`, or source the workspace")


def enclave(name: str) -> list[str]:
    """The ROS arguments that name the keys of a process, see docs/lab/security.md; without keys they change nothing."""
    return ["--enclave", f"/merton/{name}"]


def ros_arguments(node: NodeSpec, graph: GraphSpec) -> list[str]:
    """The arguments after `--ros-args`: enclave, parameter file, remappings, parameters; for both ways to start."""
    arguments = [*enclave(node.name), "--params-file", str(graph.parameter_file)]
    for name, target in node.remappings.items():
        arguments += ["-r", f"{name}:={target}"]
    for name, value in node.parameters.items():
        # rcl reads YAML, of which JSON's true, numbers and quoted strings are a part
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    return arguments


def command(node: NodeSpec, graph: GraphSpec) -> list[str]:
    """The words that start a node of a graph."""
    return [str(find_executable(node.package, node.executable)), "--ros-args", *ros_arguments(node, graph)]


def orphan_gets(number: signal.Signals) -> tuple[str, ...]:
    """The words before a command whose process is to get a signal once its parent is gone, even by SIGKILL.

    A program of util-linux and its arguments; empty where it is not installed.
    """
    return ("setpriv", "--pdeathsig", number.name.removeprefix("SIG")) if shutil.which("setpriv") else ()


ORPHANS_END = orphan_gets(signal.SIGTERM)
"""Before the commands of nodes."""


class Supervisor:
    """The processes of a graph. Use as a context manager: leaving it ends them all.

    Args:
        logs: directory for `<node>.log`.
        variables: environment of the processes.
        claim: the socket that holds the ROS domain; the processes inherit it, so that it stays taken while one lives.
    """

    def __init__(
        self, graph: GraphSpec, logs: Path, variables: dict[str, str], claim: socket.socket | None = None
    ) -> None:
        self.graph, self.logs, self.claim = graph, logs.resolve(), claim
        # ROS writes its own logs beside ours, also where there is no home to write to
        self.variables = {"ROS_LOG_DIR": str(self.logs), **variables}
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

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, name: str, arguments: Sequence[str], *, logged: bool = True) -> None:
        """Start a process in a session of its own; its output goes to its log, or to ours if not `logged`."""
        log = self.logs / f"{name}.log"
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if logged else None
            if output is not None:
                output.write(f"{_STARTED}\n".encode())
                output.flush()
            process = subprocess.Popen(
                [*ORPHANS_END, *arguments],
                pass_fds=() if self.claim is None else (self.claim.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if logged else None,
                env=self.variables,
                start_new_session=True,
            )
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

    def first_needed_exit(self, on_optional_exit: Callable[[Exit], object], ended: Exit | None = None) -> Exit:
        """Wait for the end of a process that the graph needs.

        Args:
            on_optional_exit: called with each process that ends before and that the graph can do without.
            ended: a process that has ended already.
        """
        ended = ended or self._exits.get()
        while self.graph.can_do_without(ended.name):
            on_optional_exit(ended)
            ended = self._exits.get()
        return ended

    def end(self) -> None:
        """End every process, SIGINT first: all others at once, then the optional ones, which may be recording them."""
        optional = {node.name for node in self.graph.optional}
        self._end([process for name, process in self.processes.items() if name not in optional])
        self._end(list(self.processes.values()))

    def _end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        for number, limit_s in GRACE_S:
            running = [process for process in processes if process.poll() is None]
            if not running:
                return
            try:
                for process in running:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, number)
                deadline = time.monotonic() + limit_s
                for process in running:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(max(0.0, deadline - time.monotonic()))
            except (KeyboardInterrupt, SystemExit):
                continue  # interrupted again: go to the next step, so that no process is left


def ready_nodes(logs: Path, names: Sequence[str]) -> list[str]:
    """The nodes whose newest process has said in its log in the folder `logs` that it is active."""
    found = []
    for name in names:
        with contextlib.suppress(OSError):
            text = (logs / f"{name}.log").read_text(encoding="utf-8", errors="replace")
            if READY in text.rpartition(_STARTED)[2]:
                found.append(name)
    return found


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log, for error texts; empty if there is none."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
    except OSError:
        return ""
