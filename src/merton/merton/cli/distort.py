"""`merton distort`: distorted images, a gallery of all distortions, and the list of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table

from merton.cli.console import STDOUT, add_row, print_err, print_out, progress
from merton.cli.tree import STUDIES, App, Group
from merton.errors import InputError

if TYPE_CHECKING:
    from merton.perception.dataset.copies import CopiesResult, Setting


class _ImageFirst(Group):
    """`merton distort IMAGES ...`: a first argument that is not a command names images to distort."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `image` in front of a line that begins with neither a command nor a request for help."""
        of_studies = {name.partition(" ")[2] for name in STUDIES if name.startswith("distort ")}
        if args and args[0] not in (*self.commands, *of_studies, "-h", "--help"):
            args = ["image", *args]
        return super().parse_args(ctx, args)


app = App(
    "Distort an image or a folder: merton distort IMAGES --distort lens_blur@3 --out OUT; or see the list.",
    cls=_ImageFirst,
)
_Source = Annotated[Path, typer.Argument(metavar="IMAGE", help="A PNG, JPEG or WEBP file.")]
NAMED = 12
"""Files without a copy that are named; `left_out.csv` has all."""


def _checked(texts: list[str] | None) -> list[str] | None:
    """The texts as they are: a mistyped one is named before another option is asked for."""
    from merton.perception.dataset.copies import parse_settings

    parse_settings(texts or ())
    return texts


@app.command("image")
def image_command(
    source: Annotated[Path, typer.Argument(metavar="IMAGES", help="An image, or a folder with its subfolders.")],
    distort: Annotated[
        list[str] | None,
        typer.Option(
            "--distort",
            metavar="TYPE@LEVEL",
            callback=_checked,
            help="See `merton distort list`; repeat it. TYPE alone: levels 1 to 5. all@3: every type. TYPE@0: a copy.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="A new folder; for one copy of one image a file, such as out.png."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="TYPE of one distortion, in place of --distort.")] = None,
    level: Annotated[
        float | None, typer.Option(help="Its LEVEL: 0 (untouched) .. 5 (worst); fractions where it is continuous.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of stochastic distortions; each copy has its own.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Distort an image, or every image of a folder; the word `image` may be left out.

    A folder gets OUT/TYPE/LEVEL/<path of the image>, and manifest.csv; the same command finishes one that was
    interrupted. Exit code 1 if an image cannot be read.
    """
    from merton.perception.dataset.copies import distort_folder, parse_settings

    settings = parse_settings([*(distort or ()), *_named(name, level)])
    if not settings or out is None:
        wanted = ["--distort TYPE@LEVEL, such as --distort lens_blur@3"] * (not settings) + ["--out"] * (out is None)
        raise InputError(f"`merton distort` needs {', and '.join(wanted)}; `merton distort --help` says more")
    if not source.is_dir() and out.suffix and not out.is_dir():
        _one_file(source, out, settings, seed)
        return
    with progress("distorting") as on_progress:
        result = distort_folder(source, out, settings, seed=seed, workers=workers, on_progress=on_progress)
    _show(result, out, len(settings))
    if result.failed:
        raise typer.Exit(1)


def _named(name: str | None, level: float | None) -> list[str]:
    """The distortion of --name and --level as TYPE@LEVEL."""
    if name is None and level is not None:
        raise InputError("--level needs --name; or write both as --distort TYPE@LEVEL")
    return [] if name is None else [name if level is None else f"{name}@{level!r}"]


def _one_file(source: Path, out: Path, settings: Sequence[Setting], seed: int) -> None:
    """Write the one copy of an image into a file of any kind that is written."""
    from merton.perception.dataset.copies import distorted_copy
    from merton.perception.images import check_written, read_image, write_image

    check_written(out)
    if len(settings) > 1:
        raise InputError(f"{out} is one file, for {len(settings)} copies: give --out a folder")
    copy = distorted_copy(read_image(source), source.name, settings[0], seed)
    write_image(copy, out)
    print_err(f"{source} with {settings[0].distortion} at level {settings[0].level:g}: {out}")


def _show(result: CopiesResult, out: Path, settings: int) -> None:
    """The files without a copy, and the counts."""
    from merton.perception.dataset.copies import LEFT_OUT, MANIFEST

    for file, reason in result.failed.items():
        print_err(f"{file}: {reason}")
    if others := result.other_files:
        more = f" and {len(others) - NAMED} more, see {out / LEFT_OUT}" if len(others) > NAMED else ""
        print_err(f"left out, hidden or no images by their ending: {', '.join(others[:NAMED])}{more}")
    images = f"{result.images} {'image' if result.images == 1 else 'images'}"
    kept = f", of which {result.reused} were there already" if result.reused else ""
    failed = f"; {len(result.failed)} could not be read" if result.failed else ""
    print_out(f"{images} x {settings}: {result.copies} copies{kept}{failed}. Table: {out / MANIFEST}")


@app.command("gallery")
def gallery_command(
    source: _Source,
    out: Annotated[Path, typer.Option("-o", "--out", help="A .html, .png or .jpg file.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of stochastic distortions.")] = 0,
) -> None:
    """Show every distortion at every level, with PSNR and SSIM."""
    from merton.perception.distortion.gallery import gallery
    from merton.perception.images import read_image

    with progress("distorting") as on_progress:
        gallery(read_image(source), out, seed, on_progress=on_progress, name=source.name)
    print_err(f"every distortion of {source}: {out}")


@app.command("list")
def list_command(as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False) -> None:
    """List the distortions and their parameters; below them the faults of cameras, which only experiments have."""
    from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS, TEMPORAL_FAULTS, all_distortions

    fields = ("id", "name", "category", "levels", "unit", "stochastic", "continuous", "kadid", "source", "description")
    if as_json:
        entries = [{field: getattr(entry, field) for field in fields} for entry in DISTORTIONS.values()]
        typer.echo(json.dumps(entries, indent=1))
        return
    name = Column("name", no_wrap=True, min_width=max(map(len, all_distortions())))  # to be copied: never cut
    table = Table("id", name, "category", "levels 1 .. 5", "unit", box=None)
    for entry in DISTORTIONS.values():
        values = " ".join(f"{value:g}" for value in entry.levels)
        add_row(table, entry.id, entry.name, entry.category, values, entry.unit)
    for fault in (*DEPTH_FAULTS.values(), *TEMPORAL_FAULTS.values()):
        values = " ".join(f"{value:g}" for value in fault.levels)
        add_row(table, "", fault.name, f"fault of {fault.category}", values, fault.unit)
    STDOUT.print(table)
