"""`merton iqa train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import own_command, print_err, print_out, progress
from merton.cli.tree import needs
from merton.errors import UnknownNameError

LABELS = ("decision", "cognition")
PREPARED = "prepared"
"""Folder beside the weights with what was computed of the images."""


@needs("iqa")
def train_command(
    dataset: Annotated[Path, typer.Argument(help="A folder of `merton dataset build` or `import`.")],
    opinions: Annotated[Path, typer.Argument(help="Its opinions.parquet or subjects.parquet.")],
    metric: Annotated[str, typer.Option(help="Name of a metric that can be trained.")],
    out: Annotated[Path, typer.Option(help="Folder for checkpoints and weights; a training begun there is finished.")],
    label: Annotated[str, typer.Option(help="The opinions to learn: decision or cognition.")] = "decision",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the images; by default the metric's own number.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
) -> None:
    """Train a metric of image quality on the opinions of robots' models.

    After a kill the same command goes on, and ends with the same bytes.
    """
    from merton.perception.quality.learned import trainable
    from merton_studies.iqa.judged import read_judged

    if label not in LABELS:
        raise UnknownNameError("label", label, LABELS)
    learner = trainable(metric)
    judged = read_judged(dataset, opinions, label)
    pairs, cache = judged.pairs, out / PREPARED
    parts = ["iqa", "train", str(dataset), str(opinions), f"--metric={metric}", f"--out={out}", f"--label={label}"]
    parts += [f"--seed={seed}", *([] if epochs is None else [f"--epochs={epochs}"])]
    try:
        with progress("preparing") as on_progress:
            learner.prepare(pairs, cache, on_progress)
        with progress("epochs") as on_progress:
            weights = learner.train(pairs, judged.labels, seed, out, epochs, on_progress, cache)
    except KeyboardInterrupt:
        print_err(f"Interrupted. Continue with: {own_command(*parts)}")
        raise
    for remark in judged.remarks:
        print_err(remark)
    print_out(f"{metric} learned {label} from {len(pairs)} images: {weights}")
