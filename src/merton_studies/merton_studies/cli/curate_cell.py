"""`merton curate cell`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import STDOUT, add_row, print_out, progress
from merton.cli.tree import needs


@needs("sim", "dataset")
def cell_command(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the pool: new, or one that was interrupted.")],
    questions: Annotated[int, typer.Option(help="Number of questions.")] = 3000,
    seed: Annotated[int, typer.Option(help="All choices follow from it.")] = 0,
) -> None:
    """Render a pool of questions about scenes of the cell, with answers that the simulator knows.

    There is a scene for every fifteen questions. The table shows the share of the commonest answer: what can be reached
    without looking. An interrupted pool is continued.
    """
    from rich.table import Table

    from merton_studies.curation.cell import majorities, make_cell_pool

    with progress("scenes") as on_progress:
        pool = make_cell_pool(out, questions, seed, on_progress)
    table = Table("family", "dimension", "questions", "commonest answer")
    dimensions = {question.meta["family"]: question.dimension for question in pool.questions}
    for family, (number, share) in majorities(pool).items():
        add_row(table, family, dimensions[family], number, f"{100 * share:.0f} %")
    STDOUT.print(table)
    twins = sum(bool(question.twin_of) for question in pool.questions)
    scenes = len({question.scene for question in pool.questions})
    print_out(f"{out}: {len(pool.questions)} questions about {scenes} scenes, {twins} of them repeat another one")
