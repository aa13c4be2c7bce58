"""The gripper's socket: the client against the simulated URCap, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from merton.errors import InfrastructureError, InputError
from merton.execution.robots.gripper import Grip, Gripper
from merton.execution.robots.urcap import PORT, UrcapGripper, UrcapSocket, fault_sentence
from merton.simulation.urcap_server import UrcapServer
from patience import LIMIT_S, stretched, until
from simulated_ur import free_address

HOST = "127.0.0.1"
pytestmark = pytest.mark.timeout(60)


class Served:
    """A simulated gripper behind a free port, in a thread, in real time."""

    def __init__(self) -> None:
        self.gripper = UrcapServer()
        self.port = 0
        self.loop = asyncio.new_event_loop()
        self.writers: list[asyncio.StreamWriter] = []
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(self.run(ready)), daemon=True)
        self.thread.start()
        assert ready.wait(10)

    async def run(self, ready: threading.Event) -> None:
        self.over = asyncio.Event()
        server = await asyncio.start_server(self.serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        then = self.loop.time()
        while not self.over.is_set():
            await asyncio.sleep(0.005)
            now = self.loop.time()
            self.gripper.advance(now - then)
            then = now
        server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            await self.gripper.serve(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    def drop(self) -> None:
        self.loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in self.writers])

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(10)


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.end()


@pytest.fixture
def gripper(served: Served) -> Iterator[UrcapGripper]:
    gripper = UrcapGripper(HOST, speed_m_s=0.25, port=served.port)
    gripper.connect()
    yield gripper
    gripper.close()


def test_activation_and_registers(served: Served) -> None:
    link = UrcapSocket(HOST, port=served.port)
    assert link.get("STA") == 0
    link.activate()
    assert (link.get("STA"), link.get("ACT")) == (3, 1)
    link.set(POS=128, SPE=255, FOR=10, GTO=1)
    assert (link.get("PRE"), link.get("SPE"), link.get("FOR")) == (128, 255, 10)
    until(lambda: link.get("OBJ") == Grip.AT_POSITION)
    reading = link.reading(Gripper())
    assert reading.opening_m == pytest.approx(0.140 * (1 - 128 / 255))
    assert (reading.grip, reading.fault, reading.holds) == (Grip.AT_POSITION, 0, False)
    link.activate()  # again: nothing happens
    assert link.get("POS") == 128
    link.close()


def test_faults_have_names_and_stop_the_fingers(served: Served, gripper: UrcapGripper) -> None:
    """Robotiq, 2F-85 and 2F-140 instruction manual: 0 is none, 5 ends by itself with the activation."""
    assert (fault_sentence(0), fault_sentence(5)) == ("", "")
    assert fault_sentence(10) == "the gripper reports fault 10: supply voltage too low"
    assert fault_sentence(3) == "the gripper reports fault 3: not in its manual"
    served.gripper.registers["FLT"] = 14
    until(lambda: gripper.reading and fault_sentence(gripper.reading.fault).endswith("motor current too high"))
    gripper.command_gripper(0.0)
    until(lambda: served.gripper.registers["PRE"] == 255)
    assert gripper.gripper_opening_m == pytest.approx(0.140)


def test_it_goes_to_an_opening_and_stops_on_the_way(gripper: UrcapGripper) -> None:
    assert gripper.gripper_opening_m == pytest.approx(0.140)
    gripper.command_gripper(0.070)
    until(lambda: abs(gripper.gripper_opening_m - 0.070) < 0.001)
    gripper.command_gripper(0.0)
    until(lambda: gripper.gripper_opening_m < 0.060)
    gripper.stop()
    before = gripper.gripper_opening_m
    until(lambda: gripper.gripper_opening_m == before)
    assert before > 0.0
    gripper.command_gripper(1.0)
    until(lambda: gripper.gripper_opening_m == pytest.approx(0.140)), "more than the stroke is the stroke"
    with pytest.raises(InputError):
        gripper.command_gripper(float("nan"))


def test_it_feels_an_object(served: Served, gripper: UrcapGripper) -> None:
    served.gripper.object_opening_m = 0.045
    gripper.command_gripper(0.0)
    until(lambda: gripper.reading and gripper.reading.holds)
    assert gripper.gripper_opening_m == pytest.approx(0.045, abs=0.140 / 255)
    gripper.command_gripper(0.140)
    until(lambda: gripper.reading and gripper.reading.grip is Grip.AT_POSITION)


def test_it_connects_again_and_waits_for_a_new_command(
    served: Served, gripper: UrcapGripper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise InfrastructureError("the gripper is away")

    gripper.command_gripper(0.100)
    until(lambda: gripper.reading and abs(gripper.gripper_opening_m - 0.100) < 0.001)
    monkeypatch.setattr(gripper, "_serve", away)  # else it may be back before the check
    served.drop()
    until(lambda: gripper.reading is None)
    with pytest.raises(InfrastructureError, match="the gripper"):
        gripper.command_gripper(0.0)
    monkeypatch.undo()
    until(lambda: gripper.reading)
    assert gripper.gripper_opening_m == pytest.approx(0.100, abs=0.001)
    gripper.command_gripper(0.050)
    until(lambda: abs(gripper.gripper_opening_m - 0.050) < 0.001)


class Misbehaving:
    """A server that says something without waiting to be asked, then closes its half of the connection or does not."""

    def __init__(self, *answers: bytes, close: bool = False) -> None:
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.answers, self.close = answers, close
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        try:
            connection, _ = self.listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for answer in self.answers:
                    connection.sendall(answer)
                if self.close:
                    connection.shutdown(socket.SHUT_WR)  # half closed: it still reads
                while connection.recv(256):
                    pass
        except OSError:
            pass


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (lambda: Misbehaving(b"\xff\x00garbage\n"), "answered 'GET POS' with"),
        (lambda: Misbehaving(b"POS many"), "answered 'GET POS' with 'POS many'"),
        (lambda: Misbehaving(b"STA 3"), "answered 'GET POS' with 'STA 3'"),
        (lambda: Misbehaving(b"x" * 100_000), "answered 'GET POS' with 'xxx"),
        (lambda: Misbehaving(), "did not answer 'GET POS' within 0.3 s"),
        (lambda: Misbehaving(b"PO"), "answered 'GET POS' with 'PO'"),
        (lambda: Misbehaving(close=True), "closed the connection on 'GET POS'"),
        (lambda: Misbehaving(b"PO", close=True), "closed the connection on 'GET POS'"),
    ],
)
def test_nonsense_is_one_clear_error_in_time(server: object, message: str) -> None:
    misbehaving = server()  # type: ignore[operator]
    link = UrcapSocket(HOST, 0.3, misbehaving.port)
    if misbehaving.answers or misbehaving.close:
        assert select.select([link._socket], [], [], 30)[0], "what it says is here already: only silence takes time"
    began_s = time.monotonic()
    with pytest.raises(InfrastructureError, match=message) as raised:
        link.get("POS")
    assert time.monotonic() - began_s < stretched(5.0)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300
    link.close()
    misbehaving.listener.close()


def test_a_slow_answer_in_pieces_is_an_answer() -> None:
    server = Misbehaving(b"P", b"OS", b" 77\n")
    link = UrcapSocket(HOST, 5.0, server.port)
    assert link.get("POS") == 77
    link.close()
    server.listener.close()


def test_values_that_do_not_exist_are_an_error() -> None:
    link = UrcapSocket.__new__(UrcapSocket)
    link.name = "the gripper"
    link.get = {"OBJ": 9, "POS": 3, "FLT": 0}.__getitem__  # type: ignore[assignment]
    with pytest.raises(InfrastructureError, match="OBJ 9 and POS 3"):
        link.reading(Gripper())


def test_an_absent_gripper_is_one_sentence() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(InfrastructureError, match=f"no connection to the gripper at 127.0.0.1:{port}"):
        UrcapSocket(HOST, 0.3, port)
    gripper = UrcapGripper(HOST, port=port)
    with pytest.raises(InfrastructureError, match="no connection"):
        gripper.connect(1.0)
    gripper.close()


def test_the_simulated_urcap_refuses_unknown_requests() -> None:
    server = UrcapServer()
    for line in ("", "GET", "GET NONSENSE", "SET POS", "SET POS 256", "SET STA 3", "SET POS -1", "hello"):
        assert server.answer(line) == "?", line
    server.set({"POS": 255, "GTO": 1})
    server.advance(10.0)
    assert server.position == 0.0, "not activated: it does not move"


@pytest.mark.parametrize("program", ["urcap_server", "ur_controller"])
def test_ctrl_c_ends_a_simulated_gripper_without_a_word(program: str) -> None:
    """Also while a client is connected, as `gripper:=sim` of lab.launch.py is when its launch ends."""
    address = free_address()
    command = [sys.executable, "-m", f"merton.simulation.{program}", "--address", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {address}\n"
        with socket.create_connection((address, PORT), LIMIT_S) as client:
            client.sendall(b"GET POS\n")
            assert client.recv(100) == b"POS 0"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=stretched(LIMIT_S))
    assert (process.returncode, errors) == (0, "")
