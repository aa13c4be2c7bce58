"""`merton curate show`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out
from merton.cli.tree import needs


@needs("dataset")
def show_command(pool: Annotated[Path, typer.Argument(help="Folder of a pool or of a curated benchmark.")]) -> None:
    """Count the questions of a pool: by source, by kind of answer, with pictures, with a dimension given by people."""
    from merton_studies.curation.pool import read_pool

    found = read_pool(pool)
    print_out(f"{len(found.questions)} questions")
    for name, source in found.sources.items():
        of_it = [question for question in found.questions if question.source == name]
        kinds = Counter(question.answer_kind for question in of_it)
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        pictured = sum(bool(question.media) for question in of_it)
        print_out(f"{name}: {len(of_it)} ({told}), {pictured} with pictures; {source.licence or 'no licence given'}")
