"""The trials of run directories by test case: the pictures shown, and the answers of every agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from merton.errors import InputError
from merton.pages.words import marked
from merton.results.records import TrialRecord
from merton.results.store import ResultStore
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, trial_detail

ANSWER_LIMIT = 600
"""Characters of an answer that are shown."""


@dataclass(frozen=True)
class AgentTrial:
    """One agent's trial on a case.

    Attributes:
        record: as it was stored.
        answers: to the reference image, and to the distorted one with differing words in <mark>; empty if not stored.
    """

    record: TrialRecord
    answers: tuple[str, Markup]


@dataclass(frozen=True)
class CaseTrials:
    """The trials on one case.

    Attributes:
        instruction, question: as the agents got them; empty if not stored.
        camera: whose pictures these are.
        pictures: reference and distorted image, JPEG; None where none was stored.
        trials: sorted by agent.
    """

    instruction: str
    question: str
    camera: str
    pictures: tuple[bytes | None, bytes | None]
    trials: tuple[AgentTrial, ...]


class RunTrials:
    """The trials of run directories by test case; their files are opened on demand.

    Raises:
        InputError: a run directory does not exist or holds no results.sqlite.
        InfrastructureError: a record cannot be read.
    """

    def __init__(self, runs: Sequence[Path]) -> None:
        self._trials: dict[str, list[tuple[Path, TrialRecord]]] = {}
        for run in runs:
            if not (run / "results.sqlite").is_file():
                raise InputError(f"there is no run at {run}: it has no results.sqlite")
            with ResultStore(run / "results.sqlite", read_only=True) as store:
                for experiment in store.experiments():
                    for record in store.records(experiment):
                        self._trials.setdefault(record.case.id, []).append((run, record))

    def of(self, case: str) -> CaseTrials | None:
        """The trials on a case; None if no run holds one."""
        found = sorted(self._trials.get(case, ()), key=lambda item: (item[1].agent, item[1].experiment))
        if not found:
            return None
        details = [(run, record, trial_detail(run, record) or {}) for run, record in found]
        # Every agent was shown the same images, so the first trial with images serves for all.
        run, record, detail = next(((r, t, d) for r, t, d in details if d.get("frames")), details[0])
        frame = first_frame(detail)
        return CaseTrials(
            instruction=_text(detail, "instruction"),
            question=_text(detail, "question"),
            camera=one_line(frame.get("camera") or "camera", 20),
            pictures=(
                jpeg(run, record, frame.get("reference")),
                jpeg(run, record, frame.get("distorted")),
            ),
            trials=tuple(AgentTrial(record, _answers(detail)) for _, record, detail in details),
        )


def _text(detail: Mapping[str, Any], key: str) -> str:
    return one_line(detail.get(key) or "", ANSWER_LIMIT)


def _answers(detail: Mapping[str, Any]) -> tuple[str, Markup]:
    stored = detail.get("answers")
    answers = stored if isinstance(stored, Mapping) else {}
    reference, distorted = _text(answers, "reference"), _text(answers, "distorted")
    return reference, marked(reference, distorted)
