"""`merton iqa list | show | check`: the metrics of image quality, and which of them work here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_out, working
from merton.config import dumps
from merton.errors import MertonError, UnknownNameError

if TYPE_CHECKING:
    from merton.perception.quality import Metric
    from merton.perception.quality.learned import TrainableMetric

Name = Annotated[str, typer.Argument(help="A name of `merton iqa list`.")]


def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON, for programs.")] = False,
) -> None:
    """List the metrics: those that come with Merton, those of the catalogue, and those to be trained."""
    metrics, trainable = dict(_metrics()), _to_be_trained()
    if as_json:
        listed = [_about(metric) for metric in metrics.values()]
        typer.echo(json.dumps([*listed, *(_untrained(metric) for metric in trainable.values())], indent=1))
        return
    table = Table("name", "paper's", "reference", "better", "description", box=None)
    for metric in metrics.values():
        needed = "needed" if metric.needs_reference else ""
        add_row(table, metric.name, metric.paper, needed, metric.better, metric.description)
    for learned in trainable.values():
        needed = "needed" if learned.needs_reference else ""
        add_row(table, learned.name, "", needed, "higher", f"{learned.description} (to be trained)")
    STDOUT.print(table)


def show_command(name: Name) -> None:
    """Print the entry of a metric as YAML; one of the catalogue can be copied into a catalogue of your own."""
    from merton.cli.models import as_yaml
    from merton.perception.quality.catalogue import CATALOGUE

    if name in CATALOGUE:
        typer.echo(as_yaml([("iqa", CATALOGUE[name])]), nl=False)
    elif name in (trainable := _to_be_trained()):
        typer.echo(dumps(_untrained(trainable[name])), nl=False)
    else:
        typer.echo(dumps(_about(_named(name))), nl=False)


def check_command(name: Name) -> None:
    """Measure a pair of images; exit code 1, and what is missing in one sentence, if that fails."""
    from merton.perception.quality import measure
    from merton.perception.quality.sample_pair import sample_pair

    if name in _to_be_trained():
        print_out(f"missing: {name} has no weights here: `merton iqa train` makes them")
        raise typer.Exit(1)
    metric = _named(name)
    image, reference = sample_pair()
    try:
        with working(f"checking: {name}"):
            best = measure(name, reference, reference)
            started = time.perf_counter()
            value = measure(name, image, reference)
            took_ms = 1000 * (time.perf_counter() - started)
    except MertonError as error:
        print_out(f"missing: {error}")
        raise typer.Exit(1) from None
    size = f"{image.shape[1]} x {image.shape[0]}"
    print_out(
        f"ok: {name} is {value:.4f} for a blurred image of {size} pixels and {best:.4f} for its reference "
        f"({metric.better} is better; {took_ms:.0f} ms)"
    )


def _metrics() -> Iterator[tuple[str, Metric]]:
    from merton.perception.quality import METRICS
    from merton.perception.quality.catalogue import CATALOGUE

    yield from METRICS.items()
    here = list(METRICS)
    yield from ((name, entry.metric()) for name, entry in CATALOGUE.items() if name not in here)


def _named(name: str) -> Metric:
    metrics = dict(_metrics())
    if name not in metrics:
        raise UnknownNameError("quality metric", name, (*metrics, *_to_be_trained()))
    return metrics[name]


def _to_be_trained() -> dict[str, TrainableMetric]:
    """Metrics that come without weights, here or in pyiqa as its authors trained them."""
    from merton.perception.quality import METRICS
    from merton.perception.quality.catalogue import CATALOGUE
    from merton.perception.quality.learned import ELSEWHERE, TRAINABLE

    known = {*list(METRICS), *CATALOGUE}
    return {name: metric for name, metric in {**TRAINABLE, **ELSEWHERE}.items() if name not in known}


def _about(metric: Metric) -> dict[str, Any]:
    fields = {key: value for key, value in vars(metric).items() if key != "build"}
    fields["to_be_trained"] = False
    return {**fields, "range": [str(limit) if abs(limit) == float("inf") else limit for limit in metric.range]}


def _untrained(metric: TrainableMetric) -> dict[str, Any]:
    about = {"name": metric.name, "needs_reference": metric.needs_reference, "description": metric.description}
    return {**about, "to_be_trained": True}
