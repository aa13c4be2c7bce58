"""Record what `merton reproduce` computes now beside each printed number: after one was added, not to hide a change.

Writes recomputed, off and verdict into config/published/*.csv, and digits.csv and claims.csv anew. Printed digits are
left as they are, and so are reasons, of which a number that is equal needs none. Read the difference before it is
committed: every line of it is a verdict that changed.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from merton_studies.opinions.published import printed_rows
from merton_studies.papers import embodied_iqa, reproduce
from merton_studies.papers.facts import COLUMNS, Checked, check, fingerprint

FOLDER = Path(__file__).parents[2] / "config" / "published"


def written(value: float | None) -> str:
    return "" if value is None else f"{round(value, 6):.6f}".rstrip("0").rstrip(".").replace("-0", "0", value == 0)


def write(name: str, columns: tuple[str, ...], lines: Sequence[dict[str, str]]) -> None:
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def record(name: str, numbers: list[Checked]) -> None:
    lines = [
        {
            "table": item.fact.table, "row": item.fact.row, "column": item.fact.column, "printed": item.fact.printed,
            "origin": item.fact.origin, "recomputed": written(item.value), "off": written(item.off),
            "verdict": item.verdict, "reason": "" if item.verdict == "equal" else item.fact.reason,
        }
        for item in numbers
    ]  # fmt: skip
    write(f"{name}.csv", COLUMNS, lines)


def record_triples(numbers: list[Checked]) -> None:
    """Tables 2, 4 and 8a of Embodied-IQA: a line holds three numbers, and the verdict of its KRCC."""
    found = {item.fact.key: item for item in numbers}
    lines = printed_rows("embodied_iqa")
    for line in lines:
        for name in embodied_iqa.INDICATORS:
            item = found.get((embodied_iqa.TABLES[line["table"]].removeprefix("Table "), line["metric"],
                              f"{line['column']} {name.upper()}"))  # fmt: skip
            line[f"{name}_recomputed"] = "" if item is None else written(item.value)
            if name == "krcc":
                line["verdict"] = item.verdict if item else "cannot be known"
    write("embodied_iqa.csv", tuple(lines[0]), lines)


def main() -> None:
    digits, claims = [], []
    for name, paper in reproduce.PAPERS.items():
        facts = paper.read()
        numbers = list(check(facts, paper.recompute(facts)))
        if name == "embodied-iqa":
            triples = len(embodied_iqa.read_triples())
            record_triples(numbers[:triples])
            numbers = numbers[triples:]
        record({"embodied-iqa": "embodied_iqa_text"}.get(name, name.replace("-", "_")), numbers)
        digits.append({"paper": name, "sha256": fingerprint(facts)})
        claims += [{"paper": name, "claim": claim.text, "verdict": claim.verdict} for claim in paper.claims(facts)]
    write("digits.csv", ("paper", "sha256"), digits)
    write("claims.csv", ("paper", "claim", "verdict"), claims)


if __name__ == "__main__":
    main()
