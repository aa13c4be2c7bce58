"""The record of carried-out commands: each is carried out once, in order, and only if its observation is recent.

Transport may deliver a command twice, late or out of order (a retry after a lost answer, a reconnect, a queue). Ours:
idempotent by (trial, sequence). A known number is answered from memory, one lower than the newest is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import Generic, TypeVar

from merton.errors import ErrorCode, InputError
from merton.execution.gate.safety import Verdict

Answer = TypeVar("Answer")

REMEMBERED_TRIALS = 64
"""Number of trials whose last sequence number is kept; late commands of an older trial are not recognised."""

REMEMBERED_ANSWERS = 256
"""Answers kept over all trials for commands that come again; older duplicates are refused as out of order."""


LARGEST_LEAD_S = 2.0
"""Largest lead of the stamp of an observation over the newest joint states [s]. Ours: clocks of a lab's machines
differ by milliseconds, and a simulated cell lets 0.15 s pass in a reset, of which a busy arm_node may not know yet."""


def lead_verdict(observation_stamp_ns: int, state_stamp_ns: int) -> Verdict:
    """`STALE` for an observation that is too far ahead of the joint states to be waited for; else OK.

    Args:
        observation_stamp_ns: of the observation [ns].
        state_stamp_ns: of the newest joint states [ns]; 0 before the first, which is waited for.
    """
    lead_s = (int(observation_stamp_ns) - int(state_stamp_ns)) * 1e-9
    if not state_stamp_ns or lead_s <= LARGEST_LEAD_S:
        return Verdict()
    return Verdict(
        ErrorCode.STALE,
        f"the observation is {lead_s:.3g} s ahead of the joint states, limit {LARGEST_LEAD_S:g} s: its stamp is of "
        "another clock",
    )


class CommandLedger(Generic[Answer]):
    """The commands that were carried out, in bounded memory. Not thread safe: one lock or one thread around it.

    For each command: `answer_for` (a duplicate gets the recorded answer), `check` (carry it out only if OK), and
    `record` when it is done. Sequence numbers of a trial rise; gaps are allowed, because a lost command is no danger.

    Args:
        max_observation_age_s: how old the observation behind a command may be when the command arrives [s], > 0.

    Raises:
        InputError: the age is not a positive number (infinity is allowed: no limit).
    """

    def __init__(self, max_observation_age_s: float) -> None:
        if not 0 < max_observation_age_s <= inf:
            raise InputError(f"max_observation_age_s must be a positive number, got {max_observation_age_s!r}")
        self._max_age_s = max_observation_age_s
        self._last: OrderedDict[str, int] = OrderedDict()
        self._answers: OrderedDict[tuple[str, int], Answer] = OrderedDict()

    def check(self, trial: str, sequence: int, observation_stamp_ns: int, now_ns: int) -> Verdict:
        """Whether a command may be carried out; changes nothing.

        Args:
            trial: the trial within which sequence numbers count.
            sequence: number of the command.
            observation_stamp_ns, now_ns: time of its observation and time now, on one clock [ns].

        Returns:
            OK; `OUT_OF_ORDER` if this number or a later one was recorded in the trial; `STALE` if the observation is
            older than allowed, or further than that in the future: the time of another clock, or of one that jumped.
        """
        last = self._last.get(trial)
        if last is not None and sequence <= last:
            again = "came again" if sequence == last or (trial, sequence) in self._answers else "came too late"
            return Verdict(
                ErrorCode.OUT_OF_ORDER, f"command {sequence} of trial {trial!r} {again}, {last} is already done"
            )
        age_s = (int(now_ns) - int(observation_stamp_ns)) * 1e-9
        if age_s > self._max_age_s:
            return Verdict(ErrorCode.STALE, f"the observation is {age_s:.3g} s old, limit {self._max_age_s:g} s")
        if -age_s > self._max_age_s:
            return Verdict(
                ErrorCode.STALE, f"the observation is {-age_s:.3g} s in the future, limit {self._max_age_s:g} s"
            )
        return Verdict()

    def answer_for(self, trial: str, sequence: int) -> Answer | None:
        """The answer recorded for a command, or None if it is new or forgotten."""
        return self._answers.get((trial, sequence))

    def record(self, trial: str, sequence: int, answer: Answer) -> None:
        """A command was answered; the first answer to a number stays."""
        self._last[trial] = max(sequence, self._last.get(trial, sequence))
        self._last.move_to_end(trial)
        if len(self._last) > REMEMBERED_TRIALS:
            self._last.popitem(last=False)
        self._answers.setdefault((trial, sequence), answer)
        if len(self._answers) > REMEMBERED_ANSWERS:
            self._answers.popitem(last=False)
