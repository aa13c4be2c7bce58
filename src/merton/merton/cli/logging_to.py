"""`--log-to`: a run goes to Weights & Biases, MLflow or TensorBoard when its report is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out, working
from merton.extras import ready

LogToOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log-to",
        metavar="TRACKER",
        help="Log it to wandb:PROJECT, mlflow:URI or tensorboard:FOLDER, too; may be given several times.",
    ),
]


def logger(log_to: list[str] | None) -> Callable[[Path], None]:
    """The function that logs the run in a folder; mistakes and packages that are missing are found before any work.

    Raises:
        InputError: a text names no tracker, or no place there.
        MissingDependencyError: the client of one is not installed.
    """
    if not log_to:
        return lambda run: None
    from merton.study.trackers.content import content
    from merton.study.trackers.targets import log, target

    targets = list(dict.fromkeys(map(target, log_to)))
    ready("`--log-to`", *(one.tracker for one in targets))

    def log_run(run: Path) -> None:
        with working("logging"):
            log(content(run), targets, print_out)

    return log_run
