"""Processes that tests start: each in a session of its own, with a log, and ended with all that it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_prefix

from merton.graph.supervisor import GRACE_S, ORPHANS_END
from patience import stretched, until


def processes_of_session(leader: int) -> dict[int, str]:
    """Command lines of all processes that run in the session of the process `leader`, by process id."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = command.decode(errors="replace").strip()
            except OSError:  # ended meanwhile
                continue
    return found


class Started:
    """A process that a test started, in a session of its own.

    Attributes:
        process: the process itself; its id is that of the session.
        log: file with its output.
    """

    def __init__(self, command: list[str], log: Path, variables: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*ORPHANS_END, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def check(self) -> None:
        """Fails with its output if it has ended."""
        assert self.process.poll() is None, f"ended with code {self.process.returncode}:\n{self.output}"

    def wait_for(self, text: str, limit_s: float = 60.0) -> None:
        """Until its output has `text`."""
        until(lambda: text in self.output, limit_s, meanwhile=self.check)

    def wait(self, limit_s: float = 60.0) -> int:
        """The exit code."""
        return self.process.wait(stretched(limit_s))

    def session(self) -> dict[int, str]:
        """Command lines of all processes of its session that run, by process id."""
        return processes_of_session(self.process.pid)

    def wait_for_session(self, limit_s: float = 60.0) -> None:
        """Until no process of its session runs; fails with those that do."""
        try:
            until(lambda: not self.session(), limit_s)
        except AssertionError:
            pytest.fail(f"after {limit_s:g} s and more there run: {self.session()}")

    def end(self) -> None:
        """End it, SIGINT first, and what it leaves of its session."""
        for number, limit_s in GRACE_S:
            running = self.process.poll() is None
            for pid in [self.process.pid] if running and number == signal.SIGINT else self.session():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            with contextlib.suppress(AssertionError):
                until(lambda: self.process.poll() is not None and not self.session(), limit_s)
                return


class Processes:
    """Starts processes; the end of the fixture ends them, and shows the output of each if the test failed."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.started: list[Started] = []

    def start(self, *command: object, **variables: str) -> Started:
        """Start a program of PATH, or by its path, with variables on top of this environment."""
        program = shutil.which(str(command[0]))
        assert program is not None, f"{command[0]} is not in PATH"
        log = self.logs / f"{len(self.started)}_{Path(program).name}.log"
        self.started.append(Started([program, *map(str, command[1:])], log, variables))
        return self.started[-1]

    def run(self, package: str, executable: str, *arguments: object, **variables: str) -> Started:
        """As `ros2 run package executable arguments`, without the process of `ros2`."""
        path = Path(get_package_prefix(package)) / "lib" / package / executable
        return self.start(path, *arguments, **variables)

    def end(self) -> None:
        for one in reversed(self.started):
            one.end()
            print(f"--- {one.log.name}\n{one.output}")
        self.started.clear()
