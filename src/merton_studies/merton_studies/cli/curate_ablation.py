"""`merton curate ablation`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, from_here, print_out, progress
from merton.cli.tree import needs

if TYPE_CHECKING:
    from merton_studies.curation.ablation import Drawn


@needs("dataset", "curation")
def ablation_command(
    pool: Annotated[Path, typer.Argument(help="Folder of a pool of questions.")],
    assignments: Annotated[Path, typer.Option(help="assignments.parquet of a curation of this pool.")],
    keep: Annotated[int, typer.Option(min=1, help="Questions kept of each dimension, at most.")] = 500,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of each strategy that is drawn.")] = 50,
    scores: Annotated[
        Path | None, typer.Option(help="scores.parquet of merton curate evaluate on this pool, for the ranking.")
    ] = None,
    clip: Annotated[
        Path | None, typer.Option(help="Folder of a CLIP checkpoint; else EfficientNet-Lite0 sees the pictures.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="File of embeddings, for a second run.")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for the table.")] = None,
) -> None:
    """Compare ways to sample: how well each covers the pool, keeps twins apart and ranks models.

    The paper's Table 4 with many draws and intervals, beside a stronger strategy, and equation 5 without restatements.
    """
    from merton.errors import InputError
    from merton.files import write_file
    from merton_studies.curation.ablation import ablate, read_pool_scores, told
    from merton_studies.curation.assignment import read_assignment
    from merton_studies.curation.embedding import embed, picture_embedder
    from merton_studies.curation.pool import TABLE, read_pool

    questions = read_pool(pool)
    assignment = read_assignment(assignments)
    ids = tuple(question.id for question in questions.questions)
    if assignment.ids != ids:
        raise InputError(f"{assignments} is of another pool than {pool}: the ids differ")
    answered = read_pool_scores(scores, ids) if scores else None
    embeddings = embed(questions, cache, progress, picture_embedder(clip) if clip else None)
    rows = ablate(questions, embeddings, assignment.dimension, keep, seeds, answered[1] if answered else None, progress)
    table = Table("strategy", "draws", "kept", "entropy", "distance", "better", "twins apart", box=None)
    if answered:
        table.add_column("like the questions")
        table.add_column("like the dimensions")
    for row in rows:
        cells = [row.name, row.draws, _cell(row.kept, 0), _cell(row.entropy), _cell(row.distance)]
        cells += [f"{row.better:.2f}", _cell(row.apart)]
        add_row(table, *cells, *([_cell(row.like_questions), _cell(row.like_dimensions)] if answered else []))
    STDOUT.print(table)
    print_out("In brackets the middle 95 % of the draws. better: share of the draws nearer than strategy dimension's.")
    if answered:
        print_out(f"{len(answered[0])} models: {', '.join(answered[0])}")
    if out:
        hashes = {"pool": pool / TABLE, "assignments": assignments} | ({"scores": scores} if scores else {})
        made: dict[str, Any] = {
            "keep": keep,
            "seeds": list(range(seeds)),
            "sha256": {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in hashes.items()},
            "embedding": embeddings.made,
        }
        write_file(out, (json.dumps(told(rows, made), indent=1) + "\n").encode())
        print_out(f"results: {from_here(out)}")


def _cell(found: Drawn, digits: int = 3) -> str:
    if found.mean is None:
        return "-"
    ends = f" {found.interval:.{digits}f}" if found.interval else ""
    return f"{found.mean:.{digits}f}{ends}"
