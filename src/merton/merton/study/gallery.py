"""The most instructive trials, with their images, answers and paths."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from merton.pages.words import marked
from merton.results.recorded_world import RecordedWorld
from merton.results.records import Outcome, Reference, TrialRecord
from merton.results.text import one_line
from merton.results.trial_files import film, first_frame, jpeg, shown_answers, trial_detail
from merton.study import clips, paths
from merton.study.losses import Group

PICTURE_BUDGET = 9_000_000
"""Bytes of embedded pictures; further cards have none, so that the page stays below 12 MB."""

CLIPS_SHOWN = 6
"""Cards with a film; a page with one of all 30 distortions would be too large."""

CELL_PX = (424, 240)


@dataclass(frozen=True)
class Card:
    """One trial of the gallery, ready to be shown.

    Attributes:
        detail: the trial's trial.json; nothing in it has been checked.
        camera: the camera of the pictures.
        pictures: data URIs of the reference and the distorted image, each None if there is none to show.
        size_px: width and height of the pictures; those of the cell's cameras where they are not known.
        answers: to the reference image, and to the distorted one with the differences in <mark>.
        paths: pictures of the path with their captions (`merton.study.paths.pictures`).
        film: data URI of the film of both runs; None until `merton video` has made it.
        clip: without a film, data URI of the views of all steps, undistorted run and distorted run side by side; None
            for one view.
    """

    record: TrialRecord
    detail: Mapping[str, Any]
    camera: str
    pictures: tuple[str | None, str | None]
    answers: tuple[str, Markup]
    paths: Sequence[tuple[Markup, str]]
    film: str | None
    clip: str | None
    size_px: tuple[int, int] = CELL_PX


def chosen(
    run: Path, records: Iterable[TrialRecord], agents: Sequence[str], groups: Sequence[Group]
) -> list[tuple[TrialRecord, dict[str, Any]]]:
    """For every distortion, in the order of `groups`, a trial of its highest level by one of `agents`, with trial.json.

    Failures are preferred, then agents that lost most under the distortion, then scenes in which the agent succeeds
    undistorted, then low scores; trials without trial.json are passed over.
    """
    by_distortion: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.agent in agents and not record.case.is_reference and record.outcome is not Outcome.INFRASTRUCTURE:
            by_distortion.setdefault(record.case.distortion, []).append(record)
    order = {group.name: [loss.agent for loss in group.losses] for group in groups}
    costliest = list(order)
    found = []
    for name in sorted(by_distortion, key=lambda name: (costliest.index(name) if name in order else len(order), name)):
        first = [agent for agent in order.get(name, ()) if agent in agents]
        rest = [agent for agent in agents if agent not in first]
        found.append(_instructive(run, by_distortion[name], [*first, *rest]))
    return [pair for pair in found if pair is not None]


def build(
    run: Path, trials: Sequence[tuple[TrialRecord, Mapping[str, Any]]], world: RecordedWorld | None = None
) -> list[Card]:
    """A card for each of `chosen`; the first `CLIPS_SHOWN` move, and all have pictures up to `PICTURE_BUDGET`.

    Args:
        run: its folder.
        trials: with their trial.json.
        world: that they were made in; None for the cell.
    """
    left = PICTURE_BUDGET
    cards: list[Card] = []
    for record, detail in trials:
        card = _card(run, record, detail, world, moving=len(cards) < CLIPS_SHOWN)
        left -= sum(len(picture) for picture in (*card.pictures, card.film, card.clip) if picture)
        cards.append(card if left >= 0 else replace(card, pictures=(None, None), film=None, clip=None))
    return cards


def _instructive(
    run: Path, candidates: Iterable[TrialRecord], agents: Sequence[str]
) -> tuple[TrialRecord, dict[str, Any]] | None:
    def order(record: TrialRecord) -> tuple[object, ...]:
        score = 100.0 if record.execution is None else record.execution
        succeeded = record.outcome is Outcome.SUCCESS
        broken = record.reference is Reference.OWN and record.reference_success is True
        return (-record.case.level, succeeded, agents.index(record.agent), not broken, score, record.id)

    for record in sorted(candidates, key=order)[:8]:
        detail = trial_detail(run, record)
        if detail is not None:
            return record, detail
    return None


def _card(run: Path, record: TrialRecord, detail: Mapping[str, Any], world: RecordedWorld | None, moving: bool) -> Card:
    reference, distorted = (paths.path_of(detail, key, world) for key in ("reference_path", "path"))
    frame = first_frame(detail)
    before, after = (jpeg(run, record, frame.get(side)) for side in ("reference", "distorted"))
    reference_answer, distorted_answer = shown_answers(detail)
    content = film(run, record) if moving else None
    return Card(
        record=record,
        detail=detail,
        camera=one_line(frame.get("camera", "camera"), 20),
        pictures=(_picture(before), _picture(after)),
        answers=(reference_answer, marked(reference_answer, distorted_answer)),
        paths=paths.pictures(reference, distorted, world),
        film=None if content is None else _webp(content),
        clip=_clip(run, record, detail, frame.get("camera")) if moving and content is None else None,
        size_px=_size_px(before),
    )


def _size_px(content: bytes | None) -> tuple[int, int]:
    """Width and height of a picture; those of the cell's cameras where it cannot be decoded."""
    size = clips.size_px(content) if content else None
    return size or CELL_PX


def _clip(run: Path, record: TrialRecord, detail: Mapping[str, Any], camera: object) -> str | None:
    """The views of one camera, step by step: of the agent's undistorted run of the scene, and of this one."""
    clean = replace(record, case=record.case.reference)
    left = list(_views(run, clean, trial_detail(run, clean) or {}, camera, "reference"))
    right = list(_views(run, record, detail, camera, "distorted"))
    if not left or not right:
        return None
    last = max(len(left), len(right))
    pairs = [(left[min(at, len(left) - 1)], right[min(at, len(right) - 1)]) for at in range(last)]
    content = clips.side_by_side(pairs)
    return None if content is None else _webp(content)


def _webp(content: bytes) -> str:
    return f"data:image/webp;base64,{base64.b64encode(content).decode()}"


def _views(run: Path, record: TrialRecord, detail: Mapping[str, Any], camera: object, kind: str) -> Iterator[bytes]:
    frames = detail.get("frames")
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, dict) and frame.get("camera") == camera:
            content = jpeg(run, record, frame.get(kind))
            if content is not None:
                yield content


def _picture(content: bytes | None) -> str | None:
    return None if content is None else f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
