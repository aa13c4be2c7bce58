"""The work of a pool in the test's own process, where it can be looked at and its functions replaced."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType

import pytest


def in_this_process(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """A module that hands work to `merton.pool` by `open_pool` and `results` does it itself, a piece after another."""
    monkeypatch.setattr(module, "open_pool", lambda: nullcontext(None))
    monkeypatch.setattr(module, "results", lambda pool, work, jobs: (work(*job) for job in jobs))
