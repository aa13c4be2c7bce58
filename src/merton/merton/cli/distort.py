"""`merton distort`: one distorted image, a gallery of all distortions, and the list of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from merton.cli.console import STDOUT, add_row, print_err, progress
from merton.cli.tree import App, Group


class _ImageFirst(Group):
    """`merton distort IMAGE ...`: a first argument that is not a command is an image to distort."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `image` in front of a line that begins with neither a command nor a request for help."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["image", *args]
        return super().parse_args(ctx, args)


app = App(
    "Distort an image: merton distort IMAGE --name lens_blur --level 3 -o out.png; or see the list.",
    cls=_ImageFirst,
)
_Source = Annotated[Path, typer.Argument(metavar="IMAGE", help="A PNG, JPEG or WEBP file.")]


@app.command("image")
def image_command(
    source: _Source,
    name: Annotated[str, typer.Option(help="Name or id of the distortion: see `merton distort list`.")],
    level: Annotated[float, typer.Option(help="0 (untouched) .. 5 (worst); fractions where it is continuous.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write; a .png keeps every pixel.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of stochastic distortions.")] = 0,
) -> None:
    """Distort one image; the word `image` may be left out."""
    from merton.perception.distortion import distort
    from merton.perception.images import check_written, read_image, write_image
    from merton.seeding import generator

    check_written(output)
    write_image(distort(read_image(source), name, level, generator(seed)), output)
    print_err(f"{source} with {name} at level {level:g}: {output}")


@app.command("gallery")
def gallery_command(
    source: _Source,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .html, .png or .jpg file.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of stochastic distortions.")] = 0,
) -> None:
    """Show every distortion at every level, with PSNR and SSIM."""
    from merton.perception.distortion.gallery import gallery
    from merton.perception.images import read_image

    with progress("distorting") as on_progress:
        gallery(read_image(source), output, seed, on_progress=on_progress)
    print_err(f"every distortion of {source}: {output}")


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
