"""Printed numbers of a paper, each with the verdict that is known of it, and the verdict that comes out now.

A paper's numbers stand in `config/published/<paper>.csv`, a line a number, as text: every printed digit is kept. Beside
each stand the verdict, the recomputed value and the reason that are known. `digits.csv` holds a hash of the printed
texts of every file, so that a changed digit shows also where nothing else depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from typing import Literal

from merton_studies.opinions.published import ClaimVerdict, printed_rows

NumberVerdict = Literal["equal", "equal after a reading", "misprint", "cannot be known", "not printed"]
"""equal: to the last printed digit, rounded half up.

equal after a reading: equal if the inputs are taken before they were rounded, or if the words are taken as the reason
says. misprint: neither. cannot be known: a measurement, or computed from data that are not printed. not printed: ours.
"""
VERDICTS: tuple[NumberVerdict, ...] = ("equal", "equal after a reading", "misprint", "cannot be known", "not printed")

CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = ("holds", "holds in part", "does not hold", "noted")
"""Of these papers."""

Key = tuple[str, str, str]
"""Table, row and column."""
Cells = Mapping[Key, float]

COLUMNS = ("table", "row", "column", "printed", "origin", "recomputed", "off", "verdict", "reason")
NEAR = 2e-6
"""Recomputed values are recorded with six decimals; a value further off than this is another one."""
_EXACT = 1e-9


@dataclass(frozen=True)
class Fact:
    """A printed number and what is known of it.

    Attributes:
        table, row, column: the place; table "text" has the section as row.
        printed: the digits as they are printed, without "%", "x", units or commas; with ">" or "<" before a bound;
            "" of a number that the paper could have printed and did not.
        origin: where it stands: table and section, or section and paragraph.
        recomputed: known; None where there is none.
        off: printed less recomputed, known: so a misprint is known by its size.
        verdict: known.
        reason: of a verdict other than "equal".
    """

    table: str
    row: str
    column: str
    printed: str
    origin: str = ""
    recomputed: float | None = None
    off: float | None = None
    verdict: NumberVerdict = "cannot be known"
    reason: str = ""

    @property
    def key(self) -> Key:
        """The place."""
        return self.table, self.row, self.column


@dataclass(frozen=True)
class Recomputed:
    """A number computed from other printed ones, or by Merton's own code.

    Attributes:
        key: of the number.
        value: computed; None of a formula, whose verdict is given.
        how: in words.
        slack: by how much rounding of the printed inputs may have moved it.
        read: whether the words of the paper were read in a way that they do not state.
        verdict: given, where it does not follow from the value.
    """

    key: Key
    value: float | None
    how: str
    slack: float = 0.0
    read: bool = False
    verdict: NumberVerdict | None = None


@dataclass(frozen=True)
class Checked:
    """A number, recomputed now.

    Attributes:
        fact: what is known.
        value: recomputed; None where it cannot be, or is a formula.
        verdict: by that value.
        how: it was recomputed; empty if it was not.
    """

    fact: Fact
    value: float | None
    verdict: NumberVerdict
    how: str

    @property
    def off(self) -> float | None:
        """Printed less recomputed; None where one of them is not there."""
        printed = number(self.fact.printed)
        return None if self.value is None or printed is None else printed - self.value

    @property
    def is_as_known(self) -> bool:
        """Whether verdict, value and difference are those in the file."""
        same = _same(self.value, self.fact.recomputed) and _same(self.off, self.fact.off)
        return same and self.verdict == self.fact.verdict


def number(printed: str) -> float | None:
    """The value of a printed text: a number, a bound, or a multiple of pi such as "-pi/2"; None of a formula."""
    text = printed.lstrip("<>")
    sign, word = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    try:
        return sign * math.pi / float(word[3:] or 1) if word[:3] in ("pi", "pi/") else float(text)
    except ValueError:
        return None


def read_facts(name: str) -> tuple[Fact, ...]:
    """All numbers in `config/published/<name>.csv`, in the order of the paper."""
    return tuple(
        Fact(
            row["table"], row["row"], row["column"], row["printed"], row["origin"],
            _number_or_none(row["recomputed"]), _number_or_none(row["off"]),
            row["verdict"],  # type: ignore[arg-type]
            row["reason"],
        )
        for row in printed_rows(name)
    )  # fmt: skip


def cells_of(facts: Iterable[Fact]) -> Cells:
    """The printed numbers by place; formulas are left out."""
    values = ((fact.key, number(fact.printed)) for fact in facts)
    return {key: value for key, value in values if value is not None}


def rows(cells: Cells, table: str) -> list[str]:
    """The rows of a table in their order."""
    return list(dict.fromkeys(row for name, row, _ in cells if name == table))


def columns(cells: Cells, table: str) -> list[str]:
    """The columns of a table in their order."""
    return list(dict.fromkeys(column for name, _, column in cells if name == table))


def check(facts: Sequence[Fact], recomputed: Iterable[Recomputed]) -> tuple[Checked, ...]:
    """Each number with the verdict that comes out."""
    computed = {item.key: item for item in recomputed}
    found = []
    for fact in facts:
        item = computed.get(fact.key)
        value, how = (None, "") if item is None else (item.value, item.how)
        found.append(Checked(fact, value, judge(fact.printed, item), how))
    return tuple(found)


def judge(printed: str, item: Recomputed | None) -> NumberVerdict:
    """The verdict about a printed number; `item` is what it was recomputed to, None where it was not."""
    if item is None:
        return "cannot be known"
    if item.verdict is not None:
        return item.verdict
    if not printed:
        return "not printed"
    value, near = item.value, False
    if value is None:
        return "cannot be known"
    if printed[0] in "<>":
        bound = float(printed[1:])
        agrees = value > bound if printed[0] == ">" else value < bound
    elif "pi" in printed:
        agrees = abs(value - (number(printed) or 0.0)) < _EXACT
    else:
        exact = Decimal(printed)
        unit = Decimal(1).scaleb(int(exact.as_tuple().exponent))
        agrees = Decimal(str(round(value, 9))).quantize(unit, ROUND_HALF_UP) == exact
        near = item.slack > 0 and abs(value - float(exact)) <= float(unit) / 2 + item.slack + _EXACT
    if agrees:
        return "equal after a reading" if item.read else "equal"
    return "equal after a reading" if near else "misprint"


def fingerprint(facts: Iterable[Fact]) -> str:
    """SHA-256 of the printed texts in their order."""
    return sha256("\n".join(fact.printed for fact in facts).encode()).hexdigest()


def known_fingerprints() -> Mapping[str, str]:
    """Paper to the hash of its printed texts as they were typed."""
    return {row["paper"]: row["sha256"] for row in printed_rows("digits")}


def known_claims() -> Mapping[tuple[str, str], str]:
    """(paper, sentence) to the verdict that is known of it."""
    return {(row["paper"], row["claim"]): row["verdict"] for row in printed_rows("claims")}


def _same(value: float | None, known: float | None) -> bool:
    if value is None or known is None:
        return value is known
    return abs(value - known) < NEAR


def _number_or_none(text: str) -> float | None:
    return float(text) if text else None
