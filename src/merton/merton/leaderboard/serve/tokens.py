"""Who may submit: one token a manufacturer, known to this server by its hash alone."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Annotated

from pydantic import Field

from merton.config import Model, load
from merton.leaderboard.manifest import checked_manufacturer

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class TokenFile(Model):
    """The file of `--tokens`.

    Attributes:
        tokens: manufacturer, as the manifests have it, to the SHA-256 of its token in 64 lower-case hexadecimal digits.
    """

    tokens: Annotated[dict[str, Sha256], Field(min_length=1)]


class Tokens:
    """The tokens of a file, read once; raises InputError for a file that is not as `TokenFile` says."""

    def __init__(self, path: Path) -> None:
        self._hashes = load(path, TokenFile).tokens
        for name in self._hashes:
            checked_manufacturer(name)

    def manufacturer(self, token: str) -> str | None:
        """Whose token this is; None for nobody's. Takes as long for every token, so none can be guessed bit by bit."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        found = None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found
