"""`merton iqa gate`: the worth of refusing bad images, and the threshold for the robot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_out, progress, run_named, working
from merton.cli.tree import needs
from merton.errors import InputError, UnknownNameError
from merton.files import locked_folder, write_file
from merton.pages.words import interval_words
from merton.results.text import count_of

if TYPE_CHECKING:
    from merton_studies.iqa.gate import GateDesign
    from merton_studies.iqa.gate_study import GateStudy
    from merton_studies.iqa.gate_table import GateTable

NUMBERS, PAGE, TRIALS = "gate.json", "gate.html", "gate_trials.csv"
"""Files in the folder: all numbers, the page, and the table that was made from a run."""


@needs("dataset")
def gate_command(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", callback=run_named, help="A run whose trials are measured."),
    ] = None,
    trials: Annotated[
        Path | None, typer.Option(help="A table of trials, such as one that this command wrote; else Merton's own.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="The share of the admitted trials that may fail.")] = 0.1,
    by: Annotated[
        str | None, typer.Option(help="policy or task: each gets a threshold of its own, calibrated on it alone, too.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page and the numbers.")] = Path("gate"),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one for each usable core by default.")] = None,
) -> None:
    """Compare gates on held-out scenes, types and policies, and choose the threshold for `min_image_quality`."""
    from merton_studies.iqa.gate_groups import CALIBRATED_BY
    from merton_studies.iqa.gate_page import write_gate_page
    from merton_studies.iqa.gate_study import as_json, gate_study

    if run and trials:
        raise InputError("name a run or --trials, not both")
    if not 0.0 < alpha < 1.0:
        raise InputError(f"--alpha is a share above 0 and below 1, got {alpha:g}")
    if by is not None and by not in CALIBRATED_BY:
        raise UnknownNameError("--by", by, CALIBRATED_BY)
    with locked_folder(out, "merton iqa gate"):
        table, source = _table(run, trials, out, workers)
        with working("gates") as step:
            found = gate_study(table, alpha, on_progress=step, by=by)
        write_file(out / NUMBERS, (json.dumps(as_json(found), indent=1) + "\n").encode())
        page = write_gate_page(found, source, out / PAGE)
    for design in found.designs:
        STDOUT.print(_shown(design))
    for line in (*_promise(found), *_groups(found), *_setting(found)):
        print_out(line)
    print_out(f"Numbers: {out / NUMBERS}. Page: {page}")


def _table(run: Path | None, trials: Path | None, out: Path, workers: int | None) -> tuple[GateTable, str]:
    """The trials, and the name of where they come from."""
    from merton.experiment.run import RunDirectory
    from merton_studies.iqa.gate_run import rows_of_run, usable_metrics
    from merton_studies.iqa.gate_table import SAMPLE, read_gate_table, write_gate_table

    if run is None:
        return read_gate_table(trials or SAMPLE), trials.name if trials else "the trials that come with Merton"
    with progress("pictures") as move:
        rows = rows_of_run(RunDirectory(run), usable_metrics(), workers, move)
    write_gate_table(out / TRIALS, rows)
    return read_gate_table(out / TRIALS), run.name


def _shown(design: GateDesign) -> Table:
    """The gates of a design; fits in 80 columns."""
    failures = design.events["failure"]
    title = f"Held-out {design.name}: {design.trials} trials, {failures} failures, avoided at a coverage"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    columns = ("gate", "area", "95 %", "- no gate", "90 %", "80 %", "70 %")
    for name in columns:
        table.add_column(name, no_wrap=True, justify="left" if name == "gate" else "right")
    for row in design.rows:
        ends = interval_words(row.area.interval, 3)
        avoided = [f"{100 * each.value:.0f} %" for each in row.avoided["failure"].values()]
        add_row(table, row.gate.name, f"{row.area.value:.3f}", ends, f"{row.gain.value:+.3f}", *avoided)
    return table


def _promise(found: GateStudy) -> list[str]:
    """Lines with the promises of all trials together."""
    from merton_studies.iqa.gate_page import kept_words, threshold_words

    lines = [f"Of the trials that are let through, of all policies and tasks, at most {100 * found.alpha:g} % fail:"]
    for item in found.promises:
        if item.alpha == found.alpha and item.event == "failure":
            guaranteed, average = threshold_words(item.guaranteed), threshold_words(item.average)
            kept = kept_words(found.kept_by(item)) if item.average else ""
            lines.append(f"  {item.gate.name}: guaranteed {guaranteed}; on average {average}{kept}")
    for tried in found.kept:
        if tried.event == "failure" and tried.alpha == found.alpha and tried.found:
            lines.append(
                f"  {tried.gate.name}, {tried.kind}, in {tried.found} of {tried.resplits} divisions by scene: "
                f"{100 * tried.risk:.1f} % fail on scenes left out, {100 * tried.coverage:.0f} % admitted"
            )
    return lines


def _groups(found: GateStudy) -> list[str]:
    """Lines with the failures of each policy and task, and the thresholds of each one's own."""
    from merton.statistics.risk import LEAST_TRIALS
    from merton_studies.iqa.gate_groups import CALIBRATED_BY, least_scenes
    from merton_studies.iqa.gate_page import group_setting, group_words, grouped_rows

    lines = []
    grouped = [item for item in grouped_rows(found) if item[2] in CALIBRATED_BY]
    if grouped:
        lines.append("That says nothing about each of these policies, tasks or types alone (types: on the page).")
        lines.append("Of the admitted trials in the scenes of the calibration fail:")
    for gate, kind, by, rows in grouped:
        lines.append(f"  {gate}, {kind}, by {by}:")
        lines += [
            f"    {row.name}: {100 * row.failing:.0f} % {interval_words(row.interval, 0, 100)} "
            f"of {count_of(row.trials, row.scenes)}"
            for row in rows
        ]
    if found.group_promises:
        least = f"{least_scenes(found.alpha)} scenes and {LEAST_TRIALS} trials"
        lines.append(f"Each {found.by} by itself, calibrated on its own trials, {least} at least:")
    for item in found.group_promises:
        size, setting = count_of(item.trials, item.scenes), group_setting(item)
        lines.append(f"  {item.gate.name}, {item.name} ({size}): {group_words(item)}")
        lines += [f"    {line}" for line in setting.lines] if setting else []
    return lines


def _setting(found: GateStudy) -> list[str]:
    """Lines to paste into settings."""
    from merton_studies.iqa.gate_page import kept_words

    lines, setting = [], found.setting or found.nearest
    if found.setting is None:
        lines.append(f"The best metric of a single image has no threshold for {100 * found.alpha:g} %.")
    if setting is not None:
        kept = kept_words(found.kept_by(setting.promise))
        kind = "guaranteed" if setting.guaranteed else f"on average, without a guarantee{kept}"
        lines.append(f"For arm_node and quality_node, at most {100 * setting.promise.alpha:g} % fail, {kind}:")
        lines += [f"  {line}" for line in setting.lines]
    return lines
