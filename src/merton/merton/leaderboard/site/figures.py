"""The site's pictures as inline SVG. Colours come from the style sheet by class, so that both themes fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from merton.pages.svg import SERIES_COLORS, marker, sequential_color, tag
from merton.statistics.intervals import Interval

HEAT_STEPS = 20
"""Classes h0 .. h20 of the style sheet: scores 0 .. 1 in steps of 0.05."""

_MOST_BINS = 44
_BIN_WIDTHS = (10.0, 20.0, 25.0, 50.0, 100.0, 200.0, 250.0, 500.0, 1000.0)


@dataclass(frozen=True)
class Bin:
    """Ratings from `low` up to `high`: how many cases and agents, and the share of all cases below `high`, 0..1."""

    low: float
    high: float
    cases: int
    agents: int
    share_below: float


@dataclass(frozen=True)
class Track:
    """One agent over the snapshots: (rating, its 95 % interval or None), None if unrated; `index` gives its colour."""

    label: str
    index: int
    points: tuple[tuple[float, Interval | None] | None, ...]


def heat_class(score: float) -> str:
    """The style sheet's class for a score of 0 .. 1."""
    return f"h{round(HEAT_STEPS * min(max(score, 0.0), 1.0))}"


def heat_colors() -> list[tuple[str, str]]:
    """Background and ink of every heat class, darkest first; the scale is the report's."""
    return [sequential_color(step / HEAT_STEPS) for step in range(HEAT_STEPS + 1)]


def bins(cases: Sequence[float], agents: Sequence[float]) -> list[Bin]:
    """A common histogram of the ratings of cases and agents: a round width, at most 44 bins; empty without ratings."""
    both = [*cases, *agents]
    if not both:
        return []
    reach = max(both) - min(both)
    width = next((width for width in _BIN_WIDTHS if reach / width <= _MOST_BINS - 2), reach / (_MOST_BINS - 2))
    first, last = math.floor(min(both) / width), math.floor(max(both) / width)
    edges = width * np.arange(first, last + 2)
    of_cases, of_agents = np.histogram(cases, edges)[0], np.histogram(agents, edges)[0]
    below = np.cumsum(of_cases) / max(len(cases), 1)
    return [
        Bin(float(edges[i]), float(edges[i + 1]), int(of_cases[i]), int(of_agents[i]), float(below[i]))
        for i in range(len(of_cases))
    ]


def distribution(
    cases: Sequence[float], agents: Sequence[tuple[str, float]], oracles: Sequence[tuple[float, float]], title: str
) -> Markup:
    """Ratings of cases (bars up) and agents (bars down) on one axis, as in Fig. 3 of AGI-Elo.

    Args:
        cases: their ratings.
        agents: (name, rating); the best one is labelled, and each has a tick with its name.
        oracles: (p, rating) of the oracles, drawn as dashed lines.
        title: for screen readers.
    """
    width, top, axis, bottom = 1240.0, 34.0, 250.0, 360.0
    left, right = 66.0, width - 66.0
    ratings = [rating for _, rating in agents]
    found = bins(cases, ratings)
    if not found:
        return Markup("")
    low = found[0].low
    high = max([found[-1].high, *(rating + 30.0 for _, rating in oracles)])

    def x(rating: float) -> float:
        return left + (right - left) * (rating - low) / (high - low)

    most_cases, most_agents = max(item.cases for item in found) or 1, max(item.agents for item in found) or 1
    parts = [*_grid(low, high, x, top, bottom), *_histogram(found, x, top, axis, bottom)]
    parts.append(tag("line", x1=left, x2=right, y1=axis, y2=axis, class_="axis-line"))
    if cases:
        steps = [(found[0].low, 0.0), *((item.high, item.share_below) for item in found)]
        curve = " ".join(f"{x(rating):.1f},{axis - (axis - top) * share:.1f}" for rating, share in steps)
        parts.append(tag("polyline", points=curve, class_="percentile"))
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            parts.append(tag("text", f"{100 * share:.0f}\u00a0%", x=right + 6, y=axis - (axis - top) * share + 4))
        parts.append(_upright("share of cases that are easier", width - 8, (top + axis) / 2))
    for count, y in _counts(most_cases, axis, top) + _counts(most_agents, axis, bottom - 26.0)[1:]:
        parts.append(tag("text", count, x=left - 6, y=y + 4, text_anchor="end"))
    parts += _agent_ticks(agents, x, bottom, (left + right) / 2)
    for p, rating in oracles:
        parts.append(tag("line", x1=x(rating), x2=x(rating), y1=top - 8, y2=bottom, class_="oracle"))
        parts.append(
            tag("text", f"target {100 * p:g} %", x=x(rating), y=top - 20, text_anchor="middle", class_="strong")
        )
    parts.append(_upright("number of cases", 14, (top + axis) / 2))
    parts.append(_upright("of agents", 14, (axis + bottom - 26.0) / 2))
    middle = (left + right) / 2
    parts.append(
        tag(
            "text",
            f"rating, Elo points (bars {found[0].high - found[0].low:g} wide)",
            x=middle,
            y=bottom + 54,
            text_anchor="middle",
        )
    )
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {bottom + 60:g}",
        class_="chart wide-chart",
        role="img",
        aria_label=title,
    )


def _counts(most: int, axis: float, end: float) -> list[tuple[int, float]]:
    """(count, y) of the ticks of bars that reach from `axis` to `end` at `most`: 0, at most three between, `most`."""
    step = max(math.ceil(most / 4), 1)
    ticks = [*range(0, most, step), most]
    if len(ticks) > 2 and ticks[-1] - ticks[-2] < step / 2:
        del ticks[-2]  # too close to be read
    return [(count, axis + (end - axis) * count / most) for count in ticks]


def _upright(text: str, x: float, y: float) -> Markup:
    """The title of a vertical axis."""
    return tag("text", text, x=x, y=y, text_anchor="middle", transform=f"rotate(-90 {x:g} {y:g})")


def _histogram(
    found: Sequence[Bin], x: Callable[[float], float], top: float, axis: float, bottom: float
) -> Iterable[Markup]:
    """Bars of cases up and of agents down from the axis, each scaled to its largest bin."""
    most_cases, most_agents = max(item.cases for item in found) or 1, max(item.agents for item in found) or 1
    for item in found:
        box = {"x": x(item.low) + 0.5, "width": max(x(item.high) - x(item.low) - 1.0, 0.5)}
        for count, most, room, kind in (
            (item.cases, most_cases, axis - top, "cases"),
            (item.agents, most_agents, bottom - axis - 26.0, "agents"),
        ):
            if count:
                hint = tag("title", f"{item.low:.0f} to {item.high:.0f}: {count} {kind}")
                size = room * count / most
                y = axis - size if kind == "cases" else axis
                yield tag("rect", hint, **box, y=y, height=float(size), class_=f"{kind}-bar")


def _agent_ticks(
    agents: Sequence[tuple[str, float]], x: Callable[[float], float], bottom: float, middle: float
) -> Iterable[Markup]:
    """A tick for each agent, and the name of the best."""
    for name, rating in agents:
        hint = tag("title", f"{name}: {rating:.0f}")
        ends = {"x1": x(rating), "x2": x(rating), "y1": bottom - 16, "y2": bottom - 4}
        yield tag("line", hint, **ends, class_="agent-tick")
    if agents:
        name, rating = max(agents, key=lambda item: item[1])
        anchor = "end" if x(rating) > middle else "start"
        yield tag("text", f"highest: {name}", x=x(rating), y=bottom + 34, text_anchor=anchor, class_="strong")
        yield tag("line", x1=x(rating), x2=x(rating), y1=bottom - 16, y2=bottom + 22, class_="agent-tick")


def _grid(low: float, high: float, x: Callable[[float], float], top: float, bottom: float) -> Iterable[Markup]:
    step = next((s for s in (50.0, 100.0, 200.0, 250.0, 500.0, 1000.0) if (high - low) / s <= 12), (high - low) / 10)
    for index in range(math.ceil(low / step), math.floor(high / step) + 1):
        place = x(index * step)
        yield tag("line", x1=place, x2=place, y1=top, y2=bottom, class_="grid")
        yield tag("text", f"{index * step:.0f}", x=place, y=bottom + 14, text_anchor="middle")


def history(tracks: Sequence[Track], snapshots: int, title: str) -> Markup:
    """Ratings with their 95 % intervals over snapshots 1, 2, 3 and so on; a gap where an agent was not rated."""
    width, height, left, top = 1240.0, 380.0, 66.0, 12.0
    right, bottom = width - 14.0, height - 38.0
    points = [point for track in tracks for point in track.points if point]
    ends = [end for rating, interval in points for end in (interval or (rating,))]
    if not ends:
        return Markup("")
    spare = 0.04 * (max(ends) - min(ends))
    low, high = min(ends) - spare, max(ends) + spare

    def x(place: int) -> float:
        return left + 20.0 + (right - left - 40.0) * place / max(snapshots - 1, 1)

    def y(rating: float) -> float:
        return bottom - (bottom - top) * (rating - low) / (high - low or 1.0)

    parts = []
    step = next(
        (s for s in (25.0, 50.0, 100.0, 200.0, 500.0, 1000.0) if (high - low) / s <= 8), max(high - low, 1.0) / 6
    )
    for index in range(math.ceil(low / step), math.floor(high / step) + 1):
        parts.append(tag("line", x1=left, x2=right, y1=y(index * step), y2=y(index * step), class_="grid"))
        parts.append(tag("text", f"{index * step:.0f}", x=left - 6, y=y(index * step) + 4, text_anchor="end"))
    every = math.ceil(snapshots / 20)
    for place in range(0, snapshots, every):
        parts.append(tag("text", place + 1, x=x(place), y=bottom + 16, text_anchor="middle"))
    parts.append(_upright("rating, Elo points", 14, (top + bottom) / 2))
    parts.append(tag("text", "snapshot", x=(left + right) / 2, y=height - 4, text_anchor="middle"))
    for track in tracks:
        parts.append(_track(track, x, y))
    return tag(
        "svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart wide-chart", role="img", aria_label=title
    )


def _track(track: Track, x: Callable[[int], float], y: Callable[[float], float]) -> Markup:
    parts, run = [], []
    for place, point in enumerate((*track.points, None)):
        if point is not None:
            run.append((place, point))
            continue
        parts.append(tag("polyline", points=" ".join(f"{x(at):.1f},{y(p[0]):.1f}" for at, p in run), class_="line"))
        for at, (rating, interval) in run:
            reach = ""
            if interval:
                low, high = interval
                parts.append(tag("line", x1=x(at), x2=x(at), y1=y(low), y2=y(high), class_="whisker"))
                reach = f" {interval:.0f}"
            hint = tag("title", f"{track.label}, snapshot {at + 1}: {rating:.0f}{reach}")
            parts.append(tag("g", hint, marker(track.index, x(at), y(rating))))
        run = []
    return tag("g", *parts, class_=f"s{track.index % SERIES_COLORS}")


def calibration(pairs: Sequence[tuple[float, float]], title: str) -> Markup:
    """Mean observed score against the mean prediction of each bin, 0..1; a right forecast lies on the diagonal."""
    size, left = 300.0, 52.0
    bottom = size - 40.0
    room = bottom - 10.0

    def spot(predicted: float, observed: float) -> tuple[float, float]:
        return left + room * predicted, bottom - room * observed

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            tag("line", x1=left, x2=left + room, y1=bottom - room * share, y2=bottom - room * share, class_="grid")
        )
        parts.append(tag("text", f"{100 * share:g}", x=left - 6, y=bottom - room * share + 4, text_anchor="end"))
        parts.append(tag("text", f"{100 * share:g}", x=left + room * share, y=bottom + 14, text_anchor="middle"))
    parts.append(tag("line", x1=left, y1=bottom, x2=left + room, y2=bottom - room, class_="percentile"))
    parts.append(tag("text", "predicted score, 0 to 100", x=left + room / 2, y=size - 4, text_anchor="middle"))
    parts.append(_upright("observed mean score", 12, bottom - room / 2))
    for predicted, observed in pairs:
        hint = tag("title", f"predicted {predicted:.2f}, observed {observed:.2f}")
        x, y = spot(predicted, observed)
        parts.append(tag("circle", hint, cx=x, cy=y, r=4, class_="dot"))
    return tag(
        "svg", *parts, viewBox=f"0 0 {size:g} {size:g}", class_="chart square-chart", role="img", aria_label=title
    )
