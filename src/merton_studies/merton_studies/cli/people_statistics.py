"""`merton people stats` and `merton people export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from merton.cli.console import STDOUT, add_row, from_here, print_out, progress
from merton_studies.cli.people_project import ProjectFile

if TYPE_CHECKING:
    from merton.statistics.raters import RaterAgreement
    from merton_studies.people.statistics import Summary


def stats_command(
    project: ProjectFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="HTML file to write, which works offline.")] = None,
) -> None:
    """Say how far raters agree, whose work should be looked at, and how much is missing; also while a study runs."""
    from merton_studies.people.statistics import summary
    from merton_studies.people.statistics_page import write_page
    from merton_studies.people.study import recorded_study

    with progress("media") as on_progress, recorded_study(project, on_progress) as study:
        loaded, answers = study.loaded, study.ledger.answers()
    found = summary(loaded.project, study.items, study.protocol, answers, loaded.sha256)
    if out is not None:
        write_page(found, out)
    if as_json:
        sys.stdout.write(found.as_json())
        return
    _print(found)
    if out is not None:
        print_out(f"page: {from_here(out)}")


def export_command(
    project: ProjectFile,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the files: a new one.")],
    names: Annotated[bool, typer.Option("--names", help="With the names of people in place of pseudonyms.")] = False,
) -> None:
    """Write what the rest of Merton reads, every rating and answer, the statistics and their page."""
    from merton_studies.people.export import export_study
    from merton_studies.people.study import recorded_study

    with progress("media") as on_progress, recorded_study(project, on_progress) as study:
        files = export_study(study.loaded, study.items, study.protocol, study.ledger, out, names)
    for file in files:
        print_out(from_here(file))


def _print(found: Summary) -> None:
    print_out(
        f"{found.answers} answers of {len(found.raters)} raters; {found.complete} of {found.items} items complete"
    )
    if found.wanted:
        print_out(f"{found.wanted} more answers complete the others")
    table = Table("criterion", "equal", "alpha", "kappa or ICC(2,1)", "items (scenes)", box=None, pad_edge=False)
    for one in found.agreements:
        second = one.fleiss if one.intraclass is None else one.intraclass.two_way
        assert second is not None
        equal = "-" if one.share.value is None else f"{one.share.value:.2f}"
        cells = (equal, _shown(one.alpha), _shown(second), f"{one.alpha.n} ({one.alpha.clusters})")
        add_row(table, one.criterion, *cells)
    if found.agreements:
        STDOUT.print(table)
    for criteria, missing in found.missing:
        print_out(f"{', '.join(criteria)}: {missing.shown}")
    for rater in found.raters:
        if rater.marks:
            print_out(f"look at {rater.rater}: {'; '.join(rater.marks)}")


def _shown(one: RaterAgreement) -> str:
    return "-" if one.value is None else one.shown
