"""`merton curate paper`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from merton.cli.console import print_out


def paper_command(
    every: Annotated[
        bool, typer.Option("--all", help="Every number, not only those that do not simply agree.")
    ] = False,
) -> None:
    """Recompute the numbers that A2Eval prints from each other, and say what does not add up.

    Exit code 1 if a verdict is not the one that is known, so if a number was changed.
    """
    from merton.curation.published import cells_of, check, findings, read_facts

    facts = read_facts()
    checked = check(facts)
    print_out(
        f"A2Eval prints {sum(bool(fact.printed) for fact in facts)} numbers in tables 2 to 7, 9 to 11 and its text"
    )
    for table in dict.fromkeys(fact.table for fact in facts):
        counts = Counter(item.verdict for item in checked if item.fact.table == table)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        print_out(f"{_table(table)}: {told}")
    for item in checked:
        if every or item.verdict not in ("equal", "cannot be recomputed"):
            fact = item.fact
            value = "" if item.value is None else f", recomputed {item.value:.4f}"
            printed = f"printed {fact.printed}" if fact.printed else "not printed"
            verdict = "" if item.verdict == "not printed" else f": {item.verdict}"
            print_out(f"{_table(fact.table)}, {fact.row}, {fact.column}: {printed}{value} ({item.how}){verdict}")
    found = findings(cells_of(facts))
    for finding in found:
        print_out(f"{finding.text}{'' if finding.holds else ' (no longer so)'}")
    wrong = [item for item in checked if not item.is_as_known]
    for item in wrong:
        fact = item.fact
        print_out(
            f"not as known: {_table(fact.table)}, {fact.row}, {fact.column}: {item.verdict}, {item.value}; "
            f"known: {fact.verdict}, {fact.recomputed}"
        )
    if wrong or not all(finding.holds for finding in found):
        raise typer.Exit(1)


def _table(name: str) -> str:
    return "Text" if name == "text" else f"Table {name}"
