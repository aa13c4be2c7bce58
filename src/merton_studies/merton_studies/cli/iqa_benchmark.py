"""`merton iqa benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_err, print_out, progress
from merton.cli.tree import needs

INCOMPLETE = 3
"""Exit code where a metric could not be trained."""

Names = Annotated[
    str | None,
    typer.Option(help="Metrics, with commas; by default all that need nothing more installed."),
]


@needs("dataset")
def benchmark_command(
    dataset: Annotated[Path, typer.Argument(help="A folder of `merton dataset build` or `import`.")],
    opinions: Annotated[
        Path, typer.Argument(help="subjects.parquet, or opinions.parquet, of `merton study opinions`.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; one that was begun is finished.")],
    label: Annotated[str, typer.Option(help="The opinions to predict: decision or cognition.")] = "decision",
    metrics: Names = None,
    splits: Annotated[str, typer.Option(help="Of pair, reference, type, subject; with commas.")] = "",
    repeats: Annotated[int, typer.Option(help="Of each split.")] = 10,
    epochs: Annotated[int | None, typer.Option(help="Of each training; by default the metric's own number.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Test metrics of image quality against opinions: the paper's table, split by split, with floors and ceilings."""
    from merton_studies.iqa.benchmark import benchmark, chosen_metrics
    from merton_studies.iqa.judged import read_judged
    from merton_studies.iqa.metric_page import headline
    from merton_studies.iqa.metric_table import ALL_SPLITS
    from merton_studies.iqa.results import write_benchmark
    from merton_studies.iqa.values import metric_values

    measured, trained = chosen_metrics(_listed(metrics) or None)
    judged = read_judged(dataset, opinions, label)
    values = None
    if measured:
        with progress("measuring") as on_progress:
            values = metric_values(dataset, measured, out, workers, on_progress)
    chosen = _listed(splits) or list(ALL_SPLITS)
    found = benchmark(judged, values, trained, out, chosen, repeats, epochs, workers, progress)
    files = write_benchmark(found, out, dataset.name)
    for sentence in (values.failures[:5] if values else ()) + found.failures + found.remarks:
        print_err(sentence)
    print_out(headline(found))
    print_out(f"{', '.join(file.name for file in files)}: {out}")
    if found.failures:
        print_err("The same command tries again what could not be trained.")
        raise typer.Exit(INCOMPLETE)


def _listed(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
