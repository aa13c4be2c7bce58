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
    until(lambda: (link.get("PRE"), link.get("SPE"), link.get("FOR")) == (128, 255, 10))
    until(lambda: link.get("OBJ") == Grip.AT_POSITION)
    reading = link.reading(Gripper())
    assert reading.opening_m == pytest.approx(0.140 * (230 - 128) / 217)
    assert (reading.grip, reading.fault, reading.holds) == (Grip.AT_POSITION, 0, False)
    link.activate()  # again: nothing happens
    assert link.get("POS") == 128
    link.close()


@pytest.mark.parametrize("exchange_s", [0.002, 0.1])
@pytest.mark.parametrize("released", [False, True])
def test_it_is_reset_before_it_is_activated(served: Served, exchange_s: float, released: bool) -> None:
    """Registers reach it every 2 to 100 ms; ACT was left at 1, or ATR after an automatic release."""
    urcap = served.gripper
    urcap.exchange_s = exchange_s
    urcap.registers |= {"ACT": 1, "GTO": 1, "PRE": 200}
    if released:
        urcap.registers |= {"ATR": 1, "FLT": 15}
    link = UrcapSocket(HOST, port=served.port)
    link.activate(stretched(10.0))
    assert (link.get("STA"), link.get("ACT"), link.get("ATR"), link.get("FLT")) == (3, 1, 0, 0)
    assert (link.get("GTO"), link.get("POS")) == (0, 13), "it does not go to the position that was asked for earlier"
    link.close()


@pytest.mark.parametrize(
    ("fault", "is_reset"), [(8, False), (9, False), (10, True), (12, True), (14, True), (15, True)]
)
def test_a_latched_fault_of_an_active_gripper_is_reset(served: Served, fault: int, is_reset: bool) -> None:
    """Robotiq, instruction manual, FAULT STATUS: from 0x0A on a reset is required, a rising edge of rACT."""
    served.gripper.registers |= {"ACT": 1, "STA": 3, "FLT": fault, "GTO": 1}
    link = UrcapSocket(HOST, port=served.port)
    until(lambda: link.get("FLT") == fault)
    link.activate(stretched(10.0))
    assert (link.get("STA"), link.get("FLT"), link.get("GTO")) == ((3, 0, 0) if is_reset else (3, fault, 1))
    link.close()


def test_the_stand_in_keeps_a_fault_until_act_falls() -> None:
    server = UrcapServer()
    server.registers |= {"ACT": 1, "STA": 3, "FLT": 14}
    for line in ("SET ACT 1", "SET POS 255 GTO 1 SPE 255"):
        server.answer(line)
        server.advance(0.5)
        assert (server.registers["FLT"], server.position) == (14, server.gripper.register_open)
    server.answer("SET ACT 0")
    server.advance(0.5)
    assert server.registers["FLT"] == 0


def test_an_activation_that_fails_says_what_was_seen(served: Served) -> None:
    served.gripper.exchange_s = served.gripper._next_exchange_s = 1000.0  # nothing reaches it
    link = UrcapSocket(HOST, port=served.port)
    link.set(ACT=1)
    with pytest.raises(InfrastructureError, match=r"not active after 0\.2 s: it reports no fault, ACT 0 and STA 0"):
        link.activate(0.2)
    link.close()


def test_an_automatic_release_opens_the_fingers_and_is_a_fault() -> None:
    """Robotiq, instruction manual, bit rATR: it overrides all but rACT, and the gripper must be activated again."""
    server = UrcapServer()
    for line in ("SET ACT 1", "SET POS 255 GTO 1 SPE 255", "SET ATR 1"):
        assert server.answer(line) == "ack"
        server.advance(1.0)
    seen = [server.answer(f"GET {name}") for name in ("FLT", "STA", "OBJ")]
    assert seen == ["FLT 11", "STA 0", "OBJ 3"]
    assert 170 < int(server.answer("GET POS").split()[1]) < 230, "slowly"
    server.advance(5.0)
    assert (server.answer("GET POS"), server.answer("GET FLT")) == ("POS 13", "FLT 15")


def test_a_value_that_is_overwritten_within_a_cycle_never_reaches_it() -> None:
    server = UrcapServer(exchange_s=0.1)
    server.registers["ACT"] = 1
    server.answer("SET ACT 0")
    server.answer("SET ACT 1")
    assert server.answer("GET ACT") == "ACT 0", "what was read last"
    server.advance(3.0)
    assert (server.answer("GET ACT"), server.answer("GET STA")) == ("ACT 1", "STA 0")


def test_fingers_at_the_end_of_their_way_are_at_the_position_asked_for() -> None:
    """The manual's example of an opening: PR 0, position 0x0D, gOBJ 3."""
    server = UrcapServer()
    server.answer("SET ACT 1")
    server.advance(1.0)
    for asked, position in ((255, 230), (0, 13)):
        server.answer(f"SET POS {asked} GTO 1 SPE 255")
        server.advance(1.0)
        assert [server.answer(f"GET {name}") for name in ("PRE", "POS", "OBJ")] == [
            f"PRE {asked}",
            f"POS {position}",
            "OBJ 3",
        ]


def test_until_a_command_has_reached_the_gripper_the_fingers_count_as_moving(
    served: Served, gripper: UrcapGripper
) -> None:
    """OBJ is that of the command before, which was fulfilled."""
    served.gripper.exchange_s = 0.3
    until(lambda: gripper.reading and gripper.reading.grip is Grip.AT_POSITION)
    seen: list[Grip] = []
    gripper.command_gripper(0.0)
    before = gripper.reading

    def arrived() -> bool:
        reading = gripper.reading
        if reading is not None and reading is not before:
            seen.append(reading.grip)
        return bool(reading and reading.opening_m == 0.0)

    until(arrived)
    assert Grip.AT_POSITION not in seen[:-1]


def test_faults_have_names_and_stop_the_fingers(served: Served, gripper: UrcapGripper) -> None:
    """Robotiq, 2F-85 and 2F-140 instruction manual: 0 is none, 5 ends by itself with the activation."""
    assert (fault_sentence(0), fault_sentence(5)) == ("", "")
    assert fault_sentence(10) == "the gripper reports fault 10: supply voltage too low"
    assert fault_sentence(3) == "the gripper reports fault 3: not in its manual"
    served.gripper.registers["FLT"] = 14
    until(lambda: gripper.reading and fault_sentence(gripper.reading.fault).endswith("motor current too high"))
    gripper.command_gripper(0.0)
    until(lambda: served.gripper.registers["PRE"] == 230)
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
    assert gripper.gripper_opening_m == pytest.approx(0.045, abs=0.140 / 217)
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
    assert server.position == 13, "not activated: it does not move"


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
            assert client.recv(100) == b"POS 13"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=stretched(LIMIT_S))
    assert (process.returncode, errors) == (0, "")
