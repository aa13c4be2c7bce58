"""An engine for tests of pools: workers are threads, which die when their work raises `Died`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


class Died(BaseException):
    """The end of a worker."""


@dataclass(frozen=True)
class Held:
    value: Any

    def get(self) -> Any:
        return self.value


class ThreadEngine:
    """See `merton.pool.Engine`; `hired` counts its workers, `stillborn` of them die as they start."""

    def __init__(self, stillborn: int = 0) -> None:
        self.hired = self.ended = 0
        self.closed, self.stillborn = False, stillborn

    def hire(self) -> ThreadWorker:
        self.hired += 1
        return ThreadWorker(self, self.hired <= self.stillborn)

    def share(self, value: object) -> Held:
        return Held(value)

    def close(self) -> None:
        assert self.ended == self.hired, "closed before its workers"
        self.closed = True


class ThreadWorker:
    lost: tuple[type[BaseException], ...] = (Died,)

    def __init__(self, engine: ThreadEngine, stillborn: bool) -> None:
        self._engine, self._stillborn = engine, stillborn
        self._thread = ThreadPoolExecutor(1)

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        if self._stillborn:
            raise Died("no room")
        return self._thread.submit(work, *arguments)

    def end(self) -> None:
        self._engine.ended += 1
        self._thread.shutdown(wait=False)
