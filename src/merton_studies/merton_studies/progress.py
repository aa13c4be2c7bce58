"""How long work shows its progress: step by step, each with a name and a pace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Moved = Callable[[int, int], None]
"""Called with (done, total), in a unit of the step."""
Step = Callable[[str], AbstractContextManager[Moved]]
"""Name of a step to a context that shows it, such as `merton.cli.console.progress`."""


@contextmanager
def quiet(_: str) -> Iterator[Moved]:
    """A step that shows nothing."""
    yield lambda done, total: None


def about(step: Step, subject: str) -> Step:
    """The same steps, which name their subject too."""
    return lambda name: step(f"{name}, {subject}")
