"""Runs tests again and again on a busy machine, to learn how often they fail.

    make flaky TEST=tests/nodes/test_faults.py::test_name N=20
    python tools/test/flaky.py 20 tests/nodes/test_faults.py::test_name

One busy loop a core runs beside them. The output of a failed run is in build/flaky/N.log; the exit code is then 1.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOGS = Path("build", "flaky")


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_cores() -> Iterator[None]:
    """A process on each core that does nothing else than use it."""
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.join()


def passes(tests: list[str], log: Path) -> bool:
    """Whether the tests pass, in a process of their own; a log is kept of a run that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *tests], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        log.write_bytes(done.stdout)
    return done.returncode == 0


def main() -> None:
    """Run the tests that many times, and say how often they failed."""
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal() or int(sys.argv[1]) < 1:
        sys.exit("flaky: name a number of runs and a test: make flaky TEST=tests/unit/web/test_web.py N=20")
    number, tests = int(sys.argv[1]), sys.argv[2:]
    LOGS.mkdir(parents=True, exist_ok=True)
    for log in LOGS.glob("*.log"):
        log.unlink()
    failed, began_s = 0, time.monotonic()
    with busy_cores():
        for run in range(1, number + 1):
            failed += not passes(tests, LOGS / f"{run}.log")
            left_s = (time.monotonic() - began_s) / run * (number - run)
            print(f"{run} of {number}: {failed} failed, about {left_s:.0f} s left", flush=True)
    if failed:
        sys.exit(f"flaky: {failed} of {number} runs failed; their output is in {LOGS}")
    print(f"all {number} runs passed")


if __name__ == "__main__":
    main()
