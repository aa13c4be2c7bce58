"""The table of a benchmark as files: long CSV, the same as Parquet, and LaTeX in the layout of the paper."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from merton.pages.words import number
from merton.results.csv_writer import csv_text
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton.results.text import MISSING
from merton_studies.iqa.metric_table import ALL_SPLITS, GROUPS, OVERALL, Benchmark, CoefficientRow, Column, marks

LONG = {
    "metric": "string",
    "group": "string",
    "label": "string",
    "split": "string",
    "column": "string",
    "indicator": "string",
    "mean": "float64",
    "sd": "float64",
    "low": "float64",
    "high": "float64",
    "n": "float64",
    "repeats": "int32",
    "start": "string",
}
"""Columns of the long table, a row for each coefficient; see `metric_table.Cell`. `n` is the mean number of images, and
`start` what a trained network began with."""
PRINTED = ("srcc", "krcc", "plcc")
"""Indicators of the paper's tables."""
BLOCKS = (
    ("Dimensions and perspective", 0, 5),
    ("Distortion by its effect, and Sim2Real", 5, 10),
    ("Absolute level of the distortion", 10, None),
)
"""The paper's tables have 15 columns in three blocks of five: title, first and last column. A dataset may have other
levels than the paper's five."""


def blocks(found: Benchmark) -> list[tuple[str, list[Column]]]:
    """Title and columns of each of the paper's three blocks."""
    printed = [column for column in found.table if column.name != OVERALL]
    return [(title, printed[first:last]) for title, first, last in BLOCKS]


def long_rows(found: Benchmark) -> Iterator[tuple[Any, ...]]:
    """The rows of the long table, in the order of `LONG`; NaN is None."""
    for row in found.rows:
        for column, cells in row.cells.items():
            for indicator, cell in cells.items():
                numbers = (cell.mean, cell.sd, cell.low, cell.high, cell.n)
                shown = (None if math.isnan(value) else value for value in numbers)
                yield row.metric, row.group, found.stage, row.split, column, indicator, *shown, cell.repeats, row.start


def as_csv(found: Benchmark) -> str:
    """The long table; empty cells where a coefficient is undefined."""
    return csv_text(tuple(LONG), long_rows(found))


def as_parquet(found: Benchmark) -> bytes:
    """The long table with versions, hashes and settings; raises MissingDependencyError without pyarrow."""
    arrow = require_pyarrow()
    about = json.dumps(dict(found.about), sort_keys=True)
    schema = arrow.schema(list(LONG.items()), metadata={"merton": about})
    columns = list(zip(*long_rows(found), strict=True)) or [()] * len(LONG)
    table = arrow.table(
        [arrow.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
    return parquet_bytes(table)


def as_latex(found: Benchmark) -> str:
    """A table for each split, in the paper's three blocks: best in bold, second underlined, below the baseline in grey.

    Needs the packages booktabs and xcolor.
    """
    parts = ["% needs \\usepackage{booktabs} and \\usepackage{xcolor}"]
    for split in found.splits:
        caption = f"{found.stage.capitalize()}, split {split}: {ALL_SPLITS[split]}. Mean of the repeats."
        parts += ["\\begin{table*}", "\\centering\\tiny", f"\\caption{{{_escaped(caption)}}}"]
        for _, columns in blocks(found):
            parts += _latex_block(found.of_split(split), columns)
        parts.append("\\end{table*}")
    return "\n".join(parts) + "\n"


def _latex_block(rows: Sequence[CoefficientRow], columns: Sequence[Column]) -> Iterator[str]:
    spread = len(PRINTED)
    yield f"\\begin{{tabular}}{{ll{'r' * spread * len(columns)}}}\\toprule"
    yield " & " + "".join(f"& \\multicolumn{{{spread}}}{{c}}{{{column.title}}}" for column in columns) + "\\\\"
    yield "Group & Metric" + " & SRCC & KRCC & PLCC" * len(columns) + "\\\\\\midrule"
    marked = {(c.name, name): marks(rows, c.name, name) for c in columns for name in PRINTED}
    for row in rows:
        cells = [
            _latex_cell(row.mean(column.name, name), marked[column.name, name].get(row.metric, ""))
            for column in columns
            for name in PRINTED
        ]
        name = f"{_escaped(row.metric)} ({_escaped(row.began)})" if row.began else _escaped(row.metric)
        yield f"{_escaped(GROUPS[row.group])} & {name} & " + " & ".join(cells) + "\\\\"
    yield "\\bottomrule\\end{tabular}\\par\\smallskip"


def _latex_cell(value: float, mark: str) -> str:
    if math.isnan(value):
        return "--"
    text = number(value, 4).replace("−", "$-$")
    for word, command in (("best", "\\textbf"), ("second", "\\underline"), ("below", "\\textcolor{gray}")):
        if word in mark.split():
            text = f"{command}{{{text}}}"
    return text


def _escaped(text: str) -> str:
    """Text for LaTeX: names hold no other special letters."""
    return text.replace("_", "\\_").replace("&", "\\&").replace("%", "\\%").replace("#", "\\#").replace(MISSING, "--")
