"""`merton curate import` and `merton curate join`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.columns import columns_by_part
from merton.cli.console import print_out, progress
from merton.cli.tree import needs
from merton.errors import InputError
from merton.results.text import counted


@needs("dataset")
def import_command(
    form: Annotated[str, typer.Argument(help="jsonl, csv, parquet, datasets, openeqa or sqa3d.")],
    path: Annotated[Path, typer.Argument(help="The benchmark's file or folder.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the pool.")],
    source: Annotated[str | None, typer.Option(help="Name of the benchmark; its file's, if not given.")] = None,
    description: Annotated[str, typer.Option(help="A few sentences about what it tests.")] = "",
    licence: Annotated[str, typer.Option(help="Of its questions and pictures, such as CC-BY-4.0.")] = "",
    url: Annotated[str, typer.Option(help="Its page.")] = "",
    citation: Annotated[str, typer.Option(help="How its authors want it cited.")] = "",
    column: Annotated[
        list[str] | None, typer.Option(help="PART=NAME: a column that holds a part of a question, such as text=Q.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which split, where a folder has several.")] = "",
    pictures: Annotated[
        Path | None,
        typer.Option(help="Folder that paths of pictures start from; with openeqa its frames or videos."),
    ] = None,
    frames: Annotated[int, typer.Option(min=1, help="Frames of a video, at equal distances.")] = 32,
) -> None:
    """Make a pool of questions from a published benchmark; its pictures are copied, of its videos some frames."""
    from merton_studies.curation.importing import importers
    from merton_studies.curation.question import BenchmarkSource

    about = {"description": description, "licence": licence, "url": url, "citation": citation}
    named = None
    if source is not None or any(about.values()):
        if form in importers.BUILT_IN:
            raise InputError(
                f"the source of the form {form} is described already; leave --source, --licence and the like out"
            )
        named = BenchmarkSource(name=source or path.resolve().stem, **about)
    with progress("importing") as on_progress:
        done = importers.import_pool(
            form,
            path,
            out,
            named,
            columns=columns_by_part(column),
            split=split,
            pictures=pictures,
            frames=frames,
            on_progress=on_progress,
        )
    for remark in done.remarks:
        print_out(remark)
    unknown = sum(not question.answer for question in done.pool.questions)
    if unknown:
        print_out(f"{counted(unknown, 'question')} {'has' if unknown == 1 else 'have'} no answer.")
    for one in done.pool.sources.values():
        if not one.licence:
            print_out(f"{one.name} has no licence: say which by --licence before the pool is passed on.")
    print_out(f"{counted(len(done.pool.questions), 'question')}: {out}")


@needs("dataset")
def join_command(
    pools: Annotated[list[Path], typer.Argument(metavar="POOL...", help="Two or more folders of pools.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the pool of all.")],
) -> None:
    """Join pools into one; two questions with one id are refused."""
    from merton_studies.curation.importing import importers

    with progress("copying pictures") as on_progress:
        joined = importers.join(pools, out, on_progress)
    print_out(f"{counted(len(joined.questions), 'question')} of {counted(len(joined.sources), 'source')}: {out}")
