"""The progress of an experiment, and the time that the rest of it will take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from merton.experiment.plan import Trial


class State(IntEnum):
    """The states of an experiment."""

    IDLE = 0
    RUNNING = 1
    FINISHED = 2
    CANCELLED = 3
    FAILED = 4


class TimeLeft:
    """Estimates the time that the trials still to be run take.

    Ours: an agent's next trial takes the mean of its trials so far, because models differ most in speed; that of an
    agent without any takes the mean of all trials.

    Args:
        left: trials still to be run, by the id of their agent.
    """

    def __init__(self, left: Mapping[str, int]) -> None:
        self._left = dict(left)
        self._took_s: dict[str, list[float]] = {}

    def ended(self, agent: str, took_s: float) -> None:
        """One trial of an agent has ended, after `took_s` [s]."""
        self._left[agent] = self._left.get(agent, 0) - 1
        self._took_s.setdefault(agent, []).append(took_s)

    @property
    def seconds(self) -> float:
        """The estimate [s], from the beginning of the trial under way; NaN before any trial has ended."""
        all_s = [took_s for own in self._took_s.values() for took_s in own]
        if not all_s:
            return math.nan
        return sum(count * _mean(self._took_s.get(agent, all_s)) for agent, count in self._left.items() if count > 0)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True)
class Progress:
    """The progress of an experiment.

    Attributes:
        run, experiment: id of the run and name of the experiment; empty while idle.
        completed, total: trials, with those of earlier processes.
        trial: the one under way, or the last one.
        stage: of that trial, as `merton.experiment.trial.run_trial` names it, or in words.
        step: chunks carried out in that trial.
        next_trial: id of the trial after it; empty if there is none or it is not known.
        elapsed_s: wall time since the beginning [s].
        remaining_s: estimated wall time until the end [s]; NaN if not known.
        error: one sentence if it failed, else empty.
    """

    state: State = State.IDLE
    run: str = ""
    experiment: str = ""
    completed: int = 0
    total: int = 0
    trial: Trial | None = None
    stage: str = ""
    step: int = 0
    next_trial: str = ""
    elapsed_s: float = 0.0
    remaining_s: float = math.nan
    error: str = ""


@dataclass
class Tracker:
    """Follows an experiment and shows its progress after each change.

    Attributes:
        show: called with the progress: at the beginning, at each trial's, at each stage, and at the end.
        clock: the time [s].
    """

    show: Callable[[Progress], None]
    clock: Callable[[], float] = time.monotonic
    _now: Progress = field(default_factory=Progress)
    _time_left: TimeLeft = field(default_factory=lambda: TimeLeft({}))
    _started_s: float = 0.0
    _trial_started_s: float = 0.0
    _chunks: int = 0

    def begin(self, run: str, experiment: str, total: int, left: Mapping[str, int]) -> None:
        """An experiment begins.

        Args:
            total: trials, with those of earlier processes.
            left: trials still to be run, by the id of their agent.
        """
        self._time_left, self._started_s = TimeLeft(left), self.clock()
        completed = total - sum(left.values())
        self._change(Progress(State.RUNNING, run, experiment, completed, total))

    def trial(self, trial: Trial, next_trial: str = "") -> None:
        """A trial begins, and the one before it has ended."""
        self._end_trial()
        self._trial_started_s, self._chunks = self.clock(), 0
        self._change(replace(self._now, trial=trial, next_trial=next_trial, stage="", step=0))

    def stage(self, stage: str, progress: float = 0.0) -> None:
        """The trial under way enters a stage; each "execution" is a chunk, carried out when the next stage begins."""
        if stage == "perception":  # of a trial that is run again, too
            self._chunks = 0
        self._change(replace(self._now, stage=stage, step=self._chunks))
        self._chunks += stage == "execution"

    def end(self, state: State, error: str = "") -> None:
        """The experiment has ended."""
        if state is State.FINISHED:
            self._end_trial()
        self._change(replace(self._now, state=state, next_trial="", error=error))

    def _end_trial(self) -> None:
        if self._now.trial is not None:
            self._time_left.ended(self._now.trial.agent.id, self.clock() - self._trial_started_s)
            self._now = replace(self._now, completed=self._now.completed + 1)

    def _change(self, now: Progress) -> None:
        elapsed_s = self.clock() - self._started_s
        remaining_s = math.nan
        if now.state is State.RUNNING:
            under_way_s = self.clock() - self._trial_started_s if now.trial is not None else 0.0
            remaining_s = max(self._time_left.seconds - under_way_s, 0.0)  # in this order NaN stays NaN
        elif now.state is State.FINISHED:
            remaining_s = 0.0
        self._now = replace(now, elapsed_s=elapsed_s, remaining_s=remaining_s)
        self.show(self._now)
