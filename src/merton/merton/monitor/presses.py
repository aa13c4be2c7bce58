"""The log of presses: one line of JSON each, appended to a file and never changed."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from merton.errors import InfrastructureError, InputError


@dataclass(frozen=True)
class Press:
    """One press of a button.

    Attributes:
        at_utc: when it arrived here, ISO 8601 with milliseconds.
        press: "stop", "reset", "confirm" or "arranged".
        who: owner of the token, or the name that was entered; "unnamed" if there is neither.
        address: of the browser.
        detail: trial and verdict of an answer, else empty.
        accepted: whether the node accepted it.
        answer: the node's sentence, or why there is none.
        took_ms: until the answer came [ms].
    """

    at_utc: str
    press: str
    who: str
    address: str
    detail: str
    accepted: bool
    answer: str
    took_ms: float


class PressLog:
    """The file. Raises InputError at the start if it cannot be written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("ab").close()
        except OSError as error:
            raise InputError(f"presses cannot be logged in {path}: {error.strerror or error}") from None

    def add(self, press: Press) -> None:
        """Add a line; returns when it is on disk. Raises InfrastructureError if it cannot be written."""
        line = json.dumps(asdict(press), ensure_ascii=False) + "\n"
        try:
            with self._lock, self.path.open("ab") as file:
                file.write(line.encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InfrastructureError(f"a press was not logged in {self.path}: {error.strerror or error}") from None
