"""The trials of run directories by test case: the pictures shown, and the answers of every agent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from merton.errors import InputError
from merton.pages.words import marked
from merton.results.decisions import inert_dimensions, stored_chunks
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, shown_answers, shown_text, trial_detail

STAGES = ("cognition", "decision", "execution")


@dataclass(frozen=True)
class AgentTrial:
    """One agent's trial on a case.

    `answers` are those to the reference image, and to the distorted one with differing words in <mark>; empty if not
    stored.
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

    @property
    def scores(self) -> list[str]:
        """The stages of which some agent has a score: another program's episodes have a decision at most."""
        return [name for name in STAGES if any(getattr(trial.record, name) is not None for trial in self.trials)]

    @property
    def has_answers(self) -> bool:
        """Whether an answer to one of the pictures is stored."""
        return any(any(trial.answers) for trial in self.trials)


class RunTrials:
    """The trials of run directories by test case; their files are opened on demand.

    Args:
        runs: the directories.
        cases: ids of the cases that are shown; trials of others are passed over.

    Raises:
        InputError: a run directory does not exist or holds no results.sqlite.
        InfrastructureError: a record cannot be read.
    """

    def __init__(self, runs: Sequence[Path], cases: Collection[str] = ()) -> None:
        self._runs = runs
        self._trials: dict[str, list[tuple[Path, TrialRecord]]] = {}
        for run in runs:
            if not (run / "results.sqlite").is_file():
                raise InputError(f"there is no run at {run}: it has no results.sqlite")
            with ResultStore(run / "results.sqlite", read_only=True) as store:
                for record in store.records(cases=cases):
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
            instruction=shown_text(detail, "instruction"),
            question=shown_text(detail, "question"),
            camera=one_line(frame.get("camera") or "camera", 20),
            pictures=(jpeg(run, record, frame.get("reference")), jpeg(run, record, frame.get("distorted"))),
            trials=tuple(_agent_trial(record, *shown_answers(detail)) for _, record, detail in details),
        )

    def inert(self, agent: str) -> tuple[str, ...]:
        """The dimensions of an agent's actions that never vary, in its stored trials: see `inert_dimensions`."""
        return inert_dimensions(
            (record.case, chunks)
            for run in self._runs
            for record in self._of_agent(run, agent)
            if record.outcome is not Outcome.INFRASTRUCTURE
            and (chunks := stored_chunks(trial_detail(run, record) or {})) is not None
        )

    def _of_agent(self, run: Path, agent: str) -> list[TrialRecord]:
        with ResultStore(run / "results.sqlite", read_only=True) as store:
            return store.records(agent=agent)


def _agent_trial(record: TrialRecord, reference: str, distorted: str) -> AgentTrial:
    return AgentTrial(record, (reference, marked(reference, distorted)))
