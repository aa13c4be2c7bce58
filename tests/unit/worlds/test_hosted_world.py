"""A world in a process of its own: what it gives is exact, and whatever befalls it is one sentence and a new trial."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import point_world
import pytest

from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.worlds.base import ExpertWorld, ForkableWorld, SegmentedWorld, World
from merton.worlds.client import HostedWorld
from merton.worlds.hosted.world_wire import READY, TOKEN, VERSION, Wire
from merton.worlds.link import HOST, Address, Program
from patience import until
from wire import LIMIT_S

FILE = point_world.__file__
SOME = np.array([[0.05, -0.02], [0.03, 0.01], [-0.04, 0.06], [0.0, 0.02], [0.05, 0.05]])


def world(kind: str = "Point", interpreter: str = sys.executable, **settings: Any) -> HostedWorld:
    return HostedWorld("point", Program(interpreter, f"{FILE}:{kind}", settings))


@pytest.fixture(scope="module")
def shared() -> Iterator[HostedWorld]:
    """One process for all tests that do it no harm."""
    own = world()
    yield own
    own.close()


@pytest.fixture
def started() -> Iterator[Callable[..., HostedWorld]]:
    """As `world`, and its process ends with the test."""
    with ExitStack() as opened:

        def start(*words: Any, **settings: Any) -> HostedWorld:
            own = world(*words, **settings)
            opened.callback(own.close)
            return own

        yield start


def trial(own: HostedWorld, scene: int = 3, between: Callable[[], object] = lambda: None) -> list[bytes]:
    """All that a trial gives, as bytes; `between` two chunks something may happen."""
    found = [own.reset("reach", scene).encode()]
    for number in range(3):
        look = own.look("above", depth=True)
        assert look.depth_m is not None
        state = own.state()
        assert state.base_from_tool is not None
        assert state.extra is not None
        carried = own.carry_out_rows(SOME)
        found += [look.color.tobytes(), look.depth_m.tobytes(), state.base_from_tool.tobytes()]
        found += [state.extra["goal"].tobytes(), carried.points.tobytes(), repr(own.judged()).encode()]
        found += [own.things("above").tobytes(), own.expert(4).tobytes()]
        if number == 1:
            between()
    return found


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nothing has waited for has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def sentence(error: pytest.ExceptionInfo[Exception]) -> str:
    """The text of an error, which is one sentence that names the world."""
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith("world 'point'")
    return text


def test_it_is_every_kind_of_world(shared: HostedWorld) -> None:
    assert isinstance(shared, World)
    assert isinstance(shared, ForkableWorld)
    assert isinstance(shared, ExpertWorld)
    assert isinstance(shared, SegmentedWorld)


def test_the_same_bytes_come_of_two_processes_and_of_a_trial_after_others(
    shared: HostedWorld, started: Callable[..., HostedWorld]
) -> None:
    first = trial(shared)
    shared.reset("touch", 7)
    shared.carry_out_rows(SOME)
    assert trial(shared) == first == trial(started())
    assert trial(shared, scene=4) != first


def test_it_gives_what_the_class_itself_gives(shared: HostedWorld) -> None:
    own = point_world.Point()
    own.reset("reach", 5)
    shared.reset("reach", 5)
    for row in SOME:
        own.step(row)
    carried = shared.carry_out_rows(SOME)
    assert carried.rows == len(SOME)
    assert carried.ended == ""
    assert carried.points[-1].tolist() == [*own.point.tolist(), 0.0]
    assert np.array_equal(shared.look("above").color, own.look("above"))
    assert shared.look("above").depth_m is None
    assert shared.judged().progress == own.progress()
    assert shared.state().gripper_open == 0.5
    assert shared.state().joints_rad is None
    rest = shared.state().rest_row
    assert rest is not None
    assert rest.tolist() == [0, 0]


def test_a_chunk_is_its_rows_one_by_one(shared: HostedWorld) -> None:
    shared.reset("reach", 2)
    whole = shared.carry_out_rows(SOME)
    shared.reset("reach", 2)
    parts = [shared.carry_out_rows(row[None]).points for row in SOME]
    assert np.concatenate(parts).tobytes() == whole.points.tobytes()


def test_a_fork_equals_a_run_of_its_own(shared: HostedWorld) -> None:
    shared.reset("reach", 9)
    shared.carry_out_rows(SOME)
    snapshot = shared.save()
    apart = [shared.carry_out_rows(SOME).points.tobytes(), shared.look("above").color.tobytes()]
    for _ in range(2):
        shared.reset("touch", 1)
        shared.load(snapshot)
        assert [shared.carry_out_rows(SOME).points.tobytes(), shared.look("above").color.tobytes()] == apart


def test_a_fork_takes_success_and_the_count_of_rows_with_it(shared: HostedWorld) -> None:
    shared.reset("reach", 3)
    before = shared.save()
    assert shared.carry_out_rows(shared.expert(40)).ended == "success"
    after = shared.save()
    shared.load(before)
    assert not shared.judged().success
    shared.load(after)
    assert shared.judged().success
    assert shared.carry_out_rows(SOME).rows == 0
    shared.load(before)
    assert shared.carry_out_rows(np.zeros((60, 2))).rows == 40


def test_the_expert_leaves_the_world_as_it_was_and_its_rows_lead_to_success(shared: HostedWorld) -> None:
    shared.reset("reach", 3)
    before = shared.state().point, shared.look("above").color.tobytes()
    rows = shared.expert(40)
    assert before == (shared.state().point, shared.look("above").color.tobytes())
    assert np.array_equal(shared.expert(2), rows[:2])
    carried = shared.carry_out_rows(rows)
    assert (carried.rows, carried.ended) == (len(rows), "success")
    assert shared.expert(3).shape == (0, 2)


def test_momentary_success_counts_and_ends_the_trial(shared: HostedWorld) -> None:
    shared.reset("reach", 3)
    there = shared.expert(40)
    away = np.tile([[0.1, 0.1]], (10, 1))
    carried = shared.carry_out_rows(np.concatenate([there, away]))
    assert (carried.rows, carried.ended) == (len(there), "success")
    assert shared.judged().success
    again = shared.carry_out_rows(away)
    assert (again.rows, again.ended, again.points.shape) == (0, "success", (0, 3))
    shared.reset("reach", 3)
    assert not shared.judged().success


def test_a_trial_ends_at_the_step_limit_and_as_the_world_says(shared: HostedWorld) -> None:
    shared.reset("reach", 3)
    assert shared.carry_out_rows(np.zeros((30, 2))).ended == ""
    carried = shared.carry_out_rows(np.zeros((30, 2)))
    assert (carried.rows, carried.ended, len(carried.points)) == (10, "step limit", 10)
    shared.reset("reach", 3)
    assert shared.carry_out_rows(np.tile([[-0.1, 0.1]], (40, 1))).ended == "left the plane"


def test_a_snapshot_that_nothing_refers_to_is_forgotten(shared: HostedWorld) -> None:
    shared.reset("reach", 3)
    kept, dropped = shared.save(), shared.save()
    number = dropped.number
    del dropped
    gc.collect()
    shared.load(kept)
    with pytest.raises(InfrastructureError, match=f"there is no snapshot {number}"):
        shared._ask("load", snapshot=number)


def test_a_world_without_abilities_says_so() -> None:
    own = world("Mute")
    try:
        assert own.description.abilities == ()
        assert own.reset("reach", 0) == "wait"
        assert own.carry_out_rows(SOME).points.shape == (0, 3)
        assert own.state().point is None
        assert own.judged().progress is None
        calls: list[Callable[[], object]] = [
            own.save, lambda: own.load(None), lambda: own.expert(1), lambda: own.things("above"),
            lambda: own.look("above", depth=True),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InputError, match=r"has no ability '\w+', only: none"):
                call()
    finally:
        own.close()


CALLERS = {
    "unknown task": (lambda own: own.reset("reech", 0), "unknown task of world 'point' 'reech'; did you mean 'reach'"),
    "no such scene": (lambda own: own.reset("reach", 50), r"has the scenes 0\.\.49, got 50"),
    "unknown camera": (lambda own: own.look("below"), "unknown camera of world 'point' 'below'"),
    "three columns": (lambda own: own.carry_out_rows(np.zeros((1, 3))), r"\(n, 2\): x, y; got \(1, 3\)"),
    "a row alone": (lambda own: own.carry_out_rows(np.zeros(2)), r"got \(2,\)"),
    "texts": (lambda own: own.carry_out_rows([["a", "b"]]), "rows have the shape"),
    "NaN": (lambda own: own.carry_out_rows([[0, 0], [0, np.nan]]), "row 1 has nan in the column 'y'"),
    "no rows": (lambda own: own.expert(0), "0 were asked for"),
    "foreign snapshot": (lambda own: own.load(7), r"what its own save\(\) gave, got 7"),
}


@pytest.mark.parametrize(("call", "said"), [pytest.param(*case, id=name) for name, case in CALLERS.items()])
def test_a_mistake_of_the_caller_is_his_and_the_trial_goes_on(
    shared: HostedWorld, call: Callable[[HostedWorld], object], said: str
) -> None:
    shared.reset("reach", 3)
    with pytest.raises((InputError, UnknownNameError), match=said):
        call(shared)
    assert shared.carry_out_rows(SOME).rows == len(SOME)


FAULTS = {
    "gives NaN": r"gave nan in point\[1\] at row 3 of task reach, scene 3: only finite",
    "gives NaN in extra": r"gave nan in extra\['goal'\]\[1\] at row 5 of task reach, scene 3",
    "has no rotation": r"gave a matrix that is none \(off by 3\) at row 5 .*: base_from_tool is a rigid transform",
    "opens too far": r"gave gripper_open 1.5 at row 5 .*: gripper_open is a number 0\.\.1",
    "has no share": r"gave progress -5 at row 5 .*: progress is a number 0\.\.1",
    "has another key": "gave the key 'joints' at row 5 .*: a state has only base_from_tool, extra, gripper_open, ",
    "rests in three columns": r"gave the shape \(3,\) at row 5 .*: rest_row has the shape \(2\)",
    "has a small picture": r"gave uint8 \(32, 32, 3\) at row 5 .*: pictures of camera 'above' are uint8 \(64, 64, 3\)",
    "gives a reward": r"failed at carry_out: step\(\) gives None, or a text that ends the trial, and it gave 0.5 of",
    "succeeds by a share": r"failed at carry_out: success\(\) gives True or False, and it gave 0.3 of type float$",
    "has no state": r"failed at carry_out: state\(\) gives a dictionary, and it gave None$",
    "fails": rf"failed at carry_out: KeyError: 'joint 7' \({FILE}, line \d+\)$",
    "fails in a look": r"failed at look: ValueError: no context of graphics \(",
}


@pytest.mark.parametrize("trouble", FAULTS)
def test_what_is_wrong_with_a_world_is_one_sentence_and_the_process_goes_on(
    started: Callable[..., HostedWorld], trouble: str
) -> None:
    own = started(trouble=trouble)
    own.reset("reach", 3)
    pid = own.pid
    with pytest.raises(InfrastructureError, match=FAULTS[trouble]) as caught:
        own.carry_out_rows(SOME), own.look("above")
    sentence(caught)
    with pytest.raises(InfrastructureError, match="has no trial under way: reset begins one"):
        own.state()
    own.reset("reach", 3)
    assert own.carry_out_rows(SOME[:2]).rows == 2
    assert own.pid == pid


ENDS = {
    "is killed": "failed at carry_out: its process was ended by SIGKILL; it last wrote: memory is short$",
    "exits": "failed at carry_out: its process ended with exit status 1; it last wrote: bye$",
}


@pytest.mark.parametrize("trouble", ENDS)
def test_a_process_that_ends_in_a_request_says_how(started: Callable[..., HostedWorld], trouble: str) -> None:
    own = started(trouble=trouble)
    own.reset("reach", 3)
    pid = own.pid
    with pytest.raises(InfrastructureError, match=ENDS[trouble]) as caught:
        own.carry_out_rows(SOME)
    sentence(caught)
    own.reset("reach", 3)
    assert own.pid != pid
    assert own.carry_out_rows(SOME[:2]).rows == 2


@pytest.mark.parametrize("trouble", ["hangs", "hangs with the lock"])
def test_a_world_that_hangs_is_ended_at_the_deadline(started: Callable[..., HostedWorld], trouble: str) -> None:
    own = started(trouble=trouble)
    own.reset("reach", 3)
    pid = own.pid
    assert pid is not None
    own.deadline_s = 0.2
    with pytest.raises(InfrastructureError, match=r"it did not answer within 0\.2 s, and its process was ended") as got:
        own.carry_out_rows(SOME)
    sentence(got)
    assert is_gone(pid)
    own.deadline_s = LIMIT_S
    own.reset("reach", 3)
    assert own.carry_out_rows(SOME[:2]).rows == 2


def test_a_trial_that_a_kill_ended_is_repeated_with_the_same_bytes(started: Callable[..., HostedWorld]) -> None:
    own = started()
    undisturbed = trial(own)

    def kill() -> None:
        assert own.pid is not None
        os.kill(own.pid, signal.SIGKILL)

    with pytest.raises(InfrastructureError, match="its process was ended by SIGKILL") as caught:
        trial(own, between=kill)
    sentence(caught)
    assert own.pid is None
    assert trial(own) == undisturbed


def test_a_process_that_was_killed_between_two_trials_is_replaced(started: Callable[..., HostedWorld]) -> None:
    own = started()
    undisturbed, pid = trial(own), own.pid
    snapshot = own.save()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: own._link and not own._link.is_alive())  # its threads end after its first one
    assert trial(own) == undisturbed
    assert own.pid != pid
    with pytest.raises(InfrastructureError, match="the process of the snapshot has ended"):
        own.load(snapshot)


def test_another_version_is_named(shared: HostedWorld, started: Callable[..., HostedWorld]) -> None:
    own = HostedWorld(
        "point", Program(sys.executable, f"{FILE}:Point", {"version": "3.9.0", "scenes": 49}), shared.description
    )
    assert own.description == shared.description
    assert own.pid is None
    said = r"is not the one of before: point 1\.0 -> 3\.9\.0, tasks\.reach\.scenes 50 -> 49, tasks\.touch\.scenes 50 "
    for _ in range(2):
        with pytest.raises(InfrastructureError, match=said) as caught:
            own.reset("reach", 3)
        sentence(caught)
    assert own.pid is None


def test_the_same_version_is_taken(shared: HostedWorld) -> None:
    own = HostedWorld("point", Program(sys.executable, f"{FILE}:Point"), shared.description)
    try:
        assert trial(own) == trial(shared)
    finally:
        own.close()


PYTHON, POINT = sys.executable, f"{FILE}:Point"
BROKEN = {
    "no interpreter": (("/nowhere/python", POINT), {}, "start: cannot run '/nowhere/python': No such file"),
    "no Python": (("/bin/false", POINT), {}, "start: its process ended with exit status 1$"),
    "no file": ((PYTHON, "nowhere.py:Point"), {}, "start: there is no file 'nowhere.py'"),
    "no module": (
        (PYTHON, "nowhere.cells:Point"),
        {},
        "start: cannot import nowhere.cells:Point: there is no module 'nowhere'",
    ),
    "no class": ((PYTHON, f"{FILE}:Pont"), {}, "start: .*/point_world.py has no class 'Pont'"),
    "no name": ((PYTHON, FILE), {}, "start: name the world as FILE:CLASS"),
    "no setting": (
        (PYTHON, POINT),
        {"speed": 1},
        "start: cannot build .*TypeError: .*argument 'speed'",
    ),
    "no assets": (
        (PYTHON, POINT),
        {"trouble": "cannot be built"},
        "start: cannot build .*RuntimeError: the assets",
    ),
    "no world": (
        (PYTHON, "fractions:Fraction"),
        {},
        r"start: the class Fraction lacks describe\(\) and reset\(\) and look",
    ),
    "no dictionary": ((PYTHON, f"{FILE}:Vague"), {}, r"describe: describe\(\) gives a dictionary, and it gave None$"),
    "too able": ((PYTHON, f"{FILE}:Boastful"), {}, "describe: .*the ability 'fork', which takes save.. and load"),
}


@pytest.mark.parametrize(("words", "settings", "said"), [pytest.param(*case, id=name) for name, case in BROKEN.items()])
def test_a_world_that_cannot_be_started_says_why(words: tuple[str, str], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InfrastructureError, match=f"failed at {said}") as caught:
        HostedWorld("point", Program(*words, settings)).reset("reach", 3)
    sentence(caught)


def test_a_description_that_is_none_is_refused(started: Callable[..., HostedWorld]) -> None:
    own = started(version=1)
    with pytest.raises(InfrastructureError, match=r"^the description of world 'point'.*versions.point.*text"):
        own.reset("reach", 3)
    assert own.pid is None


@pytest.mark.parametrize(("name", "said"), [("Endless", "entry 1, max_rows: is missing"), ("Odd", "JSON values")])
def test_a_mistake_in_a_description_is_named(name: str, said: str) -> None:
    with pytest.raises(InfrastructureError, match=f"^the description of world 'point'.*{said}"):
        world(name).reset("reach", 3)


def test_a_world_may_print_as_it_likes(started: Callable[..., HostedWorld], shared: HostedWorld) -> None:
    assert trial(started(trouble="prints")) == trial(shared)


def test_closing_ends_the_process_and_a_later_reset_starts_another() -> None:
    own = world()
    own.close()
    own.reset("reach", 3)
    pid = own.pid
    assert pid is not None
    own.close()
    assert is_gone(pid)
    assert own.pid is None
    own.reset("reach", 3)
    own.close()


def test_a_world_that_nothing_refers_to_ends_its_process() -> None:
    own = world(trouble="hangs")
    own.reset("reach", 3)
    pid = own.pid
    assert pid is not None
    del own
    gc.collect()
    until(lambda: is_gone(pid))


PARENT = """
import sys
import numpy as np
from merton.worlds.client import HostedWorld
from merton.worlds.link import Program
world = HostedWorld("point", Program(sys.executable, sys.argv[1], {"trouble": sys.argv[2]}))
world.reset("reach", 3)
print(world.pid, flush=True)
world.carry_out_rows(np.zeros((5, 2)))
input()
"""


@pytest.mark.parametrize("trouble", ["", "hangs", "hangs with the lock"])
def test_a_host_ends_with_its_parent(trouble: str) -> None:
    command = [sys.executable, "-c", PARENT, f"{FILE}:Point", trouble]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
        parent.kill()
        until(lambda: is_gone(pid))


def frame(message: object) -> bytes:
    """A message as it travels."""
    header = json.dumps({"message": message, "arrays": []}).encode()
    return b"MWLD" + len(header).to_bytes(4, "big") + header


@contextmanager
def serving(token: str = "", listen: str = "127.0.0.1:0") -> Iterator[tuple[Address, subprocess.Popen[str]]]:
    """A host as somebody starts it on another machine."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {TOKEN: token}
    command = [sys.executable, str(HOST), f"{FILE}:Point", "--listen", listen]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), process.communicate()[1]
        yield Address("127.0.0.1", int(line.rpartition(":")[2]), token), process
    finally:
        process.kill()
        process.communicate()


def test_a_host_at_an_address_serves_one_client_after_another(shared: HostedWorld) -> None:
    with serving() as (address, process):
        for _ in range(2):
            own = HostedWorld("point", address)
            until(lambda own=own: is_served(own))
            assert trial(own) == trial(shared)
            assert own.pid is None
            own.close()
        assert process.poll() is None


def test_a_token_must_be_shown() -> None:
    with serving("secret") as (address, _):
        for token in ("", "other", "sécret", "\ud800"):
            with pytest.raises(InfrastructureError, match="failed at start: its token is another one") as caught:
                HostedWorld("point", Address(address.host, address.port, token)).reset("reach", 3)
            sentence(caught)
        own = HostedWorld("point", address)
        own.reset("reach", 3)
        own.close()
    assert "secret" not in repr(address)


def is_served(own: HostedWorld) -> bool:
    """Whether a world begins a trial; its host may not yet have seen that the client before has left."""
    try:
        return bool(own.reset("reach", 3))
    except InfrastructureError as error:
        if "it serves another client" not in str(error):
            raise
        return False


def test_a_second_client_is_turned_away_and_the_first_goes_on() -> None:
    with serving() as (address, _):
        first, second = HostedWorld("point", address), HostedWorld("point", address)
        first.reset("reach", 3)
        with pytest.raises(InfrastructureError, match="it serves another client"):
            second.reset("reach", 3)
        assert first.carry_out_rows(SOME).rows == len(SOME)
        first.close()
        until(lambda: is_served(second))
        second.close()


def test_clients_that_go_after_their_greeting_leave_the_world_free() -> None:
    with serving() as (address, _):
        for _ in range(20):
            with socket.create_connection((address.host, address.port)) as guest:
                Wire(guest).send({"version": VERSION, "token": ""})
        own = HostedWorld("point", address)
        until(lambda: is_served(own))
        own.close()


STRANGE = {
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "a header of 100 MB": b"MWLD\x06\x40\x00\x00" + b"{" * 100,
    "nothing": b"",
    "no greeting": frame([]),
    "no token": frame({"version": VERSION}),
}


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in STRANGE.items()])
def test_what_strangers_send_to_the_port_harms_nothing(sent: bytes) -> None:
    with serving("secret") as (address, _):
        own = HostedWorld("point", address)
        own.reset("reach", 3)
        for _ in range(20):
            with socket.create_connection((address.host, address.port)) as stranger:
                stranger.sendall(sent)
        silent = socket.create_connection((address.host, address.port))
        assert own.carry_out_rows(SOME).rows == len(SOME)
        own.close()
        until(lambda: is_served(own))
        own.close()
        silent.close()


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "127.0.0.1", "127.0.0.1:99999", "nowhere.invalid:0"])
def test_an_address_that_is_open_to_all_or_none_is_refused(listen: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != TOKEN}
    command = [sys.executable, str(HOST), f"{FILE}:Point", "--listen", listen]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("host: ")
    assert done.stderr.count("\n") == 1
    if listen.startswith("0.0.0.0"):
        assert done.stderr == f"host: 0.0.0.0 is reached by other machines: set {TOKEN}, which clients must then show\n"


OTHERS = {
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it broke the protocol: what came is no frame"),
    "a header of 100 MB": (b"MWLD\x06\x40\x00\x00", "it broke the protocol: a header of 104857600 bytes came"),
    "an end": (b"", "the connection was closed"),
}


@pytest.mark.parametrize(("sent", "said"), [pytest.param(*case, id=name) for name, case in OTHERS.items()])
@pytest.mark.parametrize("greets", [False, True])
def test_a_server_that_is_no_host_is_named(sent: bytes, said: str, greets: bool) -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            wire = Wire(connection)
            wire.receive(LIMIT_S)
            if greets:
                wire.send({"ok": {"version": VERSION}})
                wire.receive(LIMIT_S)
            connection.sendall(sent)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        with pytest.raises(InfrastructureError, match=said) as caught:
            HostedWorld("point", Address(*listening.getsockname())).reset("reach", 3)
        thread.join(LIMIT_S)
    assert ("failed at describe" if greets else "failed at start") in sentence(caught)


def test_an_address_where_nothing_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address(*listening.getsockname())
    with pytest.raises(InfrastructureError, match=f"nothing answers at 127.0.0.1:{address.port}: ") as caught:
        HostedWorld("point", address).reset("reach", 3)
    sentence(caught)
