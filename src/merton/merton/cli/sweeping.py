"""`merton run` of a sweep: one run of each combination of values, in order, and what is finished is not run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from merton.cli.console import STDOUT, add_row, from_here, own_command, print_err, print_out
from merton.errors import FileError, InputError

if TYPE_CHECKING:
    from merton.experiment.changes import Experiment
    from merton.experiment.run import RunDirectory


def run_sweep(
    experiments: Sequence[Experiment],
    runs: Path,
    name: str | None,
    resume: bool,
    carry_out: Callable[[RunDirectory, bool], None],
    again: Sequence[str],
) -> list[RunDirectory]:
    """Run all experiments of a sweep one after another, write their reports, and list them.

    Args:
        experiments: with different `label`s.
        runs: the folder of runs.
        name: what the names of the runs begin with; None for the experiment's name and the time after the values.
        resume: go on with those that were begun.
        carry_out: runs a directory to its end; the second argument says that it was begun before.
        again: words of the command that goes on.

    Raises:
        InputError: a run cannot be begun, or none of the sweep is there to resume.
    """
    from merton.experiment.run_names import summarize
    from merton.study.report import write_report

    begun = [_begun(one, label, runs, name) if resume else None for one, label in labelled(experiments)]
    if resume and not any(begun):
        raise InputError(f"there is no run of this sweep below {runs} to resume: leave --resume out")
    made = []
    try:
        for number, ((one, label), directory) in enumerate(zip(labelled(experiments), begun, strict=True), 1):
            is_new = directory is None
            if directory is None:
                directory = _create(one, label, runs, name)
            made.append(directory)
            print_err(f"run {number} of {len(experiments)}, {one.title}: {from_here(directory.path)}")
            if is_new or not summarize(directory.path).is_finished:
                carry_out(directory, not is_new)
            write_report(directory.path, directory.planned(record.id for record in directory.records()))
    except BaseException:
        print_err(f"The sweep goes on with: {own_command(*again, '--resume')}")
        raise
    _show(experiments, made)
    return made


def labelled(experiments: Sequence[Experiment]) -> list[tuple[Experiment, str]]:
    """Each experiment of a sweep with its part of a run's name, no two alike: its values, or its number."""
    labels = [one.label for one in experiments]
    is_usable = len(set(labels)) == len(labels) and max(map(len, labels)) <= 48
    return [
        (one, label if is_usable else str(number))
        for number, (one, label) in enumerate(zip(experiments, labels, strict=True), 1)
    ]


def _begun(one: Experiment, label: str, runs: Path, name: str | None) -> RunDirectory | None:
    """The run of an experiment that was begun before; None if there is none."""
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import latest_run

    if name is None:
        try:
            directory = latest_run(runs, one.file, one.text)
        except FileError:  # it was begun, and cannot be read
            raise
        except InputError:
            return None
    elif not (runs / f"{name}-{label}" / "experiment.yaml").is_file():
        return None
    else:
        directory = RunDirectory(runs / f"{name}-{label}")
    directory.check_experiment(one.file, one.text)
    return directory


def _create(one: Experiment, label: str, runs: Path, name: str | None) -> RunDirectory:
    from merton.experiment.run import RunDirectory

    whole = f"{name}-{label}" if name else f"{one.spec.name}-{label}-{datetime.now():%Y%m%d-%H%M%S}"
    return RunDirectory.create(runs, one.file, whole, text=one.text, about=one.about)


def _show(experiments: Sequence[Experiment], made: Sequence[RunDirectory]) -> None:
    """One line for each run, and the command that compares two."""
    table = Table("run", "values", "trials", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for one, directory in zip(experiments, made, strict=True):
        add_row(table, directory.path.name, one.title, directory.recorded())
    STDOUT.print(table)
    first, *_, last = (from_here(directory.path) for directory in made)
    print_out(f"Compare two of them: {own_command('compare', first, last)}")
