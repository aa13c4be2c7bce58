"""The page of `make bench`: python tools/bench/bench_page.py build/bench.json docs/reference/performance.md.

Of suites that the figures lack, the sections of the old page stay, and its head.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

from bench import SUITES

HEAD = """# Performance

Made by `make bench`: do not edit. Machine: {cores} cores, {machine}; Python {python}; Merton {merton}; load at the
start {load_at_start:.2f}. Each figure is a median within one process; a suite that compares runs its peers in the same
process. `times_faster_than_x` is the peer's time divided by ours: below 1 the peer is faster.
"""


WIDTH = 135
"""Most characters of a table's head; further figures come in another table with the same names."""


def number(value: Any) -> str:
    """Three significant digits, thousands separated; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def table(figures: dict[str, Any]) -> str:
    """Markdown: a list of single figures, and a table for names that share figures."""
    single = {name: value for name, value in figures.items() if not isinstance(value, dict)}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            deeper = {f"{name} {key}": inner for key, inner in value.items() if isinstance(inner, dict)}
            nested |= deeper or {name: value}
    tables = []
    for rows in sharing(nested):
        if len(rows) == 1:
            single |= {f"{name} {key}": inner for name, value in rows.items() for key, inner in value.items()}
            continue
        columns = list(dict.fromkeys(column for value in rows.values() for column in value))
        for part in heads(columns):
            tables += ["| | " + " | ".join(part) + " |", "|---" * (len(part) + 1) + "|"]
            for name, value in rows.items():
                if value.keys() & set(part):
                    cells = [number(value[column]) if column in value else "" for column in part]
                    tables.append(f"| {name} | " + " | ".join(cells) + " |")
            tables.append("")
    listed = ["| | |", "|---|---|", *(f"| {name} | {number(value)} |" for name, value in single.items()), ""]
    return "\n".join((listed if single else []) + tables)


def heads(columns: list[str]) -> list[list[str]]:
    """The columns in order, as few tables' heads as fit into WIDTH."""
    parts: list[list[str]] = [[]]
    for column in columns:
        if parts[-1] and len(" | ".join([*parts[-1], column])) + len("| |  |") > WIDTH:
            parts.append([])
        parts[-1].append(column)
    return parts


def sharing(named: dict[str, dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    """Names in groups: each has a figure of the same name as one before it in its group."""
    groups: list[dict[str, dict[str, Any]]] = []
    for name, value in named.items():
        group = next((group for group in groups if any(value.keys() & other for other in group.values())), None)
        if group is None:
            group = {}
            groups.append(group)
        group[name] = value
    return groups


def page(result: dict[str, Any], old: str) -> str:
    """The whole page."""
    head, *sections = old.split("\n## ")
    kept = {section.partition("\n")[0]: section for section in sections}
    parts = [HEAD.format(**result) if SUITES.keys() <= result.keys() else head]
    for name, suite in SUITES.items():
        if name in result:
            parts.append(f"{name}\n\n{inspect.cleandoc(suite.__doc__ or '')}\n\n{table(result[name])}")
        elif name in kept:
            parts.append(kept[name])
    return "\n\n## ".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.write_text(page(json.loads(Path(sys.argv[1]).read_text()), target.read_text() if target.is_file() else ""))
