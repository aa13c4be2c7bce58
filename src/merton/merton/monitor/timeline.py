"""Course of the trial under way: its stages with their durations, and the events between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MOST_EVENTS = 60
"""Of one trial; later ones are left off, for a page shows no more."""
LATE_S = 2.0
"""An event may arrive this long after the end of its trial [s]: topics keep no order between them."""


class Timeline:
    """Stages and events of one trial, timed by the wall clock of this process, from the first message about the trial.

    Args:
        clock_s: seconds of a clock that never steps back.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._start_s = 0.0
        self._trial: str | None = None
        self._stages: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._ended_s: float | None = None

    @property
    def running(self) -> bool:
        """Whether a trial is under way."""
        return self._trial is not None and self._ended_s is None

    def stage(self, trial_id: str, stage: str, step: int = 0) -> None:
        """The trial `trial_id` is in this stage now; another trial begins a new timeline.

        Args:
            trial_id: of the trial.
            stage: such as "decision"; the same stage of the same step as before changes nothing.
            step: chunks carried out so far.
        """
        if trial_id != self._trial or not self.running:
            self._trial, self._start_s, self._ended_s = trial_id, self._clock_s(), None
            self._stages, self._events = [], []
        now_s = self._now_s()
        if self._stages:
            last = self._stages[-1]
            if (last["stage"], last["step"]) == (stage, step):
                return
            last["end_s"] = now_s
        if stage and len(self._stages) < MOST_EVENTS:
            self._stages.append({"stage": stage, "step": step, "start_s": now_s, "end_s": None})

    def event(self, kind: str, text: str) -> None:
        """Something happened, such as kind "stop" with the sentence of the arm; without a trial it is not kept."""
        late = self._ended_s is not None and self._now_s() > self._ended_s + LATE_S
        if self._trial is not None and not late and len(self._events) < MOST_EVENTS:
            at_s = self._now_s() if self._ended_s is None else min(self._now_s(), self._ended_s)
            self._events.append({"kind": kind, "text": text, "at_s": at_s})

    def result(self, trial_id: str, outcome: str) -> None:
        """The result of a trial, which may come while the next one runs: it is an event of its own trial alone."""
        if trial_id == self._trial:
            self.event("result", outcome)

    def end(self) -> None:
        """No trial is under way any more; the last one stays on display."""
        if self.running:
            self._ended_s = self._now_s()
            if self._stages:
                self._stages[-1]["end_s"] = self._ended_s

    def _now_s(self) -> float:
        return round(self._clock_s() - self._start_s, 2)

    def content(self) -> dict[str, Any]:
        """For the page: "trial_id", "elapsed_s", "running", and lists "stages" and "events" with times in seconds."""
        elapsed_s = 0.0 if self._trial is None else self._ended_s if self._ended_s is not None else self._now_s()
        return {
            "trial_id": self._trial or "",
            "running": self.running,
            "elapsed_s": elapsed_s,
            "stages": [dict(one) for one in self._stages],
            "events": [dict(one) for one in self._events],
        }
