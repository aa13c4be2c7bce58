"""`merton video`: films of trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import print_err, print_out, progress, working
from merton.cli.tree import needs
from merton.errors import InputError, did_you_mean
from merton.extras import ready

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory


@needs("sim")
def video_command(
    run: Annotated[str, typer.Argument(metavar="RUN|TRIAL", help="A run; or a trial of the newest run.")],
    trial: Annotated[
        str | None, typer.Argument(help="A trial, such as glance.test-pour.0.jpeg.5; else those of the report's cards.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Of one trial: a .webp or .mp4 file, in place of RUN/videos/.")
    ] = None,
) -> None:
    """Film trials of a run, undistorted beside distorted, with the path, the answer and the outcome.

    The embedded cell carries each trial out again. Films that are there already stay; the report shows those of its
    cards.
    """
    from merton.experiment.dry_run import extras_of
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import LATEST, find_run

    with working("loading"):
        from merton.experiment.films import make_films
        from merton.study.report import film_records, write_report

    if trial is None and (newest := _newest_with(run)) is not None:
        directory, trial = newest, run
    else:
        try:
            directory = RunDirectory(find_run(run))
        except InputError as error:
            if trial is None and run != LATEST and run.count(".") > 2:
                raise InputError(f"{error}; a trial of another run than the newest: merton video RUN {run}") from None
            raise
    to_write = ["people"] if out and out.suffix.lower() == ".mp4" else []
    ready("`merton video`", *extras_of(directory.spec), *to_write)
    records = directory.records()
    if trial is not None:
        by_id = {record.id: record for record in records}
        if trial not in by_id:
            hint = did_you_mean(trial, by_id)
            raise InputError(
                f"{directory.path} has no trial {trial!r}; {hint}{directory.path / 'trials.csv'} lists all"
            )
        chosen = [by_id[trial]]
    elif out is not None:
        raise InputError("--out is the file of one trial: name the trial after the run")
    else:
        chosen = film_records(directory.path)
    if not chosen:
        raise InputError(f"{directory.path} has no distorted trial with its trial.json yet: name a trial after the run")
    with progress("films") as on_progress:
        made, left_out = make_films(directory.path, chosen, out, on_progress)
    for sentence in left_out:
        print_err(f"no film: {sentence}")
    for file in made:
        print_out(str(file))
    if not made:
        raise typer.Exit(1)
    if out is None:
        with working("writing the report"):
            page = write_report(directory.path, directory.planned(record.id for record in records))
        print_out(f"{len(made)} of {len(chosen)} films. Report, with the films: {page}")


def _newest_with(trial: str) -> RunDirectory | None:
    """The newest run, if it has a trial with this id; else None."""
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import LATEST, find_run

    try:
        directory = RunDirectory(find_run(LATEST))
        return directory if any(record.id == trial for record in directory.records()) else None
    except InputError:  # no run, or none with results
        return None
