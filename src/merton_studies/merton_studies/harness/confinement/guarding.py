"""Watches a sandbox from outside: reads what it prints, answers what it asks, and ends it at its limits."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from merton_studies.harness.confinement.limits import ROOM, Limits

Serve = Callable[[bytes], bytes]
"""Answers one line of JSON with one."""

TICK_S = 0.05
"""Time between two looks at memory and time [s]."""
STUCK_S = 10.0
"""Time after which a launcher is killed that was told to end, and has not made the first process [s]."""
CHUNK = 1 << 16


class Guard:
    """One started sandbox.

    Args:
        process: the launcher.
        descriptors: our ends of the pipes: info, go, report, out, err, and ask and reply when the program may ask.
        limits: of the run.
    """

    def __init__(self, process: subprocess.Popen[bytes], descriptors: dict[str, int], limits: Limits) -> None:
        self.reason = ""
        """The reason why it was ended from here, a sentence; empty if it ended itself."""
        self.report = bytearray()
        self.kept = {"out": bytearray(), "err": bytearray()}
        self.seconds = 0.0
        self.cpu_s = 0.0
        """Processor time at the last look [s]."""
        self._printed = dict.fromkeys(self.kept, 0)
        self._info = bytearray()
        self._process, self._pipes, self._limits = process, descriptors, limits
        self._first: int | None = None  # pidfd of the first process inside
        self._first_pid = 0
        self._begin = self._next_look = time.monotonic()
        self._served_s = 0.0
        self._serving_since: float | None = None
        self._ended_at = 0.0
        self._lock = threading.Lock()
        self._most_report = limits.room + 1024 * limits.files + (1 << 20)

    def watch(self, serve: Serve | None) -> None:
        """Return when every process inside has ended. Raises what `serve` raises."""
        reader = threading.Thread(target=self._guard, name="sandbox", daemon=True)
        reader.start()
        try:
            if serve is not None:
                self._answer(serve)
            reader.join()
        except BaseException:
            self.end("It was stopped from outside.")
            raise
        finally:
            reader.join()
            if self._process.poll() is None:  # the reader failed
                self._process.kill()
                self._process.wait()
            self.seconds = time.monotonic() - self._begin
            if self._first is not None:
                os.close(self._first)

    def end(self, reason: str) -> None:
        """Kill every process inside. The first reason stays."""
        with self._lock:
            if not self.reason:
                self.reason, self._ended_at = reason, time.monotonic()
            # without a first process yet: bubblewrap, killed now, might leave it behind; it is ended when it is known
            if self._first is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def _guard(self) -> None:
        """Read all pipes to their end and look at the limits between."""
        done = os.pidfd_open(self._process.pid)
        with selectors.DefaultSelector() as waiting:
            for name in ("info", "report", "out", "err"):
                waiting.register(self._pipes[name], selectors.EVENT_READ, name)
            waiting.register(done, selectors.EVENT_READ, "done")
            while waiting.get_map():
                for key, _ in waiting.select(TICK_S):
                    if key.data == "done":
                        waiting.unregister(done)
                        self._process.wait()
                    elif not self._take(key.data, os.read(key.fd, CHUNK)):
                        waiting.unregister(key.fd)
                self._look()
        os.close(done)

    def _take(self, name: str, data: bytes) -> bool:
        """Keep what a pipe gave; False at its end."""
        if name == "info":
            self._info += data
            if self._first is None and (found := re.search(rb'"child-pid": *(\d+)', self._info)):
                self._open_first(int(found[1]))
        elif name == "report":
            self.report += data
            if len(self.report) > self._most_report:
                self.end("It handed back more than all its files may hold.")
        else:
            kept = self.kept[name]
            self._printed[name] += len(data)
            kept += data[: self._limits.kept - len(kept)]
            if self._printed[name] > self._limits.printed:
                stream = "standard output" if name == "out" else "standard error"
                self.end(f"It wrote more than {size(self._limits.printed)} to {stream} and was ended.")
        return bool(data)

    def _open_first(self, pid: int) -> None:
        """Remember the first process inside, which is a child of the launcher."""
        try:
            first = os.pidfd_open(pid)
            parent = re.search(r"PPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
        except OSError:  # it has ended already
            return
        with self._lock:
            if parent and int(parent[1]) == self._process.pid:
                self._first, self._first_pid = first, pid
            else:
                os.close(first)
        if self.reason:
            self.end(self.reason)
        elif self._first is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipes["go"], b"x")

    def _look(self) -> None:
        """End the program if it has used too much time or memory."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + TICK_S
        if self.reason and self._first is None and now > self._ended_at + STUCK_S:
            self._process.kill()
        serving = self._serving_since
        used = now - self._begin - self._served_s - (now - serving if serving is not None else 0.0)
        if used > self._limits.wall_s:
            self.end(f"It ran longer than {self._limits.wall_s:g} s and was ended.")
        if self._first is None:
            return
        cpu_s, memory = usage(self._first_pid)
        memory += in_sockets(self._first_pid)
        self.cpu_s = max(self.cpu_s, cpu_s)
        if cpu_s > self._limits.cpu_s:
            self.end(f"Its processes used more than {self._limits.cpu_s:g} s of processor time and were ended.")
        if memory > self._limits.memory:
            self.end(f"Its processes together held more than {size(self._limits.memory)} of memory and were ended.")
        if files_made(self._first_pid) > self._limits.files:
            self.end(f"It made more than {self._limits.files} files and was ended.")

    def _answer(self, serve: Serve) -> None:
        """Answer line after line until the program asks no more."""
        line, asked = bytearray(), 0
        while data := os.read(self._pipes["ask"], CHUNK):
            line += data
            while not self.reason and (end := line.find(b"\n")) >= 0:
                request, line = bytes(line[:end]), line[end + 1 :]
                asked += 1
                if asked > self._limits.requests:
                    self.end(f"It asked more than {self._limits.requests} times and was ended.")
                elif not self._reply(self._served(serve, request)):
                    return
            if len(line) > self._limits.request:
                self.end(f"It asked with a line of more than {size(self._limits.request)} and was ended.")
            if self.reason:
                return

    def _served(self, serve: Serve, request: bytes) -> bytes:
        """The reply to a request; one that is no JSON is answered here."""
        try:
            json.loads(request)
        except (ValueError, RecursionError):
            return b'{"error": "the request is no JSON"}'
        self._serving_since = time.monotonic()
        try:
            return serve(request)
        finally:
            self._served_s += time.monotonic() - self._serving_since
            self._serving_since = None

    def _reply(self, reply: bytes) -> bool:
        """Write a line; False when the program has gone. Waits while the program does not read, to its wall limit."""
        rest = memoryview(reply.replace(b"\n", b" ") + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._pipes["reply"], rest) :]
        except BrokenPipeError:
            return False
        return True


def size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} kB" if count >= 1 << 10 else f"{count} bytes"


def files_made(first: int) -> int:
    """Number of files and folders in the room of a sandbox; 0 when it is gone. bubblewrap has no limit for them."""
    try:
        room = os.statvfs(f"/proc/{first}/root{ROOM}")
    except OSError:
        return 0
    return room.f_files - room.f_ffree


def in_sockets(first: int) -> int:
    """The most that the sockets of a sandbox may hold in the kernel [bytes], those that are on their way, too.

    What one is sent lies with its sender, up to the default of the system, which `seccomp` lets no program raise.
    """
    try:
        with open(f"/proc/{first}/net/unix", "rb") as file:
            return max(file.read().count(b"\n") - 1, 0) * _socket_bytes()  # the first line is a heading
    except OSError:
        return 0


@cache
def _socket_bytes() -> int:
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):  # a container may hide it
        return 212_992


TICKS = os.sysconf("SC_CLK_TCK")
HELD = re.compile(rb"(?:RssAnon|VmSwap|VmPTE|HugetlbPages):\s*(\d+)")
"""Memory of a process [kB]: pages of its own, swapped ones, and tables of pages, which may be larger than these."""


def usage(first: int) -> tuple[float, int]:
    """Processor time [s] and memory [bytes] of a process and all below it.

    Memory that a fork shares with its parent counts twice. Files in the room have their own limit, and no other memory
    can be shared (`seccomp`). Time is whole since every process waits for its children, or leaves them to the first.
    """
    cpu, memory, waiting = 0, 0, [str(first)]
    while waiting:
        place = f"/proc/{waiting.pop()}"
        try:
            with open(f"{place}/stat", "rb") as file:
                cpu += sum(int(number) for number in file.read().rpartition(b")")[2].split()[11:15])
            held = 0
            for thread in os.listdir(f"{place}/task"):
                with open(f"{place}/task/{thread}/children") as file:
                    waiting += file.read().split()
                if not held:  # a main thread that has ended shows none, and the others still hold it
                    with open(f"{place}/task/{thread}/status", "rb") as file:
                        held = sum(int(number) for number in HELD.findall(file.read()))
            memory += 1024 * held
        except OSError:  # it ended while we looked
            continue
    return cpu / TICKS, memory
