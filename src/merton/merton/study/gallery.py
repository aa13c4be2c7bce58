"""The most instructive trials, with their images, answers and paths."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from merton.pages.words import marked
from merton.results.records import Outcome, TrialRecord
from merton.results.statistics import mean
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, shown_answers, trial_detail
from merton.study import figures

PICTURE_BUDGET = 9_000_000
"""Bytes of embedded pictures; further cards have none, so that the page stays below 12 MB."""

PATH_POINTS = 200


@dataclass(frozen=True)
class Card:
    """One trial of the gallery, ready to be shown.

    Attributes:
        detail: the trial's trial.json; nothing in it has been checked.
        camera: the camera of the pictures.
        pictures: data URIs of the reference and the distorted image, each None if there is none to show.
        answers: to the reference image, and to the distorted one with the differences in <mark>.
        paths: the tool's path from above and from the side.
    """

    record: TrialRecord
    detail: Mapping[str, Any]
    camera: str
    pictures: tuple[str | None, str | None]
    answers: tuple[str, Markup]
    paths: tuple[Markup, Markup]


def build(run: Path, records: Iterable[TrialRecord], agents: Sequence[str]) -> list[Card]:
    """A card for every distortion, the most harmful first: a trial of its highest level by one of `agents`.

    Failures are preferred, then agents in the order given, then low scores; trials without trial.json are passed over.
    """
    by_distortion: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.agent in agents and not record.case.is_reference and record.outcome is not Outcome.INFRASTRUCTURE:
            by_distortion.setdefault(record.case.distortion, []).append(record)
    left, cards = PICTURE_BUDGET, []
    for candidates in sorted(by_distortion.values(), key=_harm):
        card = _instructive(run, candidates, agents)
        if card is not None:
            left -= sum(len(picture) for picture in card.pictures if picture)
            cards.append(card if left >= 0 else Card(**{**vars(card), "pictures": (None, None)}))
    return cards


def _harm(candidates: Sequence[TrialRecord]) -> tuple[float, str]:
    score = mean(record.execution for record in candidates)
    return (100.0 if score is None else score, candidates[0].case.distortion)


def _instructive(run: Path, candidates: Iterable[TrialRecord], agents: Sequence[str]) -> Card | None:
    def order(record: TrialRecord) -> tuple[object, ...]:
        score = 100.0 if record.execution is None else record.execution
        succeeded = record.outcome is Outcome.SUCCESS
        return (-record.case.level, succeeded, agents.index(record.agent), score, record.id)

    for record in sorted(candidates, key=order)[:8]:
        detail = trial_detail(run, record)
        if detail is not None:
            return _card(run, record, detail)
    return None


def _card(run: Path, record: TrialRecord, detail: Mapping[str, Any]) -> Card:
    reference, distorted = path_of(detail, "reference_path"), path_of(detail, "path")
    window = figures.window_of((reference, distorted))
    frame = first_frame(detail)
    reference_answer, distorted_answer = shown_answers(detail)
    return Card(
        record=record,
        detail=detail,
        camera=one_line(frame.get("camera", "camera"), 20),
        pictures=(_picture(run, record, frame.get("reference")), _picture(run, record, frame.get("distorted"))),
        answers=(reference_answer, marked(reference_answer, distorted_answer)),
        paths=(
            figures.trajectory(reference, distorted, "top", window),
            figures.trajectory(reference, distorted, "side", window),
        ),
    )


def _picture(run: Path, record: TrialRecord, name: object) -> str | None:
    content = jpeg(run, record, name)
    return None if content is None else f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"


def path_of(detail: Mapping[str, Any], key: str) -> figures.Path3:
    """A path of a trial, thinned to `PATH_POINTS` and kept within reach of any arm; empty if it is not one."""
    try:
        points = np.asarray(detail.get(key) or [], dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != 3:
        return np.zeros((0, 3))
    points = points[np.isfinite(points).all(axis=1)].clip(-2.0, 2.0)
    if len(points) > PATH_POINTS:
        points = points[np.linspace(0, len(points) - 1, PATH_POINTS).round().astype(int)]
    return points
