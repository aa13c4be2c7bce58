"""Acc@1: 1 for the right answer, 0 for any other (AGI-Elo, eq. 14 and 18; ImageNet, MMLU)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from merton.errors import InputError, UnknownNameError
from merton.results.tables import name_in, plain_text, read_rows
from merton.results.text import one_line


def values(predictions: Path, truth: Path | None) -> dict[tuple[str, str], float]:
    """(agent, case) to 1 or 0: whether the answer is the right one, letter for letter but for white space.

    An empty answer is wrong; a case without a row is no answer at all, and stays blank.

    Raises:
        InputError: a table is invalid, or has a case twice.
        UnknownNameError: a case has no right answer.
    """
    return _compared(predictions, truth, str)


def letters(predictions: Path, truth: Path | None) -> dict[tuple[str, str], float]:
    """The same of answers that are one of the letters A to D, large or small, as MMLU's are."""
    return _compared(predictions, truth, str.upper, "ABCD")


def _compared(predictions: Path, truth: Path | None, same: Any, letters: str = "") -> dict[tuple[str, str], float]:
    assert truth is not None
    right: dict[str, str] = {}
    for where, row in read_rows(truth, ("case", "answer")):
        case, answer = name_in(where, row, "case"), same(plain_text(row["answer"]))
        if not answer or (letters and answer not in tuple(letters)):
            raise InputError(
                f"{where}: {one_line(row['answer'], 40)!r} is not a right answer"
                f"{'; it is A, B, C or D' if letters else ''}"
            )
        if right.setdefault(case, answer) != answer:
            raise InputError(f"{where}: case {case!r} has another right answer already")
    found: dict[tuple[str, str], float] = {}
    for where, row in read_rows(predictions, ("case", "answer"), ("agent",)):
        agent = name_in(where, row, "agent") if "agent" in row else predictions.stem
        case = name_in(where, row, "case")
        if case not in right:
            raise UnknownNameError(f"case ({where})", case, sorted(right)[:10])
        if (agent, case) in found:
            raise InputError(f"{where}: agent {agent!r} has answered case {case!r} already")
        found[agent, case] = float(same(plain_text(row["answer"])) == right[case])
    return found
