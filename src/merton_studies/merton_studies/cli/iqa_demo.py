"""`merton iqa demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress
from merton.cli.tree import needs

PAGE = "index.html"


@needs("sim", "iqa")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for everything; one that was begun is finished.")] = Path("iqa"),
    repeats: Annotated[int, typer.Option(min=1, help="Of each split; the paper has 10.")] = 2,
) -> None:
    """Render 300 pictures, distort them 9,000 times, train and compare metrics on the opinions that come with Merton.

    Ends in one page. Each step is kept: after Ctrl-C, the same command goes on.
    """
    from merton_studies.iqa.demo import demonstrate
    from merton_studies.iqa.demo_page import write_demo_page
    from merton_studies.iqa.metric_page import headline

    began_s = time.monotonic()
    try:
        shown = demonstrate(out, progress, repeats)
    except KeyboardInterrupt:
        print_err(f"Interrupted. Everything so far is kept in {from_here(out)}; the same command goes on from there.")
        raise
    page = write_demo_page(shown, out / PAGE)
    for table in shown.tables.values():
        print_out(headline(table))
    print_out(f"page: {from_here(page)} ({round(time.monotonic() - began_s)} s)")
