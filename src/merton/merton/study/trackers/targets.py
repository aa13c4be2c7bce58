"""Where a run is logged to, as a command line names it: wandb:PROJECT, mlflow:URI or tensorboard:FOLDER."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from merton.errors import InfrastructureError, InputError, MertonError, UnknownNameError, reason_of
from merton.study.trackers import in_mlflow, in_tensorboard, in_wandb
from merton.study.trackers.content import Content

Logger = Callable[[Content, str], str]
"""Logs a run to a place of a tracker, and gives a sentence about what it did."""

_TRACKERS: Mapping[str, tuple[str, Logger]] = {
    "wandb": ("PROJECT or ENTITY/PROJECT", in_wandb.log),
    "mlflow": ("URI, such as sqlite:///mlflow.db or http://127.0.0.1:5000", in_mlflow.log),
    "tensorboard": ("FOLDER", in_tensorboard.log),
}


@dataclass(frozen=True)
class Target:
    """A tracker, which is also the name of its extra, and the place there."""

    tracker: str
    where: str

    def __str__(self) -> str:
        return f"{self.tracker}:{self.where}"


def target(text: str) -> Target:
    """The target that a text names; raises InputError with the choices for one that names none."""
    tracker, _, where = text.partition(":")
    if tracker not in _TRACKERS:
        raise UnknownNameError("tracker", tracker, [*_TRACKERS])
    if not where.strip():
        raise InputError(f"{text!r} names no place: write {tracker}:{_TRACKERS[tracker][0]}")
    return Target(tracker, where)


def log(run: Content, targets: Sequence[Target], say: Callable[[str], None]) -> None:
    """Log a run to each target; one that fails stops no other.

    Args:
        say: is called with a sentence for each target that has the run now.

    Raises:
        InfrastructureError: some failed: one sentence, with the reason of each. The run's own files stay as they are.
        InputError: as before, and the first that failed does so by the user's mistake.
    """
    failed: list[tuple[Target, Exception]] = []
    for one in targets:
        try:
            say(_TRACKERS[one.tracker][1](run, one.where))
        except Exception as error:  # a client's own types are many, and none of them may end the others
            failed.append((one, error))
    if failed:
        kind = InputError if isinstance(failed[0][1], InputError) else InfrastructureError
        reasons = "; ".join(f"{one}: {_reason(error)}" for one, error in failed)
        raise kind(f"{run.run} is not logged to {reasons} (its report and record are written: log it again)")


def _reason(error: Exception) -> str:
    """A client's error without the place in its code, which says nothing to its user."""
    if isinstance(error, MertonError):
        return reason_of(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__
