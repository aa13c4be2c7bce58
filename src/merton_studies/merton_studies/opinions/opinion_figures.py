"""Pictures of opinions as inline SVG: distributions, maps of sensitivity, boxes. Everything comes out escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from merton.pages.svg import sequential_color, tag
from merton.pages.words import number, readable
from merton.results.text import count_of
from merton.statistics.intervals import Interval
from merton_studies.opinions.distributions import MAXIMUM, Spread
from merton_studies.opinions.opinion_tables import LEVELS
from merton_studies.opinions.sensitivity import HalfLoss

BINS = 30
"""Of the part of the scale that is drawn."""
_KERNEL = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
_SHADES = {"mild": 0.95, "medium": 0.55, "severe": 0.1}
_DOTS = {"mild": "•", "medium": "••", "severe": "•••"}

Floats = NDArray[np.float64]


def level_color(level: int, highest: int = LEVELS) -> str:
    """The colour of a level, from the blue of level 1 over violet to the orange of the highest, on any paper."""
    share = 100.0 * (highest - level) / max(highest - 1, 1)
    return f"color-mix(in oklch, var(--s0) {share:g}%, var(--s1))"


def lowest_shown(scores: Floats) -> float:
    """The left end of every picture of a stage: a whole or half score that a hundredth of the images is below."""
    return max(0.0, math.floor(2.0 * float(np.quantile(scores, 0.01))) / 2.0) if len(scores) else 0.0


def shares(scores: Floats, low: float) -> Floats:
    """The share of scores in each of `BINS` parts of low .. 5, smoothed over neighbours; lower ones in the first."""
    counts = np.histogram(np.clip(scores, low, MAXIMUM), np.linspace(low, MAXIMUM, BINS + 1))[0] / max(len(scores), 1)
    return np.convolve(np.pad(counts, 2, mode="symmetric"), _KERNEL, mode="valid")


def densities(curves: Mapping[int, Floats], low: float, highest: float, title: str, levels: int = LEVELS) -> Markup:
    """The distributions of scores at each level, laid over each other.

    Args:
        curves: level to `shares`.
        low: left end of the scale.
        highest: the largest share of all pictures that are to be compared; heights are its square roots.
        title: for hover and screen readers.
        levels: highest level of the dataset.
    """
    width, height = 200.0, 92.0
    bottom = height - 15.0

    def x(score: float) -> float:
        return 4.0 + (width - 8.0) * (score - low) / (MAXIMUM - low)

    ticks = [low + (MAXIMUM - low) * step / 4 for step in range(5)]
    parts = [tag("title", title), tag("line", x1=4.0, x2=width - 4.0, y1=bottom, y2=bottom, class_="grid")]
    for place, tick in enumerate(ticks):
        anchor = "start" if place == 0 else "end" if place == 4 else "middle"
        parts.append(tag("text", f"{tick:.3g}", x=x(tick), y=height - 2.0, text_anchor=anchor))
    for level, curve in sorted(curves.items()):
        middles = low + (MAXIMUM - low) * (np.arange(BINS) + 0.5) / BINS
        heights = bottom - (bottom - 4.0) * np.sqrt(curve / max(highest, 1e-9))
        corners = " ".join(f"{x(at):.1f},{up:.1f}" for at, up in zip(middles.tolist(), heights.tolist(), strict=True))
        parts.append(tag("polyline", points=corners, class_="line", style=f"stroke:{level_color(level, levels)}"))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img", aria_label=title)


def level_swatch(level: int, highest: int = LEVELS) -> Markup:
    """The line of a level, for a legend."""
    line = tag("line", x1=0, x2=28, y1=7, y2=7, class_="line", style=f"stroke:{level_color(level, highest)}")
    return tag("svg", line, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def class_color(name: str) -> tuple[str, str]:
    """Background and ink of a class of `sensitivity.JND`: dark is severe."""
    return sequential_color(_SHADES[name])


def sensitivity_map(
    rows: Sequence[tuple[str, Sequence[str]]],
    others: Sequence[Sequence[str]],
    hints: Sequence[Sequence[str]],
    title: str,
) -> Markup:
    """The class of every type (row) and level (column): one dot mild, two medium, three severe.

    Args:
        rows: label and the classes of each type, a class for each level; "" without images.
        others: the classes in the other map, by row; a cell that differs there has an outline. Empty without another.
        hints: hover texts, by row.
        title: for screen readers.
    """
    cell, tall, left, top = 30.0, 17.0, 156.0, 18.0
    levels = range(1, 1 + max((len(classes) for _, classes in rows), default=LEVELS))
    parts = [tag("text", level, x=left + cell * (level - 0.5), y=top - 6.0, text_anchor="middle") for level in levels]
    for row, (label, classes) in enumerate(rows):
        up = top + tall * row
        parts.append(tag("text", label, x=left - 6.0, y=up + 12.5, text_anchor="end"))
        for column, name in enumerate(classes):
            fill, ink = class_color(name) if name else ("var(--faint)", "var(--quiet)")
            differs = bool(others) and bool(others[row][column]) and bool(name) and others[row][column] != name
            edge = "stroke:var(--s1);stroke-width:2" if differs else "stroke:none"
            square = {"x": left + cell * column + 1.5, "y": up + 1.5, "width": cell - 3.0, "height": tall - 3.0}
            hint = tag("title", hints[row][column])
            parts.append(tag("rect", hint, **square, rx=2.0, style=f"fill:{fill};{edge}"))
            at = {"x": left + cell * (column + 0.5), "y": up + 12.0, "text_anchor": "middle"}
            parts.append(tag("text", _DOTS.get(name, "–"), **at, style=f"fill:{ink};font-size:9px;pointer-events:none"))
    size = left + cell * len(levels), top + tall * len(rows) + 4.0
    view = f"0 0 {size[0]:g} {size[1]:g}"
    return tag(
        "svg", *parts, viewBox=view, class_="matrix", style=f"max-width:{size[0]:g}px", role="img", aria_label=title
    )


def class_swatch(name: str) -> Markup:
    """The colour and dots of a class, for a legend."""
    fill, ink = class_color(name)
    square = tag("rect", x=0, y=0, width=28, height=14, rx=2.0, style=f"fill:{fill}")
    dots = tag("text", _DOTS[name], x=14, y=10.5, text_anchor="middle", style=f"fill:{ink};font-size:9px")
    return tag("svg", square, dots, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def box(spread: Spread, low: float, title: str) -> Markup:
    """A box plot on low .. 5: the quartiles as a box, Tukey's whiskers, the median as a line, the mean as a dot."""
    width = 240.0

    def x(score: float) -> float:
        return 4.0 + (width - 8.0) * (min(max(score, low), MAXIMUM) - low) / (MAXIMUM - low)

    (lower, middle, upper), (first, last) = spread.quartiles, spread.ends
    parts = [
        tag("line", x1=0, x2=width, y1=9, y2=9, class_="track"),
        tag("line", x1=x(first), x2=x(last), y1=9, y2=9, class_="whisker", style="stroke:var(--ink)"),
        tag("rect", x=x(lower), y=3, width=max(x(upper) - x(lower), 1.0), height=12, class_="box"),
        tag("line", x1=x(middle), x2=x(middle), y1=2, y2=16, class_="median"),
        tag("circle", cx=x(spread.mean), cy=9, r=2.6, class_="dot"),
    ]
    return tag("svg", *parts, viewBox=f"0 0 {width:g} 18", class_="bar boxes", role="img", aria_label=title)


def scale(low: float) -> Markup:
    """The axis of `box`."""
    width = 240.0
    parts = []
    for step in range(5):
        anchor = "start" if step == 0 else "end" if step == 4 else "middle"
        text = f"{low + (MAXIMUM - low) * step / 4:.3g}"
        parts.append(tag("text", text, x=4.0 + (width - 8.0) * step / 4, y=10, text_anchor=anchor))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} 13", class_="bar boxes axis-bar", aria_hidden="true")


def level_bar(level: float, interval: Interval | None, highest: int = LEVELS) -> Markup:
    """A level 0..highest as a dot on its interval; a ring at the end for one beyond, neither for NaN, which is none."""
    width = 120.0

    def x(value: float) -> float:
        return 5.0 + (width - 10.0) * min(max(value, 0.0), highest) / highest

    parts = [tag("line", x1=0, x2=width, y1=9, y2=9, class_="track")]
    if interval:
        parts.append(tag("line", x1=x(interval[0]), x2=x(interval[1]), y1=9, y2=9, class_="interval"))
    if not math.isnan(level):
        parts.append(tag("circle", cx=x(level), cy=9, r=4, class_="ring" if math.isinf(level) else "dot"))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} 18", class_="bar", aria_hidden="true")


def half_loss_words(found: HalfLoss) -> str:
    """A JND50 as text, such as "2.4 [2.1, 2.8]", "never half up to 5 [3.1, …]" or "not falling"."""
    if math.isnan(found.level):
        return "not falling"
    if math.isinf(found.level):
        text, high = f"never half up to {found.highest}", "…"
    else:
        text, high = number(found.level, 1), _end(found.interval.high, found.highest) if found.interval else ""
    return f"{text} [{_end(found.interval.low, found.highest)}, {high}]" if found.interval else text


def rise_words(found: HalfLoss) -> str:
    """A sentence where the means rise by more than their error, "" where they do not."""
    rise = found.rise
    if rise is None:
        return ""
    text = (
        f"{readable(found.distortion)}: the mean rises from {number(rise.low_mean)} at level {rise.low} "
        f"to {number(rise.high_mean)} at level {rise.high}, by more than its error"
    )
    return f"{text}, so no single level has half" if math.isnan(found.level) else text


def _end(level: float, highest: int) -> str:
    return f"above {highest}" if math.isinf(level) else number(level, 1)


def cell_hint(label: str, level: int, spread: Spread | None, scenes: int, name: str) -> str:
    """The hover text of a cell of a map."""
    if spread is None:
        return f"{label}, level {level}: no images"
    return f"{label}, level {level}: {name}, mean {spread.mean:.3g} (n = {count_of(spread.n, scenes)})"
