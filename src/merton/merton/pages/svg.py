"""Inline SVG and colours for every page. Everything that is passed in comes out escaped."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup, escape

from merton.pages.words import interval_words
from merton.statistics.intervals import Interval

SERIES_COLORS = 8
"""Number of series that the style sheet has a colour for (classes s0 .. s7); more than that start again."""


def series_slots(names: Iterable[str]) -> dict[str, int]:
    """The colour and marker of each agent or model, 0 or more: from its name, so it is the same on every page.

    A name has the slot of its hash. Where several hash to one, the first in alphabetical order has it and the others
    have the next free ones; neither a rank nor the order of `names` counts.
    """
    wanted = {name: hashlib.sha256(name.encode("utf-8", "replace")).digest()[0] % SERIES_COLORS for name in names}
    slots: dict[int, str] = {}
    for name in sorted(wanted):
        slots.setdefault(wanted[name], name)
    places = SERIES_COLORS * math.ceil(len(wanted) / SERIES_COLORS)
    for name in sorted(set(wanted) - set(slots.values())):
        slots[next(at for at in range(wanted[name], wanted[name] + places) if at % places not in slots) % places] = name
    return {name: slot for slot, name in slots.items()}


MOST_STEPS = 4
"""Of a scale of ratings, between its ticks (classes t1 .. t4 of the style sheet): so many numbers stand apart on a
phone."""


class PlottedRating(Protocol):
    """A rating, perhaps with its 95 % interval; with a `flag` ("only wins", "only losses") an agent's is a bound."""

    @property
    def mean(self) -> float: ...

    @property
    def interval(self) -> Interval | None: ...

    @property
    def flag(self) -> str: ...


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; children and attribute values are escaped, `stroke_width` becomes stroke-width, `class_` class."""
    shown = Markup("").join(
        Markup(' {}="{}"').format(Markup(key.rstrip("_").replace("_", "-")), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(escape(child) for child in children)
    return Markup("<{}{}>{}</{}>").format(Markup(name), shown, body, Markup(name))


def _value(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def sequential_color(share: float) -> tuple[str, str]:
    """Background and ink colour (#rrggbb) for a value 0 (worst, dark) .. 1 (best, light).

    Ours: equal steps of lightness in OKLab from a deep indigo over teal to a pale green, so equal differences of score
    look equally large, also in grey and to colour-blind readers. The ink is black or white, whichever contrasts more.
    """
    share = min(max(share, 0.0), 1.0)
    lightness, chroma, hue = (
        0.30 + 0.64 * share,
        0.055 + 0.055 * math.sin(math.pi * share),
        math.radians(285 - 130 * share),
    )
    red, green, blue = _linear_rgb(lightness, chroma * math.cos(hue), chroma * math.sin(hue))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    ink = "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"
    return "#" + "".join(f"{_gamma(channel):02x}" for channel in (red, green, blue)), ink


def _linear_rgb(lightness: float, a: float, b: float) -> list[float]:
    """OKLab to linear sRGB in 0..1 (matrices: Ottosson 2020)."""
    cone = [
        (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    ]
    matrix = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    return [min(max(sum(m * c for m, c in zip(row, cone, strict=True)), 0.0), 1.0) for row in matrix]


def _gamma(channel: float) -> int:
    encoded = 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055
    return round(255 * encoded)


def scale_gradient(steps: int = 13) -> str:
    """The colour scale as the colour stops of a CSS linear-gradient."""
    return ", ".join(sequential_color(step / (steps - 1))[0] for step in range(steps))


def rating_domain(ratings: Iterable[PlottedRating | None], of_agents: bool = True) -> tuple[float, float]:
    """The (low, high) Elo range, in whole hundreds, of all ratings and their intervals.

    An agent's bound is in it only where there is no other rating: on a scale that holds a distant one, the intervals
    of the others would be too short to compare.
    """
    shown = [item for item in ratings if item is not None]
    estimates = [item for item in shown if not (item.flag and of_agents)]
    ends = [end for item in estimates for end in (item.interval or ()) + (item.mean,)]
    ends = ends or [item.mean for item in shown]
    return (100.0 * math.floor(min(ends) / 100), 100.0 * math.ceil(max(ends) / 100)) if ends else (0.0, 100.0)


@dataclass(frozen=True)
class Scale:
    """A common range of ratings for `interval_bar`, divided into `steps` equal parts by its ticks."""

    low: float
    high: float
    steps: int

    @property
    def span(self) -> tuple[float, float]:
        """The range, (low, high)."""
        return self.low, self.high

    @property
    def ticks(self) -> list[float]:
        """The ratings at its ticks, both ends among them."""
        return [self.low + (self.high - self.low) * step / self.steps for step in range(self.steps + 1)]


def rating_scale(ratings: Iterable[PlottedRating | None], of_agents: bool = True) -> Scale:
    """The `rating_domain`, widened to whole steps of a round length, at most `MOST_STEPS` of them."""
    low, high = rating_domain(ratings, of_agents)
    lengths = (factor * 10**power for power in itertools.count() for factor in (100.0, 200.0, 250.0, 500.0))
    for length in lengths:
        first, last = math.floor(low / length), math.ceil(high / length)
        if last - first <= MOST_STEPS:
            return Scale(length * first, length * max(last, first + 1), max(last - first, 1))
    raise AssertionError("lengths never end")


def scale_ticks(scale: Scale) -> Markup:
    """The numbers of a scale, to stand over bars of the same width."""
    last = len(scale.ticks) - 1
    texts = [
        tag(
            "text",
            f"{rating:.0f}",
            x=f"{100.0 * place / last:.2f}%",
            y=11,
            text_anchor="start" if not place else "end" if place == last else "middle",
        )
        for place, rating in enumerate(scale.ticks)
    ]
    return tag(
        "svg", *texts, class_="bar ticks", role="img", aria_label=f"scale from {scale.low:.0f} to {scale.high:.0f}"
    )


def interval_bar(rating: PlottedRating, span: tuple[float, float], of_agent: bool = True, steps: int = 0) -> Markup:
    """A rating as a dot on its 95 % interval, on the common range `span`; without an interval a dot alone.

    It is as wide as the style sheet says. An agent that won or lost everything has only a bound: a ring, and a dashed
    line to the side on which it has no end; beyond the range the ring stands at its end. A case has an interval all the
    same. With `steps` it has the class of so many ticks.
    """
    low, high = span

    def x(value: float) -> str:
        share = (value - low) / (high - low or 1.0)
        return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"

    is_bound = of_agent and bool(rating.flag)
    label = f"a bound, {rating.flag}" if is_bound else "no interval"
    parts = [tag("line", x1=0, x2="100%", y1=9, y2=9, class_="track")]
    if is_bound:
        end = "100%" if rating.flag == "only wins" else "0%"
        parts.append(tag("line", x1=x(rating.mean), x2=end, y1=9, y2=9, class_="open"))
    elif rating.interval is not None:
        low_end, high_end = rating.interval
        label = f"95 percent interval {interval_words(rating.interval, 0)}"
        parts.append(tag("line", x1=x(low_end), x2=x(high_end), y1=9, y2=9, class_="interval"))
    parts.append(tag("circle", cx=x(rating.mean), cy=9, r=4, class_="ring" if is_bound else "dot"))
    return tag("svg", *parts, class_=f"bar t{steps}" if steps else "bar", role="img", aria_label=label)


def swatch(index: int) -> Markup:
    """The line and marker of a series, for a legend."""
    line = tag("line", x1=0, x2=28, y1=7, y2=7, class_="line")
    group = tag("g", line, marker(index, 14, 7), class_=f"s{index % SERIES_COLORS}")
    return tag("svg", group, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def marker(index: int, x: float, y: float) -> Markup:
    """Circle, square, diamond or triangle: up to 32 series can be told apart by colour and marker, four by marker."""
    size = 3.4
    outlines = (
        None,
        ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        ((0, -1.45), (1.45, 0), (0, 1.45), (-1.45, 0)),
        ((0, -1.3), (1.3, 1.0), (-1.3, 1.0)),
    )
    outline = outlines[(index + index // SERIES_COLORS) % len(outlines)]
    if outline is None:
        return tag("circle", cx=float(x), cy=float(y), r=size, class_="mark")
    return tag(
        "polygon", points=" ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in outline), class_="mark"
    )
