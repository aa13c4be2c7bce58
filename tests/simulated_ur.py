"""The simulated UR controller for tests: a process of its own on a free loopback address."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from patience import LIMIT_S, stretched

PORTS = (29999, 30003, 30004, 63352)
_NUMBERS = itertools.count(2)


def free_address() -> str:
    """A loopback address on which the controller's ports are free: those are fixed in the client."""
    for number in _NUMBERS:
        address = f"127.{1 + os.getpid() % 250}.{number // 250}.{number % 250 + 2}"
        try:
            for port in PORTS:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((address, port))
            return address
        except OSError as error:
            if number > 40:
                pytest.skip(f"this system has no loopback addresses to choose from: {error}")
    raise AssertionError


class SimulatedUr:
    """The process, and the faults that can be injected."""

    def __init__(self, *options: str) -> None:
        self.address = free_address()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "merton.simulation.ur_controller", "--address", self.address, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self.lines.get(timeout=stretched(LIMIT_S)) == f"ready {self.address}"

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def fault(self, line: str) -> None:
        """Inject a fault, and wait until it is there."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while (said := self.lines.get(timeout=stretched(LIMIT_S))) != f"done {line}":
            assert "simulated" in said, said

    def end(self) -> None:
        """End the process, by its id."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def simulated_ur(*options: str) -> Iterator[SimulatedUr]:
    """A running controller. A protective stop can be unlocked at once unless the options say otherwise."""
    simulated = SimulatedUr("--unlock-delay", "0", *options)
    try:
        yield simulated
    finally:
        simulated.end()
