"""Three pictures of a comparison as SVG files that need no style sheet: its course, its parts, its worst scene."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from merton.pages.svg import tag
from merton.pages.words import readable
from merton.results.recorded_world import RecordedWorld, world_of
from merton.results.records import TrialRecord
from merton.results.text import one_line
from merton.results.trial_files import first_frame, jpeg, json_object, shown_text, trial_detail
from merton.statistics.intervals import Interval
from merton.statistics.sequential import anytime_interval
from merton.study.gate import Judgement, Pair
from merton.study.paths import path_of

WIDTH = 720.0
_POINTS = 200  # of the course: more cannot be told apart
_INK, _QUIET, _GRID, _LINE, _BAND, _LIMIT = "#222222", "#666666", "#dddddd", "#1f5f8b", "#a9cbe3", "#b3261e"
_LABELS, _ROW = 190.0, 22.0
_TICKS = (-100, -50, 0, 50, 100)


def course(judgement: Judgement) -> Markup:
    """The difference in points and its interval against the number of scenes."""
    left, right, top, bottom = 60.0, WIDTH - 20.0, 40.0, 300.0
    gains = judgement.gains
    numbers = sorted({max(1, round(len(gains) * step / _POINTS)) for step in range(1, _POINTS + 1)}) if gains else []
    intervals = [anytime_interval(gains[:number]) for number in numbers]

    def x(number: float) -> float:
        return left + (right - left) * number / max(len(gains), 1)

    last = max(judgement.delta, *map(abs, judgement.whole.interval))
    reach = next((reach for reach in (0.1, 0.2, 0.5) if reach >= 1.5 * last), 1.0)  # the first few scenes tell nothing

    def y(value: float) -> float:
        return top + (bottom - top) * (1.0 - min(max(value / reach, -1.0), 1.0)) / 2.0

    parts: list[Markup] = []
    for points in (reach * tick for tick in _TICKS):
        parts += [
            _line(left, y(points / 100), right, y(points / 100), _GRID),
            _text(f"{points:g}", left - 8, y(points / 100) + 4, "end"),
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
    """The scene in which the candidate loses most: its first picture, the tools' paths, and the last pictures seen."""
    if pair is None:
        return _page("In no scene does the candidate lose against the baseline", 60.0, [])
    candidate, baseline = (trial_detail(run, record) or {} for record in pair)
    first = first_frame(candidate)
    case, width = pair[0].case, (WIDTH - 30.0) / 2
    height = width * 9 / 16
    pictures = (
        ("the first picture of both", _picture(run, pair[0], first)),
        (f"the last picture of the candidate: {_ending(pair[0])}", _last(run, pair[0], candidate, first)),
        (f"the last picture of the baseline: {_ending(pair[1])}", _last(run, pair[1], baseline, first)),
    )
    parts = [_text(shown_text(candidate, "instruction"), 12, 48, "start")]
    for (label, picture), (column, row) in zip(pictures, ((0, 0), (0, 1), (1, 1)), strict=True):
        left, top = 10.0 + column * (width + 10.0), 60.0 + row * (height + 34.0)
        parts.append(_text(label, left + 2, top + 16, "start", _QUIET))
        if picture is not None:
            parts.append(tag("image", href=picture, x=left, y=top + 24.0, width=width, height=height))
    world = world_of(json_object(run / "run.json") or {})
    parts += _paths(candidate, baseline, world, (20.0 + width, 60.0), (width, height))
    if pair[0].error_message:
        message = f"candidate: {one_line(pair[0].error_message, 100)}"
        parts.append(_text(message, 12, 2 * height + 148, "start"))
    view = "undistorted" if case.is_reference else f"{readable(case.distortion)}, level {case.level}"
    return _page(f"The scene with the largest loss: {case.task} {case.seed}, {view}", 2 * height + 162.0, parts)


def _ending(record: TrialRecord) -> str:
    return record.outcome.value.replace("_", " ")


def _paths(
    candidate: Mapping[str, Any],
    baseline: Mapping[str, Any],
    world: RecordedWorld | None,
    corner: tuple[float, float],
    size: tuple[float, float],
) -> list[Markup]:
    """The paths of both tools from above, forward up and left to the left, as the top camera sees them.

    Of another world its x to the right and its y up, and nothing where no path is known.
    """
    (left, top), (width, height) = corner, size
    paths = [path_of(detail, "path", world)[:, :2] for detail in (candidate, baseline)]
    if world is None:  # x is forward, y is to the left
        paths, least = [np.column_stack([-path[:, 1], path[:, 0]]) for path in paths], 0.1
    elif not any(map(len, paths)):
        return []
    else:
        least = 1e-9
    where = (
        "the tools from above" if world is None else f"x → and y ↑ {f'[{world.unit}]' if world.unit else ''}".strip()
    )
    label = f"{where}: candidate red, baseline blue"
    parts = [
        _text(label, left + 2, top + 16, "start", _QUIET),
        tag("rect", x=left, y=top + 24, width=width, height=height, fill="none", stroke=_GRID),
    ]
    points = np.concatenate(paths)
    if not len(points):
        return parts
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    scale = min(0.85 * height, 0.85 * width) / max(float(np.ptp(points, axis=0).max()), least)
    for path, color in zip(paths, (_LIMIT, _LINE), strict=True):
        if not len(path):
            continue
        x = left + width / 2 + scale * (path[:, 0] - middle[0])
        y = top + 24.0 + height / 2 - scale * (path[:, 1] - middle[1])
        corners = " ".join(f"{across:.1f},{up:.1f}" for across, up in zip(x, y, strict=True))
        parts.append(tag("polyline", points=corners, fill="none", stroke=color, stroke_width=2))
        parts.append(tag("circle", cx=float(x[-1]), cy=float(y[-1]), r=5, fill=color))
    return parts


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
