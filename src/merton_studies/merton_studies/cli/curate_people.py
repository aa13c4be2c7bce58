"""`merton curate sheet`, `merton curate agreement` and `merton curate ranking`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import from_here, print_out
from merton.cli.tree import needs

if TYPE_CHECKING:
    from merton.statistics.intervals import Interval
    from merton.statistics.ranking import RankAgreement
    from merton_studies.curation.rankings import Comparison

Seed = Annotated[int, typer.Option(help="Of everything that is drawn.")]


@needs("dataset")
def sheet_command(
    curation: Annotated[Path, typer.Argument(help="Folder of a curated benchmark.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="CSV file to write, which people fill in.")],
    per_dimension: Annotated[int, typer.Option(help="Questions of each dimension.")] = 100,
    seed: Seed = 0,
) -> None:
    """Draw questions on which people say whether they need a dimension, blind and balanced.

    Each rater fills in a copy: their name, and yes or no. merton curate agreement reads it.
    """
    from merton_studies.curation.assignment import read_assignment
    from merton_studies.curation.pool import read_pool
    from merton_studies.curation.sheet import draw, write_sheet

    pool, assignment = read_pool(curation), read_assignment(curation / "assignments.parquet")
    rows = draw(assignment, [question.id for question in pool.questions], per_dimension, seed)
    write_sheet(rows, pool, assignment, out)
    print_out(f"{len(rows)} questions in {from_here(out)}: to each, write rater, and yes or no as verdict")


def agreement_command(
    verification: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Sheets that people filled in.")],
    assignments: Annotated[
        Path | None, typer.Option(help="Folder of the curation, or its assignments.parquet: compares it with people.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Agreement of people with the assignment, by Cohen's kappa, and with each other, by Fleiss' kappa.

    The sheet is balanced, so that a kappa is that of a half of questions that need the dimension, not of the pool.
    Where an agent suggested verdicts, their effect follows: corrections, agreement before and after, anchoring.
    """
    from merton_studies.curation.assignment import read_assignment
    from merton_studies.curation.people import agreement_with_people, mean_kappa, read_suggested, read_verification
    from merton_studies.curation.pool import ABOUT, read_pool
    from merton_studies.curation.suggestions import effects, sentences

    verdicts = read_verification(verification)
    file = assignments / "assignments.parquet" if assignments is not None and assignments.is_dir() else assignments
    assignment = None if file is None else read_assignment(file)
    scenes = None
    if file is not None and (file.parent / ABOUT).is_file():
        scenes = {question.id: question.unit_of_intervals for question in read_pool(file.parent).questions}
    found = agreement_with_people(verdicts, assignment, scenes, seed)
    for one in found:
        told = [f"raters {one.raters.shown} (Fleiss, {one.raters.n} questions)"]
        if one.kappa is not None and one.share is not None:
            equal = "" if one.share.value is None else f", {100 * one.share.value:.0f} % equal"
            told.insert(0, f"people and assignment {one.kappa.shown} (Cohen, {one.kappa.n} questions{equal})")
        if one.tied:
            told.append(f"{one.tied} without a majority")
        print_out(f"{one.name}: {'; '.join(told)}")
    mean = mean_kappa(found)
    if mean is not None and len(found) > 1:
        print_out(f"mean of the dimensions' kappas: {mean:.2f}")
    for sentence in sentences(effects(read_suggested(verification, scenes), seed)):
        print_out(sentence)


@needs("dataset")
def ranking_command(
    scores: Annotated[
        Path, typer.Argument(help="Folder of merton curate evaluate on the curated benchmark, or a table of scores.")
    ],
    full: Annotated[Path | None, typer.Option(help="The same of the full pool.")] = None,
    human: Annotated[Path | None, typer.Option(help="Ratings of models by people.")] = None,
    seed: Seed = 0,
) -> None:
    """Whether a curated benchmark ranks models as the full pool does, and as people do.

    Each coefficient has two 95 % intervals: over models, had others been compared, and over questions, had other
    scenes been asked about. "not resolved" stands where the one over models has 0 inside.
    """
    from merton_studies.curation.people import read_ratings
    from merton_studies.curation.rankings import compare, read_score_table

    tables = [read_score_table(path) for path in (scores, full) if path is not None]
    people = None
    if human is not None:
        rated, raters = read_ratings(human)
        people = {one.model: one.score for one in rated}
        for one in rated:
            marks = f"mean mark {one.mean:.2f} of 5, which is {one.share:.1f} %"
            by = f"{one.scenarios} scenarios, {one.raters} raters"
            print_out(f"{one.model}: people {one.score:.1f} {one.interval:.1f} of 100 ({marks}), {by}")
        if raters.value is not None:
            print_out(f"raters agree with a quadratic-weighted kappa of {raters.shown} over {raters.n} marks")
    found = compare(tables[0], tables[1] if full is not None else None, people, seed)
    left_out = max(table.left_out for table in tables)
    if left_out:
        print_out(f"{left_out} questions that some model has no score of were left out")
    _show(found)
    if full is not None:
        _show_times(full, scores)


def _show_times(full: Path, scores: Path) -> None:
    from merton_studies.curation.speedup import COST, speed_ups

    has_times = all((folder / COST).is_file() for folder in (full, scores))
    for row in speed_ups(full, scores) if has_times else ():
        told = "undefined" if row.ratio is None else f"{row.ratio:.1f} times faster"
        print_out(f"time of {row.model}: {row.pool_s:.2f} s full, {row.benchmark_s:.2f} s curated, {told}")


def _show(found: Comparison) -> None:
    from merton.statistics.ranking import COEFFICIENTS
    from merton_studies.curation.rankings import WANTED

    asked = ", ".join(f"{name} {count} questions" for name, count in found.questions.items() if count)
    print_out(f"{len(found.models)} models{'; ' + asked if asked else ''}")
    for place, model in enumerate(found.models):
        told = ", ".join(f"{name} {column[place]:.4g}" for name, column in found.columns.items())
        print_out(f"{place + 1}. {model}: {told}")
    for (one, other), several in found.agreements.items():
        _show_pair(one, other, several)
    for gain in found.gains:
        if gain.value is not None:
            told = "resolved" if gain.is_resolved else "not resolved"
            print_out(
                f"gain in {COEFFICIENTS[gain.coefficient].name} with people, curated less full: {gain.value:+.3f}"
                f"{_ends(gain.over_models, 'over models')}: {told}"
            )
    if found.gains:
        many = "no number of" if found.needed is None else f"{found.needed}"
        print_out(f"a gain of {WANTED:g} in Spearman's rho would take {many} independent models (power 80 %)")


def _show_pair(one: str, other: str, several: Sequence[RankAgreement]) -> None:
    from merton.statistics.ranking import COEFFICIENTS
    from merton.statistics.resampling import is_resolved

    for found in several:
        name = COEFFICIENTS[found.coefficient].name
        if found.value is None:
            print_out(f"{one} and {other}: {name} is undefined")
            continue
        told = "" if is_resolved(found.over_models) else ": not resolved"
        ends = _ends(found.over_models, "over models") + _ends(found.over_questions, "over questions")
        print_out(f"{one} and {other}: {name} {found.value:.3f}{ends}{told}")


def _ends(ends: Interval | None, over: str) -> str:
    return "" if ends is None else f" {ends:.3f} {over}"
