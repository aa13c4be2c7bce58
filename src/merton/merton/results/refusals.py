"""Trials in which the gate let no delta pass: they score as doing nothing does, and say nothing about the images.

A wrong unit, frame or rate of a policy's convention ends so: each chunk is refused at its first delta, and on a board
such a policy looks like `hold`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from merton.errors import GATE_ERRORS
from merton.results.records import Outcome, TrialRecord
from merton.results.text import counted, one_line, printable

LEAST_SHARE = 0.1
"""Of an agent's trials, to be said. Ours: a policy that works is refused now and then, and that is its own score."""
CODES_NAMED = 2
_MEANINGS = {int(code): code.meaning for code in GATE_ERRORS}
_LOOK_LIKE_HOLD = (Outcome.SUCCESS, Outcome.FAILURE)


def is_refused(record: TrialRecord) -> bool:
    """Whether the gate refused every delta of a trial, so that the arm never moved.

    The clock of a simulated cell runs only while something moves, so a trial of no simulated time had no motion. One of
    a real arm, or with `latency_s`, has time in it, and nothing is said of it. A predicted collision has an outcome of
    its own.
    """
    return record.cut_short is True and record.simulated_s == 0.0 and record.outcome in _LOOK_LIKE_HOLD


def refused_sentences(records: Iterable[TrialRecord]) -> dict[str, str]:
    """Agent to the sentence on its trials whose every delta the gate refused, if those are `LEAST_SHARE` at least."""
    attempts: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.outcome is not Outcome.INFRASTRUCTURE:
            attempts.setdefault(record.agent, []).append(record)
    found = {}
    for agent, own in attempts.items():
        refused = [record for record in own if is_refused(record)]
        if refused and len(refused) >= LEAST_SHARE * len(own):
            found[agent] = _sentence(agent, refused, len(own))
    return found


def _sentence(agent: str, refused: list[TrialRecord], trials: int) -> str:
    """With the commonest error codes, each with the least of its messages: the order of trials changes nothing."""
    codes = Counter(record.error_code for record in refused if record.error_code in GATE_ERRORS)
    ranked = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    parts = []
    for code, count in ranked[:CODES_NAMED]:
        example = min(record.error_message for record in refused if record.error_code == code)
        times = f" in {count}" if len(ranked) > 1 else ""
        parts.append(f"error {int(code)}{times}: {one_line(example or _MEANINGS[code], 45)}")
    more = [f"{counted(len(ranked) - CODES_NAMED, 'more code')}"] if len(ranked) > CODES_NAMED else []
    why = f" ({'; '.join([*parts, *more])})" if parts else ""
    which = "its scores are" if len(refused) == trials else "those trials' scores are"
    return (
        f"The gate refused every delta of {len(refused)} of {trials} trials of {printable(agent, 40)}{why}: the arm "
        f"stood still, so {which} those of doing nothing and say nothing about what it sees. Are unit, frame and rate "
        "of its convention right?"
    )
