"""The page of a replay: the number of trials that would have left the recorded motion, and their paths."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from merton.files import write_file
from merton.pages.environment import environment
from merton.pages.svg import tag
from merton.recording.images import jpeg
from merton.world.observation import Image
from merton_studies.twins.finding import twins_finding
from merton_studies.twins.motion import TOLERANCE_M, VERDICTS
from merton_studies.twins.replay import Replay
from merton_studies.twins.summary import SettingSummary, self_checks, summaries
from merton_studies.twins.twin import Twin, views_at

MOST_FIGURES = 60
"""So many settings have pictures on the page, the first ones; all are in the tables."""
_QUALITY = 80
_PANEL_PX, _EDGE_PX = 150.0, 8.0
_LEAST_SPAN_M = 0.1
"""A panel shows at least this much, so that millimetres look like millimetres."""


def write_page(found: Replay, target: Path) -> Path:
    """Write a self-contained page, and return its path; the same replay gives the same bytes.

    Raises InfrastructureError if it cannot be written.
    """
    shown = summaries(found)
    figures = [_figure(each, found) for each in shown[:MOST_FIGURES]]
    page = (
        environment(
            "merton_studies.twins", VERDICTS=VERDICTS, TOLERANCE_CM=100 * TOLERANCE_M, MOST_FIGURES=MOST_FIGURES
        )
        .get_template("twins.html.j2")
        .render(
            found=found,
            finding=twins_finding(shown),
            summaries=shown,
            checks=self_checks(found),
            figures=figures,
            trials=len({twin.trial.id for twin in found.twins}),
            scenes=len({twin.trial.cluster for twin in found.twins}),
        )
    )
    write_file(target, page.encode("utf-8", "replace"))
    return target


def _figure(summary: SettingSummary, found: Replay) -> dict[str, object]:
    """The trial of a setting that would have gone farthest: its pictures and both paths."""
    twin = max((each.farthest for each in summary.trials), key=lambda one: one.away.distance_m)
    recorded, shown = views_at(twin, found.design)
    camera = next(iter(recorded))
    pictures = [embedded(views[camera].color) for views in (recorded, shown)]
    return {"twin": twin, "camera": camera, "pictures": pictures, "paths": paths(twin)}


def embedded(pixels: Image) -> str:
    """A picture as a page has it in itself, an address of its content."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg(pixels, _QUALITY)).decode()}"


def paths(twin: Twin) -> Markup:
    """Both paths of the tool from above and from the side, on one scale; the ring is the tolerance at the end."""
    lines = (twin.reference.path, twin.motion.path)
    points = np.concatenate(lines)
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    span_m = max(float(np.ptp(points, axis=0).max()), _LEAST_SPAN_M) + 2 * TOLERANCE_M
    scale = (_PANEL_PX - 2 * _EDGE_PX) / span_m
    panels = [_panel(lines, center, scale, axes, at) for at, axes in enumerate(((1, 0), (0, 2)))]
    width = 2 * _PANEL_PX + 20
    label = (
        f"paths of the tool, recorded and on the distorted picture: {100 * twin.away.distance_m:.1f} cm apart; a "
        f"panel is {100 * span_m:.0f} cm wide"
    )
    titles = [
        tag("text", text, x=_PANEL_PX / 2 + at * (_PANEL_PX + 20), y=_PANEL_PX + 14, text_anchor="middle")
        for at, text in enumerate((f"from above, {100 * span_m:.0f} cm", "from the side"))
    ]
    return tag("svg", *panels, *titles, viewBox=f"0 0 {width:g} {_PANEL_PX + 20:g}", class_="paths", role="img",
               aria_label=label)  # fmt: skip


def _panel(
    lines: tuple[NDArray[np.float64], ...], center: NDArray[np.float64], scale: float, axes: tuple[int, int], at: int
) -> Markup:
    """One view of the paths. From above y runs to the left and x up, as seen from behind the robot."""
    across, up = axes
    turn = -1.0 if across == 1 else 1.0
    left = at * (_PANEL_PX + 20)

    def place(point: NDArray[np.float64]) -> tuple[float, float]:
        dx, dy = (point - center)[[across, up]]
        return left + _PANEL_PX / 2 + turn * scale * float(dx), _PANEL_PX / 2 - scale * float(dy)

    parts = [tag("rect", x=left, y=0, width=_PANEL_PX, height=_PANEL_PX, rx=4, class_="panel")]
    x, y = place(lines[0][0])
    parts.append(tag("circle", cx=x, cy=y, r=3, class_="start"))  # below the ends: those of an arm that stays are seen
    for name, line in zip(("recorded", "twin"), lines, strict=True):
        corners = [place(point) for point in line]
        x, y = corners[-1]
        drawn = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        ring = [tag("circle", cx=x, cy=y, r=scale * TOLERANCE_M, class_="tolerance")] if name == "recorded" else []
        parts += [tag("g", tag("polyline", points=drawn, class_="line"), *ring,
                      tag("circle", cx=x, cy=y, r=3.2, class_="mark"), class_=name)]  # fmt: skip
    return tag("g", *parts)
