"""Pictures of the paths of a trial as inline SVG: in the cell over its table, or in another world's own frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from merton.pages.svg import tag
from merton.results.recorded_world import RecordedWorld

PATH_POINTS = 200
REACH_M = 2.0
"""Of any arm: points of a path in the cell are kept within."""
_FAR = 1e9
"""Of any unit: so far are points of other worlds kept, whose numbers are not trusted."""
GRID_LINES = 6
"""About so many grid lines fill the smaller side of a picture in a frame of its own."""
WIDTH, HEIGHT = 424.0, 240.0

Path3 = NDArray[np.float64]
"""Positions of the tool centre point in `base_link`, shape (n, 3) [m]; of another world in its frame."""


@dataclass(frozen=True)
class Window:
    """The part of space that a trajectory picture shows, in `base_link`: (low, high) corners, shape (3,) each [m]."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def path_of(detail: Mapping[str, Any], key: str, world: RecordedWorld | None = None) -> Path3:
    """A path of a trial, thinned to `PATH_POINTS`, in the cell kept within reach of any arm; empty if it is not one.

    Args:
        detail: its trial.json, in which nothing has been checked.
        key: of the path there.
        world: of the run; None for the cell.
    """
    try:
        points = np.asarray(detail.get(key) or [], dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != 3:
        return np.zeros((0, 3))
    reach = REACH_M if world is None else _FAR
    points = points[np.isfinite(points).all(axis=1)].clip(-reach, reach)
    if len(points) > PATH_POINTS:
        points = points[np.linspace(0, len(points) - 1, PATH_POINTS).round().astype(int)]
    return points


def pictures(reference: Path3, distorted: Path3, world: RecordedWorld | None = None) -> list[tuple[Markup, str]]:
    """Pictures of both paths, each with its caption: from above and from the side, or in the frame of another world.

    None of a world where no path is known.
    """
    if world is None:
        window = window_of((reference, distorted))
        shown = {"top": "tool path from above", "side": "tool path from the side"}
        return [(trajectory(reference, distorted, view, window), words) for view, words in shown.items()]
    planes = _planes(reference, distorted)
    caption = f"path in {world.frame}" if world.frame else "path"
    return [(_in_frame(reference, distorted, plane, world.unit), caption) for plane in planes]


def _planes(*paths: Path3) -> list[tuple[int, int]]:
    """The planes in which points lie apart: x and y, and x and z where the height varies, too; none for no point."""
    points = np.concatenate(paths)
    if not len(points):
        return []
    return [(0, 1), (0, 2)] if np.ptp(points[:, 2]) > 0 else [(0, 1)]


def window_of(paths: Iterable[Path3]) -> Window:
    """A window around paths and the table top (z = 0): 6 cm to spare, and at least half a metre wide and deep."""
    points = np.concatenate([np.zeros((0, 3)), *paths])
    if not len(points):
        points = np.array([[0.5, 0.0, 0.0]])
    low, high = points.min(axis=0) - 0.06, points.max(axis=0) + 0.06
    low[2], high[2] = min(low[2], -0.06), max(high[2], 0.2)
    spare = np.maximum(0.0, 0.5 - (high - low)) / 2 * (1.0, 1.0, 0.0)
    return Window(low - spare, high + spare)


def trajectory(
    reference: Path3, distorted: Path3, view: str, window: Window, width: float = WIDTH, height: float = HEIGHT
) -> Markup:
    """The tool's path in the reference and in the distorted run, seen from "top" or from the "side".

    From the top, forward (+x) is up and left (+y) is left, as in the top camera's image; from the side, the robot
    stands left, forward is right, and the table top is drawn at z = 0. Grid lines are 10 cm apart, to one scale.
    """
    plane, sign = ((1, 0), -1.0) if view == "top" else ((0, 2), 1.0)
    canvas = _Canvas(plane, window, sign, width, height)
    parts = list(canvas.grid(10))
    if view == "side":
        table = canvas.y(0.0)
        parts.append(tag("rect", x=0, y=table, width=width, height=max(height - table, 0.0), class_="table"))
        parts.append(tag("text", "table", x=8, y=min(table + 14, height - 4)))
    labels = ("seen from above", "forward ↑") if view == "top" else ("seen from the right", "forward →")
    parts += canvas.words(*labels, "grid 10 cm")
    miss = _miss(reference, distorted, 100.0, "cm") or "not recorded"
    return canvas.picture([*parts, *canvas.lines(reference, distorted)], f"Tool path {labels[0]}: {miss}")


def _in_frame(reference: Path3, distorted: Path3, plane: tuple[int, int], unit: str) -> Markup:
    """Both paths in a plane of their frame, in their own scale and unit."""
    points = np.concatenate([reference, distorted])
    low, high = points.min(axis=0), points.max(axis=0)
    spare = 0.08 * max(float((high - low)[list(plane)].max()), 1e-9)
    canvas = _Canvas(plane, Window(low - spare, high + spare))
    step = _round_step(min(canvas.width, canvas.height) / canvas.scale / GRID_LINES)
    across, up = ("xyz"[axis] for axis in plane)
    words = canvas.words(f"{across} →", f"{up} ↑", f"grid {step:g} {unit}".strip())
    label = f"Path in {across} and {up}: {_miss(reference, distorted, 1.0, unit) or 'of one run'}"
    return canvas.picture([*canvas.grid(1.0 / step), *words, *canvas.lines(reference, distorted)], label)


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least)


class _Canvas:
    """A window drawn to one scale: `x` and `y` are pixels of coordinates across and up."""

    def __init__(
        self,
        plane: tuple[int, int],
        window: Window,
        sign: float = 1.0,
        width: float = WIDTH,
        height: float = HEIGHT,
    ) -> None:
        self.plane, self.sign, self.width, self.height = plane, sign, width, height
        (a_low, u_low), (a_high, u_high) = (corner[list(plane)] for corner in (window.low, window.high))
        self.scale = min(width / (a_high - a_low), height / (u_high - u_low))
        self.middle = (a_low + a_high) / 2, (u_low + u_high) / 2

    def x(self, value: float) -> float:
        return float(self.width / 2 + self.sign * self.scale * (value - self.middle[0]))

    def y(self, value: float) -> float:
        return float(self.height / 2 - self.scale * (value - self.middle[1]))

    def grid(self, lines_a_unit: float) -> Iterator[Markup]:
        (across, up), (half_a, half_u) = self.middle, (self.width / 2 / self.scale, self.height / 2 / self.scale)
        n = lines_a_unit
        for line in range(math.ceil((across - half_a) * n), math.floor((across + half_a) * n) + 1):
            yield tag("line", x1=self.x(line / n), x2=self.x(line / n), y1=0, y2=self.height, class_="grid")
        for line in range(math.ceil((up - half_u) * n), math.floor((up + half_u) * n) + 1):
            yield tag("line", x1=0, x2=self.width, y1=self.y(line / n), y2=self.y(line / n), class_="grid")

    def words(self, left: str, right: str, below: str) -> list[Markup]:
        return [
            tag("text", left, x=8, y=16),
            tag("text", right, x=self.width - 8, y=16, text_anchor="end"),
            tag("text", below, x=self.width - 8, y=self.height - 7, text_anchor="end"),
        ]

    def lines(self, reference: Path3, distorted: Path3) -> Iterator[Markup]:
        across, up = self.plane
        if len(reference) and len(distorted):
            ends = {"x1": self.x(reference[-1, across]), "y1": self.y(reference[-1, up])}
            yield tag("line", **ends, x2=self.x(distorted[-1, across]), y2=self.y(distorted[-1, up]), class_="miss")
        for path, kind in ((reference, "reference"), (distorted, "distorted")):
            if not len(path):
                continue
            corners = " ".join(f"{self.x(point[across]):.1f},{self.y(point[up]):.1f}" for point in path)
            end = {"cx": self.x(path[-1, across]), "cy": self.y(path[-1, up])}
            yield tag("polyline", points=corners, class_=f"path {kind}")
            yield tag("circle", **end, r=6.5 if kind == "reference" else 4.5, class_=f"end {kind}")
        start = next((path[0] for path in (distorted, reference) if len(path)), None)
        if start is not None:
            yield tag("circle", cx=self.x(start[across]), cy=self.y(start[up]), r=4, class_="start")

    def picture(self, parts: Sequence[Markup], label: str) -> Markup:
        view = f"0 0 {self.width:g} {self.height:g}"
        return tag("svg", *parts, viewBox=view, class_="trajectory", role="img", aria_label=label)


def _miss(reference: Path3, distorted: Path3, units: float, unit: str) -> str:
    if not len(reference) or not len(distorted):
        return ""
    far = units * float(np.linalg.norm(reference[-1] - distorted[-1]))
    return f"the distorted run ends {f'{far:.1f} {unit}'.strip()} from the reference run"
