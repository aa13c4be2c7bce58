"""Whose distortions a dataset has: every later page says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.distortion import LEVELS
from merton.results.parquet import read_columns
from merton.results.tables import json_object
from merton.results.text import counted


@dataclass(frozen=True)
class Origin:
    """Who distorted the pictures of a dataset.

    Attributes:
        name: of the data set that was imported; "" where Merton distorted them.
        licence: as its user named it; "" where that is not said, or Merton distorted them.
        types, levels: how many it has; a level from 1 to `levels` need not exist of every type.
        made: a sentence on how the dataset was made; "" where Merton distorted them.
    """

    name: str
    licence: str
    types: int
    levels: int
    made: str = ""

    @property
    def words(self) -> str:
        """Such as "KADID-10k, imported: 25 types at 5 levels"."""
        counts = f"{counted(self.types, 'type')} at {counted(self.levels, 'level')}"
        return f"{self.name}, imported: {counts}" if self.name else f"Merton's {counts}"

    @property
    def facts(self) -> dict[str, Any]:
        """Entries for the facts about anything that is made of the dataset."""
        found: dict[str, Any] = {"distortions": self.words, "levels": self.levels}
        return found | ({"licence_of_images": self.licence} if self.licence else {})


def read_origin(dataset: Path) -> Origin:
    """Whose distortions a finished dataset has.

    Raises InputError if its manifest or its settings cannot be read, MissingDependencyError without pyarrow.
    """
    settings = json_object(dataset / layout.SETTINGS) if (dataset / layout.SETTINGS).is_file() else {}
    columns = read_columns(dataset / layout.MANIFEST, ("distortion", "level"))
    types = len(set(columns.column("distortion").to_pylist()))
    about = settings.get(layout.IMPORTED)
    if about is None:
        return Origin("", "", types, max(LEVELS))
    try:
        return Origin(about["name"], about["licence"], types, settings["levels"], about["made"])
    except (KeyError, TypeError):
        raise InputError(f"{dataset / layout.SETTINGS} is not as `merton dataset import` writes it") from None
