"""`merton iqa human`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_out
from merton.cli.tree import needs
from merton.statistics.intervals import interval_text

SHOWN = 10
"""Types of distortion in the table: those that people and models place most differently."""


@needs("dataset")
def human_command(
    opinions: Annotated[Path, typer.Argument(help="opinions.parquet of `merton study opinions`.")],
    people: Annotated[Path, typer.Argument(help="human.csv of `merton people export`.")],
) -> None:
    """People's mean opinions beside those of models on the same images: how alike, and where they differ most.

    Within levels: the part of the agreement that is more than both liking a stronger distortion less.
    """
    from merton_studies.opinions.human import LEAST_SCENES, beside, read_human
    from merton_studies.opinions.opinion_tables import read_opinions

    for found in beside(read_opinions(opinions), read_human(people)):
        print_out(f"{found.stage}: {found.images} images of {found.scenes} scenes")
        for name, value, interval in (
            ("Spearman's rho with people", found.srcc, found.interval),
            ("within levels", found.within_levels, found.within_interval),
        ):
            text = "undefined" if value is None else f"{value:.3f} {interval_text(interval, '.3f')}"
            print_out(f"  {name}: {text}")
        if found.scenes < LEAST_SCENES:
            print_out(f"  not enough yet for these intervals: {LEAST_SCENES - found.scenes} more scenes")
        table = Table("distortion", "images", "people", "models", "place by people", "by models", box=None)
        for row in found.by_type[:SHOWN]:
            places = (row.people_place, row.models_place)
            add_row(table, row.distortion, row.images, f"{row.people:.2f}", f"{row.models:.2f}", *places)
        STDOUT.print(table)
