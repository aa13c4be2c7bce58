"""`merton curate evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress, working
from merton.cli.tree import needs
from merton.errors import InputError
from merton.extras import ready
from merton.results.text import counted
from merton.statistics.intervals import interval_text
from merton_studies.cli.curate_roles import BUDGET_SPENT, MaxCalls, MaxCost, budget_ends

if TYPE_CHECKING:
    from merton_studies.curation.budget import Budget
    from merton_studies.curation.pool import Pool
    from merton_studies.harness.answerers import Answerer
    from merton_studies.harness.evaluation import Evaluation
    from merton_studies.harness.own_scorers import Reference
    from merton_studies.harness.pipeline import Pipeline
    from merton_studies.harness.running import Runner


FAILED, PARTLY = 1, 3
"""Exit codes where no answerer has a score, and where some have: their servers, machines or every question failed."""

Predictions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="Logged predictions to score: of lmms-eval, VLMEvalKit, or a table of id, prediction.",
    ),
]
Scorers = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer",
        metavar="NAME=FILE",
        help="BENCHMARK=FILE.py:function, its own scorer (question, prediction) -> 0..1 to compare with.",
    ),
]
ReferenceScores = Annotated[
    Path | None,
    typer.Option(metavar="TABLE", help="Benchmarks' own scores, item,model,score, to compare with."),
]


@needs("dataset")
def evaluate_command(
    benchmark: Annotated[Path, typer.Argument(help="Folder of a curated benchmark or of a pool.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="For results; one begun is finished.")],
    answerer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="chance, majority, blind, oracle-P, graded, a VLM."),
    ] = None,
    predictions: Predictions = None,
    writer: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Writes the programs; else verified parts do.")
    ] = None,
    fidelity: Annotated[bool, typer.Option("--fidelity", help="Compare with Merton's second implementation.")] = False,
    scorer: Scorers = None,
    reference_scores: ReferenceScores = None,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help="Models' answers, to share.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Least limit of an answer in tokens."),
    ] = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of everything that is drawn.")] = 0,
) -> None:
    """Run answerers on a benchmark, or score logged predictions, in a sandbox.

    After a kill the same command goes on. Exit code 3: some answerers have no
    score, or the budget was spent; 1: none has one.
    """
    from merton_studies.curation.budget import CALLS, Budget
    from merton_studies.curation.pool import read_pool
    from merton_studies.harness.evaluation import CACHE, PIPELINE, evaluate
    from merton_studies.harness.sandbox import Sandbox

    _check_models(answerer or [], writer, max_tokens, max_calls, max_cost)
    pool = read_pool(benchmark)
    made = _answerers(answerer or [], predictions or [], pool, seed, max_tokens)
    references = _references(scorer or [], reference_scores, pool)
    tell_unknown_models(references, made)
    sandbox = Sandbox()
    answers = cache or out / CACHE
    pipeline = None
    out.mkdir(parents=True, exist_ok=True)
    budget = Budget(max_calls, max_cost, out / CALLS)
    if writer:
        with budget_ends():
            pipeline = _written(writer, pool, made[0], sandbox, out / PIPELINE, answers, budget, seed)
    with budget_ends(), progress("answers") as on_progress:
        found = evaluate(
            pool,
            made,
            out,
            sandbox=sandbox,
            pipeline=pipeline,
            cache=answers,
            seed=seed,
            fidelity=fidelity,
            budget=budget,
            on_progress=on_progress,
        )
    _told(found)
    if references:
        _compare(found, references, sandbox, out)
    print_out(f"results: {from_here(out)}")
    _end(found)


def _check_models(
    answerer: list[str], writer: str | None, max_tokens: int | None, max_calls: int | None, max_cost: float | None
) -> None:
    """Raise for options without the model that they belong to, and for packages that the models lack."""
    from merton.cognition.models.base import MODELS
    from merton.experiment.dry_run import extras_of_models
    from merton_studies.curation.roles import refuse_idle_limits

    models = [*([writer] if writer else []), *(name for name in answerer if name in MODELS)]
    ready("`merton curate evaluate`", *extras_of_models(models))
    refuse_idle_limits(models, max_calls, max_cost, "--writer or --answerer")
    if max_tokens is not None and not any(name in MODELS for name in answerer):
        raise InputError("--max-tokens limits answers of models: name one with --answerer")
    if writer and not answerer:
        raise InputError("--writer tries its programs on an answerer: name one with --answerer")


def _answerers(
    names: list[str], predictions: list[str], pool: Pool, seed: int, max_tokens: int | None
) -> list[Answerer]:
    """Those of the options: live ones first, then those of logs, about which everything that does not fit is said."""
    from merton_studies.harness.answerers import answerers
    from merton_studies.harness.logs import logged

    if not (names or predictions):
        raise InputError("nothing is to be scored: name an answerer with --answerer, or a log with --predictions")
    live = answerers(names, pool, seed=seed, max_tokens=max_tokens) if names else []
    logs = logged(predictions, pool)
    twice = {one.name for one in live} & {one.name for one in logs}
    if twice:
        raise InputError(f"--predictions and --answerer have the same name {min(twice)!r}: give the log another")
    for one in logs:
        for sentence in one.told:
            print_err(f"merton: {sentence}")
    return [*live, *logs]


def _references(scorers: list[str], table: Path | None, pool: Pool) -> list[Reference]:
    from merton_studies.harness.own_fidelity import refuse_shared
    from merton_studies.harness.own_scorers import read_reference_scores, read_scorer

    found: list[Reference] = [read_scorer(given, pool) for given in scorers]
    if table is not None:
        found.append(read_reference_scores(table, pool))
    refuse_shared(found)
    return found


def tell_unknown_models(references: list[Reference], made: list[Answerer]) -> None:
    """Say which models of a table of scores are none of the answerers: perhaps a name is mistyped."""
    from merton_studies.harness.own_scorers import ScoreTable

    known = [one.name for one in made]
    for table in (one for one in references if isinstance(one, ScoreTable)):
        others = sorted({model for model, _ in table.scores} - set(known))
        if others:
            print_err(
                f"merton: {table.file} has scores of {', '.join(others[:3])}, which is not evaluated here; "
                f"evaluated: {', '.join(known)}"
            )


def _compare(found: Evaluation, references: list[Reference], sandbox: Runner, out: Path) -> None:
    """Fidelity to the benchmarks' own scores, said and written."""
    from merton_studies.harness.own_fidelity import TABLE, own_fidelity

    with working("the benchmarks' own scorers"):
        compared = own_fidelity(found.rows, references, sandbox, out)
    for source, about in compared.about.items():
        print_out(f"reference of {source}: {about['whose']}, {about['file']}, sha256 {about['sha256'][:16]}")
    for one in compared.found:
        if one.failed:
            print_err(
                f"merton: the scorer of {one.source} failed on {one.failed} answers of {one.answerer}, which have no "
                f"score of it, the first because: {one.first_error}"
            )
        if one.agreement is None:
            print_out(f"fidelity of {one.answerer} on {one.source}: undefined, no question has both scores")
            continue
        relative = "undefined" if one.fidelity is None else f"{100 * one.fidelity:.1f} %"
        unknown = f", {one.missing} without a reference" if one.missing else ""
        between = interval_text(one.interval.scaled(100) if one.interval else None, ".1f")
        print_out(
            f"fidelity of {one.answerer} on {one.source}: {100 * one.agreement:.1f} % of {counted(one.n, 'question')} "
            f"with the same score {between}, by chance {100 * (one.floor or 0):.1f} %; mean {one.merton:.3f} by "
            f"Merton, {one.reference:.3f} by the benchmark, fidelity {relative}; {one.differ} differ{unknown}"
        )
    if any(one.differ or one.failed for one in compared.found):
        print_out(f"the questions that differ: {from_here(out / TABLE)}")


def _end(found: Evaluation) -> None:
    """Say who has no score, and end with the exit code of that."""
    for name, failure in found.failures.items():
        print_err(f"merton: {name} has no scores: {failure}; the same command asks it again")
    scoreless = [name for name, mean in found.scores.overall.items() if mean.mean is None]
    for name in scoreless:
        print_err(f"merton: {name} has no score: every question failed; the first reason is above")
    if found.failures or scoreless:
        raise typer.Exit(PARTLY if len(scoreless) < len(found.scores.overall) else FAILED)


def _written(
    writer: str,
    pool: Pool,
    answerer: Answerer,
    sandbox: Runner,
    out: Path,
    cache: Path,
    budget: Budget,
    seed: int,
) -> Pipeline:
    """The pipeline that a model writes; without a valid one the command ends with exit code 3."""
    from merton_studies.annotate.cache import Cache
    from merton_studies.curation.llm.asker import Asker
    from merton_studies.harness.evaluation import charging
    from merton_studies.harness.models import CataloguedModel
    from merton_studies.harness.writing import written

    with Cache(cache) as answers, working(f"{writer} writes the programs"):
        if isinstance(answerer, CataloguedModel):
            answerer.cache = answers
            answerer.charge = charging(budget, "in writing")(answerer)
        found = written(Asker(writer, answers, budget), pool.questions, answerer, sandbox, out, seed)
    if found.pipeline is None:
        print_err(f"merton: {found.ended}; the rounds are in {from_here(out)}, and nothing was scored")
        raise typer.Exit(BUDGET_SPENT)
    print_out(f"programs: written in {len(found.rounds)} rounds, {from_here(out)}")
    return found.pipeline


def _told(found: Evaluation) -> None:
    for name, mean in found.scores.overall.items():
        told = "no score" if mean.mean is None else f"{mean.mean:.3f}"
        between = "" if mean.mean is None else f" {interval_text(mean.interval, '.3f')}"
        notes = [f"{counted(mean.n, 'question')}, {counted(mean.scenes, 'scene')}"]
        if found.scores.failed[name]:
            why = next(row.error for row in found.rows if row.answerer == name and row.error).splitlines()[-1]
            notes.append(
                f"a program failed on {found.scores.failed[name]}, which have no score, the first because: {why}"
            )
        if found.scores.unasked[name]:
            why = next(row.unasked for row in found.rows if row.answerer == name and row.unasked)
            notes.append(f"{found.scores.unasked[name]} without an answer, the first because: {why}")
        if found.scores.cut_off[name]:
            blank = found.scores.cut_off_blank[name]
            before = f", {blank} of them before any answer" if blank else ""
            notes.append(f"{found.scores.cut_off[name]} cut off{before}: raise --max-tokens")
        print_out(f"{name}: {told}{between} ({'; '.join(notes)})")
    if found.left_out:
        were = "was" if found.left_out == 1 else "were"
        print_out(f"{counted(found.left_out, 'question')} without a right answer {were} left out")
    for name, by_dimension in found.fidelity.items():
        one = by_dimension["overall"]
        parts = (("overall", one.overall), ("scoring", one.scoring), ("inference", one.inference))
        told = ", ".join(f"{part} {'undefined' if value is None else f'{100 * value:.1f} %'}" for part, value in parts)
        print_out(f"fidelity of {name} to Merton's second implementation: {told} ({counted(one.n, 'question')})")
