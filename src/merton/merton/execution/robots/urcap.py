"""The real 2F-140 through the socket of Robotiq's URCap, which runs on the UR controller (port 63352).

A request is a line: `GET POS`, `SET POS 128 GTO 1`. The answer is text without an end of line: `POS 128`, `ack`. So
there is one request at a time, and an answer is complete when it looks complete. Registers: ACT activate, ATR automatic
release, GTO go to position, POS as `Gripper.register`, PRE the position requested as the gripper has it, SPE speed, FOR
force, STA 3 when active, OBJ as `gripper.Grip`, FLT fault.

The URCap exchanges registers with the gripper once a cycle, every 2 to 100 ms: what is written reaches it later, and
what is read is older. A value that is overwritten within a cycle never reaches it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from dataclasses import replace

from merton.errors import InfrastructureError, InputError
from merton.execution.robots.gripper import REGISTER_MAX, Grip, Gripper, GripperReading

PORT = 63352
RESET, ACTIVE = 0, 3
"""Values of STA."""
RESET_S = 0.5
"""Pause between reset and activation, as in the reset of the URCap's own script functions: many cycles."""
LONGEST_ANSWER = 64
"""Bytes; more than this is no answer of a gripper."""
FAULTS = {
    5: "a command waits until the activation is over",
    7: "not activated",
    8: "too hot: it waits until it has cooled down",
    9: "no communication for a second",
    10: "supply voltage too low",
    11: "opening by itself (automatic release)",
    12: "internal fault",
    13: "activation failed: something is in the way of the fingers",
    14: "motor current too high",
    15: "opened by itself (automatic release)",
}
"""Values of FLT (Robotiq, 2F-85 and 2F-140 instruction manual, register FAULT STATUS); 0 is none."""
LATCHED_FAULT = 10
"""This fault and those after it stay until the gripper is activated anew, by ACT that rises (the same manual)."""
PASSING_FAULT = 5
"""Ends by itself, with the activation."""
POLL_S = 0.05
"""Pause between two readings. Ours: four requests each take a few milliseconds over the URCap."""
RECONNECT_S = 0.5


def fault_sentence(fault: int) -> str:
    """The fault in the register FLT as a sentence; empty for none."""
    if fault in (0, PASSING_FAULT):
        return ""
    return f"the gripper reports fault {fault}: {FAULTS.get(fault, 'not in its manual')}"


class UrcapSocket:
    """The protocol: one connection, requests and answers. Not for several threads.

    Args:
        hostname: the UR controller.
        timeout_s: time limit of every request [s].
        port: 63352 on a real robot.

    Raises:
        InfrastructureError: no connection; from every method: no answer in time, a closed connection, or an answer that
            makes no sense. After that the connection is of no use.
    """

    def __init__(self, hostname: str, timeout_s: float = 1.0, port: int = PORT) -> None:
        self.name, self.timeout_s = f"the gripper at {hostname}:{port}", timeout_s
        try:
            self._socket = socket.create_connection((hostname, port), timeout_s)
        except OSError as error:
            raise InfrastructureError(f"no connection to {self.name}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def get(self, variable: str) -> int:
        """Read a register."""
        return int(self._ask(f"GET {variable}", rf"{variable} (\d{{1,3}})\s*")[1])

    def set(self, **registers: int) -> None:
        """Write registers, all at once: `set(POS=128, GTO=1)`."""
        self._ask("SET " + " ".join(f"{name} {value}" for name, value in registers.items()), r"ack\s*")

    def activate(self, limit_s: float = 10.0) -> None:
        """Activate the gripper unless it is active without a latched fault; a real one opens and closes once.

        It becomes active when ACT rises while ATR is 0. So both are cleared until the gripper itself reports that it is
        reset, as the reset of Robotiq's own script functions does; then ACT is set. GTO is cleared too, so that the
        fingers do not go to a position that was asked for earlier.

        Raises:
            InfrastructureError: not active within `limit_s`; the text has the registers that were seen.
        """
        if self.get("STA") == ACTIVE and self.get("FLT") < LATCHED_FAULT:
            return
        end_s, pause = time.monotonic() + limit_s, threading.Event()
        while True:
            self.set(ACT=0, ATR=0, GTO=0)
            if self._state() == (0, RESET):
                break
            self._wait(pause, POLL_S, end_s, limit_s)
        self._wait(pause, RESET_S, end_s, limit_s)
        self.set(ACT=1)
        while self._state() != (1, ACTIVE):
            self._wait(pause, POLL_S, end_s, limit_s)

    def _state(self) -> tuple[int, int]:
        return self.get("ACT"), self.get("STA")

    def _wait(self, pause: threading.Event, duration_s: float, end_s: float, limit_s: float) -> None:
        """A pause of the activation; raises InfrastructureError once its time is up."""
        if time.monotonic() > end_s:
            why = fault_sentence(self.get("FLT")) or "it reports no fault, ACT {} and STA {}".format(*self._state())
            raise InfrastructureError(f"{self.name} was not active after {limit_s:g} s: {why}")
        pause.wait(duration_s)

    def reading(self, gripper: Gripper) -> GripperReading:
        """Read position, state of the fingers and fault."""
        grip, position, fault = self.get("OBJ"), self.get("POS"), self.get("FLT")
        if grip not in list(Grip) or position > REGISTER_MAX:
            raise InfrastructureError(f"{self.name} reported OBJ {grip} and POS {position}, which do not exist")
        opened = gripper.gripper_open_of_register(position)
        return GripperReading(gripper.opening_m(opened), opened, Grip(grip), fault)

    def _ask(self, request: str, pattern: str) -> re.Match[str]:
        answer = ""
        end_s = time.monotonic() + self.timeout_s
        try:
            self._socket.sendall(request.encode("ascii") + b"\n")
            while (left_s := end_s - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                data = self._socket.recv(256)
                if not data:
                    raise InfrastructureError(f"{self.name} closed the connection on {request!r}")
                answer += data.decode("ascii", "replace")
                if found := re.fullmatch(pattern, answer):
                    return found
                if len(answer) > LONGEST_ANSWER:
                    break
        except TimeoutError:
            pass
        except OSError as error:
            raise InfrastructureError(f"the connection to {self.name} broke: {error}") from error
        if answer:
            raise InfrastructureError(f"{self.name} answered {request!r} with {answer[:LONGEST_ANSWER]!r}")
        raise InfrastructureError(f"{self.name} did not answer {request!r} within {self.timeout_s:g} s")


class UrcapGripper:
    """The gripper, with the methods that the embedded cell has: an opening to go to, an opening measured.

    Methods return at once. A thread activates the gripper, carries out the newest command, reads the state, and
    connects again after a failure; after that the gripper moves only on a new command.

    Args:
        hostname: the UR controller.
        gripper: stroke and conversions.
        speed_m_s: speed of the opening [m/s].
        force_n: grip force [N].
        port: 63352 on a real robot.
    """

    def __init__(
        self,
        hostname: str,
        gripper: Gripper | None = None,
        speed_m_s: float = 0.15,
        force_n: float = 40.0,
        port: int = PORT,
    ) -> None:
        self.gripper = gripper or Gripper()
        self._speed = self.gripper.speed_register(speed_m_s)
        self._force = self.gripper.force_register(force_n)
        self._hostname, self._port = hostname, port
        self.reading: GripperReading | None = None
        """The newest state; None while there is no connection."""
        self.error = "not connected yet"
        """The reason why there is no connection."""
        self._pending: dict[str, int] | None = None
        self._command_lock = threading.Lock()
        """Around `_pending`: no command may get lost while the last one is carried out, and none may outlive its
        connection."""
        self._wake, self._closing = threading.Event(), threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._work, name="urcap", daemon=True)

    def connect(self, limit_s: float = 15.0) -> None:
        """Start connecting, and wait until the gripper is active. Attempts go on after a failure, until `close`.

        Raises:
            InfrastructureError: not active within `limit_s`.
        """
        if not self._thread.is_alive():
            self._thread.start()
        if not self._ready.wait(limit_s):
            raise InfrastructureError(self.error)

    def close(self) -> None:
        """End the connection. The fingers stay where they are."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def command_gripper(self, opening_m: float) -> None:
        """Go to an opening [m], limited to the stroke; replaces the last command.

        Raises:
            InputError: not a finite number.
            InfrastructureError: no connection.
        """
        position = self.gripper.register(self.gripper.gripper_open(opening_m))
        self._command({"POS": position, "SPE": self._speed, "FOR": self._force, "GTO": 1})

    def stop(self) -> None:
        """Halt the fingers where they are."""
        with contextlib.suppress(InfrastructureError):
            self._command({"GTO": 0})

    @property
    def gripper_opening_m(self) -> float:
        """Distance between the pads [m]. Raises InfrastructureError if it is not known."""
        if self.reading is None:
            raise InfrastructureError(self.error)
        return self.reading.opening_m

    def _command(self, registers: dict[str, int]) -> None:
        with self._command_lock:
            if self.reading is None:
                raise InfrastructureError(f"the gripper is not connected: {self.error}")
            self._pending = registers
        self._wake.set()

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                self._serve()
            except (InfrastructureError, InputError) as error:
                self.error = str(error)
            with self._command_lock:
                self.reading, self._pending = None, None
            self._ready.clear()
            self._closing.wait(RECONNECT_S)

    def _serve(self) -> None:
        link = UrcapSocket(self._hostname, port=self._port)
        try:
            link.activate()
            requested: int | None = None  # a position that the gripper does not have yet
            while not self._closing.is_set():
                self._wake.clear()
                with self._command_lock:
                    registers, self._pending = self._pending, None
                if registers is not None:
                    link.set(**registers)
                    requested = registers.get("POS", requested)
                if requested is not None and link.get("PRE") == requested:
                    requested = None
                reading = link.reading(self.gripper)
                # until then OBJ tells of the command before
                self.reading = reading if requested is None else replace(reading, grip=Grip.MOVING)
                self._ready.set()
                self._wake.wait(POLL_S)
        finally:
            link.close()
