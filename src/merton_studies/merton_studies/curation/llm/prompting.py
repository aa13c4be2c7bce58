"""Prompts: text files with places for data, and how data is put there so that it cannot pass for an instruction."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError, UnknownNameError

FOLDER = Path(__file__).parent / "prompts"
_PLACE = re.compile(r"\{([a-z_]+)\}")
_MARK = re.compile(r"<(?=[\s/]*data\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Prompt:
    """A prompt that comes with Merton.

    Attributes:
        name: of the file without its ending.
        text: with places for data such as {questions}.
    """

    name: str
    text: str

    @property
    def version(self) -> str:
        """The first 16 hexadecimal digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def places(self) -> frozenset[str]:
        """The names of its places."""
        return frozenset(_PLACE.findall(self.text))

    @property
    def examples(self) -> tuple[str, ...]:
        """The texts in its example of an answer, a JSON object on a line of its own: repeated, they say nothing."""
        found: list[str] = []
        for line in self.text.splitlines():
            if line.startswith('{"'):
                found += _texts(json.loads(line))
        return tuple(found)

    def render(self, fields: Mapping[str, str]) -> str:
        """The prompt with data in its places; raises InputError unless there is a text for each place and no other."""
        if wrong := sorted(self.places ^ fields.keys()):
            raise InputError(f"the prompt {self.name} has the places {', '.join(sorted(self.places))}, not {wrong[0]}")
        return _PLACE.sub(lambda place: quoted(place[1], fields[place[1]]), self.text)


def read_prompt(name: str) -> Prompt:
    """A prompt by name; raises UnknownNameError."""
    known = sorted(file.stem for file in FOLDER.glob("*.md"))
    if name not in known:
        raise UnknownNameError("prompt", name, known)
    return Prompt(name, (FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def quoted(name: str, text: str) -> str:
    """A text as data between <data name="..."> and </data>, lines of their own.

    A mark of that kind inside the text loses its "<", and control characters are left out, so that the text can
    neither end the data nor begin another.
    """
    plain = "".join(letter for letter in text if letter in "\n\t" or letter.isprintable())
    return f'<data name="{name}">\n{_MARK.sub("‹", plain)}\n</data>'


def _texts(value: Any) -> Iterator[str]:
    """The texts of a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
