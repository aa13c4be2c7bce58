"""Battles of two models as arenas publish them: a row for each, with the winner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.results.tables import READABLE as TABLES
from merton.results.tables import Row, name_in, named_rows
from merton.results.text import one_line

READABLE = (*TABLES, ".json")
COLUMNS = ("model_a", "model_b", "winner")
TIE = "tie"
SCENES = ("scene", "question_id", "question", "prompt", "case", "task")
"""Columns of what the battle was about, the first that is there; battles about the same are one scene."""
CHOICES: Mapping[str, str] = {
    "model_a": "a",
    "a": "a",
    "model_b": "b",
    "b": "b",
    "tie": "tie",
    "draw": "tie",
    "tie (bothbad)": "both_bad",
    "bothbad": "both_bad",
    "both_bad": "both_bad",
}
"""Words for a winner, in small letters: Chatbot Arena's words first; the name of one of the two serves, too."""
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}
"""Points of model "a". Neither is preferred where both are bad, so it counts as a tie (as at Chatbot Arena)."""
_TRUE, _FALSE = ("true", "1", "1.0"), ("false", "0", "0.0", "", "none")


@dataclass(frozen=True)
class Battle:
    """A battle.

    Attributes:
        a, b: the models.
        choice: "a", "b", "tie" or "both_bad".
        scene: subject of the battle; its place in the table where the table does not say.
    """

    a: str
    b: str
    choice: str
    scene: str


def read_battles(path: Path) -> list[Battle]:
    """The battles of a table with the columns model_a, model_b and winner, in any letters.

    A column `tie` that is true makes a tie of a row, whatever its winner is; other columns are ignored, but for what
    the battle was about (`SCENES`).

    Args:
        path: a .csv, .tsv, .jsonl or .parquet file, or a .json file of a list of objects.

    Raises:
        InputError: no such table, a row without two different models or without a winner; with the line.
    """
    found = []
    for where, row in _rows(path):
        missing = [column for column in COLUMNS if column not in row]
        if missing:
            shown = one_line(", ".join(row), 120)
            raise InputError(f"{where}: battles have the columns {', '.join(COLUMNS)}; this table has {shown}")
        a, b = name_in(where, row, "model_a"), name_in(where, row, "model_b")
        if a == b:
            raise InputError(f"{where}: model_a and model_b are both {a!r}; a battle is one of two models")
        scene = next((" ".join(str(row[name]).split()) for name in SCENES if row.get(name) not in (None, "")), where)
        found.append(Battle(a, b, _choice(where, row, a, b), scene))
    if not found:
        raise InputError(f"{path} has no battles")
    return found


def _rows(path: Path) -> Iterator[Row]:
    """Rows by the names of their columns in small letters."""
    for where, found in named_rows(path, READABLE):
        row = {name.lower(): cell for name, cell in found.items()}
        if len(row) < len(found):
            raise InputError(f"{where}: two columns differ in large and small letters alone")
        yield where, row


def _choice(where: str, row: Mapping[str, Any], a: str, b: str) -> str:
    tied = str(row.get(TIE) if row.get(TIE) is not None else "").strip().lower()
    if tied not in (*_TRUE, *_FALSE):
        raise InputError(f"{where}: tie is {one_line(tied, 40)!r}; it must be true or false")
    if tied in _TRUE:
        return TIE
    said = "" if row["winner"] is None else str(row["winner"]).strip()
    if said in (a, b):
        return "a" if said == a else "b"
    choice = CHOICES.get(said.lower())
    if choice is None:
        raise InputError(
            f"{where}: the winner is {one_line(said, 40)!r}; it must be model_a, model_b, tie, tie (bothbad), or one "
            "of the two models"
        )
    return choice
