"""`merton curate demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import from_here, print_err, print_out, progress
from merton.cli.tree import needs
from merton.results.text import counted
from merton.statistics.intervals import interval_text

if TYPE_CHECKING:
    from merton.statistics.intervals import Interval


@needs("sim", "dataset", "curation")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for everything; one that was begun is finished.")] = Path(
        "curation"
    ),
    questions: Annotated[
        Path | None, typer.Option(help="Folder with open_eqa.jsonl and sqa3d_test.jsonl, which join the cell's.")
    ] = None,
) -> None:
    """Render 3,000 questions about the cell, make a small benchmark of them without an LLM, and run models on it.

    Ends in one page. Each step is kept: after Ctrl-C, the same command goes on.
    """
    from merton_studies.harness.demo import BENCHMARK, demonstrate

    began_s = time.monotonic()
    try:
        shown = demonstrate(out, progress, questions)
    except KeyboardInterrupt:
        print_err(f"Interrupted. Everything so far is kept in {from_here(out)}; the same command goes on from there.")
        raise
    print_out(
        f"{len(shown.curated.pool.questions)} of {counted(len(shown.pool.questions), 'question')} in "
        f"{counted(len(shown.curated.rows), 'dimension')}"
    )
    print_out(
        f"Cohen's kappa of its voters and the maker of the questions: {_shown(shown.kappa.value, shown.kappa.interval)}"
    )
    for name, mean in shown.models.scores.overall.items():
        print_out(f"{name}: {_shown(mean.mean, mean.interval)}")
    for found in shown.agreement:
        value = _shown(found.value, found.over_questions)
        print_out(f"{found.coefficient} of {found.models} graded oracles on pool and benchmark: {value}")
    print_out(f"time on the pool by time on the benchmark: {shown.time_ratio:.1f}")
    print_out(f"page: {from_here(out / BENCHMARK / 'index.html')} ({round(time.monotonic() - began_s)} s)")


def _shown(value: float | None, interval: Interval | None) -> str:
    return "undefined" if value is None else f"{value:.2f} {interval_text(interval)}"
