"""Progress of long work: functions that it calls as it goes on, and steps, each with a name and a pace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

OnProgress = Callable[[int, int], None]
"""Called with (done, total), in a unit of the work."""
OnStep = Callable[[str], None]
"""Called with the name of the step that begins."""
Step = Callable[[str], AbstractContextManager[OnProgress]]
"""Name of a step to a context that shows it, such as `merton.cli.console.progress`."""
Stage = Callable[[str], AbstractContextManager[OnStep]]
"""Name of a part of long work to a context that shows it and the steps in it."""


def unseen(done: int, total: int) -> None:
    """Progress that is shown nowhere."""


@contextmanager
def quiet(_: str) -> Iterator[OnProgress]:
    """A step that shows nothing."""
    yield unseen


def about(step: Step, subject: str) -> Step:
    """The same steps, which name their subject too."""
    return lambda name: step(f"{name}, {subject}")


@contextmanager
def silent(_: str) -> Iterator[OnStep]:
    """A stage that shows nothing."""
    yield lambda step: None
