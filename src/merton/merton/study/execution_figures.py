"""The scatter of an execution study as inline SVG (Embodied-IQA, Fig. 8 b and c)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from merton.pages.svg import marker, tag
from merton.pages.words import number, readable
from merton.study.paths import Path3, pictures

if TYPE_CHECKING:
    from merton.study.execution_study import Example, TypeMean

Scale = Callable[[float], float]
"""From a value to its place."""

WIDTH, HEIGHT = 430.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 418.0, 12.0, 286.0
_LABEL_HEIGHT = 12.0


def scatter(
    types: Sequence[TypeMean], stage: str, label: str, maximum: float, line: tuple[float, float] | None
) -> Markup:
    """One point a type: its mean of a stage against its mean execution, whiskers of one standard error.

    Args:
        stage: key of the means; label: of the axis; maximum: of the stage's scale.
        line: slope and offset of the line of least squares. Types that lie more than one deviation below are named.
    """
    shown = [
        (item, x, y)
        for item in types
        if (x := item.means.get(stage)) is not None and (y := item.means["execution"]) is not None
    ]
    if not shown:
        return tag("p", "No type has both scores.")
    across = _axis([(x, item.errors.get(stage) or 0.0) for item, x, _ in shown], maximum)
    up = _axis([(y, item.errors["execution"] or 0.0) for item, _, y in shown], 100.0)

    def x_of(value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (value - across[0]) / (across[-1] - across[0])

    def y_of(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - up[0]) / (up[-1] - up[0])

    parts = []
    for tick in up:
        parts.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=y_of(tick), y2=y_of(tick), class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=_LEFT - 6, y=y_of(tick) + 3.5, text_anchor="end"))
    for tick in across:
        parts.append(tag("line", x1=x_of(tick), x2=x_of(tick), y1=_TOP, y2=_BOTTOM, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=x_of(tick), y=_BOTTOM + 15, text_anchor="middle"))
    parts.append(tag("text", f"{label}, mean of a type", x=(_LEFT + _RIGHT) / 2, y=HEIGHT - 12, text_anchor="middle"))
    parts.append(tag("text", "execution, mean of a type", x=_LEFT, y=_TOP - 3))
    if line is not None:
        parts.append(_fitted(line, (across[0], across[-1]), (up[0], up[-1]), x_of, y_of))
    for marked in (False, True):  # those with names lie above the others
        for item, x, y in shown:
            if (stage in item.below) == marked:
                parts.append(_point(item, stage, x_of, y_of, (x, y)))
    parts += _names([(item.distortion, x_of(x), y_of(y)) for item, x, y in shown if stage in item.below])
    words = "; ".join(f"{readable(item.distortion)} {x:.3g}, {y:.3g}" for item, x, y in shown)
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        class_="chart",
        role="img",
        aria_label=f"{label} and execution of each type: {words}",
    )


def example_paths(example: Example) -> tuple[Markup, str] | None:
    """The path from above, or in the frame of another world, with its caption; None where that has no path."""
    reference, distorted = (_path(points) for points in example.paths)
    return next(iter(pictures(reference, distorted, example.world)), None)


def _path(points: Sequence[tuple[float, float, float]]) -> Path3:
    return np.array(points, np.float64).reshape(-1, 3)


def _axis(values: Sequence[tuple[float, float]], maximum: float) -> list[float]:
    """Ticks at round numbers around all values and their errors, up to the end of the scale."""
    low = max(0.0, min(value - error for value, error in values))
    high = min(maximum, max(value + error for value, error in values))
    span = max(high - low, 1e-6)
    unit = 10.0 ** math.floor(math.log10(span / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5)
    return [round(step * place, 9) for place in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _fitted(
    line: tuple[float, float], across: tuple[float, float], up: tuple[float, float], x_of: Scale, y_of: Scale
) -> Markup:
    """The line as far as it lies within the axes."""
    slope, offset = line
    ends = list(across)
    if abs(slope) > 1e-12:
        crossings = sorted((value - offset) / slope for value in up)
        ends = [max(across[0], crossings[0]), min(across[1], crossings[1])]
    first, last = (float(end) for end in ends)
    places = {
        "x1": x_of(first),
        "x2": x_of(last),
        "y1": y_of(slope * first + offset),
        "y2": y_of(slope * last + offset),
    }
    return tag("g", tag("line", **places, class_="line", stroke_dasharray="5 4"), class_="s6")


def _point(item: TypeMean, stage: str, x_of: Scale, y_of: Scale, at: tuple[float, float]) -> Markup:
    x, y = at
    parts = []
    if error := item.errors.get(stage):
        ends = {"x1": x_of(x - error), "x2": min(x_of(x + error), _RIGHT)}
        parts.append(tag("line", **ends, y1=y_of(y), y2=y_of(y), class_="whisker"))
    if error := item.errors["execution"]:
        ends = {"y1": y_of(y - error), "y2": max(y_of(y + error), _TOP)}
        parts.append(tag("line", x1=x_of(x), x2=x_of(x), **ends, class_="whisker"))
    hint = f"{readable(item.distortion)}: {number(x, 3)}, execution {number(y, 1)} ({item.trials} trials)"
    parts += [tag("title", hint), marker(2 if stage in item.below else 0, x_of(x), y_of(y))]
    return tag("g", *parts, class_="s1" if stage in item.below else "s0")


def _names(points: Sequence[tuple[str, float, float]]) -> list[Markup]:
    """The names of points beside them, moved down where they would lie upon one another."""
    texts, last = [], -math.inf
    for name, x, y in sorted(points, key=lambda item: (item[2], item[0])):
        last = max(y + 4.0, last + _LABEL_HEIGHT)
        right = x < (_LEFT + _RIGHT) / 2
        anchor = "start" if right else "end"
        halo = "paint-order:stroke;stroke:var(--paper);stroke-width:3px"
        place = {"x": x + (8.0 if right else -8.0), "y": last, "text_anchor": anchor}
        texts.append(tag("text", readable(name), **place, style=halo))
    return texts
