"""Answers and decisions of the models of a run, read from its trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.results.decisions import stored_chunks
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.trial_files import trial_detail
from merton.world.action import ActionChunk

DIMENSIONS = {"cognition": ("bleu", "rouge_l", "cider"), "decision": ("position", "rotation", "state")}
"""The three dimensions of a stage's score, each 0..1 here: CIDEr is divided by 10."""
BESIDE = {"cognition": "slots", "decision": "own_spread"}
"""The second score beside a stage's, 0..1, which is no part of it (`merton.study.beside`)."""
PARTNERS = 10
"""The most other scenes that each reference is compared with, so that the time grows only linearly with the study."""


@dataclass(frozen=True)
class Output:
    """One trial's outputs; values that its trial.json lacks or holds in another form are None or empty.

    Attributes:
        models: stage ("cognition", "decision") to the name of the model behind it; the agent's id if not recorded.
        answers: to the reference image and to the distorted one.
        chunks: decided on the reference images and on the distorted ones.
        scores: stage to {dimension: 0..1}, the stage's own name among them for the total, and the score beside it
            where `merton.study.beside.scored` has added it.
    """

    agent: str
    models: Mapping[str, str]
    case: TestCase
    answers: tuple[str, str] | None
    chunks: tuple[ActionChunk, ActionChunk] | None
    scores: Mapping[str, Mapping[str, float]]


def read(run: Path, records: Iterable[TrialRecord]) -> list[Output]:
    """The outputs of all trials with a trial.json and without an infrastructure fault, in the order of the records."""
    found = []
    for record in records:
        detail = trial_detail(run, record)
        if detail is not None and record.outcome is not Outcome.INFRASTRUCTURE:
            found.append(_output(record, detail))
    return found


def references(outputs: Iterable[Output], agent: str) -> dict[str, list[Output]]:
    """An agent's undistorted trials by task, ordered by scene."""
    found: dict[str, list[Output]] = {}
    for output in sorted(outputs, key=lambda item: (item.case.task, item.case.seed)):
        if output.agent == agent and output.case.is_reference:
            found.setdefault(output.case.task, []).append(output)
    return found


def scene_pairs(scenes: Sequence[Output]) -> list[tuple[Output, Output]]:
    """Every undistorted trial of one task with at most `PARTNERS` others, of other scenes."""
    shifts = range(1, min(len(scenes), PARTNERS + 1))
    return [(one, scenes[(i + shift) % len(scenes)]) for shift in shifts for i, one in enumerate(scenes)]


def _output(record: TrialRecord, detail: Mapping[str, Any]) -> Output:
    texts = _mapping(detail, "answers")
    answers = texts.get("reference"), texts.get("distorted")
    models = {"cognition": detail.get("vlm"), "decision": detail.get("vla")}
    return Output(
        agent=record.agent,
        models={stage: name if isinstance(name, str) and name else record.agent for stage, name in models.items()},
        case=record.case,
        answers=answers if isinstance(answers[0], str) and isinstance(answers[1], str) else None,  # type: ignore[arg-type]
        chunks=stored_chunks(detail),
        scores={stage: _scores(stage, getattr(record, stage), _mapping(detail, stage)) for stage in DIMENSIONS},
    )


def _mapping(detail: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = detail.get(key)
    return found if isinstance(found, Mapping) else {}


def _scores(stage: str, total: float | None, parts: Mapping[str, Any]) -> dict[str, float]:
    """Total and dimensions as far as they are numbers."""
    values = {stage: total} | {name: parts.get(name) for name in DIMENSIONS[stage]}
    scores = {
        name: float(value) / (10.0 if name == "cider" else 1.0)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return {name: value for name, value in scores.items() if np.isfinite(value) and 0.0 <= value <= 1.0}
