"""The page of a benchmark of image quality metrics, and its sections as fragments for other pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from merton.pages import svg
from merton.pages.environment import environment
from merton.pages.svg import marker, tag
from merton.pages.words import flat, interval_words, number
from merton.statistics.intervals import Interval
from merton_studies.iqa import metric_floors
from merton_studies.iqa.metric_files import blocks
from merton_studies.iqa.metric_table import (
    ALL_SPLITS,
    GROUPS,
    INDICATORS,
    OVERALL,
    Benchmark,
    Cell,
    CoefficientRow,
    Column,
    best_zero_shot,
    difference,
    marks,
)
from merton_studies.iqa.published_iqa import TABLES, claims, published
from merton_studies.opinions.whose import whose

MAIN = "reference"
"""The split that is shown first: images of a scene that was learned from tell nothing of a new one."""
OF_SUBJECTS = ("opinions · models", "opinions · by_chance")
"""Facts about every model whose opinions are inside; they are in the Parquet file."""
LOWEST, WIDTH = -0.25, 220.0
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class SplitRow:
    """A metric's SRCC over all images, split by split.

    Attributes:
        cells: split to cell.
        flattery: pair less reference split; None where one of them is missing.
        gain: over the best zero-shot metric in the main split, and its interval; None for that one and for ceilings.
    """

    row: CoefficientRow
    cells: Mapping[str, Cell]
    flattery: float | None
    gain: tuple[float, Interval] | None


def style() -> Markup:
    """Style sheet that the sections need besides base.css.j2."""
    return _render("iqa.css.j2")


def page(found: Benchmark, source: str = "") -> str:
    """The whole page, self-contained.

    Args:
        found: the benchmark.
        source: what was judged, such as the name of the dataset's folder.
    """
    names = found.about.get("subjects", [])
    return (
        _environment()
        .get_template("metric_page.html.j2")
        .render(
            found=found,
            source=source,
            headline=headline(found),
            judges=whose({**found.about.get("opinions", {}), "subjects": {found.stage: names}}, found.stage),
            splits=splits_section(found),
            tables=tables_section(found),
            published=published_section(found),
            facts=[row for row in flat(found.about) if not row[0].startswith(OF_SUBJECTS)],
        )
    )


def headline(found: Benchmark) -> str:
    """One or two sentences: the best metric over new scenes, the best without training, the best floor, the ceiling."""
    rows = found.of_split(MAIN) or (found.of_split(found.splits[0]) if found.splits else [])
    best = {}
    for word, groups in (
        ("trained", ("full_reference", "no_reference")),
        ("zero-shot", ("zero_shot",)),
        ("floor", ("floor",)),
        ("ceiling", ("ceiling",)),
    ):
        known = [row for row in rows if row.group in groups and not math.isnan(row.mean())]
        if known:
            best[word] = max(known, key=CoefficientRow.mean)
    if not best:
        return "No coefficient is defined."
    named = [f"{word} {row.metric} {number(row.mean())}" for word, row in best.items() if word != "ceiling"]
    text = f"SRCC with {found.stage} over {rows[0].split} splits, the best of each kind: {', '.join(named)}."
    if "ceiling" in best:
        r = best["ceiling"].mean()
        text += (
            f" Two halves of the subjects agree to {number(r)}, so no metric can be expected above "
            f"{number(math.sqrt(metric_floors.reliability(r)))}."
        )
    return text


def splits_section(found: Benchmark) -> Markup:
    """The SRCC of every row under every split, beside one another, and how much the split over pairs flatters."""
    return _render("iqa_splits.html.j2", found=found, rows=split_rows(found), main=MAIN)


def split_rows(found: Benchmark) -> list[SplitRow]:
    """Of every metric, floor and ceiling."""
    by_name: dict[str, dict[str, CoefficientRow]] = {}
    for row in found.rows:
        by_name.setdefault(row.metric, {})[row.split] = row
    reference = best_zero_shot(found.of_split(MAIN))
    line = reference.cells[OVERALL]["srcc"] if reference else None
    shown = []
    for name, rows in sorted(by_name.items(), key=lambda item: list(GROUPS).index(next(iter(item[1].values())).group)):
        cells = {split: row.cells[OVERALL]["srcc"] for split, row in rows.items() if OVERALL in row.cells}
        gap = cells["pair"].mean - cells[MAIN].mean if {"pair", MAIN} <= set(cells) else math.nan
        first = next(iter(rows.values()))
        comparable = line is not None and reference is not None and name != reference.metric and MAIN in cells
        gain = difference(cells[MAIN], line) if comparable and line and first.group != "ceiling" else None
        shown.append(SplitRow(first, cells, None if math.isnan(gap) else gap, gain))
    return shown


def tables_section(found: Benchmark) -> Markup:
    """The table in the paper's layout for every split; that of `MAIN` is not folded away."""
    starts = {row.metric: row.start for row in found.rows if row.start}
    return _render("iqa_tables.html.j2", found=found, open_split=MAIN, starts=starts)


def published_section(found: Benchmark) -> Markup:
    """The SRCC that the paper prints in each column, and ours over the main split; its claims recomputed."""
    printed: dict[str, dict[str, float]] = {}
    for row in published(found.stage):
        printed.setdefault(row.metric, {})[row.column] = row.srcc
    table = TABLES[found.stage]
    return _render("iqa_published.html.j2", found=found, printed=printed, table=table, main=MAIN, claims=claims())


def strip(cells: Mapping[str, Cell]) -> Markup:
    """The SRCC of each split as a mark on a line from `LOWEST` to 1, in the colours of `split_slots`."""
    parts = [tag("line", x1=_x(tick), x2=_x(tick), y1=0, y2=18, class_="grid") for tick in TICKS]
    known = [(name, cell) for name, cell in cells.items() if cell.repeats]
    if known:
        ends = [_x(cell.mean) for _, cell in known]
        parts.append(tag("line", x1=min(ends), x2=max(ends), y1=9, y2=9, class_="track"))
    for name, cell in known:
        slot = split_slots()[name]
        hint = tag("title", f"{name}: {number(cell.mean, 3)}")
        parts.append(tag("g", hint, marker(slot, _x(cell.mean), 9.0), class_=f"s{slot}"))
    label = ", ".join(f"{name} {number(cell.mean)}" for name, cell in known) or "undefined"
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH:g} 18", class_="bar strip", role="img", aria_label=label)


def strip_axis() -> Markup:
    """The ticks of `strip`."""
    parts = [tag("text", f"{tick:g}", x=_x(tick), y=10, text_anchor="middle") for tick in TICKS]
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH:g} 13", class_="bar strip", aria_hidden="true")


def split_slots() -> dict[str, int]:
    """Split to colour and marker: four that differ in both."""
    return {name: slot for slot, name in enumerate(ALL_SPLITS)}


def _x(value: float) -> float:
    return 8.0 + (WIDTH - 16.0) * (min(max(value, LOWEST), 1.0) - LOWEST) / (1.0 - LOWEST)


def _hint(cell: Cell) -> str:
    """All of a cell in words, for hovering."""
    if not cell.repeats:
        return "undefined: values or opinions do not vary"
    scatter = f"sd {number(cell.sd, 4)} of {cell.repeats} repeats" if cell.repeats > 1 else "one repeat"
    text = f"{number(cell.mean, 4)}, {scatter}, {cell.n:.0f} images each"
    return text if math.isnan(cell.low) else f"{text}; 95 % {interval_words((cell.low, cell.high))}"


def _marker(rows: Sequence[CoefficientRow]) -> Callable[[CoefficientRow, Column, str], str]:
    """A function that gives the marks of a cell among these rows."""
    known: dict[tuple[str, str], dict[str, str]] = {}

    def mark(row: CoefficientRow, column: Column, indicator: str) -> str:
        key = (column.name, indicator)
        if key not in known:
            known[key] = marks(rows, *key)
        return known[key].get(row.metric, "")

    return mark


def _render(template: str, **values: Any) -> Markup:
    return Markup(_environment().get_template(template).render(**values))


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton_studies.iqa",
        ALL_SPLITS=ALL_SPLITS,
        GROUPS=GROUPS,
        INDICATORS=INDICATORS,
        FLOORS={**metric_floors.FLOORS, metric_floors.CEILING: metric_floors.CEILING_ABOUT},
        OVERALL=OVERALL,
        blocks=blocks,
        hint=_hint,
        marker_of=_marker,
        strip=strip,
        strip_axis=strip_axis,
        split_slots=split_slots,
        swatch=svg.swatch,
    )
