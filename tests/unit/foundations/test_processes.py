"""Jobs carried out by processes; a driver process that is supervised: what is passed on, and when it is replaced."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from merton import processes
from merton.errors import InfrastructureError, InputError, MertonError
from merton.processes import SupervisedDriver, carried_out, resumable_work
from patience import LIMIT_S, stretched, until

pytestmark = pytest.mark.timeout(120)


def echo(greeting: str, link: Connection) -> None:
    """A driver: greets, then sends back each message; an integer is its exit status."""
    link.send(greeting)
    try:
        while not isinstance(message := link.recv(), int):
            link.send(message)
        os._exit(message)
    except EOFError:
        pass


class Bench:
    """A supervised driver, with the messages and ends of its processes."""

    def __init__(self, child_main: Callable[..., None] = echo, greeting: str = "hello") -> None:
        self.messages: list[Any] = []
        self.ends: list[MertonError | None] = []
        self.silence_s = LIMIT_S
        self.changed = threading.Condition()
        self.driver = SupervisedDriver(
            "driver", child_main, (greeting,), LIMIT_S, "it is silent", self.on_message, self.on_end
        )

    def on_message(self, message: Any) -> float | MertonError:
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
        return InputError("no such device") if message == "refused" else self.silence_s

    def on_end(self, error: MertonError | None) -> float:
        with self.changed:
            self.ends.append(error)
            self.changed.notify_all()
        return 0.01

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, stretched(LIMIT_S))


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    bench.driver.start()
    bench.wait_for(lambda: bench.messages == ["hello"])
    yield bench
    bench.driver.close()


def test_messages_go_both_ways_until_the_driver_is_closed(bench: Bench) -> None:
    bench.driver.send({"a": 1})
    bench.wait_for(lambda: bench.messages == ["hello", {"a": 1}])
    bench.driver.close()
    assert bench.ends == [None]
    with pytest.raises(InfrastructureError, match="the driver process ended"):
        bench.driver.send("nothing")


def test_a_process_that_died_is_replaced(bench: Bench) -> None:
    first = bench.driver.pid
    bench.driver.send(3)
    bench.wait_for(lambda: bench.messages == ["hello", "hello"])
    assert bench.driver.pid not in (None, first)
    assert [str(error) for error in bench.ends] == ["the driver process ended"]


def test_a_silent_process_is_replaced(bench: Bench) -> None:
    bench.silence_s = 0.2
    bench.driver.send("the last for long")
    bench.wait_for(lambda: bench.messages[2:3] == ["hello"])
    assert str(bench.ends[0]) == "it is silent"


def deaf(greeting: str, link: Connection) -> None:
    """A driver that hangs: it greets and reads nothing."""
    link.send(greeting)
    threading.Event().wait()


def send_for_ever(driver: SupervisedDriver) -> None:
    while True:
        driver.send("beat", wait=False)


def test_a_process_that_reads_nothing_blocks_no_sender_and_is_replaced() -> None:
    """Seen with the UR client, which may hang in C++ after a lost connection: heartbeats had filled the pipe."""
    bench = Bench(deaf)
    bench.silence_s = 1.0
    bench.driver.start()
    bench.wait_for(lambda: bench.messages == ["hello"])
    with pytest.raises(InfrastructureError, match="the driver process hangs"):
        send_for_ever(bench.driver)
    bench.wait_for(lambda: bench.messages == ["hello", "hello"])
    assert str(bench.ends[0]) == "it is silent"
    bench.driver.close()


def slow(greeting: str, link: Connection) -> None:
    """A driver that reads nothing until a file is there, whose name is the greeting, then echoes."""
    link.send("hello")
    while not Path(greeting).exists():
        time.sleep(0.01)
    echo("at work", link)


def test_messages_that_do_not_wait_leave_room_for_others(tmp_path: Path) -> None:
    bench = Bench(slow, str(tmp_path / "go"))
    bench.driver.start()
    bench.wait_for(lambda: bench.messages == ["hello"])
    with pytest.raises(InfrastructureError, match="the driver process hangs"):
        send_for_ever(bench.driver)
    bench.driver.send("stop")
    (tmp_path / "go").touch()
    bench.wait_for(lambda: bench.messages[-1] == "stop")
    assert set(bench.messages[2:-1]) == {"beat"}
    bench.driver.close()
    assert bench.ends == [None]


def brake_at_the_end(file: str, link: Connection) -> None:
    """A driver that has something left to do when its pipe ends."""
    link.send("hello")
    with pytest.raises(EOFError):
        link.recv()
    Path(file).touch()


def test_a_process_learns_by_the_end_of_its_pipe_that_it_is_closed(tmp_path: Path) -> None:
    bench = Bench(brake_at_the_end, str(tmp_path / "braked"))
    bench.driver.start()
    bench.wait_for(lambda: bench.messages == ["hello"])
    bench.driver.close()
    assert (tmp_path / "braked").exists()


def test_a_long_message_to_a_process_that_reads_nothing_ends_with_it() -> None:
    bench = Bench(deaf)
    bench.silence_s = 1.0
    bench.driver.start()
    bench.wait_for(lambda: bench.messages == ["hello"])
    with pytest.raises(InfrastructureError, match="the driver process ended"):
        bench.driver.send(bytes(8 << 20))
    bench.driver.close()


def test_an_error_that_the_process_reports_is_passed_on(bench: Bench) -> None:
    bench.driver.send("refused")
    bench.wait_for(lambda: len(bench.ends) == 1)
    assert isinstance(bench.ends[0], InputError)


def test_a_process_may_end_by_itself_when_it_is_closed(bench: Bench) -> None:
    began_s = time.monotonic()
    bench.driver.send(0)
    bench.driver.close(LIMIT_S)
    assert time.monotonic() - began_s < stretched(LIMIT_S / 2)
    assert bench.ends == [None]


@pytest.mark.parametrize(("handler", "ends"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_the_end_of_the_terminal_ends_a_process_unless_nohup_started_it(handler: signal.Handlers, ends: bool) -> None:
    code = "import signal; from merton.processes import ENDING; print(signal.SIGHUP in ENDING)"
    before = signal.signal(signal.SIGHUP, handler)
    try:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended.stdout.strip() == str(ends)


# Jobs -----------------------------------------------------------------------------------------------------------------


def pid_and_threads(number: int) -> tuple[int, int, str | None]:
    return number, os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_is_carried_out_once(count: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker, or one job, is this process; others compute in one thread, and this one is left as it was."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    jobs = [(3 * number,) for number in range(count)]
    results = dict(carried_out(pid_and_threads, jobs, workers))
    assert {index: number for index, (number, _, _) in results.items()} == {n: 3 * n for n in range(count)}
    processes = {pid for _, pid, _ in results.values()}
    if min(count, workers) == 1:
        assert processes == {os.getpid()}
    else:
        assert os.getpid() not in processes
        assert len(processes) <= workers
        assert {threads for _, _, threads in results.values()} <= {"1"}
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_without_a_number_there_are_as_many_processes_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5})
    monkeypatch.setattr(processes, "worker_pool", lambda count: started.append(count) or ThreadPoolExecutor(count))
    monkeypatch.setattr(processes, "stop_workers", ThreadPoolExecutor.shutdown)
    for count in (2, 9):
        assert sorted(index for index, _ in carried_out(abs, [(n,) for n in range(count)])) == list(range(count))
    assert started == [2, 3]
    with pytest.raises(InputError, match="at least one worker is needed, got 0"):
        next(carried_out(abs, [(1,)], 0))


def fail_or_wait(number: int, pipe: str) -> None:
    """Job 0 tells that it has begun and waits for its end; job 1 fails after that."""
    if number == 0:
        Path(pipe).write_text(str(os.getpid()))
        signal.pause()
    Path(pipe).read_text()
    raise ZeroDivisionError


def test_an_error_ends_the_work_of_the_others_at_once(tmp_path: Path) -> None:
    os.mkfifo(pipe := str(tmp_path / "pipe"))
    with pytest.raises(ZeroDivisionError):
        list(carried_out(fail_or_wait, [(0, pipe), (1, pipe)], 2))


def kill_itself(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_one_sentence() -> None:
    with pytest.raises(InfrastructureError, match=r"a process was killed, .*memory.*: run the same command again"):
        list(carried_out(kill_itself, [(number,) for number in range(6)], 2))


def mark_when_told(folder: str) -> None:
    until((Path(folder) / "go").exists)


def test_progress_within_a_job_is_asked_for_while_workers_are_busy(tmp_path: Path) -> None:
    """No job ends before it was."""
    list(carried_out(mark_when_told, [(str(tmp_path),)] * 2, 2, (tmp_path / "go").touch))


def test_a_full_disk_is_one_sentence_and_two_do_not_work_in_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(InfrastructureError, match=r"cannot write into .*out': No space left on device; .* goes on"),
        resumable_work(out, "merton test"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    with (
        resumable_work(out, "merton test"),
        pytest.raises(InputError, match="another merton test is at work"),
        resumable_work(out, "merton test"),
    ):
        pass
