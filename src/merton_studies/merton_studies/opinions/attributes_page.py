"""The page of low-level attributes by type of distortion: a panel for each type, a curve for each attribute."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from merton import __version__
from merton.files import write_file
from merton.pages.environment import environment
from merton.pages.svg import tag
from merton.pages.words import number, readable
from merton_studies.opinions.attributes import ATTRIBUTES, AttributeStudy, TypeAttributes

TONES = {"holds": "good", "does not hold": "bad", "not resolved": "warn", "not applicable": ""}
ENDS = 3.0
"""Standard deviations that a panel shows to either side; images beyond are in its first and last part."""
BINS = 30
_KERNEL = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0

Floats = NDArray[np.float64]


def write_attributes_page(study: AttributeStudy, target: Path, source: str = "") -> Path:
    """Write the page, which needs no other file; same study, same bytes. Returns its path.

    Raises InfrastructureError if it cannot be written.
    """
    curves = {one.label: _curves(one) for one in study.types}
    highest = max(float(np.nanmax(each)) for each in curves.values())
    text = (
        _environment()
        .get_template("attributes_page.html.j2")
        .render(
            study=study,
            source=source,
            version=__version__,
            panels=[(one, panel(one, curves[one.label], highest)) for one in study.types],
        )
    )
    write_file(target, text.encode("utf-8", "replace"))
    return target


def panel(one: TypeAttributes, curves: Floats, highest: float) -> Markup:
    """The distributions of a type's attributes, laid over each other; heights are square roots of shares."""
    width, height = 200.0, 92.0
    bottom = height - 15.0

    def x(value: float) -> float:
        return 4.0 + (width - 8.0) * (value + ENDS) / (2.0 * ENDS)

    means = ", ".join(
        f"{readable(name)} {number(mean)} ({number(spread)})"
        for name, (mean, spread) in zip(ATTRIBUTES, one.moments, strict=True)
    )
    title = f"{one.label}: mean (standard deviation) of {means}"
    parts = [
        tag("title", title),
        tag("line", x1=4.0, x2=width - 4.0, y1=bottom, y2=bottom, class_="grid"),
        tag("line", x1=x(0.0), x2=x(0.0), y1=4.0, y2=bottom, class_="grid"),
    ]
    for tick, anchor in ((-ENDS, "start"), (0.0, "middle"), (ENDS, "end")):
        parts.append(tag("text", f"{tick:g}".replace("-", "−"), x=x(tick), y=height - 2.0, text_anchor=anchor))
    middles = -ENDS + 2.0 * ENDS * (np.arange(BINS) + 0.5) / BINS
    for slot, curve in enumerate(curves):
        if np.isnan(curve).any():
            continue
        heights = bottom - (bottom - 4.0) * np.sqrt(curve / max(highest, 1e-9))
        corners = " ".join(f"{x(at):.1f},{up:.1f}" for at, up in zip(middles.tolist(), heights.tolist(), strict=True))
        parts.append(tag("polyline", points=corners, class_="line", style=f"stroke:var(--s{slot})"))
    return tag("svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img", aria_label=title)


def swatch(slot: int) -> Markup:
    """The line of an attribute, for the legend."""
    line = tag("line", x1=0, x2=28, y1=7, y2=7, class_="line", style=f"stroke:var(--s{slot})")
    return tag("svg", line, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def _curves(one: TypeAttributes) -> Floats:
    """(5, BINS) the share of images in each part of -ENDS .. ENDS, smoothed; NaN of an attribute that is not known."""
    edges = np.linspace(-ENDS, ENDS, BINS + 1)
    found = np.full((len(ATTRIBUTES), BINS), np.nan)
    for row, column in enumerate(one.values.T):
        known = column[~np.isnan(column)]
        if len(known):
            counts = np.histogram(np.clip(known, -ENDS, ENDS), edges)[0] / len(known)
            found[row] = np.convolve(np.pad(counts, 2, mode="symmetric"), _KERNEL, mode="valid")
    return found


@cache
def _environment() -> jinja2.Environment:
    return environment("merton_studies.opinions", TONES=TONES, ATTRIBUTES=ATTRIBUTES, swatch=swatch)
