"""The last line of a red run: the command that repeats what failed, and nothing else."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tiers import plain_id

MOST = 3
"""More failed tests than this are named in a file."""
FILE = Path("build", "failed.txt")
PYTEST = ".venv/bin/pytest"


def command(failed: list[str], folder: Path) -> str:
    """The command, run in the checkout `folder`, that repeats these tests alone."""
    if len(failed) <= MOST:
        return shlex.join([PYTEST, *failed])
    (folder / FILE).parent.mkdir(exist_ok=True)
    (folder / FILE).write_text("".join(f"{test}\n" for test in failed), encoding="utf-8")
    return f"{PYTEST} @{FILE}"


class Repetition:
    """Collects what fails; prints after all else."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker, self._folder = hasattr(config, "workerinput"), config.rootpath
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self._failed[plain_id(report.nodeid)] = None

    pytest_collectreport = pytest_runtest_logreport

    def pytest_unconfigure(self) -> None:
        if self._failed and not self._is_worker:
            print(f"repeat with: {command(list(self._failed), self._folder)}")
