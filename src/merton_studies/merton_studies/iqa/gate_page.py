"""The page of a gate study, and its part for other pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from merton.files import write_file
from merton.pages.environment import environment
from merton.pages.svg import SERIES_COLORS, marker, swatch, tag
from merton.statistics.risk import CONFIDENCE, LEAST_TRIALS, Threshold
from merton_studies.iqa.gate import COVERAGES, EVENTS, IMAGES_ONLY, KINDS, MONITOR, NO_GATE, PERFECT, GateDesign
from merton_studies.iqa.gate_groups import GROUPINGS, GroupPromise, GroupRow, least_scenes, rows_by
from merton_studies.iqa.gate_promise import Kept, Promise
from merton_studies.iqa.gate_study import GateStudy, Setting, as_setting, thinned

SHOWN = (MONITOR, IMAGES_ONLY, "merton-nr", "brisque", "blur_effect", "psnr", NO_GATE, PERFECT)
"""Gates with a line in the charts, as far as the table has them; the place is the colour."""
LEAST_COVERAGE = 0.1
"""The charts begin here: with fewer trials the risk is mostly chance."""
TITLES = {
    "scenes": "Scenes that no gate was fitted on",
    "types": "Types of distortion that no gate was fitted on",
    "subjects": "Policies that no gate was fitted on",
}
EVENT_WORDS = {"failure": "failures", "lost": "lost to the image", "stop": "emergency stops"}


def fragment(study: GateStudy, level: int = 2) -> Markup:
    """The study as a part of a page with the style sheet `base.css.j2`: headings from `level` on, no script."""
    return Markup(_environment().get_template("gate.html.j2").render(study=study, level=level))


def write_gate_page(study: GateStudy, source: str, target: Path) -> Path:
    """Write a self-contained page about the gates of the table called `source`; returns its path.

    Raises InfrastructureError if it cannot be written.
    """
    page = _environment().get_template("gate_page.html.j2").render(study=study, source=source)
    write_file(target, page.encode("utf-8", "replace"))
    return target


def legend(design: GateDesign) -> Markup:
    """The lines of `chart`, by name."""
    there = {row.gate.name for row in design.rows}
    items = [tag("li", swatch(SHOWN.index(name)), name) for name in SHOWN if name in there]
    return tag("ul", *items, class_="legend")


def chart(design: GateDesign, width: float = 420.0, height: float = 260.0) -> Markup:
    """Risk against coverage, a line for each gate of `SHOWN`."""
    left, right, top, bottom = 38.0, width - 10.0, 10.0, height - 34.0
    rows = {row.gate.name: row for row in design.rows if row.gate.name in SHOWN}
    lines = {
        name: [(at, risk) for at, risk in thinned(row.curve) if at >= LEAST_COVERAGE] for name, row in rows.items()
    }
    highest = max(risk for points in lines.values() for _, risk in points)
    step = 0.1 if highest > 0.25 else 0.05
    ticks = [step * number for number in range(int(highest / step + 0.999) + 1)]

    def x(coverage: float) -> float:
        return left + (right - left) * coverage

    def y(risk: float) -> float:
        return bottom - (bottom - top) * risk / (ticks[-1] or 1.0)

    parts = []
    for tick in ticks:
        parts.append(tag("line", x1=left, x2=right, y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(tag("text", f"{100 * tick:.0f} %", x=left - 5, y=y(tick) + 3.5, text_anchor="end"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(tag("text", f"{100 * share:.0f} %", x=x(share), y=bottom + 15, text_anchor="middle"))
    parts.append(tag("text", "trials admitted", x=(left + right) / 2, y=height - 4, text_anchor="middle"))
    for name, points in lines.items():
        corners = " ".join(f"{x(at):.1f},{y(risk):.1f}" for at, risk in points)
        index = SHOWN.index(name)
        hint = tag("title", f"{name}: area {rows[name].area.value:.3f}")
        dashes = "2 3" if name in (NO_GATE, PERFECT) else None
        line = tag("polyline", points=corners, class_="line", stroke_dasharray=dashes)
        marks = [marker(index, x(at), y(risk)) for at, risk in _spaced(points)]
        parts.append(tag("g", hint, line, *marks, class_=f"s{index % SERIES_COLORS}"))
    told = "; ".join(f"{name} {rows[name].area.value:.3f}" for name in SHOWN if name in rows)
    label = f"Failures among the admitted trials against the share admitted, held-out {design.name}. Areas: {told}"
    return tag("svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img", aria_label=label)


def _spaced(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points nearest to a coverage of a quarter, a half, three quarters and all."""
    return [min(points, key=lambda point: abs(point[0] - share)) for share in (0.25, 0.5, 0.75, 1.0)]


def promise_rows(study: GateStudy) -> list[tuple[str, str, list[Promise]]]:
    """Gate, event and the promises for each alpha, in their order."""
    found: dict[tuple[str, str], list[Promise]] = {}
    for item in study.promises:
        found.setdefault((item.gate.name, item.event), []).append(item)
    return [(gate, event, items) for (gate, event), items in found.items()]


def threshold_words(threshold: Threshold | None) -> str:
    """A threshold for a table: how much it admits, and how many of those failed in its calibration."""
    if threshold is None:
        return "none"
    return f"{100 * threshold.coverage:.0f} % admitted, {100 * threshold.risk:.1f} % fail"


def kept_words(kept: Kept | None) -> str:
    """How often an average threshold was not kept, such as ", not kept in 9 of the 20 resplits that have one"; empty
    where no resplit has one."""
    if kept is None or not kept.found:
        return ""
    of = f"{kept.found} resplits" if kept.found == kept.resplits else f"the {kept.found} resplits that have one"
    return f", not kept in {kept.not_kept} of {of}"


def grouped_rows(study: GateStudy) -> list[tuple[str, str, str, list[GroupRow]]]:
    """Gate, kind of threshold, grouping and the rows, the most failures first, of the gates that have a threshold."""
    names = dict.fromkeys((row.gate.name, row.kind) for row in study.groups)
    every = ((name, kind, by, rows_by(study.groups, name, by)) for name, kind in names for by in GROUPINGS)
    return [(name, kind, by, rows) for name, kind, by, rows in every if rows]


def group_words(item: GroupPromise) -> str:
    """The thresholds of one group; a sentence where its scenes are too few for any."""
    if item.promise is None:
        return "none, too few scenes or trials"
    guaranteed, average = threshold_words(item.promise.guaranteed), threshold_words(item.promise.average)
    return f"guaranteed {guaranteed}; on average {average}"


def group_setting(item: GroupPromise) -> Setting | None:
    """The threshold of a group for the robot, of a metric of a single image; None without one."""
    if item.promise is None or item.gate.kind != "image":
        return None
    threshold = item.promise.guaranteed or item.promise.average
    return as_setting(item.promise, threshold) if threshold else None


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton_studies.iqa",
        chart=chart,
        legend=legend,
        threshold_words=threshold_words,
        kept_words=kept_words,
        grouped_rows=grouped_rows,
        group_words=group_words,
        group_setting=group_setting,
        least_scenes=least_scenes,
        LEAST_TRIALS=LEAST_TRIALS,
        TITLES=TITLES,
        KINDS=KINDS,
        EVENTS=EVENTS,
        EVENT_WORDS=EVENT_WORDS,
        COVERAGES=COVERAGES,
        promise_rows=promise_rows,
        CONFIDENCE=CONFIDENCE,
    )
