"""The section about an execution study, for any page, and a page of its own."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from merton.pages.environment import environment
from merton.results.text import MISSING
from merton.statistics.correlation import fisher_interval
from merton.statistics.intervals import Interval, interval_text
from merton.study import execution_figures
from merton.study.execution import MOST_TRIALS
from merton.study.execution_study import (
    PUBLISHED,
    PUBLISHED_TYPES,
    SCALES,
    UNTOUCHED,
    ExecutionStudy,
    MetricRow,
    line_of,
)

UNIT_WORDS = {"type": "type", "type_level": "type and level", "trial": "trial"}
SOURCE_WORDS = {"run": "this run", "opinions": "opinions of a dataset"}
LETTERS = {"cognition": "C", "decision": "D"}


def fragment(study: ExecutionStudy) -> Markup:
    """The section as HTML, for a page with the style sheet `base.css.j2`; the same study gives the same bytes."""
    return Markup(_environment().get_template("execution.html.j2").render(study=study, **_pictures(study)))


def page(study: ExecutionStudy) -> str:
    """The section as a page of its own, which needs no other file and makes no request."""
    return _environment().get_template("execution_page.html.j2").render(study=study, **_pictures(study))


def summary(study: ExecutionStudy) -> list[str]:
    """The study in a few lines for a terminal."""
    lines = [
        f"{study.trials} distorted trials of {len(study.agents)} agents, {study.references} references in "
        f"{study.scenes} scenes, {len(study.types)} types"
    ]
    out = study.excluded
    lines.append(
        f"left out: {0 if study.include_failed_references else out.failed_reference_trials} trials whose reference run "
        f"failed, {out.infrastructure} infrastructure faults, {out.abstained} abstained, agents that look at nothing: "
        f"{', '.join(out.blind_agents) or 'none'}"
    )
    lines += [
        f"SRCC({LETTERS[claim.stage]}, E) over types, from {SOURCE_WORDS[claim.source]}: "
        f"{_words(claim.value, claim.interval)}; published {claim.relation} {claim.bound:g}: {claim.verdict}"
        for claim in study.claims
    ]
    lines += [
        f"SRCC(D, E) - SRCC(C, E), from {SOURCE_WORDS[row.source]}: {_words(row.value, row.interval)}"
        for row in study.differences
        if row.unit == "type" and row.outcome == "execution"
    ]
    best = [row for row in study.metrics if row.unit == "type" and row.kind == "metric"][:1]
    lines += [
        f"nearest metric of image quality over types: {row.metric}, SRCC {_words(row.srcc, row.interval)}"
        for row in best
    ]
    return lines


def _words(value: float | None, interval: Interval | None) -> str:
    return MISSING if value is None else f"{value:.2f} {interval_text(interval)}"


def _pictures(study: ExecutionStudy) -> dict[str, object]:
    """The scatters, (stage and source in words, picture), and the doubt that a number of types leaves."""
    found = []
    for prefix, source in (("", "run"), ("opinion_", "opinions")):
        for stage in LETTERS:
            key = f"{prefix}{stage}"
            pairs = [
                (x, y)
                for item in study.types
                if (x := item.means.get(key)) is not None and (y := item.means["execution"]) is not None
            ]
            if pairs:
                label = stage if source == "run" else f"{stage} (opinions, 0 to 5)"
                found.append(
                    (
                        stage,
                        source,
                        execution_figures.scatter(study.types, key, label, SCALES.get(key, 1.0), line_of(pairs)),
                    )
                )
    doubts = [
        (bound, fisher_interval(bound, PUBLISHED_TYPES)) for bound in sorted({b for _, b in PUBLISHED.values()})[::-1]
    ]
    rows: dict[str, dict[str, MetricRow]] = {}
    for row in study.metrics:
        rows.setdefault(row.metric, {})[row.unit] = row
    return {
        "scatters": found,
        "doubts": doubts,
        "paths": [execution_figures.example_paths(example) for example in study.examples],
        "untouched": sum((item.means["execution"] or 0.0) >= UNTOUCHED for item in study.types),
        "metric_table": rows,
        "metric_units": list(dict.fromkeys(row.unit for row in study.metrics)),
    }


def _mark(row: MetricRow) -> str:
    """Whether a metric is told from the best."""
    low, high = row.behind_interval or (0.0, 0.0)
    return "▾" if low > 0.0 else "▴" if high < 0.0 else ""


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.study",
        UNIT_WORDS=UNIT_WORDS,
        SOURCE_WORDS=SOURCE_WORDS,
        LETTERS=LETTERS,
        PUBLISHED_TYPES=PUBLISHED_TYPES,
        MOST_TRIALS=MOST_TRIALS,
        marks_of=_mark,
    )
