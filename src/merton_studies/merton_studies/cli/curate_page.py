"""`merton curate page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_out
from merton.cli.tree import needs
from merton.errors import InputError


@needs("dataset")
def page_command(
    curation: Annotated[Path, typer.Argument(help="Folder of a curated benchmark.")],
    pool: Annotated[
        Path | None, typer.Option(help="The pool that it is from, for questions that were dropped.")
    ] = None,
    scores: Annotated[Path | None, typer.Option(help="Folder of `merton curate evaluate`.")] = None,
    full: Annotated[
        Path | None, typer.Option(help="The same of the full pool, for the table of times and speedup.csv.")
    ] = None,
) -> None:
    """Write index.html of a curated benchmark again, with the scores of models by dimension."""
    from merton_studies.curation.page import write_page
    from merton_studies.curation.pool import read_pool

    if full is not None and scores is None:
        raise InputError("--full is compared with --scores: name that folder, too")
    times = (full, scores) if full is not None and scores is not None else None
    print_out(from_here(write_page(curation, read_pool(pool) if pool else None, scores, times).absolute()))
