"""Time of the tests: by file, by kind of test, and by what a test was doing.

    make test-times

runs the whole suite with this file as a plugin of pytest, which writes a line for each phase of each test into
build/test_times; then

    python tools/test/suite_times.py build/test_times

prints the tables and renews tests/times.json, the record from which the suite takes its order (long ones first) and the
marker `slow`. All figures are seconds.

    wall      from the beginning to the end of setup, call and teardown
    own, children  processor time of the test's process, and of the processes that it started and waited for
    import, compile  inside `import` statements, inside numba's compiler
    process   waiting for a process that the test started
    wait      asleep in the main thread: neither running nor queued for a core
    queue     ready to run, while other processes had the cores
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from importlib import _bootstrap  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from tiers import WIDE, function_of, kind_of, plain_id

FOLDER = Path(os.environ.get("MERTON_TEST_TIMES", "build/test_times"))
RECORD = Path(__file__).parents[2] / "tests" / "times.json"
SHORTEST_S = 0.2
"""A function of tests, or a fixture, that takes less is not recorded [s]."""
FIGURES = ("wall", "own", "children", "import", "compile", "process", "wait", "queue")
dumps = json.dumps  # a test may have replaced it when its end is written


class Clock:
    """The time that the main thread spends inside the calls that it wraps [s]; calls inside each other count once."""

    def __init__(self) -> None:
        self.seconds, self._inside = 0.0, False

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self._inside or threading.current_thread() is not threading.main_thread():
                return call(*args, **kwargs)
            self._inside, started_s = True, time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self._inside, self.seconds = False, self.seconds + time.perf_counter() - started_s

        return wrapper


class Measurement:
    """All clocks of one process of tests, and the file that it writes."""

    def __init__(self, file: Path) -> None:
        self.imports, self.compiles, self.processes = Clock(), Clock(), Clock()
        _bootstrap._find_and_load = self.imports.timed(_bootstrap._find_and_load)
        for name in ("wait", "communicate"):
            setattr(subprocess.Popen, name, self.processes.timed(getattr(subprocess.Popen, name)))
        self._numba_is_heard = False
        self._lines = file.open("w", buffering=1, encoding="utf-8")
        # held open: a test may have replaced what opens and reads files when its end is measured
        self._main_thread = open(f"/proc/self/task/{threading.get_native_id()}/schedstat", encoding="ascii")  # noqa: SIM115

    def now(self) -> dict[str, float]:
        """The state of all clocks; `main` is processor time of the main thread."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._main_thread.seek(0)
        own = self._main_thread.read().split()
        return {
            "wall": time.perf_counter(),
            "own": time.process_time(),
            "children": children.ru_utime + children.ru_stime,
            "import": self.imports.seconds,
            "compile": self.compiles.seconds,
            "process": self.processes.seconds,
            "main": int(own[0]) * 1e-9,
            "queue": int(own[1]) * 1e-9,
        }

    def passed(self, before: Mapping[str, float]) -> dict[str, float]:
        """Times since `before`, by FIGURES [s]."""
        after = self.now()
        spent = {name: after[name] - before[name] for name in after}
        spent["wait"] = max(0.0, spent["wall"] - spent.pop("main") - spent["queue"])
        return {name: round(spent[name], 4) for name in FIGURES}

    def write(self, test: str, phase: str, figures: Mapping[str, float], **more: Any) -> None:
        self._lines.write(dumps({"test": test, "phase": phase, **figures, **more}) + "\n")

    def hear_numba(self) -> None:
        """Times numba's compiler, once it is loaded."""
        if self._numba_is_heard or "numba.core.event" not in sys.modules:
            return
        from numba.core import event

        clock = self.compiles

        class Compiles(event.Listener):
            depth, started_s = 0, 0.0

            def on_start(self, _: Any) -> None:
                if self.depth == 0:
                    self.started_s = time.perf_counter()
                self.depth += 1

            def on_end(self, _: Any) -> None:
                self.depth -= 1
                if self.depth == 0:
                    clock.seconds += time.perf_counter() - self.started_s

        event.register("numba:compile", Compiles())
        self._numba_is_heard = True


class Plugin:
    """Measures each phase of each test, and each fixture that is made for more than one test."""

    def __init__(self, config: pytest.Config) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.worker = getattr(config, "workerinput", {}).get("workerid", "main")
        self.measurement = Measurement(FOLDER / f"{self.worker}.jsonl")
        self.began = self.measurement.now()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.measurement.write("collection", "collection", self.measurement.passed(self.began))

    def _phase(self, item: pytest.Item, phase: str) -> Generator[None, Any, Any]:
        self.measurement.hear_numba()
        before = self.measurement.now()
        try:
            return (yield)
        finally:
            self.measurement.hear_numba()
            figures = self.measurement.passed(before)
            self.measurement.write(plain_id(item.nodeid), phase, figures, kind=kind_of(item), worker=self.worker)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "teardown"))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        before = self.measurement.now()
        try:
            return (yield)
        finally:
            if fixturedef.scope in WIDE:
                name = f"{fixturedef.baseid}::{fixturedef.argname}"
                self.measurement.write(name, "fixture", self.measurement.passed(before), worker=self.worker)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Plugin(config))


def rows(folder: Path) -> list[dict[str, Any]]:
    """All lines of a measured run."""
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.open(encoding="utf-8")]


def table(lines: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str], limit: int | None = None) -> str:
    """Sums of the figures by a key, the longest first."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        sums[key(line)].update({name: line[name] for name in FIGURES})
        sums[key(line)]["tests"] += line["phase"] == "call"
    order = sorted(sums.items(), key=lambda row: -row[1]["wall"])[:limit]
    width = max(len(name) for name, _ in order)
    head = f"{'':{width}}" + "".join(f"{name:>9}" for name in ("tests", *FIGURES))
    return "\n".join(
        [head]
        + [
            f"{name:{width}}{figures['tests']:9}" + "".join(f"{figures[one]:9.1f}" for one in FIGURES)
            for name, figures in order
        ]
    )


def record(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of each function of tests (all its cases, without shared fixtures) and of each shared fixture.

    Time in the queue for a core is the machine's, and does not count.
    """
    lines = list(lines)
    inside: Counter[str] = Counter()  # of shared fixtures made in the setup of a test
    sums: Counter[str] = Counter()
    made: Counter[str] = Counter()
    for line in lines:
        seconds = line["wall"] - line["queue"]
        if line["phase"] == "fixture":
            inside[line["worker"]] += seconds
            sums[line["test"]] += seconds
            made[line["test"]] += 1
        elif line["phase"] != "collection":
            shared, inside[line["worker"]] = inside[line["worker"]], 0.0
            sums[function_of(line["test"])] += max(0.0, seconds - shared)
    means = {name: seconds / max(1, made[name]) for name, seconds in sums.items()}
    return {name: round(seconds, 1) for name, seconds in sorted(means.items()) if seconds >= SHORTEST_S}


def main() -> None:
    """Print the tables, and renew the record."""
    folder = Path(sys.argv[1])
    lines = rows(folder)
    tests = [line for line in lines if line["phase"] != "fixture"]
    print(table(tests, lambda line: "all"))
    print(table(tests, lambda line: line.get("kind", "collection")))
    print(table(tests, lambda line: function_of(line["test"]).partition("::")[0]))
    print(table([line for line in tests if line["phase"] != "collection"], lambda line: function_of(line["test"]), 50))
    RECORD.write_text(json.dumps(record(lines), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
