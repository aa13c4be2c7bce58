"""`merton export hub`: runs, pictures, answers, opinions, benchmarks and boards as a dataset folder with a card."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_err, print_out, working
from merton.cli.tree import needs
from merton.errors import InputError


@needs("dataset")
def hub_command(
    out: Annotated[Path, typer.Option("-o", "--out", help="A new or empty folder.")],
    licence: Annotated[str, typer.Option(help="Licence of the whole, an SPDX id such as CC-BY-4.0.")],
    run: Annotated[list[str] | None, typer.Option(help="A run: folder, name or latest; may be repeated.")] = None,
    dataset: Annotated[Path | None, typer.Option(help="A folder of `merton dataset build`: its pictures.")] = None,
    annotations: Annotated[
        list[Path] | None, typer.Option(help="A folder of `merton annotate` about the dataset; may be repeated.")
    ] = None,
    opinions: Annotated[
        list[Path] | None, typer.Option(help="A folder with opinions.parquet: labels for image quality.")
    ] = None,
    people: Annotated[
        list[Path] | None, typer.Option(help="A folder of `merton people export`; may be repeated.")
    ] = None,
    curated: Annotated[Path | None, typer.Option(help="A folder of `merton curate build`: its questions.")] = None,
    board: Annotated[
        list[str] | None, typer.Option(help="A folder of `merton leaderboard build`, or a record; may be repeated.")
    ] = None,
    sources: Annotated[
        Path | None, typer.Option(help="CSV with source, licence, attribution: licences of photographs.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the dataset, or owner/name; the folder's by default.")] = "",
    author: Annotated[list[str] | None, typer.Option(help="To be cited; may be repeated.")] = None,
    date: Annotated[str, typer.Option(help="Day of publication, such as 2026-11-30.")] = "",
) -> None:
    """Write a dataset folder as the Hugging Face hub expects it, with a card and a Croissant file."""
    from merton_studies.release.card import About
    from merton_studies.release.hub import Content, export_hub
    from merton_studies.release.licences import Sources, licence_named, read_sources

    about = About(_checked(name or out.resolve().name), licence_named(licence), tuple(author or ()), _day(date))
    content = Content(
        [Path(one) for one in run or ()],
        dataset,
        annotations or (),
        opinions or (),
        people or (),
        curated,
        board or (),
        read_sources(sources) if sources else Sources(),
    )
    with working("exporting") as step:
        found = export_hub(out, content, about, step)
    for one in found.tables:
        size = sum(shard.size for shard in one.shards)
        print_out(f"{one.table.name}: {one.rows()} rows, {len(one.shards)} files, {size / 1e6:.2f} MB")
    if found.left_out:
        print_err(f"{len(found.left_out)} entries are left out because of their licences: see {out / 'LEFT_OUT.csv'}")
    print_out(f"read the card before it is public: {out / 'README.md'}")
    print_out(f"to publish it: hf upload {about.repository} {shlex.quote(str(out))} --repo-type dataset")


def _checked(name: str) -> str:
    """The name as it is; raises InputError for one that the hub refuses."""
    part = r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?"
    if not re.fullmatch(rf"({part}/)?{part}", name, re.ASCII):
        raise InputError(
            "the name of a dataset has letters, digits, '-', '_' and '.', begins and ends with a letter or digit, or "
            f"is owner/name; got {name!r}: choose one with --name"
        )
    return name


def _day(date: str) -> str:
    """The day as it is; raises InputError for a text that is none."""
    import datetime

    try:
        return date and datetime.date.fromisoformat(date).isoformat()
    except ValueError:
        raise InputError(f"a day of publication is such as 2026-11-30; got {date!r}") from None
