"""Laws of pools and of the order of results, with workers that are threads; real ones are in test_workers."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from itertools import count
from types import SimpleNamespace

import pytest

from merton import pool as pools
from merton.errors import InfrastructureError, InputError
from merton.pool import ATTEMPTS, Pool, batches, open_pool, results
from patience import until
from thread_engine import Died, ThreadEngine, ThreadWorker


class Dying:
    """Work that ends its worker the first `times[n]` times that it is done on n."""

    def __init__(self, **times: int) -> None:
        self.times, self.done = {int(name[1:]): often for name, often in times.items()}, Counter[int]()
        self._lock = threading.Lock()

    def __call__(self, number: int) -> int:
        with self._lock:
            self.done[number] += 1
        if self.done[number] <= self.times.get(number, 0):
            raise Died
        return number * number


def jobs(many: int) -> list[tuple[int]]:
    return [(number,) for number in range(many)]


@pytest.mark.parametrize("size", [1, 3])
def test_results_come_in_order_and_once_although_workers_die(size: int) -> None:
    engine, work, said = ThreadEngine(), Dying(n0=1, n5=2, n19=1), []
    with open_pool(size, engine, said.append) as pool:
        assert list(results(pool, work, jobs(20), 8)) == [number**2 for number in range(20)]
    assert work.done == {**dict.fromkeys(range(20), 1), 0: 2, 5: 3, 19: 2}
    assert engine.hired == size + 4
    assert (engine.ended, engine.closed) == (engine.hired, True)
    assert len(said) == 4
    assert "a piece of work: its worker died; trying again with a new one (2 of 2)" in said


def test_work_that_ends_every_worker_ends_the_run_after_the_results_before_it() -> None:
    work = Dying(n3=ATTEMPTS)
    with open_pool(2, ThreadEngine()) as pool:
        found = results(pool, work, jobs(9), 4)
        assert [next(found) for _ in range(3)] == [0, 1, 4]
        with pytest.raises(InfrastructureError, match="each of 3 workers died of it"):
            next(found)
    assert work.done[3] == ATTEMPTS


def test_errors_of_the_work_are_its_own() -> None:
    with open_pool(1, ThreadEngine()) as pool, pytest.raises(ZeroDivisionError):
        list(results(pool, lambda number: 1 // number, [(1,), (0,)]))


def test_workers_that_cannot_start_are_an_error_and_not_a_wait() -> None:
    with (
        open_pool(1, ThreadEngine(stillborn=9)) as pool,
        pytest.raises(InfrastructureError, match="they started: no room"),
    ):
        list(results(pool, Dying(), jobs(3)))
    engine = ThreadEngine(stillborn=2)
    with open_pool(1, engine) as pool:
        assert list(results(pool, Dying(), jobs(3))) == [0, 1, 4]
    assert engine.hired == 3


def test_an_engine_that_fails_is_an_error_and_not_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ThreadEngine()
    hires = [engine.hire, lambda: 1 // 0]
    monkeypatch.setattr(engine, "hire", lambda: hires.pop(0)())
    with open_pool(1, engine) as pool:
        found = results(pool, Dying(n1=1), jobs(3))
        assert next(found) == 0
        with pytest.raises(ZeroDivisionError):
            next(found)
    monkeypatch.setattr(ThreadWorker, "submit", lambda self, work, *arguments: 1 // 0)
    with open_pool(1, ThreadEngine()) as pool, pytest.raises(ZeroDivisionError):
        list(results(pool, Dying(), jobs(1)))


def test_a_worker_with_another_merton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "host", lambda: pools.Host(7, "there", "0.0.1"))
    with (
        open_pool(1, ThreadEngine()) as pool,
        pytest.raises(InputError, match=r"on there have Merton 0\.0\.1 and"),
    ):
        list(results(pool, Dying(), jobs(1)))


def test_a_slow_record_holds_the_workers_up() -> None:
    """At most `ahead` results are under way or waiting, however slowly they are taken."""
    work, dealt = Dying(), count(1)
    with open_pool(2, ThreadEngine()) as pool:
        found = results(pool, work, ((next(dealt) - 1,) for _ in count()), 6)
        for taken in range(1, 30):
            assert next(found) == (taken - 1) ** 2
            until(
                lambda done=taken + 5: len(work.done) == done
            )  # all that was dealt is done: the record is the slow one
        assert next(dealt) == 29 + 6


class ByHand:
    """An executor whose work is done when the test says so, but that of number 0."""

    def __init__(self) -> None:
        self.futures: list[Future[int]] = []

    def submit(self, work: object, number: int) -> Future[int]:
        self.futures.append(Future())
        if number == 0:
            self.finish(0)
        return self.futures[-1]

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.futures[number].set_result(number)


def test_what_came_while_a_batch_was_written_is_the_next_one() -> None:
    hand = ByHand()
    found = batches(hand, print, jobs(7), ahead=5, most=3)
    assert next(found) == [0]
    hand.finish(1, 2, 4)
    assert next(found) == [1, 2], "in order, so 4 waits for 3"
    assert len(hand.futures) == 6
    hand.finish(3, 5)
    assert next(found) == [3, 4, 5], "three at most"
    hand.finish(6)
    assert list(found) == [[6]]


def test_interrupted_work_is_not_begun() -> None:
    """The block is left, as by Ctrl-C, while one piece is under way and others wait."""
    begun, go_on = [], threading.Event()

    def wait(number: int) -> None:
        begun.append(number)
        go_on.wait(60)

    engine = ThreadEngine()
    with open_pool(1, engine) as pool:
        waiting = [pool.submit(wait, number) for number in range(3)]
        until(lambda: begun == [0])
    go_on.set()
    assert begun == [0]
    assert engine.closed
    assert [future.cancelled() for future in waiting] == [False, True, True]
    with pytest.raises(InfrastructureError, match="the workers were ended"):
        waiting[0].result()


def test_a_pool_that_was_shut_down_takes_no_work() -> None:
    engine = ThreadEngine()
    with open_pool(1, engine) as pool:
        assert pool.submit(abs, -3).result() == 3
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shut down takes no more work"):
        pool.submit(abs, -3)
    assert engine.hired == engine.ended == 1


def test_a_pool_has_a_worker() -> None:
    with pytest.raises(InputError, match="at least one worker is needed, got 0"):
        Pool(ThreadEngine(), 0)


def test_workers_are_hired_with_the_first_piece_of_work() -> None:
    engine = ThreadEngine()
    with open_pool(2, engine) as pool:
        pass
    assert (engine.hired, engine.closed) == (0, True)
    with open_pool(2, engine := ThreadEngine()) as pool:
        assert pool.submit(abs, -3).result() == 3
        until(lambda: engine.hired == 2)


def test_a_fault_names_the_piece_of_work() -> None:
    said: list[str] = []
    work, named = Dying(n0=1), SimpleNamespace(id="servo.reach.0")
    with open_pool(1, ThreadEngine(), said.append) as pool:
        assert pool.submit(lambda number, _: work(number), 0, named).result() == 0
    assert said == ["servo.reach.0: its worker died; trying again with a new one (1 of 2)"]
