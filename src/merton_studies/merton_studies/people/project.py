"""A project: one YAML file with the raters and items of a study, the number and order of ratings, and the blinding."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from merton.config import FaultError, Model, load, text_like
from merton.files import refuse_folder
from merton.results.text import time_of
from merton_studies.people.source_settings import Items

ProtocolName = Literal["tasks", "episodes", "trials", "labels", "likert", "pairs", "quality"]
PROTOCOLS: tuple[str, ...] = get_args(ProtocolName)

SOURCES_OF: dict[str, tuple[str, ...]] = {
    "tasks": ("images",),
    "episodes": ("videos", "run"),
    "trials": ("run", "recording"),
    "labels": ("curation",),
    "likert": ("outputs",),
    "pairs": ("images", "dataset", "run"),
    "quality": ("images", "dataset"),
}
"""Name of a protocol to the sources that its items may come from."""
PROJECT_FILE = "project.yaml"
"""Name of the project's file in a folder that is named in its place."""
SUBJECTS = 5
"""Tasks of an image, each by another subject (Embodied-IQA, appendix E)."""
ANNOTATORS = 3
"""Most annotators of a team and task (the world-model track)."""
OF_ANSWERS = ("name", "protocol", "items", "raters", "experts", "ratings", "repeats", "blind", "seed", "instructions",
              "attention", "top_up")  # fmt: skip
"""Fields that the answers depend on; the others may change while a study runs."""

Person = Annotated[str, text_like(r"^[^\x00-\x1f\x7f]{1,100}$", "1 to 100 characters in one line")]

Raters = Annotated[
    Annotated[int, Field(ge=1, le=1000), Tag("count")]
    | Annotated[tuple[Person, ...], Field(max_length=1000), Tag("names")],
    Discriminator(lambda value: "names" if isinstance(value, (tuple, list)) else "count"),
]
"""Number of raters who may register, or the names of all."""


class Attention(Model):
    """Limits beyond which a rater's work is marked as careless; nothing is deleted by it.

    Attributes:
        least_s: an answer in less time than this is hasty [s].
        most_hasty: share of hasty answers beyond which a rater is marked.
        least_gold: share of gold items that must be right.
        least_repeats: share of repeats (or their agreement within one step on an ordered scale) that must be alike.
        after: answers before any of these is looked at.
        ends: True if a marked rater is asked no more.
    """

    least_s: Annotated[float, Field(ge=0.0, le=600.0)] = 0.3
    most_hasty: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    least_gold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.6
    least_repeats: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    after: Annotated[int, Field(ge=1)] = 10
    ends: bool = False


class TopUp(Model):
    """Further ratings of items on which raters disagree.

    Attributes:
        below: agreement of an item below which it is asked again, 0..1 (share of equal pairs, or 1 - spread on an
            ordered scale).
        most: ratings of an item, at most.
    """

    below: Annotated[float, Field(ge=0.0, le=1.0)]
    most: Annotated[int, Field(ge=2, le=100)]


class Project(Model):
    """The file PROJECT.yaml.

    Attributes:
        name: of the study in the record.
        title: on the pages.
        protocol: which pages and rules.
        items: source of the items: one key, such as `dataset`, and its settings.
        raters: names, or how many may register.
        experts: names of those who review (tasks).
        ratings: of an item by different raters.
        repeats: share of a rater's items that come a second time, for self-consistency.
        blind: names of models, of files and of other raters never reach a page.
        seed: of the design and of every order.
        lease_min: after so long without a sign of life an item goes to another rater [min].
        deadline_utc: no answers are taken after it, such as "2026-12-01T18:00:00Z"; None: without end.
        record: SQLite file (beside the project file) or postgresql:// URL.
        instructions: shown before the first item; plain text.
        contact: whom raters can ask, and ask to withdraw their data; plain text.
    """

    name: Annotated[str, text_like(r"^[a-z0-9][a-z0-9_-]{0,59}$", "1 to 60 lower-case letters, digits, - and _")]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    protocol: ProtocolName
    items: Items
    raters: Raters
    experts: tuple[Person, ...] = ()
    ratings: Annotated[int, Field(ge=1, le=100)] = 3
    repeats: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    blind: bool = True
    seed: int = 0
    lease_min: Annotated[float, Field(gt=0.0, le=1440.0)] = 30.0
    deadline_utc: str | None = None
    record: str = "people.sqlite"
    instructions: Annotated[str, Field(max_length=5000)] = ""
    contact: Annotated[str, Field(max_length=500)] = ""
    attention: Attention = Attention()
    top_up: TopUp | None = None

    @field_validator("deadline_utc", mode="before")
    @classmethod
    def _text_of_time(cls, value: Any) -> Any:
        """YAML reads an unquoted time as a time."""
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc).isoformat() if value.tzinfo else f"{value.isoformat()}Z"
        return value.isoformat() if isinstance(value, date) else value

    @field_validator("deadline_utc")
    @classmethod
    def _time(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            found = time_of(value)
        except ValueError:
            found = None
        if found is None or len(value) < len("2026-12-01T18:00"):
            raise ValueError(f"{value[:60]!r} is no time; write it as 2026-12-01T18:00:00Z")
        zoned = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        return zoned.astimezone(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")

    @field_validator("record")
    @classmethod
    def _place(cls, value: str) -> str:
        if not value.strip() or "\x00" in value or ("://" in value and not value.startswith("postgresql://")):
            raise ValueError(f"{value[:60]!r} is no record; write the name of an SQLite file, or a postgresql:// URL")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Project:
        """Refuses fields that cannot be together."""
        _check_people(self)
        _check_source(self)
        _check_counts(self)
        return self

    @property
    def most_raters(self) -> int:
        """Greatest number of raters."""
        return self.raters if isinstance(self.raters, int) else len(self.raters)

    @property
    def deadline(self) -> datetime | None:
        """The deadline as a time with its zone."""
        return None if self.deadline_utc is None else time_of(self.deadline_utc)


def _check_people(project: Project) -> None:
    named = () if isinstance(project.raters, int) else project.raters
    if named == () and not isinstance(project.raters, int):
        raise FaultError("must have at least 1 entry, or say how many may register", "raters")
    for field, names in (("raters", named), ("experts", project.experts)):
        for place, name in enumerate(names):
            if name in names[:place]:
                raise FaultError(f"{name!r} stands there twice", field, place)
            if not name.strip():
                raise FaultError("a name must have a letter", field, place)
    if project.experts and project.protocol != "tasks":
        raise FaultError(f"the protocol {project.protocol} has no review; leave experts out", "experts")


def _check_source(project: Project) -> None:
    fitting = SOURCES_OF[project.protocol]
    if project.items.source not in fitting:
        raise FaultError(
            f"the protocol {project.protocol} cannot ask about the source {project.items.source}; "
            f"it needs {' or '.join(fitting)}",
            "items",
            project.items.source,
        )


def _check_counts(project: Project) -> None:
    if project.ratings > project.most_raters:
        raise FaultError(f"is {project.ratings}, but there are only {project.most_raters} raters", "ratings")
    if project.protocol == "tasks":
        if project.ratings != SUBJECTS:
            raise FaultError(f"must be {SUBJECTS}: each task of an image is by another subject", "ratings")
        for field in ("repeats", "top_up"):
            if getattr(project, field):
                raise FaultError("is not for the protocol tasks, whose raters see what others wrote", field)
        if project.items.gold:
            raise FaultError("a task has no right answer; leave gold out", "items", "gold")
    if project.protocol == "episodes" and project.ratings > ANNOTATORS:
        raise FaultError(f"must be at most {ANNOTATORS}, as a world-model board takes them", "ratings")
    if project.top_up is not None:
        most = project.top_up.most
        if not project.ratings < most <= project.most_raters:
            raise FaultError(
                f"is {most}; it must be more than ratings ({project.ratings}) and at most the number of raters "
                f"({project.most_raters})",
                "top_up",
                "most",
            )


@dataclass(frozen=True)
class Loaded:
    """A project as it was read.

    Attributes:
        project: its settings.
        path: of the file.
        definition: canonical JSON of the settings that answers depend on (`OF_ANSWERS`); of people only how many they
            are, so that one who withdraws can be replaced, and that no name remains with it.
    """

    project: Project
    path: Path
    definition: str

    @property
    def folder(self) -> Path:
        """Of the file; places in it are relative to it."""
        return self.path.parent

    @property
    def sha256(self) -> str:
        """Of the definition, in hex."""
        return hashlib.sha256(self.definition.encode()).hexdigest()

    @property
    def record(self) -> Path | str:
        """The record, as `merton.results.database.Database` takes it."""
        return self.project.record if "://" in self.project.record else self.folder / self.project.record

    @property
    def media(self) -> Path:
        """The folder of prepared media."""
        return self.folder / f"{self.project.name}.media"

    def place(self, relative: str) -> Path:
        """A file or folder that the project names."""
        return self.folder / relative


def read_project(path: Path) -> Loaded:
    """Read PROJECT.yaml, or the project.yaml of a folder.

    Raises:
        InputError: an unreadable file, a folder without project.yaml, or a setting that is wrong; the sentence names
            the line, the key and the valid choices.
    """
    if (path / PROJECT_FILE).is_file():
        path /= PROJECT_FILE
    refuse_folder(path, ".yaml")
    project = load(path, Project)
    settings = project.model_dump(mode="json", include=set(OF_ANSWERS), exclude_none=True)
    settings |= {"raters": project.most_raters, "experts": len(project.experts)}
    definition = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Loaded(project, path.absolute(), definition)
