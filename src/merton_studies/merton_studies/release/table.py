"""A table of a dataset for a hub: its columns with units, and their types in Arrow, in a card and in Croissant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from merton.errors import InputError
from merton.results.parquet import require_pyarrow

TRAIN, TEST = "train", "test"
TEST_SHARE = 0.2
"""Of the scenes that are in the split `test`. Ours, because the embodied papers give no split of images."""

_CROISSANT = {
    "string": "sc:Text",
    "bool": "sc:Boolean",
    "int8": "sc:Integer",
    "int32": "sc:Integer",
    "int64": "sc:Integer",
    "float32": "sc:Float",
    "float64": "sc:Float",
    "image": "sc:ImageObject",
}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """A column.

    Attributes:
        name: of the column.
        kind: of an item: a key of `_CROISSANT`; "image" is an encoded picture with its path.
        about: what it says, with unit or range.
        depth: 0 a single item, 1 a list of items, 2 a list of lists.
    """

    name: str
    kind: str
    about: str
    depth: int = 0

    @property
    def arrow(self) -> Any:
        """The type in Arrow; a picture is a struct of bytes and path."""
        arrow = require_pyarrow()
        picture = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
        found = picture if self.kind == "image" else arrow.type_for_alias(self.kind)
        for _ in range(self.depth):
            found = arrow.list_(found)
        return found

    @property
    def feature(self) -> dict[str, Any]:
        """The type as the package `datasets` writes it into the metadata of a Parquet file."""
        found: dict[str, Any] = {"_type": "Image"} if self.kind == "image" else {"dtype": self.kind, "_type": "Value"}
        for _ in range(self.depth):
            found = {"feature": found, "_type": "List"}
        return found

    @property
    def in_card(self) -> dict[str, Any]:
        """The type as the front matter of a card has it."""
        if self.depth == 2:
            return {"name": self.name, "list": {"list": self.kind}}
        return {"name": self.name, "list" if self.depth else "dtype": self.kind}

    @property
    def words(self) -> str:
        """The type for a reader, such as "list of string"."""
        return "list of " * self.depth + self.kind

    @property
    def croissant(self) -> str:
        """The type of an item in schema.org's vocabulary."""
        return _CROISSANT[self.kind]


@dataclass(frozen=True)
class Table:
    """A table, called a config on the hub.

    Attributes:
        name: of the config, and of its folder.
        title: what a row is, one sentence.
        fields: its columns.
        rows: gives (split, row) for every row, the same ones in the same order each time.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    rows: Callable[[], Iterator[tuple[str, Row]]]

    @property
    def pictures(self) -> list[str]:
        """The columns that hold pictures."""
        return [field.name for field in self.fields if field.kind == "image"]


def split_of(scene: str) -> str:
    """The split of a scene, "train" or "test": every row about a scene is in the same one.

    A function of the name alone, so a scene keeps its split when others are added. Ours: pictures of one scene are one
    draw, so a split by pictures would show what is tested while training.
    """
    return TEST if int(hashlib.sha256(scene.encode()).hexdigest()[:8], 16) < TEST_SHARE * 2**32 else TRAIN


def arrow_fields(schema: Any, about: Mapping[str, str], leave_out: tuple[str, ...] = ()) -> tuple[Field, ...]:
    """The columns of a Parquet file of Merton's, described by name.

    Raises:
        InputError: a column has a type that no hub has.
    """
    arrow, found = require_pyarrow(), []
    for field in schema:
        if field.name in leave_out:
            continue
        kind, depth = field.type, 0
        while arrow.types.is_list(kind):
            kind, depth = kind.value_type, depth + 1
        name = {"double": "float64", "float": "float32"}.get(str(kind), str(kind))
        if name not in _CROISSANT:
            raise InputError(f"the column {field.name!r} is of the type {kind}, which cannot be exported")
        found.append(Field(field.name, name, about.get(field.name, ""), depth))
    return tuple(found)
