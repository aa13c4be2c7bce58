"""`merton curate evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress, working
from merton.cli.tree import needs
from merton.errors import InputError
from merton.extras import ready
from merton.statistics.intervals import interval_text
from merton_studies.cli.curate_roles import BUDGET_SPENT, MaxCalls, MaxCost, budget_ends

if TYPE_CHECKING:
    from merton_studies.curation.budget import Budget
    from merton_studies.curation.pool import Pool
    from merton_studies.harness.answerers import Answerer
    from merton_studies.harness.evaluation import Evaluation
    from merton_studies.harness.pipeline import Pipeline
    from merton_studies.harness.running import Runner


FAILED = 1
"""Exit code where an answerer has no score at all: its server or machine failed, or every question did."""


@needs("dataset")
def evaluate_command(
    benchmark: Annotated[Path, typer.Argument(help="Folder of a curated benchmark or of a pool.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results; one that was begun is finished.")],
    answerer: Annotated[
        list[str],
        typer.Option(
            help="chance, majority, blind, oracle-P, graded, or a VLM of the catalogue; give it several times."
        ),
    ],
    writer: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model that writes the programs; else verified parts do.")
    ] = None,
    fidelity: Annotated[
        bool, typer.Option("--fidelity", help="Compare with the reference implementations, which asks models again.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="File of models' answers, to share among evaluations.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Least limit of an answer in tokens; a model that reasons first needs some thousand."),
    ] = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Run answerers on a benchmark and score them, with programs shut in a sandbox.

    Writes the programs, every prediction and score, means by dimension with intervals, and the measured cost. After
    Ctrl-C or a kill, the same command goes on. The limits of calls and money hold for writer and answerers together.
    """
    from merton.cognition.models.base import MODELS
    from merton.experiment.dry_run import extras_of_models
    from merton_studies.curation.budget import CALLS, Budget
    from merton_studies.curation.pool import read_pool
    from merton_studies.curation.roles import refuse_idle_limits
    from merton_studies.harness.answerers import answerers
    from merton_studies.harness.evaluation import CACHE, PIPELINE, evaluate
    from merton_studies.harness.sandbox import Sandbox

    models = [*([writer] if writer else []), *(name for name in answerer if name in MODELS)]
    ready("`merton curate evaluate`", *extras_of_models(models))
    refuse_idle_limits(models, max_calls, max_cost, "--writer or --answerer")
    if max_tokens is not None and not any(name in MODELS for name in answerer):
        raise InputError("--max-tokens limits answers of models: name one with --answerer")
    pool = read_pool(benchmark)
    made = answerers(answerer, pool, seed=seed, max_tokens=max_tokens)
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
    print_out(f"results: {from_here(out)}")
    for name, failure in found.failures.items():
        print_err(f"merton: {name} has no scores: {failure}; the same command asks it again")
    scoreless = [name for name, mean in found.scores.overall.items() if mean.mean is None]
    for name in scoreless:
        print_err(f"merton: {name} has no score: every question failed; the first reason is above")
    if found.failures or scoreless:
        raise typer.Exit(FAILED)


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
        notes = [f"{mean.n} questions, {mean.scenes} scenes"]
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
        print_out(f"{found.left_out} questions without a right answer were left out")
    for name, by_dimension in found.fidelity.items():
        one = by_dimension["overall"]
        parts = (("overall", one.overall), ("scoring", one.scoring), ("inference", one.inference))
        told = ", ".join(f"{part} {'undefined' if value is None else f'{100 * value:.1f} %'}" for part, value in parts)
        print_out(f"fidelity of {name}: {told} ({one.n} questions)")
