"""`merton curate evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_out, progress


def evaluate_command(
    benchmark: Annotated[Path, typer.Argument(help="Folder of a curated benchmark or of a pool.")],
    out: Annotated[Path, typer.Argument(help="Folder for the results; one that was begun is finished.")],
    answerer: Annotated[
        list[str],
        typer.Option(
            help="chance, majority, blind, oracle-P, graded, or a VLM of the catalogue; give it several times."
        ),
    ],
    cache: Annotated[Path | None, typer.Option(help="File of models' answers, to share among evaluations.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
) -> None:
    """Run answerers on a benchmark and score them, with programs shut in a sandbox.

    Writes the programs, every prediction and score, means by dimension with intervals, and the measured cost. After
    Ctrl-C or a kill, the same command goes on.
    """
    from merton.curation.pool import read_pool
    from merton.harness.answerers import answerers
    from merton.harness.evaluation import evaluate
    from merton.harness.sandbox import Sandbox

    pool = read_pool(benchmark)
    made = answerers(answerer, pool, seed=seed)
    with progress("answers") as moved:
        found = evaluate(pool, made, out, sandbox=Sandbox(), cache=cache, seed=seed, on_progress=moved)
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
    print_out(f"results: {from_here(out)}")
