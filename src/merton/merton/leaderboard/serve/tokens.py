"""The tokens of manufacturers: one each, known to this server by its hash alone."""

from __future__ import annotations

from pathlib import Path

from merton.leaderboard.submissions.manifest import checked_manufacturer
from merton.web import access


class Tokens(access.Tokens):
    """A file of tokens of manufacturers; raises InputError for an owner that a manifest may not name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for name in self.owners:
            checked_manufacturer(name)
