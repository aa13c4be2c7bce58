"""The examples of an execution study: pictures and paths of a success, of a deviation and of an emergency stop."""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.results.recorded_world import RecordedWorld, world_of
from merton.results.records import Outcome, TrialRecord
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, json_object, trial_detail
from merton.study.paths import path_of

EXAMPLES = {Outcome.SUCCESS: "success", Outcome.FAILURE: "deviation", Outcome.EMERGENCY_STOP: "emergency stop"}
"""Outcome to its name in Fig. 9 of the paper."""
WIDTH_PX, QUALITY, PATH_POINTS = 320, 70, 60
"""Of the pictures and paths of an example."""


@dataclass(frozen=True)
class Example:
    """A trial as in Fig. 9 of the paper.

    Attributes:
        pictures: JPEG of the first reference and distorted view, in base64; empty if there is none.
        paths: positions of the tool in `base_link` [m], of the reference run and of this one.
        world: that the run was made in, whose frame the paths are in; None for the cell.
    """

    kind: str
    agent: str
    vlm: str
    vla: str
    instruction: str
    distortion: str
    level: int
    cognition: float | None
    decision: float | None
    execution: float | None
    distance_m: float | None
    message: str
    camera: str
    pictures: tuple[str, str]
    paths: tuple[tuple[tuple[float, float, float], ...], tuple[tuple[float, float, float], ...]]
    world: RecordedWorld | None = None


def examples(run: Path, records: Iterable[TrialRecord], compared: Container[str]) -> Iterator[Example]:
    """One trial of each outcome of Fig. 9: the severest, the one whose decision fell most, or that ended farthest.

    Args:
        run: the run's folder; a trial without files there is no example.
        records: of any trials; those of the run whose ids are in `compared` count.
    """
    world = world_of(json_object(run / "run.json") or {})
    mine = [record for record in records if record.id in compared]

    def order(record: TrialRecord) -> tuple[Any, ...]:
        far = record.distance_m if record.outcome is Outcome.FAILURE and record.distance_m is not None else 0.0
        decision = 1.0 if record.decision is None else record.decision
        return (-record.case.level, -far, decision, record.id)

    for outcome, kind in EXAMPLES.items():
        for record in sorted((item for item in mine if item.outcome is outcome), key=order):
            detail = trial_detail(run, record)
            if detail is not None:
                yield _example(run, record, detail, kind, world)
                break


def _example(
    run: Path, record: TrialRecord, detail: Mapping[str, Any], kind: str, world: RecordedWorld | None
) -> Example:
    frame = first_frame(detail)
    return Example(
        kind,
        one_line(record.agent, 40),
        one_line(str(detail.get("vlm", "")), 40),
        one_line(str(detail.get("vla", "")), 40),
        one_line(str(detail.get("instruction", "")), 120),
        record.case.distortion,
        record.case.level,
        record.cognition,
        record.decision,
        record.execution,
        record.distance_m,
        one_line(record.error_message, 200),
        one_line(str(frame.get("camera", "camera")), 20),
        (_small(jpeg(run, record, frame.get("reference"))), _small(jpeg(run, record, frame.get("distorted")))),
        (_thinned(detail, "reference_path", world), _thinned(detail, "path", world)),
        world,
    )


def _small(content: bytes | None) -> str:
    """A picture at `WIDTH_PX` as JPEG in base64; empty if there is none that can be decoded."""
    try:
        image = None if content is None else cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:  # larger than OpenCV decodes
        image = None
    if image is None:
        return ""
    size = (WIDTH_PX, round(WIDTH_PX * image.shape[0] / image.shape[1]))
    _, small = cv2.imencode(
        ".jpg", cv2.resize(image, size, interpolation=cv2.INTER_AREA), (cv2.IMWRITE_JPEG_QUALITY, QUALITY)
    )
    return base64.b64encode(small.tobytes()).decode()


def _thinned(
    detail: Mapping[str, Any], key: str, world: RecordedWorld | None
) -> tuple[tuple[float, float, float], ...]:
    points = path_of(detail, key, world)
    if len(points) > PATH_POINTS:
        points = points[np.linspace(0, len(points) - 1, PATH_POINTS).round().astype(int)]
    return tuple((round(x, 4), round(y, 4), round(z, 4)) for x, y, z in points.tolist())
