"""`merton whatif`: the motions, or answers, of a policy if the pictures of a recording or dataset had been worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_err, print_out, progress
from merton.cli.recordings import beside, recording_named
from merton.errors import InputError
from merton.extras import ready
from merton.files import locked_folder
from merton.pages.words import interval_words

if TYPE_CHECKING:
    from merton.perception.distortion.setting import Setting
    from merton_studies.twins.replay import Replay

PAGE = "whatif.html"
DistortOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE@LEVEL", help="A distortion, such as gaussian_blur@3; repeat it. TYPE alone: levels 1 to 5."
    ),
]
"""Of `merton distort dataset`, too."""


def _source(name: Path) -> Path:
    """The folder of a dataset, or the recording that an argument names."""
    from merton_studies.lerobot.layout import is_dataset

    return name if is_dataset(name) else recording_named(name)


def whatif_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING|DATASET",
            callback=_source,
            help="A run, latest, a file such as a.mcap, a bag's folder; or the folder of a LeRobotDataset.",
        ),
    ],
    distort: DistortOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The VLA that is asked; the recorded one by default. Of a dataset also MODULE:CLASS, a LeRobot "
            "checkpoint, ws://HOST:PORT, http://HOST:PORT.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for page and tables; beside the recording or dataset by default.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; one for each usable core by default, of a dataset one in all."),
    ] = None,
    episodes: Annotated[
        str | None,
        typer.Option(metavar="0:10|0,3,17", help="Of a dataset; 20 evenly over it by default."),
    ] = None,
    every: Annotated[
        int | None, typer.Option(min=1, help="Of a dataset: each such frame of an episode; one a second by default.")
    ] = None,
) -> None:
    """Ask the policy again on distorted pictures: would its motion have left the recorded one, or its answer changed?

    A dataset needs no cell: rows of the policy are compared in the data set's own units.
    """
    from merton.perception.distortion.setting import settings_of
    from merton_studies.cli.whatif_dataset import twins_of_dataset
    from merton_studies.lerobot.layout import is_dataset

    if not distort:
        raise InputError(
            "name at least one --distort TYPE@LEVEL, such as gaussian_blur@3; `merton recording rescore` computes the "
            "scores of a recorded run again"
        )
    settings = settings_of(distort)
    folder = out or beside(source, ".whatif")
    if is_dataset(source):
        twins_of_dataset(source, settings, policy, folder, workers, episodes, every)
        return
    if episodes is not None or every is not None:
        raise InputError("--episodes and --every are for datasets; this is a recording")
    _twins_of_recording(source, settings, policy, folder, workers)


def _twins_of_recording(
    recording: Path, settings: tuple[Setting, ...], policy: str | None, folder: Path, workers: int | None
) -> None:
    from merton.experiment.dry_run import extras_of_models
    from merton_studies.twins.page import write_page
    from merton_studies.twins.replay import replay
    from merton_studies.twins.tables import write_tables

    ready("`merton whatif`", "recording", *extras_of_models([policy] if policy else []))
    with progress("trials") as move:
        found = replay(recording, settings, policy, workers, move)
    with locked_folder(folder, "merton whatif"):
        files = write_tables(found, folder)
        page = write_page(found, folder / PAGE)
    _show(found)
    print_out(f"Page: {page}. Tables: {', '.join(str(file) for file in files)}")


def _show(found: Replay) -> None:
    """The notes, the self-check, and a row for each distortion; fits in 80 columns."""
    from merton_studies.twins.motion import CARRIED_OUT
    from merton_studies.twins.summary import self_checks, summaries

    for note in found.notes:
        print_err(f"{note}.")  # it may begin with a path
    for check in self_checks(found):
        print_out(
            f"Undistorted, {check.policy}: {check.same} of {check.decisions} chunks as recorded to the last bit, "
            f"{check.within} within {found.about['tolerance_cm']:g} cm; farthest {check.most_cm:.2f} cm"
        )
    table = Table(box=None, pad_edge=False)
    for name in ("distortion", "policy", "trials", "left, 95 %", "median", "most [cm]", "cut short or stopped"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("distortion", "policy") else "right")
    for item in summaries(found):
        share = f"{100 * item.left:.0f} % {interval_words(item.left_interval, 0, 100)}"
        unfinished = len(item.trials) - item.verdicts[CARRIED_OUT]
        add_row(table, item.setting.name, item.policy, len(item.trials), share, f"{item.median_cm:.1f}",
                f"{item.most_cm:.1f}", unfinished)  # fmt: skip
    STDOUT.print(table)
