"""`merton iqa cross`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_err, print_out, progress
from merton.cli.tree import needs
from merton.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from merton_studies.iqa.cross import ScoredImages, Tested

LABELS = ("decision", "cognition")


@needs("dataset")
def cross_command(
    trained: Annotated[str, typer.Argument(metavar="TRAINED", help="A file of weights, or a metric to train first.")],
    on: Annotated[
        list[str],
        typer.Option(help="decision, cognition, human=human.csv, or DATABASE=FOLDER such as live=DIR; repeatable."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; a training that was begun is finished.")],
    source: Annotated[str, typer.Option("--from", help="What a metric is trained on: as --on.")] = "decision",
    dataset: Annotated[Path | None, typer.Option(help="The dataset of decision, cognition and human.")] = None,
    opinions: Annotated[Path | None, typer.Option(help="Its subjects.parquet or opinions.parquet.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of the training; by default the metric's own number.")] = None,
) -> None:
    """Test a metric that was trained on one kind of opinions on others: robots' and people's, either way."""
    from merton.files import locked_folder, write_file
    from merton.perception.quality.learned import TRAINABLE, trainable
    from merton.perception.quality.learned.weights import read_card
    from merton_studies.iqa.cross import as_csv, cross, train_on

    if trained in TRAINABLE:
        trainable(trained)
    sources = [_source(name, dataset, opinions) for name in dict.fromkeys(on)]
    learned = _source(source, dataset, opinions) if trained in TRAINABLE else None
    try:
        with locked_folder(out, "merton iqa cross"):
            if learned:
                metric, name = trained, learned.name
                weights = train_on(trained, learned, out, epochs, progress)
            else:
                weights = Path(trained)
                metric, name = read_card(weights).metric, weights.name
                if set(on) & set(LABELS):
                    print_err(f"{name} may have learned from images that it is tested on here: name a metric to train.")
            with progress("testing") as on_progress:
                found = cross(weights, sources, out, on_progress)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(out)!r}: {error.strerror}") from error
    for remark in dict.fromkeys(remark for each in sources for remark in each.remarks):
        print_err(remark)
    _show(metric, name, found)
    target = out / f"cross-{metric}-{name}.csv"
    write_file(target, as_csv(metric, name, found).encode())
    print_out(f"{target}")


def _source(text: str, dataset: Path | None, opinions: Path | None) -> ScoredImages:
    from merton.perception.dataset.databases import DATABASES, read_database
    from merton_studies.iqa.cross import of_people, of_raters, of_robots
    from merton_studies.iqa.judged import read_judged

    name, given, folder = text.partition("=")
    if name in LABELS and not given:
        if dataset is None or opinions is None:
            raise InputError(f"{name} needs --dataset and --opinions: the images and what was judged of them")
        return of_robots(read_judged(dataset, opinions, name))
    if name == "human":
        if dataset is None or not folder:
            raise InputError("human needs --dataset, and its table: write human=human.csv")
        return of_raters(dataset, Path(folder))
    if name in DATABASES and not folder:
        raise InputError(f"{name} is a database that you own: write {name}=FOLDER")
    return of_people(read_database(name, Path(folder)))


def _show(metric: str, trained_on: str, found: list[Tested]) -> None:
    table = Table(box=None, pad_edge=False, title=f"{metric}, trained on {trained_on}", title_justify="left")
    for name in ("tested on", "n", "SRCC", "KRCC", "PLCC", "PLCC*", "the paper's SRCC, Table 8a"):
        table.add_column(name, justify="left" if name in ("tested on", "the paper's SRCC, Table 8a") else "right")
    for item in found:
        values = [f"{value:.4f}" for value in (item.srcc, item.krcc, item.plcc, item.plcc_logistic)]
        printed = sorted(value for value, _ in item.published.values())
        add_row(table, item.name, item.n, *values, f"{printed[0]:.4f} to {printed[-1]:.4f}" if printed else "–")
    STDOUT.print(table)
