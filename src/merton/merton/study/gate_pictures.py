"""Three pictures of a comparison as SVG files that need no style sheet: its course, its parts, its worst scene."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from merton.pages.svg import tag
from merton.pages.words import readable
from merton.results.records import TrialRecord
from merton.results.statistics import Interval
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, shown_text, trial_detail
from merton.study.gate import Judgement, Pair, difference
from merton.study.sequential import anytime_interval
from merton.study.values import VALUES

WIDTH = 720.0
_POINTS = 200  # of the course: more cannot be told apart
_INK, _QUIET, _GRID, _LINE, _BAND, _LIMIT = "#222222", "#666666", "#dddddd", "#1f5f8b", "#a9cbe3", "#b3261e"
_LABELS, _ROW = 190.0, 22.0
_TICKS = (-100, -50, 0, 50, 100)


def course(judgement: Judgement) -> Markup:
    """The difference in points and its interval against the number of scenes."""
    left, right, top, bottom = 60.0, WIDTH - 20.0, 40.0, 300.0
    gains = [difference(pair, VALUES[judgement.metric]) for pair in judgement.pairs]
    numbers = sorted({max(1, round(len(gains) * step / _POINTS)) for step in range(1, _POINTS + 1)}) if gains else []
    intervals = [anytime_interval(gains[:number]) for number in numbers]

    def x(number: float) -> float:
        return left + (right - left) * number / max(len(gains), 1)

    def y(value: float) -> float:
        return top + (bottom - top) * (1.0 - value) / 2.0

    parts: list[Markup] = []
    for points in _TICKS:
        parts += [
            _line(left, y(points / 100), right, y(points / 100), _GRID),
            _text(points, left - 8, y(points / 100) + 4, "end"),
        ]
    for number in sorted({0, len(gains) // 2, len(gains)}):
        parts.append(_text(number, x(number), bottom + 18, "middle"))
    edge = [(number, high) for number, (_, high) in zip(numbers, intervals, strict=True)]
    edge += [(number, low) for number, (low, _) in zip(reversed(numbers), reversed(intervals), strict=True)]
    parts.append(tag("polygon", points=" ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in edge), fill=_BAND))
    means = " ".join(f"{x(number):.1f},{y(sum(gains[:number]) / number):.1f}" for number in numbers)
    parts.append(tag("polyline", points=means, fill="none", stroke=_LINE, stroke_width=2))
    parts.append(_line(left, y(-judgement.delta), right, y(-judgement.delta), _LIMIT, dash="6 4"))
    parts.append(_text(f"a loss of {100 * judgement.delta:g}", right, y(-judgement.delta) + 15, "end", _LIMIT))
    parts.append(_text("scenes", (left + right) / 2, bottom + 36, "middle"))
    title = (
        f"{judgement.metric.capitalize()}, candidate less baseline, in points; the band holds at every number of scenes"
    )
    return _page(title, 350.0, parts)


def differences(judgement: Judgement) -> Markup:
    """The difference in points and its interval, for each task and each type of distortion."""
    tasks = [(part.name, part.scenes, part.difference, part.interval) for part in judgement.tasks]
    types = [(name, pair.scenes, pair.difference, pair.interval) for name, pair in judgement.types]
    groups = (("tasks", tasks), ("types of distortion, intervals of this number of scenes alone", types))
    left, right, top = _LABELS + 60.0, WIDTH - 20.0, 62.0
    bottom = top + _ROW * (len(tasks) + len(types) + len(groups)) + 4.0

    def x(value: float) -> float:
        return left + (right - left) * (value + 1.0) / 2.0

    parts: list[Markup] = []
    for points in _TICKS:
        parts += [
            _line(x(points / 100), top - 10, x(points / 100), bottom, _GRID),
            _text(points, x(points / 100), top - 16, "middle"),
        ]
    parts.append(_line(x(-judgement.delta), top - 10, x(-judgement.delta), bottom, _LIMIT, dash="6 4"))
    height = top
    for heading, rows in groups:
        parts.append(_text(heading, 12, height + 14, "start", _QUIET))
        height += _ROW
        for row in rows:
            parts += _bar(row, x, height)
            height += _ROW
    title = f"{judgement.metric.capitalize()}, candidate less baseline, in points, and the number of scenes"
    return _page(title, bottom + 12.0, parts)


def _bar(row: tuple[str, int, float | None, Interval], x: Any, height: float) -> list[Markup]:
    """Name, number of scenes, interval and mean of one part."""
    name, scenes, mean, (low, high) = row
    middle = height + _ROW / 2
    parts = [
        _text(readable(name), _LABELS + 8, middle + 4, "end"),
        _text(scenes, _LABELS + 44, middle + 4, "end", _QUIET),
        _line(x(low), middle, x(high), middle, _BAND, width=6),
    ]
    if mean is not None:
        parts.append(tag("circle", cx=float(x(mean)), cy=middle, r=4, fill=_LINE))
    return parts


def worst_scene(run: Path, pair: Pair | None) -> Markup:
    """The scene in which the candidate loses most: as both saw it at first, and as each saw it last."""
    if pair is None:
        return _page("In no scene does the candidate lose against the baseline", 60.0, [])
    candidate, baseline = (trial_detail(run, record) or {} for record in pair)
    first = first_frame(candidate)
    pictures = [
        ("the first picture of both", _picture(run, pair[0], first)),
        (f"candidate's last: {pair[0].outcome.value.replace('_', ' ')}", _last(run, pair[0], candidate, first)),
        (f"baseline's last: {pair[1].outcome.value.replace('_', ' ')}", _last(run, pair[1], baseline, first)),
    ]
    width = (WIDTH - 40.0) / 3
    parts = [_text(shown_text(candidate, "instruction"), 12, 52, "start")]
    for index, (label, picture) in enumerate(pictures):
        left = 10.0 + index * (width + 10.0)
        parts.append(_text(label, left, 78, "start"))
        if picture is not None:
            parts.append(tag("image", href=picture, x=left, y=86.0, width=width, height=width * 0.75))
    if pair[0].error_message:
        parts.append(
            _text(f"candidate: {one_line(pair[0].error_message, 110)}", 12, 104 + width * 0.75, "start", _QUIET)
        )
    case = pair[0].case
    view = "undistorted" if case.is_reference else f"{readable(case.distortion)}, level {case.level}"
    return _page(f"The scene with the largest loss: {case.task} {case.seed}, {view}", 118.0 + width * 0.75, parts)


def _last(run: Path, record: TrialRecord, detail: Mapping[str, Any], first: Mapping[str, Any]) -> str | None:
    """The last picture of a trial by the camera of the first."""
    frames = [frame for frame in detail.get("frames", ()) if frame.get("camera") == first.get("camera")]
    return _picture(run, record, frames[-1]) if frames else None


def _picture(run: Path, record: TrialRecord, frame: Mapping[str, Any]) -> str | None:
    """The distorted image of a frame as a data URI."""
    content = jpeg(run, record, frame.get("distorted"))
    return None if content is None else f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"


def _line(
    x1: float, y1: float, x2: float, y2: float, color: str, *, width: float = 1, dash: str | None = None
) -> Markup:
    ends = {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2)}
    return tag("line", **ends, stroke=color, stroke_width=width, stroke_dasharray=dash)


def _text(content: object, x: float, y: float, anchor: str, color: str = _INK) -> Markup:
    return tag("text", content, x=float(x), y=float(y), text_anchor=anchor, fill=color)


def _page(title: str, height: float, parts: list[Markup]) -> Markup:
    background = tag("rect", width=WIDTH, height=height, fill="#ffffff")
    heading = tag("text", title, x=12, y=24, fill=_INK, font_weight="bold")
    return tag(
        "svg",
        background,
        heading,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        width=WIDTH,
        height=height,
        font_family="sans-serif",
        font_size=13,
        role="img",
        aria_label=title,
    )
