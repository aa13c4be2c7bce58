"""`merton curate evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress, working
from merton.cli.curate_roles import BUDGET_SPENT, MaxCalls, MaxCost

if TYPE_CHECKING:
    from merton.curation.pool import Pool
    from merton.harness.answerers import Answerer
    from merton.harness.evaluation import Evaluation
    from merton.harness.pipeline import Pipeline
    from merton.harness.running import Runner


def evaluate_command(
    benchmark: Annotated[Path, typer.Argument(help="Folder of a curated benchmark or of a pool.")],
    out: Annotated[Path, typer.Argument(help="Folder for the results; one that was begun is finished.")],
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
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Run answerers on a benchmark and score them, with programs shut in a sandbox.

    Writes the programs, every prediction and score, means by dimension with intervals, and the measured cost. After
    Ctrl-C or a kill, the same command goes on. The limits of calls and money are the writer's.
    """
    from merton.curation.pool import read_pool
    from merton.curation.roles import refuse_idle_limits
    from merton.harness.answerers import answerers
    from merton.harness.evaluation import CACHE, PIPELINE, evaluate
    from merton.harness.sandbox import Sandbox

    refuse_idle_limits([writer] if writer else [], max_calls, max_cost, "--writer")
    pool = read_pool(benchmark)
    made = answerers(answerer, pool, seed=seed)
    sandbox = Sandbox()
    answers = cache or out / CACHE
    pipeline = None
    if writer:
        limits = (max_calls, max_cost)
        pipeline = _written(writer, pool, made[0], sandbox, out / PIPELINE, answers, limits, seed)
    with progress("answers") as moved:
        found = evaluate(
            pool,
            made,
            out,
            sandbox=sandbox,
            pipeline=pipeline,
            cache=answers,
            seed=seed,
            fidelity=fidelity,
            on_progress=moved,
        )
    _told(found)
    print_out(f"results: {from_here(out)}")


def _written(
    writer: str,
    pool: Pool,
    answerer: Answerer,
    sandbox: Runner,
    out: Path,
    cache: Path,
    limits: Sequence[float | None],
    seed: int,
) -> Pipeline:
    """The pipeline that a model writes; without a valid one the command ends with exit code 3."""
    from merton.annotate.cache import Cache
    from merton.curation.budget import Budget
    from merton.curation.llm.asker import Asker
    from merton.harness.models import CataloguedModel
    from merton.harness.writing import written

    calls, cost = limits
    budget = Budget(None if calls is None else int(calls), cost)
    with Cache(cache) as answers, working(f"{writer} writes the programs"):
        if isinstance(answerer, CataloguedModel):
            answerer.cache = answers
        found = written(Asker(writer, answers, budget), pool.questions, answerer, sandbox, out, seed)
    if found.pipeline is None:
        print_err(f"merton: {found.ended}; the rounds are in {from_here(out)}, and nothing was scored")
        raise typer.Exit(BUDGET_SPENT)
    print_out(f"programs: written in {len(found.rounds)} rounds, {from_here(out)}")
    return found.pipeline


def _told(found: Evaluation) -> None:
    for name, mean in found.scores.overall.items():
        told = "no score" if mean.mean is None else f"{mean.mean:.3f}"
        between = f" [{mean.interval[0]:.3f}, {mean.interval[1]:.3f}]" if mean.interval else ""
        notes = [f"{mean.n} questions, {mean.scenes} scenes"]
        if found.scores.failed[name]:
            notes.append(f"a program failed on {found.scores.failed[name]}, which count 0")
        if found.scores.unasked[name]:
            notes.append(f"{found.scores.unasked[name]} could not be asked")
        print_out(f"{name}: {told}{between} ({'; '.join(notes)})")
    if found.left_out:
        print_out(f"{found.left_out} questions without a right answer were left out")
    for name, by_dimension in found.fidelity.items():
        one = by_dimension["overall"]
        parts = (("overall", one.overall), ("scoring", one.scoring), ("inference", one.inference))
        told = ", ".join(f"{part} {'undefined' if value is None else f'{100 * value:.1f} %'}" for part, value in parts)
        print_out(f"fidelity of {name}: {told} ({one.n} questions)")
