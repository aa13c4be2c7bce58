"""The findings of an attribution: tables on the terminal, numbers and a page in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from merton.cli.console import STDOUT, add_row, print_out
from merton.files import write_file
from merton.pages.words import interval_words, number, percent
from merton.results.text import MISSING, count_of

if TYPE_CHECKING:
    from merton.study.attribution import Failure, Findings, Mean

NUMBERS, PAGE = "attribution.json", "attribution.html"
"""Files in the run's folder: all numbers, and the page."""


def show(run: Path, findings: Findings, about: Mapping[str, Any]) -> None:
    """Tables on the terminal, numbers and page in the run's folder."""
    from merton.study.attribution_finding import finding, unseeing_sentence
    from merton.study.report import write_attribution_page

    print_out(finding(findings))
    if findings.attributions:
        STDOUT.print(_table(findings))
    for found in findings.failures:
        print_out(
            f"{found.agent}: points of success won by clean images from a step on, and lost at it; % saved of the "
            f"{count_of(found.trials, found.scenes)} that fail only under distortion, and % spoiled of the "
            f"{found.others} run again that succeed under it:"
        )
        STDOUT.print(_steps(found))
    for remark in findings.remarks:
        print_out(remark)
    if findings.unseeing:
        print_out(unseeing_sentence(findings.unseeing))
    numbers = json.dumps({**about, **asdict(findings)}, indent=1, allow_nan=False)
    write_file(run / NUMBERS, f"{numbers}\n".encode())
    page = write_attribution_page(findings, run.name, run / PAGE)
    print_out(f"Numbers: {run / NUMBERS}. Page: {page}")


def _table(findings: Findings) -> Table:
    """The shares of success in points of 100; those of progress are on the page. Fits in 80 columns."""
    title = "Points of success lost under distortion, of 100"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for name in ("agent", "part", "points", "95 %", "% of it"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("agent", "part") else "right")
    for item in findings.attributions:
        if item.value != "success":
            continue
        whole = 100 if item.loss.value else MISSING
        add_row(table, item.agent, f"all {item.axis}", *_points(item.loss), whole)
        for part, share in item.shares.items():
            of_loss = number(100 * share.value / item.loss.value, 0) if item.loss.value else MISSING
            add_row(table, "", f"  {part}", *_points(share), of_loss)
        if item.chance:
            add_row(table, "", "  (chance)", *_points(item.chance), MISSING)
    return table


def _steps(found: Failure) -> Table:
    """The steps at which success is lost; fits in 80 columns."""
    table = Table(box=None, pad_edge=False)
    for name in ("step", "won", "95 %", "lost", "95 %", "saved", "spoiled"):
        table.add_column(name, no_wrap=True, justify="right")
    for step, at in found.at.items():
        add_row(table, step, *_points(at.won), *_points(at.lost), percent(at.saved), percent(at.spoiled))
    return table


def _points(mean: Mean) -> tuple[str, str]:
    """Points of 100 and their interval, in words where the agent does not look."""
    if mean.interval is None:
        return "0", "does not look"
    return number(100 * mean.value, 1), interval_words(mean.interval, 0, 100)
