"""`merton annotate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import own_command, print_err, print_out, progress, working
from merton.errors import InputError, UnknownNameError
from merton.extras import ready
from merton.results.text import counted
from merton_studies.cli.curate_evaluate import evaluate_command

if TYPE_CHECKING:
    from merton.pool import Engine
    from merton_studies.annotate.run import Progress, Summary

INCOMPLETE = 3
"""Exit code of a run with unanswered rows."""
ENGINES = ("local", "ray")
POOL = "pool.yaml"
"""The file by which a pool of questions is known."""
PAGE = "models.html"
"""The study of models, written beside the tables."""


def annotate_command(
    dataset: Annotated[
        Path, typer.Argument(help="A folder of `merton dataset build` or `import`, or a curated benchmark.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the tables.")],
    model: Annotated[list[str] | None, typer.Option(help="A name of `merton model list`; once for each model.")] = None,
    answers: Annotated[
        list[Path] | None, typer.Option(help="Instead: table of answers or actions collected elsewhere.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="PART=NAME: its column of a part, such as answer=Output.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="File of responses; a user's own by default.")] = None,
    engine: Annotated[str, typer.Option(help="local: this machine; ray: a Ray cluster.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Each has its own copy of the model.")] = 2,
    gpus: Annotated[float, typer.Option(help="With ray: of each worker.")] = 0.0,
    batch: Annotated[int, typer.Option(help="Images of a job, with all their tasks.")] = 8,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Least limit of an answer in tokens.")] = None,
) -> None:
    """Run models on every image and task of a dataset; writes answers, actions and scores as Parquet, and a page.

    Every response is cached, and no request is repeated: after a kill, run the same command again. A curated benchmark
    or a pool is run and scored as by `merton curate evaluate`. Answers that were collected elsewhere are scored alike.
    """
    from merton.experiment.dry_run import extras_of_models

    if answers:
        if model:
            raise InputError("--model asks models and --answers reads what was collected: name one of them")
        ready("`merton annotate`", "dataset")
        _import(dataset, answers, out, column or [])
        return
    if not model:
        raise InputError("name a model by --model, or a table of answers by --answers")
    if column:
        raise InputError("--column is of the table that --answers names")
    has_questions = (dataset / POOL).is_file()
    if has_questions:
        _chosen_for_questions(engine)
    extras = [*extras_of_models(model), *(["cluster"] if engine == "ray" else [])]
    ready("`merton annotate`", "dataset", *extras)
    if has_questions:
        evaluate_command(dataset, out, model, cache=cache or default_cache(), max_tokens=max_tokens)
        return
    from merton.pool import open_pool
    from merton.study.report import write_models_page
    from merton_studies.annotate.run import annotate
    from merton_studies.annotate.tables import SCORES

    cache = cache or default_cache()
    parts = ["annotate", str(dataset), *(f"--model={name}" for name in model), f"--out={out}"]
    parts += [f"--cache={cache}", f"--engine={engine}", f"--workers={workers}", f"--gpus={gpus:g}", f"--batch={batch}"]
    parts += [f"--max-tokens={max_tokens}"] if max_tokens else []
    how_to_continue = f"All responses so far are in {cache}. Continue with: {own_command(*parts)}"
    try:
        with open_pool(workers, _engine(engine, workers, gpus), print_err) as pool, _progress() as on_progress:
            summary = annotate(
                dataset,
                model,
                out,
                cache=cache,
                pool=pool,
                batch=batch,
                max_tokens=max_tokens,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        print_err(f"Interrupted. {how_to_continue}")
        raise
    write_models_page(out / SCORES, out / PAGE)
    cost = f", cost {summary.cost:.2f}" if summary.cost else ""
    print_out(
        f"{summary.rows} rows: {summary.requested} requests made{cost}, {summary.cached} in the cache, "
        f"{summary.failed} rows with a failure of the model: {out}"
    )
    if summary.cut_off:
        print_err(f"{summary.cut_off} answers were cut off at their limit of tokens: raise --max-tokens")
    _end(summary, how_to_continue)


def _import(dataset: Path, tables: list[Path], out: Path, column: list[str]) -> None:
    """Score the answers and actions in tables."""
    from merton.cli.columns import named_columns
    from merton.study.report import write_models_page
    from merton_studies.annotate.answers import import_answers
    from merton_studies.annotate.tables import SCORES

    columns = named_columns(column)
    with working("reading and scoring"):
        found = import_answers(dataset, tables, out, columns)
        write_models_page(out / SCORES, out / PAGE)
    for remark in found.remarks:
        print_err(remark)
    summary = found.summary
    print_out(
        f"{summary.rows} rows of {counted(len(found.models), 'model')}: "
        f"{summary.rows - summary.failed - summary.unanswered} answered, {summary.failed} rows with a failure of the "
        f"model, {summary.unanswered} unanswered: {out}"
    )
    _end(summary, "Add their rows to the table, or a further table, and import again.")


def _end(summary: Summary, how_to_continue: str) -> None:
    """Tell of rows without an outcome and models without an answer, by the exit code too."""
    if summary.unanswered:
        for reason in summary.reasons:
            print_err(f"unanswered: {reason}")
        print_err(f"{summary.unanswered} rows are unanswered. {how_to_continue}")
        raise typer.Exit(INCOMPLETE)
    if summary.useless:
        print_err("\n".join(summary.useless))
        raise typer.Exit(1)


def _chosen_for_questions(engine: str) -> None:
    """Refuse an engine that runs no questions."""
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    if engine != ENGINES[0]:
        raise InputError("a benchmark of questions is run on this machine alone: leave --engine out")


def default_cache() -> Path:
    """The cache of this user, for all datasets."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "merton" / "responses.sqlite"


def _engine(name: str, workers: int, gpus: float) -> Engine:
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "ray":
        from merton.cluster import RayEngine

        return RayEngine(workers, gpus)
    from merton.pool import LocalEngine

    return LocalEngine()


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """Progress on stderr with the cost so far; yields the function that moves it."""
    with progress("reading the dataset") as meter:

        def move(state: Progress) -> None:
            spent, left = state.cost, state.cost_left
            cost = f", cost {spent:.2f}, at most {left:.2f} left" if spent or left else ""
            meter.name(f"{state.model}{cost}")
            meter(state.done, state.total)

        yield move
