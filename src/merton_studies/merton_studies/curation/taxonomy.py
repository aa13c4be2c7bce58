"""Capability dimensions: the set that questions are assigned to, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from merton.config import FaultError, Model, dumps, load, text_like
from merton.errors import UnknownNameError
from merton.files import resource, write_file

OTHER = "Other"
"""The dimension of a question that needs none of a taxonomy's."""
_FOLDER = "config/curation"


class Dimension(Model):
    """A capability that questions test.

    Attributes:
        name: short and unique, such as SpatGeo; letters, digits, "_" and "-".
        title: in words.
        definition: one or two sentences that let a reader decide whether a question needs it.
    """

    name: Annotated[
        str, text_like(r"^[A-Za-z][A-Za-z0-9_-]{0,63}$", "letters, digits, _ and -, beginning with a letter")
    ]
    title: str = ""
    definition: Annotated[str, Field(min_length=1)]


class Taxonomy(Model):
    """A set of dimensions (A2Eval: D_t).

    Attributes:
        name: of the set.
        origin: where it comes from: a paper and its table, or how it was induced.
        dimensions: at least one, with different names, none of them "Other".
    """

    name: Annotated[str, Field(min_length=1)]
    origin: str = ""
    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> Taxonomy:
        seen = {OTHER.lower()}
        for index, dimension in enumerate(self.dimensions):
            if dimension.name.lower() in seen:
                raise FaultError(f"the name {dimension.name!r} is taken", "dimensions", index, "name")
            seen.add(dimension.name.lower())
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions in their order, without "Other"."""
        return tuple(dimension.name for dimension in self.dimensions)


def read_taxonomy(name_or_file: str) -> Taxonomy:
    """A taxonomy that comes with Merton, by name, or one of the user's, by file.

    Raises:
        InputError: neither a known name nor a file that is a taxonomy.
    """
    path = Path(name_or_file)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load(path, Taxonomy)
    folder = resource("merton_bringup", _FOLDER)
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name_or_file not in known:
        raise UnknownNameError("taxonomy", name_or_file, known)
    return load(folder / f"{name_or_file}.yaml", Taxonomy)


def write_taxonomy(taxonomy: Taxonomy, path: Path) -> None:
    """Write a taxonomy as YAML; raises InfrastructureError if the file cannot be written."""
    write_file(path, dumps(taxonomy.model_dump(mode="json")).encode())
