"""`merton whatif DATASET`: twins of a dataset in LeRobot's format, for any policy by rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_err, print_out, progress
from merton.errors import InputError
from merton.extras import ready
from merton.files import locked_folder
from merton.pages.words import interval_words
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.perception.distortion.setting import Setting
    from merton_studies.twins.dataset.scores import DatasetTwins, Mean


def twins_of_dataset(
    dataset: Path,
    settings: tuple[Setting, ...],
    policy: str | None,
    out: Path,
    workers: int | None,
    episodes: str | None,
    every: int | None,
) -> None:
    """Ask, score, and write page and tables; see `whatif_command`."""
    from merton.decision.models.rows import FORMS
    from merton.perception.distortion import TEMPORAL_FAULTS
    from merton_studies.lerobot.conditions import pictures_of
    from merton_studies.lerobot.folder import LeRobotFolder
    from merton_studies.twins.dataset.asked import ask, sample_of
    from merton_studies.twins.dataset.page import write_page
    from merton_studies.twins.dataset.scores import scored, spread_of
    from merton_studies.twins.dataset.tables import write_tables

    if policy is None:
        raise InputError(f"a dataset does not say which policy to ask: name one with --policy, {FORMS}")
    ready("`merton whatif` of a dataset", "dataset", "people")
    folder = LeRobotFolder(dataset)
    sample = sample_of(folder, episodes, every)
    settings = tuple(one for one in settings if one.level)
    if not settings:
        raise InputError("level 0 is always there: name a --distort with a level of 1 to 5")
    for setting in settings:
        pictures_of(setting, 0, 0)  # refuses what a colour picture does not show
    if not folder.cameras:
        raise InputError(f"{dataset} has no colour pictures")
    spread = spread_of(folder)
    of_time = any(one.distortion in TEMPORAL_FAULTS for one in settings)
    print_err(
        f"{len(sample.episodes)} of {len(folder.episodes)} episodes, a frame each {sample.every / folder.fps:g} s (of "
        f"{folder.fps:g} a second), {counted(len(settings), 'distortion')}"
        + ("; faults of time count frames as steps" if of_time else "")
    )
    with locked_folder(out, "merton whatif"):
        with progress("episodes") as move:
            about, asked = ask(folder, policy, settings, sample, out, workers=workers or 1, on_progress=move)
        found = scored(folder, about, asked, settings, spread)
        files = write_tables(found, out)
        page = write_page(found, folder, out / "whatif.html")
    _show(found)
    print_out(f"Page: {page}. Tables: {', '.join(str(file) for file in files)}")


def _show(found: DatasetTwins) -> None:
    """The notes, the floors, and a row for each distortion; fits in 80 columns."""
    for note in found.notes:
        print_err(f"{note}.")
    floors = found.floors
    print_out(
        f"Likeness, 0 to 1, of the answer to a clean frame: to another episode's (chance) {_words(floors.chance)}, "
        f"to the recorded actions {_words(floors.demonstrator)}, to itself with other noise {_words(floors.repeated)}"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("distortion", "frames", "as clean, 95 %", "to chance", "as recorded", "no action"):
        table.add_column(name, no_wrap=True, justify="left" if name == "distortion" else "right")
    for score in found.scores:
        frames = score.to_clean.frames if score.to_clean else 0
        to_chance = "–" if score.to_chance is None else f"{100 * score.to_chance:.0f} %"
        recorded = f"{score.to_recorded.value:.2f}" if score.to_recorded else "–"
        add_row(table, score.setting.name, frames, _words(score.to_clean), to_chance, recorded, score.no_action)
    STDOUT.print(table)
    print_out("No simulator took part: this says nothing about success")


def _words(mean: Mean | None) -> str:
    return "–" if mean is None else f"{mean.value:.2f} {interval_words(mean.interval)}"
