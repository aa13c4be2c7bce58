"""The journal of a run of episodes: a JSON object a line, an end on the disk before anything follows from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merton.errors import FileError, InfrastructureError

JOURNAL = "episodes.jsonl"
"""Its name in the run's folder."""

Line = dict[str, Any]
HEAVY = ("answers", "actions", "added_ms", "frames")
"""Entries of a line that stay on the disk alone: a run of thousands of episodes has gigabytes of them."""


class Journal:
    """An open journal. A line is whole, and durable unless said otherwise, when `append` returns; a line that was torn
    is cut off at opening.

    Args:
        path: the file; it is made if need be.

    Attributes:
        lines: all that it holds, without the entries of `HEAVY`; `read_lines` has those.
        repaired: what was cut off when it was opened, in one sentence; empty for a whole journal.

    Raises:
        FileError: a line before the last one is no JSON object.
        InfrastructureError: the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            is_new = not path.exists()
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            if is_new:
                _sync_folder(path.parent)
            content = path.read_bytes()
        except OSError as error:
            raise InfrastructureError(f"cannot open {path}: {error.strerror or error}") from None
        try:
            lines, whole = parsed(content, path)
        except FileError:
            os.close(self._file)
            raise
        self.lines: list[Line] = []
        self._of: dict[int, list[Line]] = {}
        for line in lines:
            self._add(line)
        self.repaired = ""
        if whole < len(content):
            self._cut(whole)
            self.repaired = (
                f"{path}: its last line was torn ({len(content) - whole} bytes) and is cut off; what it would have "
                "said was never acknowledged"
            )

    def append(self, line: Mapping[str, Any], durable: bool = True) -> None:
        """Write a line; raises InfrastructureError if the disk refuses, and then nothing of it is there.

        Args:
            line: a JSON object.
            durable: wait until it is on the disk. One that is not survives the loss of this process at once, and that
                of the machine with the next durable line.
        """
        content = f"{json.dumps(line, allow_nan=False, separators=(',', ':'))}\n".encode()
        before = os.fstat(self._file).st_size
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(self._file, left) :]
            if durable:
                os.fsync(self._file)
        except OSError as error:
            self._cut(before)
            raise InfrastructureError(f"cannot write {self.path}: {error.strerror or error}") from None
        self._add(line)

    def of(self, episode: int) -> list[Line]:
        """The lines of an episode, in their order."""
        return self._of.get(episode, [])

    def _add(self, line: Mapping[str, Any]) -> None:
        light = _light(line)
        self.lines.append(light)
        if isinstance(number := light.get("episode"), int):
            self._of.setdefault(number, []).append(light)

    def close(self) -> None:
        """Close the file; the journal cannot be written afterwards."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _cut(self, size: int) -> None:
        try:
            os.ftruncate(self._file, size)
            os.fsync(self._file)
        except OSError as error:
            raise InfrastructureError(f"cannot repair {self.path}: {error.strerror or error}") from None


def read_lines(path: Path) -> list[Line]:
    """The whole lines of a journal, which may be written at the same time; raises FileError as `Journal`."""
    try:
        return parsed(path.read_bytes(), path)[0]
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None


def parsed(content: bytes, path: Path) -> tuple[list[Line], int]:
    """The lines, and the number of bytes that they take; a last line that is torn is left out.

    Raises FileError for a line before it that is no JSON object.
    """
    whole = content.rfind(b"\n") + 1
    lines = []
    for number, text in enumerate(content[:whole].splitlines(), start=1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise FileError(f"{path}, line {number}: is no JSON object; put the file back from a copy")
        lines.append(line)
    return lines, whole


def _light(line: Mapping[str, Any]) -> Line:
    return {name: value for name, value in line.items() if name not in HEAVY}


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
