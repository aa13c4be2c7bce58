"""Pictures of `merton rate` as inline SVG: a number with its band against the share of the matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from merton.pages.svg import SERIES_COLORS, marker, tag
from merton.pages.words import interval_words, number
from merton.rating.convergence import Spread

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS = 5  # of a vertical axis, at most


@dataclass(frozen=True)
class Curve:
    """A number at shares of the matches; `index` decides colour and marker, None for a quiet line without markers."""

    label: str
    index: int | None
    points: tuple[tuple[float, Spread | None], ...]


def curves(
    found: Sequence[Curve], title: str, digits: int, width: float = 300.0, height: float = 210.0, bands: bool = True
) -> Markup:
    """Curves over 0 to 100 % of the matches, with the bands of the shuffles; nothing where nothing is defined.

    Args:
        title: for screen readers.
        digits: decimals of the numbers in hints.
        bands: whether the bands are drawn.
    """
    shown = [at for curve in found for _, at in curve.points if at is not None]
    ends = [end for at in shown for end in ((at.low, at.high) if bands else (at.mean,))]
    if not ends:
        return Markup("")
    ticks = _ticks(min(ends), max(ends))
    left, right, top, bottom = 46.0, width - 12.0, 10.0, height - 34.0

    def x(share: float) -> float:
        return left + (right - left) * share

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = []
    for value in ticks:
        parts.append(tag("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="grid"))
        parts.append(tag("text", _short(value), x=left - 6, y=y(value) + 4, text_anchor="end"))
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(tag("text", f"{100 * share:.0f}", x=x(share), y=bottom + 15, text_anchor="middle"))
    axis = "% of the matches"
    parts.append(tag("text", axis, x=(left + right) / 2, y=height - 4, text_anchor="middle", class_="axis"))
    for curve in sorted(found, key=lambda curve: curve.index is not None):  # quiet ones lie below
        parts.append(_curve(curve, x, y, digits, bands))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img", aria_label=title)


def _curve(curve: Curve, x: Callable[[float], float], y: Callable[[float], float], digits: int, bands: bool) -> Markup:
    there = [(share, at) for share, at in curve.points if at is not None]
    parts = []
    if bands:
        ring = [(share, at.high) for share, at in there] + [(share, at.low) for share, at in reversed(there)]
        parts.append(tag("polygon", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in ring), class_="band"))
    line = " ".join(f"{x(share):.1f},{y(at.mean):.1f}" for share, at in there)
    hint = tag("title", curve.label)
    parts.append(tag("polyline", hint, points=line, class_="line" if curve.index is not None else "line faint"))
    if curve.index is None:
        return tag("g", *parts, class_="others")
    for share, at in there:
        text = f"{curve.label}, {100 * share:g} %: {number(at.mean, digits)} "
        text += interval_words((at.low, at.high), digits)
        parts.append(tag("g", tag("title", text), marker(curve.index, x(share), y(at.mean))))
    return tag("g", *parts, class_=f"s{curve.index % SERIES_COLORS}")


def _ticks(low: float, high: float) -> list[float]:
    """Round values around low and high, at least two and at most six."""
    spare = high - low or max(abs(high), 1e-3) * 0.1
    power = 10.0 ** math.floor(math.log10(spare / _TICKS))
    step = next(factor * power for factor in _STEPS if spare / (factor * power) <= _TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * place for place in range(first, max(last, first + 1) + 1)]


def _short(value: float) -> str:
    return f"{value:.6g}".replace("-", "−") if round(value, 12) else "0"
