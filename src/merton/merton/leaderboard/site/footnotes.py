"""Reasons below a table: each missing value bears a letter, and the list below says what the letter stands for."""

from __future__ import annotations

import string


class Footnotes:
    """The reasons of one table after the other; a reason that comes again has the letter it had."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def letter(self, reason: str) -> str:
        """The letter of a reason: a to z, then aa, ab and so on."""
        if reason not in self._letters:
            self._letters[reason] = _letters(len(self._letters))
        return self._letters[reason]

    def taken(self) -> list[tuple[str, str]]:
        """(letter, reason) of the table that ends here; the next one begins at "a"."""
        found = [(letter, reason) for reason, letter in self._letters.items()]
        self._letters = {}
        return found


def _letters(place: int) -> str:
    before, last = divmod(place, len(string.ascii_lowercase))
    return (_letters(before - 1) if before else "") + string.ascii_lowercase[last]
