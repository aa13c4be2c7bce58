"""The page of an annotated dataset: distributions, sensitivity, categories, subjects, claims, cases; as fragments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from merton.files import write_file
from merton.pages.environment import environment
from merton.results.text import one_line
from merton.study import figures
from merton.study.sections import DIMENSION_LABELS
from merton_studies.opinions import opinion_figures
from merton_studies.opinions.claims import FAILS, HOLDS, NOT_APPLICABLE, UNRESOLVED
from merton_studies.opinions.dataset import PUBLISHED_AGREEMENT, Case, DatasetStudy, extreme_levels, map_rows
from merton_studies.opinions.distributions import spread
from merton_studies.opinions.opinion_tables import Opinions
from merton_studies.opinions.whose import KINDS, judges, whose

SECTIONS = {
    "claims": "What the paper says, and what these images say",
    "distributions": "Scores by distortion and level",
    "sensitivity": "What is just noticeable",
    "categories": "Dimensions and kinds of image",
    "subjects": "Subjects",
    "cases": "Where level and score disagree",
}
"""Anchor of a section to its heading, in the order of the page."""
TONES = {HOLDS: "good", FAILS: "bad", UNRESOLVED: "warn", NOT_APPLICABLE: ""}


def fragments(study: DatasetStudy, cases: Sequence[Case] = ()) -> dict[str, Markup]:
    """Name of `SECTIONS` to its HTML, for a page with the style sheets base.css.j2 and dataset.css.j2.

    Args:
        study: what to show.
        cases: of the gallery; without any that section is left out.
    """
    names = [name for name in SECTIONS if name != "cases" or cases]
    shown = _shown(study, cases)
    return {name: Markup(_environment().get_template(f"dataset_{name}.html.j2").render(shown)) for name in names}


def style() -> Markup:
    """Style sheet that the fragments need besides base.css.j2."""
    return Markup(_environment().get_template("dataset.css.j2").render())


def write_dataset_page(study: DatasetStudy, cases: Sequence[Case], target: Path) -> Path:
    """Write the page, which needs no other file; returns its path.

    Raises InfrastructureError if it cannot be written.
    """
    opinions = study.opinions
    page = _environment().get_template("dataset_page.html.j2")
    text = page.render(
        fragments=fragments(study, cases),
        images=len(opinions.level),
        references=len(np.unique(opinions.reference_id)),
        scenes=len(np.unique(opinions.scene)),
        subjects={stage: opinions.about.get("subjects", {}).get(stage, []) for stage in study.stages},
        remarks=study.remarks,
        about=opinions.about,
        imported=opinions.about.get("imported"),
        whose={stage: whose(opinions.about, stage) for stage in study.stages},
    )
    write_file(target, text.encode("utf-8", "replace"))
    return target


def _shown(study: DatasetStudy, cases: Sequence[Case]) -> dict[str, Any]:
    opinions = study.opinions
    lows = {stage: opinion_figures.lowest_shown(_known(opinions, stage)) for stage in study.stages}
    return {
        "LEVELS": opinions.levels,
        "extremes": extreme_levels(opinions),
        "stages": study.stages,
        "judges": {stage: judges(opinions.about, stage) for stage in study.stages},
        "claims": study.claims,
        "cases": cases,
        "lows": lows,
        "densities": {stage: _densities(opinions, study, stage, lows[stage]) for stage in study.stages},
        "maps": _maps(opinions, list(study.stages)),
        "rows": {stage: dict(map_rows(opinions, stage)) for stage in study.stages},
        "half_losses": {
            stage: {one.distortion: one for one in part.half_losses} for stage, part in study.stages.items()
        },
        "label_of": {
            trend.distortion: f"{trend.distortion_id} {trend.distortion}"
            for part in study.stages.values()
            for trend in part.results.trends
        },
    }


def _known(opinions: Opinions, stage: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    score = opinions.value(stage)
    return np.asarray(score[~np.isnan(score)])


def _densities(opinions: Opinions, study: DatasetStudy, stage: str, low: float) -> list[tuple[str, str, Markup]]:
    """Heading, trend and picture of every type, by its number."""
    score = opinions.value(stage)
    curves = {}
    for trend in study.stages[stage].results.trends:
        mine = (opinions.distortion_id == trend.distortion_id) & ~np.isnan(score)
        by_level = {level: score[mine & (opinions.level == level)] for level in opinions.levels}
        curves[trend.distortion_id] = {
            level: opinion_figures.shares(found, low) for level, found in by_level.items() if len(found)
        }
    highest = max((float(curve.max()) for found in curves.values() for curve in found.values()), default=1.0)
    shown = []
    for trend in study.stages[stage].results.trends:
        name = f"{trend.distortion_id} {one_line(trend.distortion).replace('_', ' ')}"
        means = ", ".join(
            f"level {level} {one.mean:.3g}" for level, one in zip(opinions.levels, trend.levels, strict=True) if one
        )
        word = (
            "no trend"
            if math.isnan(trend.tau)
            else f"tau {trend.tau:.2f}{', falls' if trend.falls else ', not resolved'}"
        )
        title = f"{stage} under {name}: mean at {means}; {word}"
        drawn = opinion_figures.densities(curves[trend.distortion_id], low, highest, title, opinions.levels[-1])
        shown.append((name, word.replace("-", "−"), drawn))
    return shown


def _maps(opinions: Opinions, stages: Sequence[str]) -> dict[str, Markup]:
    rows = {stage: map_rows(opinions, stage) for stage in stages}
    maps = {}
    for stage in stages:
        others = [
            [name for _, name in enumerate(classes)] for other in stages if other != stage for _, classes in rows[other]
        ]
        hints = []
        for label, classes in rows[stage]:
            mine = (opinions.distortion_id == label.split()[0]) & ~np.isnan(opinions.value(stage))
            hints.append(
                [
                    _hint(opinions, stage, mine & (opinions.level == level), label, level, name)
                    for level, name in zip(opinions.levels, classes, strict=True)
                ]
            )
        title = f"{stage}: mild, medium or severe by type of distortion and level"
        maps[stage] = opinion_figures.sensitivity_map(rows[stage], others, hints, title)
    return maps


def _hint(
    opinions: Opinions, stage: str, mine: np.ndarray[Any, np.dtype[np.bool_]], label: str, level: int, name: str
) -> str:
    scenes = len(np.unique(opinions.scene[mine]))
    return opinion_figures.cell_hint(label, level, spread(opinions.value(stage)[mine]), scenes, name)


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton_studies.opinions",
        figures=figures,
        drawn=opinion_figures,
        SECTIONS=SECTIONS,
        TONES=TONES,
        VERDICTS=(HOLDS, FAILS, UNRESOLVED, NOT_APPLICABLE),
        KINDS={stage: f"{kind}s" for stage, kind in KINDS.items()},
        DIMENSION_LABELS=DIMENSION_LABELS,
        PUBLISHED_AGREEMENT=PUBLISHED_AGREEMENT,
    )
