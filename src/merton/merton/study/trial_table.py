"""All trials of a run as data of its report's table: a row each, and what each opens."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from merton.errors import ErrorCode
from merton.pages.words import OUTCOME_MARKS, readable
from merton.results.records import Outcome, TrialRecord
from merton.results.text import one_line
from merton.results.trial_files import has_film, shown_answers, shown_text, trial_detail
from merton.study.sections import gravest_first

TRIALS_SHOWN = 3000
"""Trials of the table: a page of more is slow."""
FRAMES_SHOWN = 24
"""Pairs of pictures of a trial."""
ACTIONS_SHOWN = 6
"""Deltas of a first chunk, or rows of a policy's own numbers."""
NO_PAIR = "not_paired"
"""In place of the outcome of an episode that is no pair with its undistorted one."""


@dataclass(frozen=True)
class TrialTable:
    """The trials of a report.

    Attributes:
        data: JSON for a script element: "texts", which the rows name by their places; "outcomes" to mark and words;
            "rows", a list for each trial in the order of `_row`.
        shown, total: rows, and trials of the run.
        unsuccessful: trials of the run that did not succeed.
    """

    data: Markup
    shown: int
    total: int
    unsuccessful: int


def table(
    run: Path, records: Sequence[TrialRecord], subjects: Collection[str], of_episodes: bool = False
) -> TrialTable:
    """The table of a run's trials, the gravest first, `TRIALS_SHOWN` at most.

    Args:
        run: its folder, with the trials' files, whose content is not trusted.
        records: of its trials.
        subjects: the agents that come first.
        of_episodes: they are episodes of another program: columns and words are those of what they have.
    """
    texts: dict[str, int] = {}
    shown = gravest_first(records, subjects)[:TRIALS_SHOWN]
    rows = [_row(run, record, texts) for record in shown]
    outcomes = {outcome.value: words for outcome, words in OUTCOME_MARKS.items()}
    outcomes[NO_PAIR] = ("○", "no pair")
    content = {"texts": list(texts), "outcomes": outcomes, "episodes": of_episodes, "rows": rows}
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    unsuccessful = sum(record.outcome is not Outcome.SUCCESS for record in records)
    return TrialTable(Markup(data), len(rows), len(records), unsuccessful)


def _row(run: Path, record: TrialRecord, texts: dict[str, int]) -> list[Any]:
    """The columns of a trial, then what it opens; a text is a number, its place among `texts`."""
    detail, case = trial_detail(run, record), record.case

    def place(text: object, limit: int = 600) -> int:
        return texts.setdefault(one_line(text or "", limit), len(texts))

    known = detail or {}
    return [
        *(place(record.id, 200), place(record.agent), place(case.task), case.seed, place(readable(case.distortion))),
        *(case.level, _outcome(record), _rounded(record.execution, 1)),
        _rounded(None if record.distance_m is None else 100 * record.distance_m, 1),
        *(_rounded(record.cognition), _rounded(record.decision), _rounded(record.progress)),
        *(record.steps, _rounded(record.simulated_s, 1)),
        place(": ".join(str(part) for part in (record.error_code, record.error_message) if part)),
        *(place(shown_text(known, key)) for key in ("instruction", "question")),
        *(place(answer) for answer in shown_answers(known)),
        [_deltas(known, side) for side in ("reference", "distorted")],
        [[place(part) for part in frame] for frame in _frames(known)],
        int(has_film(run, record)),
        int(detail is not None),
    ]


def _outcome(record: TrialRecord) -> str:
    return NO_PAIR if record.error_code == ErrorCode.NOT_PAIRED else record.outcome.value


def _frames(detail: Mapping[str, Any]) -> Iterable[tuple[object, ...]]:
    """Step, camera, and files of the reference and of the distorted picture of each pair."""
    frames = detail.get("frames")
    for frame in (frames if isinstance(frames, list) else [])[:FRAMES_SHOWN]:
        if isinstance(frame, dict):
            yield str(frame.get("step")), frame.get("camera"), frame.get("reference"), frame.get("distorted")


def _deltas(detail: Mapping[str, Any], side: str) -> list[list[float | None]]:
    """The first deltas of the first chunk, or rows of a policy's own numbers, as far as they are numbers."""
    decision = detail.get("decision")
    chunk = decision.get(side) if isinstance(decision, dict) else None
    deltas = chunk.get("deltas", chunk.get("rows")) if isinstance(chunk, dict) else None
    rows = (deltas if isinstance(deltas, list) else [])[:ACTIONS_SHOWN]
    return [[_rounded(value, 3) for value in row[:16]] for row in rows if isinstance(row, list)]


def _rounded(value: object, digits: int = 2) -> float | None:
    """A finite number with so many decimals; else None."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return round(float(value), digits)
