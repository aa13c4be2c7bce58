"""A connection to the host of a world: in a process that is started for it, or at an address."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

from merton.errors import LONGEST_REASON, InfrastructureError
from merton.processes import ONE_THREAD
from merton.results.text import one_line
from merton.worlds.hosted import world_wire
from merton.worlds.hosted.world_wire import READY, TOKEN, VERSION, Closed, Wire, WireError

HOST = Path(world_wire.__file__).with_name("host.py")
START_S = 600.0
"""Until a process has imported its simulator and built the world [s]: from a cold disk that takes minutes."""
GREETING_S = 20.0
"""Until a host answers a greeting [s]; it may be at work for a client that is just leaving."""
LEAVE_S = 5.0
"""For a process to end by itself [s], and then again after it was asked to by a signal."""
REFUSED, OWN = 2, "host: "
"""Exit status of a host that cannot serve its world, and the beginning of the line with the reason."""
LAST_LINES = 20
"""Lines of a process's standard error that are kept."""
OTHERS = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONSAFEPATH", "VIRTUAL_ENV", TOKEN})
"""Variables that hold for this interpreter and would be wrong for another one."""


@dataclass(frozen=True)
class Program:
    """A world in a process that is started for it.

    Attributes:
        interpreter: of the world's virtual environment, such as "/opt/libero/bin/python".
        world: "FILE:CLASS", whose file is a path or one of `merton.worlds.hosted`; or "module:CLASS".
        settings: arguments of the class, JSON values.
        environment: variables of the process, beside those of this one.
    """

    interpreter: str | Path
    world: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """The words that start its host."""
        settings = json.dumps(dict(self.settings))
        return [str(self.interpreter), str(HOST), self.world, "--settings", settings]

    def variables(self, token: str) -> dict[str, str]:
        """All variables of the process, of which a client shows the token."""
        kept = {key: value for key, value in os.environ.items() if key not in OTHERS}
        # The order of a set of texts must be the same in every process.
        return kept | ONE_THREAD | {"PYTHONHASHSEED": "0"} | dict(self.environment) | {TOKEN: token}


@dataclass(frozen=True)
class Address:
    """A world whose host runs already, as `host.py --listen` says where.

    Attributes:
        host, port: of the machine.
        token: that the host wants to see; "" for none.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)


class Link:
    """A connection over which one thread asks; after an InfrastructureError it is closed, and its process ended.

    Args:
        name: of the world, for texts.
        place: where its host is.

    Raises:
        InfrastructureError: the process cannot be started, nothing answers at the address, or it refuses.
    """

    def __init__(self, name: str, place: Program | Address) -> None:
        self._name = name
        self._process: _HostProcess | None = None
        self._wire: Wire | None = None
        try:
            if isinstance(place, Program):
                self._process = _HostProcess(place)
                place = self._process.address()
            try:
                connection = socket.create_connection((place.host, place.port), GREETING_S)
            except OSError as error:
                raise Closed(f"nothing answers at {place.host}:{place.port}: {error}") from None
            self._wire = Wire(connection)
            self._exchange({"version": VERSION, "token": place.token}, GREETING_S)
        except BaseException as error:
            self._fail("start", error, START_S if self._wire is None else GREETING_S)

    @property
    def pid(self) -> int | None:
        """The process that was started; None at an address."""
        return None if self._process is None else self._process.pid

    def is_alive(self) -> bool:
        """Whether the connection stands, as far as can be seen without asking."""
        return self._wire is not None and self._wire.is_quiet()

    def ask(self, do: str, limit_s: float, **arguments: Any) -> dict[str, Any]:
        """The host's reply to a request.

        Raises:
            InfrastructureError: the world failed, and the connection stands (`is_alive`); or the process has ended,
                the time was over or the form of the protocol was broken, and the connection is closed.
        """
        if self._wire is None:
            raise InfrastructureError(f"world {self._name!r}: its connection is closed")
        try:
            return self._exchange({"do": do, **arguments}, limit_s)
        except _RefusedError as error:
            raise InfrastructureError(f"world {self._name!r} failed at {do}: {error}") from None
        except BaseException as error:
            self._fail(do, error, limit_s)

    def close(self) -> None:
        """End the connection, and the process: it may end by itself, is asked by a signal, then killed."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        if self._process is not None:
            self._process.end()

    def _exchange(self, message: dict[str, Any], limit_s: float) -> dict[str, Any]:
        assert self._wire is not None
        began_s = time.monotonic()
        self._wire.send(message, limit_s)
        reply = self._wire.receive(max(0.0, limit_s - (time.monotonic() - began_s)))
        if isinstance(reply, dict) and isinstance(reply.get("ok"), dict):
            return dict(reply["ok"])
        if isinstance(reply, dict) and isinstance(reply.get("error"), str):
            raise _RefusedError(one_line(reply["error"], LONGEST_REASON))
        raise WireError("a reply has neither values nor an error")

    def _fail(self, do: str, error: BaseException, limit_s: float) -> NoReturn:
        """Close all and raise InfrastructureError; an error that is not the host's, such as Ctrl-C, is passed on."""
        process, self._process = self._process, None
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        reason = str(error)
        if isinstance(error, TimeoutError):
            reason = f"it did not answer within {limit_s:g} s"
            if process is not None:
                reason += f", and its process was ended{process.last_words()}"
        elif isinstance(error, WireError):
            reason = f"it broke the protocol: {error}"
        elif isinstance(error, Closed) and process is not None:
            reason = process.how_it_ended()
        if process is not None:
            process.kill()
        if isinstance(error, (TimeoutError, WireError, Closed, _RefusedError)):
            raise InfrastructureError(f"world {self._name!r} failed at {do}: {reason}") from None
        raise error


class _RefusedError(Exception):
    """The host answered with an error."""


class _HostProcess:
    """The process of a host, in a process group of its own, so that all that it starts ends with it."""

    def __init__(self, program: Program) -> None:
        self._token = secrets.token_hex(16)
        try:
            self._process = subprocess.Popen(
                [*program.command(), "--with-parent"], env=program.variables(self._token), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise Closed(f"cannot run {str(program.interpreter)!r}: {error.strerror or error}") from None
        self.pid = self._process.pid
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._reader = threading.Thread(target=_keep, args=(self._process.stderr, self._lines), daemon=True)
        self._reader.start()

    def address(self) -> Address:
        """The address that the process says once it is ready; raises TimeoutError, or Closed if it ends before."""
        assert self._process.stdout is not None
        end_s, said = time.monotonic() + START_S, b""
        while True:
            for line in said.split(b"\n")[:-1]:
                if line.startswith(READY.encode()):
                    host, _, port = line[len(READY) :].decode(errors="replace").rpartition(":")
                    if not port.isdigit():
                        raise WireError(f"it says that it listens at {line!r}")
                    return Address(host.strip("[]"), int(port), self._token)
            if not select.select([self._process.stdout], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(self._process.stdout.fileno(), 4096)
            if not more:
                raise Closed("it closed its standard output")
            said = said[-4096:] + more

    def how_it_ended(self) -> str:
        """Why a process has closed its connection or its output, in a clause."""
        try:
            code = self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            return f"its process closed the connection{self.last_words()}"
        words = self.last_words()
        if code == REFUSED and self._lines and self._lines[-1].startswith(OWN):
            return one_line(self._lines[-1][len(OWN) :], LONGEST_REASON)
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}{words}"
        return f"its process ended with exit status {code}{words}"

    def last_words(self) -> str:
        """The clause, with its semicolon, of what the process wrote last to standard error; "" if that was nothing."""
        self._reader.join(0.2)  # what is on its way; the pipe of a process that goes on does not end
        told = [line for line in self._lines if line.strip() and not line.startswith(OWN)]
        return f"; it last wrote: {one_line(' | '.join(told[-3:]), LONGEST_REASON)}" if told else ""

    def end(self) -> None:
        """After its connection was closed: wait, terminate, kill."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVE_S)
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_S)
        self.kill()

    def kill(self) -> None:
        """End it, and what it started, at once."""
        self._signal(signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a driver may hold it in the kernel
            self._process.wait(LEAVE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def _keep(pipe: IO[bytes], lines: deque[str]) -> None:
    """Read a pipe to its end, so that its writer never waits, and keep the last lines."""
    with pipe:
        while line := pipe.readline(4096):
            lines.append(line.decode("utf-8", "replace").rstrip())
