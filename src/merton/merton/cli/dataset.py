"""`merton dataset`: the built-in sample, the builder, and the check of a built dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.columns import named_columns
from merton.cli.console import print_err, print_out, progress
from merton.cli.tree import App, needs

app = App("Build datasets of distorted images, and verify them.")


@app.command("sample")
@needs("sim")
def sample_command(
    out: Annotated[Path, typer.Option(help="A new or empty folder for the references.")],
    scenes: Annotated[int, typer.Option(min=1, help="Scenes of each split, three images each.")] = 50,
) -> None:
    """Write the built-in references with tags and tasks: varied scenes of the embedded cell, and photographs."""
    from merton.perception.dataset import write_sample

    with progress("rendering") as on_progress:
        count = write_sample(out, scenes, on_progress)
    print_out(f"{count} references and their tags: {out}")


@app.command("build")
@needs("dataset")
def build_command(
    references: Annotated[
        Path, typer.Option(help="Folder of images; tags.yaml or tags.csv in it has their tags and tasks.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the dataset; one that was begun is finished.")],
    tasks: Annotated[Path | None, typer.Option(help="The tag file, if it lies elsewhere.")] = None,
    levels: Annotated[
        str, typer.Option(help="random (one), all, aligned or aligned:METRIC (of equal quality).")
    ] = "random",
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each usable core by default.")] = None,
    max_blur_effect: Annotated[float | None, typer.Option(help="Leave out references more blurred than this.")] = None,
    max_noise_sigma: Annotated[float | None, typer.Option(help="Leave out references noisier than this.")] = None,
) -> None:
    """Distort every reference in every way, and write the manifest."""
    from merton.perception.dataset import build

    given = {"blur_effect": max_blur_effect, "noise_sigma": max_noise_sigma}
    bounds = {name: bound for name, bound in given.items() if bound is not None}
    with progress("building") as on_progress:
        result = build(
            references,
            out,
            tasks=tasks,
            levels=levels,
            seed=seed,
            workers=workers,
            bounds=bounds,
            on_progress=on_progress,
        )
    for file, reason in result.refused.items():
        print_err(f"left out: {file}: {reason}")
    print_out(
        f"{result.references} references, {result.distorted} distorted images ({result.reused} were there already), "
        f"{len(result.refused)} left out: {out}"
    )


@app.command("import")
@needs("dataset")
def import_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="FOLDER|TABLE", help="KADID-10k, TID2013, LIVE or CSIQ as unpacked; or a table."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the dataset; one that was begun is finished.")],
    column: Annotated[
        list[str] | None,
        typer.Option(help="PART=NAME: the column that holds a part of a row, such as distorted=image; repeatable."),
    ] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder that paths in the table start from.")] = None,
    name: Annotated[str, typer.Option(help="Of the data set; its folder's by default.")] = "",
    licence: Annotated[str, typer.Option(help="Of its pictures, such as CC-BY-4.0.")] = "",
    workers: Annotated[int | None, typer.Option(help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Make a dataset of pictures that somebody else distorted: their types, their levels.

    A row of a table has reference, distorted and type, and what there is of level or severity, category, split, scene,
    domain, perspective, object, background, tasks, task_1 to task_5.
    """
    from merton.perception.dataset.foreign import read_foreign
    from merton.perception.dataset.importing import import_dataset
    from merton.perception.dataset.origin import read_origin

    found = read_foreign(source, columns=named_columns(column), pictures=pictures, name=name)
    for remark in found.remarks:
        print_err(remark)
    with progress("importing") as on_progress:
        result = import_dataset(found, out, licence=licence, workers=workers, on_progress=on_progress)
    for file, reason in result.refused.items():
        print_err(f"left out: {file}: {reason}")
    if not licence:
        print_err("no licence is named: say which by --licence before the pictures are passed on.")
    print_out(
        f"{result.references} references, {result.distorted} distorted images ({result.reused} were there already), "
        f"{len(result.refused)} left out: {out}"
    )
    print_out(f"distortions: {read_origin(out).words}")


@app.command("verify")
@needs("dataset")
def verify_command(dataset: Annotated[Path, typer.Argument(help="A folder that was built.")]) -> None:
    """Hash every file again; exit code 1 if any differs from the manifest."""
    from merton.perception.dataset import verify

    with progress("verifying") as on_progress:
        differences = verify(dataset, on_progress)
    for difference in differences:
        print_out(difference)
    if differences:
        raise typer.Exit(1)
    print_out("every file is as it was built")
