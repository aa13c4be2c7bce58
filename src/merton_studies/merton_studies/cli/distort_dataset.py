"""`merton distort dataset`: a distorted copy of a LeRobotDataset, for training with augmentation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import print_out, progress
from merton.cli.tree import needs
from merton.errors import InputError
from merton_studies.cli.whatif import DistortOption

if TYPE_CHECKING:
    from merton_studies.lerobot.conditions import Plan


@needs("dataset", "people")
def distort_dataset_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The folder of a LeRobotDataset, version 2.0 to 3.0.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new or empty folder.")],
    distort: DistortOption = None,
    design: Annotated[
        Path | None,
        typer.Option(help="In place of --distort, --cameras and --seed: a design of episodes (.yaml)."),
    ] = None,
    clean: Annotated[
        float | None,
        typer.Option(help="Share of the episodes that stay clean; as many as each distortion has by default."),
    ] = None,
    cameras: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A camera that is distorted; repeat it. All by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the deal of conditions and of all noise.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Write a copy of a dataset whose episodes are distorted, each by one type and level, for training on them.

    Format, version, states, actions and times stay; the same command finishes a copy that was interrupted.
    """
    from merton.decision.models.rows import key_of
    from merton_studies.lerobot.distorted import CONDITIONS, distort_dataset
    from merton_studies.lerobot.folder import LeRobotFolder

    if (design is None) == (not distort):
        raise InputError("name either --distort TYPE@LEVEL, such as --distort lens_blur@3, or a --design")
    if design is not None and (cameras or seed):
        raise InputError("a design has its own cameras and seed: leave --cameras and --seed out")
    folder = LeRobotFolder(source)
    keys = list(folder.cameras)
    plan, named = _plan(distort or (), clean, seed) if design is None else _plan_of(design, clean)
    chosen = [key_of(name, keys) for name in cameras or named] or None
    with progress("files") as move:
        made = distort_dataset(source, out, plan, cameras=chosen, workers=workers, on_progress=move)
    clean_episodes = sum(not setting.level for setting in made.conditions.values())
    kept = f", of which {made.reused} were there already" if made.reused else ""
    print_out(
        f"{len(made.conditions)} episodes, {clean_episodes} of them clean; {made.files} files with distorted "
        f"pictures{kept}. Conditions: {out / CONDITIONS}"
    )
    if others := [*folder.depth, *folder.other]:
        print_out(f"left as they are, because they have no three channels of colour: {', '.join(others)}")
    for setting, psnr_db in made.psnr_db.items():
        print_out(f"{setting.name}: a distorted picture and the one in its video, at least {psnr_db:.1f} dB")
    print_out(f'load it: LeRobotDataset("me/distorted", root="{out}")')


def _plan(distort: list[str] | tuple[()], clean: float | None, seed: int) -> tuple[Plan, list[str]]:
    from merton.perception.distortion.setting import settings_of
    from merton_studies.lerobot.conditions import Plan

    return Plan(settings_of(distort), clean, seed), []


def _plan_of(file: Path, clean: float | None) -> tuple[Plan, list[str]]:
    """The plan of a design of episodes, and the names of its cameras."""
    from merton.config import load
    from merton.episodes.design import Design
    from merton.episodes.shown import ShownPart
    from merton.perception.distortion.setting import Setting
    from merton_studies.lerobot.conditions import Plan

    design = load(file, Design)
    if design.attribute:
        raise InputError(f"{file}: attribute is for episodes that are carried out; a copy has the part of `distort`")
    one = design.levels == "one"
    levels = [1] if one else design.levels_of("dataset", 0, "")
    settings = tuple(Setting(name, level) for name in design.distortions for level in levels)
    steps = design.part().steps
    return Plan(settings, clean, design.seed, ShownPart(None, steps), one), list(design.distort.cameras or ())
