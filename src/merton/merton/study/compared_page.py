"""The page of a comparison of two runs, and the same as JSON values."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from merton.pages import svg
from merton.pages.environment import environment
from merton.pages.svg import tag
from merton.pages.words import interval_words
from merton.results.records import TrialRecord
from merton.study import compared_words as words
from merton.study.changed_settings import Change
from merton.study.compared import QUANTITIES, AgentDifferences, Breakdown, Comparison, Difference

FLIPS_SHOWN = 500
"""Trials that ended otherwise: more make the page slow. Ours."""
PICTURES_SHOWN = 4
STEP = 0.2
"""The ends of the common axis of differences are whole multiples of it."""


@dataclass(frozen=True)
class Side:
    """One of the two that are compared.

    Attributes:
        name: as the user named it, or the run's own name.
        run: the run's folder; None for a record without one.
        about: when it was begun and whether it is unfinished, in words; may be empty.
    """

    name: str
    run: Path | None = None
    about: str = ""


def page(
    comparison: Comparison, changed: Sequence[Change], sides: tuple[Side, Side], notes: Iterable[str], folder: Path
) -> str:
    """The page as text, whose links to the runs are relative to `folder`; the same comparison gives the same bytes.

    It needs no other file and makes no request.

    Args:
        comparison: of A and B.
        changed: the settings that differ.
        sides: A and B.
        notes: sentences that stand under the finding, such as that a run is unfinished.
        folder: where the page will lie.
    """
    slots = svg.series_slots([row.pair.name for row in comparison.agents])
    return (
        _environment()
        .get_template("compared.html.j2")
        .render(
            comparison=comparison,
            changed=changed,
            sides=list(zip("AB", sides, strict=True)),
            reports=[_link(side, "report.html", folder) or _link(side, "gate.html", folder) for side in sides],
            notes=list(notes),
            slots=slots,
            span=axis_end(comparison),
            flips=[_flip(flip, sides, folder) for flip in comparison.flips[:FLIPS_SHOWN]],
        )
    )


def axis_end(comparison: Comparison) -> float:
    """The end of the common axis of the agents' differences, of which 0 is the middle."""
    parts = [part for row in comparison.agents for quantity in QUANTITIES if (part := row.of(quantity))]
    most = max((abs(end) for part in parts for end in part.interval), default=1.0)
    return math.ceil(round(most / STEP, 9)) * STEP or STEP


def difference_bar(difference: Difference, end: float) -> Markup:
    """A difference as a dot on its 95 % interval, on an axis from -`end` to `end` with a line at 0; beyond, cut off."""

    def x(value: float) -> str:
        return f"{50.0 + 50.0 * min(max(value / end, -1.0), 1.0):.2f}%"

    low, high = difference.interval
    return tag(
        "svg",
        tag("line", x1=0, x2="100%", y1=9, y2=9, class_="track"),
        tag("line", x1="50%", x2="50%", y1=0, y2=18, class_="zero"),
        tag("line", x1=x(low), x2=x(high), y1=9, y2=9, class_="interval"),
        tag("circle", cx=x(difference.value), cy=9, r=4, class_="dot"),
        class_="bar",
        role="img",
        aria_label=f"95 percent interval {interval_words(difference.interval, 0, 100, sign=True)} points",
    )


def difference_axis(end: float) -> Markup:
    """The numbers over `difference_bar`, in points."""
    places = ((-end, "0%", "start"), (0.0, "50%", "middle"), (end, "100%", "end"))
    texts = [tag("text", words.points(value), x=x, y=11, text_anchor=anchor) for value, x, anchor in places]
    return tag("svg", *texts, class_="bar ticks", aria_hidden="true")


def as_json(
    comparison: Comparison, changed: Sequence[Change], sides: tuple[Side, Side], notes: Iterable[str]
) -> dict[str, Any]:
    """The comparison as JSON values: means and differences as shares in 0..1 and -1..1, drops' differences in -2..2."""
    return {
        "finding": words.finding(comparison),
        "notes": [*notes, *words.remarks(comparison)],
        "first": sides[0].name,
        "second": sides[1].name,
        "settings": [asdict(change) for change in changed],
        "agents": [_row(row) for row in comparison.agents],
        "only_first": list(comparison.only_first),
        "only_second": list(comparison.only_second),
        "by": {part.name: _groups(part) for part in comparison.breakdowns},
        "flips": [
            {"first": one.id, "second": other.id, "outcomes": [one.outcome.value, other.outcome.value]}
            for one, other in comparison.flips
        ],
    }


def _groups(breakdown: Breakdown) -> dict[str, Any]:
    return {name: [_row(row) for row in rows] for name, rows in breakdown.groups.items()}


def _row(row: AgentDifferences) -> dict[str, Any]:
    numbers = {quantity: _numbers(row.of(quantity)) for quantity in QUANTITIES}
    return {"first": row.pair.first, "second": row.pair.second, "looks": not row.is_blind, **numbers}


def _numbers(difference: Difference | None) -> dict[str, Any] | None:
    return None if difference is None else asdict(difference) | {"difference": difference.value}


def _flip(flip: tuple[TrialRecord, TrialRecord], sides: tuple[Side, Side], folder: Path) -> dict[str, Any]:
    pictures = [_pictures(side, record, folder) for side, record in zip(sides, flip, strict=True)]
    return {"first": flip[0], "second": flip[1], "pictures": pictures}


def _pictures(side: Side, record: TrialRecord, folder: Path) -> list[tuple[str, str]]:
    """The pictures that the policy saw in a trial, (camera and step, address); none where there are none."""
    if side.run is None:
        return []
    seen = "reference" if record.case.is_reference else "distorted"
    files = sorted((side.run / "trials" / record.id).glob(f"*_{seen}.jpg"))
    names = [file.name.removesuffix(f"_{seen}.jpg").partition("_") for file in files[:PICTURES_SHOWN]]
    return [
        (f"{camera} {int(step)}" if step.isdigit() else file.stem, _address(file, folder))
        for file, (step, _, camera) in zip(files, names, strict=False)
    ]


def _link(side: Side, name: str, folder: Path) -> str:
    """The address of a file of a run; empty if there is none."""
    return _address(side.run / name, folder) if side.run and (side.run / name).is_file() else ""


def _address(file: Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix())


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.study",
        texts=words,
        QUANTITIES=QUANTITIES,
        FLIPS_SHOWN=FLIPS_SHOWN,
        difference_bar=difference_bar,
        difference_axis=difference_axis,
    )
