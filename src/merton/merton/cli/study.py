"""`merton study`: what models make of a whole dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import print_err, print_out
from merton.cli.tree import App
from merton.errors import InputError

if TYPE_CHECKING:
    from merton.study.opinion import Opinions

app = App("One score per image from annotations, and the studies made of it.")

Folders = Annotated[
    list[Path], typer.Argument(metavar="ANNOTATED... DATASET", help="Folders of `merton annotate`, then their dataset.")
]


@app.command("opinions")
def opinions_command(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for subjects.parquet and opinions.parquet.")],
    label: Annotated[str, typer.Option(help="mean, or zscore: the subjects' standardised sums.")] = "mean",
    subject: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only references of this domain: real or simulation.")] = None,
    leave_one_out: Annotated[bool, typer.Option(help="Also the opinions without each subject, and its own.")] = False,
) -> None:
    """Write one score per image: the mean over models of their scores, summed over the five tasks."""
    from merton.annotate import opinions as made

    found = made.read_annotations(*annotated_and_dataset(folders), domain)
    out.mkdir(parents=True, exist_ok=True)
    opinions = made.write_opinions(found, out, label, subject)
    for remark in remarks(opinions):
        print_err(remark)
    for stage in opinions.stages:
        used = len(opinions.level) - len(opinions.unused(stage))
        print_out(f"{stage}: {used} images scored by {opinions.about['least_subjects'][stage]} subjects")
    if leave_one_out:
        names = made.write_leave_one_out(found, out, label)
        print_out(f"without and of each subject: {', '.join(names)}")
    print_out(f"{out}")


def annotated_and_dataset(folders: list[Path]) -> tuple[list[Path], Path]:
    """The folders of annotations, and the dataset after them; raises InputError if there is only one folder."""
    if len(folders) < 2:
        raise InputError("name at least one folder of `merton annotate`, and the folder of its dataset after it")
    return folders[:-1], folders[-1]


def remarks(opinions: Opinions) -> Iterator[str]:
    """What a user should know before the numbers are used, in a sentence each."""
    import numpy as np

    for stage in opinions.stages:
        subjects = opinions.about["subjects"][stage]
        if len(subjects) == 1:
            yield f"{stage} is the opinion of one subject, {subjects[0]}: it has no spread, and is no mean opinion."
        scores = opinions.value(stage)
        known = scores[~np.isnan(scores)]
        if np.ptp(known) < 1e-12:
            yield f"{stage} is {known[0]:g} on every image, so it tells nothing apart: no levels of sensitivity."
        missing = opinions.unused(stage)
        if len(missing):
            references = np.unique(opinions.reference_id[missing])
            yield (
                f"{len(missing)} images have no {stage}, because a subject has none of one of the tasks, and are not "
                f"used: those of {len(references)} references, such as {references[0]}."
            )
