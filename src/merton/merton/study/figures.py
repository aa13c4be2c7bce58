"""The report's pictures as inline SVG. Everything that is passed in comes out escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from merton.pages.svg import SERIES_COLORS, marker, sequential_color, tag
from merton.pages.words import interval_words, number
from merton.results.text import count_of
from merton.statistics.intervals import Interval

LEVELS = range(6)

SHARE_WIDTH = 160.0
SHARE_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Point:
    """A mean of `n` scores at one level.

    Attributes:
        error: its standard error, clustered by scene; None for fewer than two scenes.
        scenes: number of different scenes of the scores; 0 if they have none.
    """

    level: int
    mean: float
    error: float | None
    n: int
    scenes: int = 0

    @property
    def size(self) -> str:
        """Its n, and the number of its scenes."""
        return count_of(self.n, self.scenes)


@dataclass(frozen=True)
class Series:
    """One agent's line in a chart; `index` decides colour and marker."""

    label: str
    index: int
    points: tuple[Point, ...]


def line_chart(
    series: Sequence[Series], title: str, maximum: float, width: float = 300.0, height: float = 190.0
) -> Markup:
    """Mean score (0 .. maximum) against distortion level, one line a series, whiskers of one standard error."""
    left, right, top, bottom = 30.0, width - 10.0, 10.0, height - 32.0
    levels = range(max(LEVELS[-1], *(p.level for item in series for p in item.points), 0) + 1)

    def x(level: float) -> float:
        return left + 8.0 + (right - left - 16.0) * level / levels[-1]

    def y(value: float) -> float:
        return bottom - (bottom - top) * min(max(value, 0.0), maximum) / maximum

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        height_px = y(share * maximum)
        parts.append(tag("line", x1=left, x2=right, y1=height_px, y2=height_px, class_="grid"))
        parts.append(tag("text", f"{share * maximum:g}", x=left - 6, y=height_px + 3.5, text_anchor="end"))
    for level in levels:
        parts.append(tag("text", level, x=x(level), y=bottom + 15, text_anchor="middle"))
    parts.append(
        tag("text", "distortion level", x=(left + right) / 2, y=height - 3, text_anchor="middle", class_="axis")
    )
    for item in series:
        parts.append(_series(item, x, y))
    label = "; ".join(
        f"{item.label}: " + ", ".join(f"level {p.level} {p.mean:.3g}" for p in item.points)
        for item in series
        if item.points
    )
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        class_="chart",
        role="img",
        aria_label=f"{title}. {label or 'no data'}",
    )


def _series(item: Series, x: Callable[[float], float], y: Callable[[float], float]) -> Markup:
    corners = " ".join(f"{x(p.level):.1f},{y(p.mean):.1f}" for p in item.points)
    parts = [tag("polyline", points=corners, class_="line")]
    for p in item.points:
        if p.error:
            ends = {"y1": float(y(p.mean - p.error)), "y2": float(y(p.mean + p.error))}
            parts.append(tag("line", x1=float(x(p.level)), x2=float(x(p.level)), class_="whisker", **ends))
        hint = tag("title", f"{item.label}, level {p.level}: {p.mean:.3g} (n = {p.size})")
        parts.append(tag("g", hint, marker(item.index, x(p.level), y(p.mean))))
    return tag("g", *parts, class_=f"s{item.index % SERIES_COLORS}")


def _share_x(share: float) -> float:
    return 6.0 + (SHARE_WIDTH - 12.0) * min(max(share, 0.0), 1.0)


def share_axis() -> Markup:
    """The axis of `fall_bar`, 0 to 100 %, with its ticks' labels."""
    parts = [tag("text", f"{100 * tick:g}", x=_share_x(tick), y=10, text_anchor="middle") for tick in SHARE_TICKS]
    return tag("svg", *parts, viewBox=f"0 0 {SHARE_WIDTH:g} 13", class_="bar axis-bar", aria_hidden="true")


def fall_bar(before: float, after: float, index: int) -> Markup:
    """A share without distortion (ring) and with it (disk), 0..1, in the colour of the agent's `index`."""
    parts = [tag("line", x1=_share_x(tick), x2=_share_x(tick), y1=1, y2=17, class_="grid") for tick in SHARE_TICKS]
    parts.append(tag("line", x1=_share_x(before), x2=_share_x(after), y1=9, y2=9, class_="fall"))
    parts.append(tag("circle", cx=_share_x(before), cy=9, r=4.2, class_="from"))
    parts.append(tag("circle", cx=_share_x(after), cy=9, r=4.2, class_="mark"))
    group = tag("g", *parts, class_=f"s{index % SERIES_COLORS}")
    return tag("svg", group, viewBox=f"0 0 {SHARE_WIDTH:g} 18", class_="bar", aria_hidden="true")


def threshold_bar(level: float, interval: Interval) -> Markup:
    """A level as a dot on its 95 % interval, on a line from 1 to 5; a ring at the end for one beyond, none for NaN."""
    width, first, last = 120.0, 1.0, float(LEVELS[-1])

    def x(value: float) -> float:
        return 5.0 + (width - 10.0) * (min(max(value, first), last) - first) / (last - first)

    low, high = interval
    parts = [tag("line", x1=0, x2=width, y1=9, y2=9, class_="track")]
    parts.append(tag("line", x1=x(low), x2=x(high), y1=9, y2=9, class_="interval"))
    if not math.isnan(level):
        parts.append(tag("circle", cx=x(level), cy=9, r=4, class_="ring" if math.isinf(level) else "dot"))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} 18", class_="bar", aria_hidden="true")


def correlation_matrix(
    labels: Sequence[str], matrix: NDArray[np.float64], intervals: NDArray[np.float64], title: str, cell: float = 30.0
) -> Markup:
    """Rank correlations of models, (n, n) in -1..1 with NaN where undefined, as coloured squares: dark is high.

    Hover texts have the intervals, (n, n, 2), where they are not NaN.

    Rows carry the names; columns their letters, a for the first. Negative values have the colour of zero.
    """
    names = [f"{_letters(index)}  {label}" for index, label in enumerate(labels)]
    left, top, size = 7.0 * max((len(name) for name in names), default=0) + 10.0, 18.0, cell * len(labels)
    parts = []
    for row, name in enumerate(names):
        middle = top + cell * (row + 0.5)
        parts.append(tag("text", name, x=left - 6, y=middle + 4, text_anchor="end"))
        parts.append(tag("text", _letters(row), x=left + cell * (row + 0.5), y=top - 6, text_anchor="middle"))
        for column in range(len(names)):
            value = float(matrix[row, column])
            fill, ink = (
                ("var(--faint)", "var(--quiet)") if math.isnan(value) else sequential_color(1.0 - max(value, 0.0))
            )
            corner = {"x": left + cell * column + 1, "y": top + cell * row + 1}
            shown = number(value)
            exact = "undefined" if math.isnan(value) else f"{shown} {interval_words(intervals[row, column].tolist())}"
            hint = tag("title", f"{labels[row]} and {labels[column]}: {exact}")
            square = tag("rect", hint, **corner, width=cell - 2, height=cell - 2, rx=2.0, style=f"fill:{fill}")
            number_at = {"x": left + cell * (column + 0.5), "y": middle + 4, "text_anchor": "middle"}
            parts += [square, tag("text", shown, **number_at, style=f"fill:{ink};font-size:10px;pointer-events:none")]
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {left + size:g} {top + size + 4:g}",
        class_="matrix",
        style=f"max-width:{left + size:g}px",
        role="img",
        aria_label=f"{title}: {'; '.join(names)}",
    )


def _letters(index: int) -> str:
    """a .. z, then aa, ab and so on, as a spreadsheet counts."""
    return (_letters(index // 26 - 1) if index >= 26 else "") + chr(ord("a") + index % 26)


def loss_bar(mean: float, interval: Interval, title: str, width: float = 220.0) -> Markup:
    """A loss, -1..1, as a bar from zero, with its 95 % interval."""

    def x(value: float) -> float:
        return width * (1.0 + value) / 2.0

    low, high = sorted((x(0.0), x(mean)))
    parts = [
        tag("line", x1=0, x2=width, y1=9, y2=9, class_="track"),
        tag("rect", x=low, y=4, width=high - low, height=10, class_="loss"),
        tag("line", x1=x(interval[0]), x2=x(interval[1]), y1=9, y2=9, class_="interval"),
        tag("line", x1=x(0.0), x2=x(0.0), y1=0, y2=18, class_="grid"),
    ]
    return tag("svg", *parts, viewBox=f"0 0 {width:g} 18", class_="bar", role="img", aria_label=title)
