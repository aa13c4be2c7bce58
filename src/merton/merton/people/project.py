"""A project: one YAML file that says who rates what, how often, in which order, and how blind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from merton.config import Model, text_like

ProtocolName = Literal["tasks", "episodes", "trials", "labels", "likert", "pairs", "quality"]


class Attention(Model):
    """When a rater's work is marked as careless; nothing is deleted by it.

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
        items: source of the items, see `merton.people.sources`: one key, such as `dataset`, and its settings.
        raters: names, or how many may register.
        experts: names of those who review (tasks).
        ratings: of an item by different raters.
        repeats: share of a rater's items that come a second time, for self-consistency.
        blind: names of models, of files and of other raters never reach a page.
        seed: of the design and of every order.
        lease_min: after so long without a sign of life an item goes to another rater [min].
        deadline_utc: no answers are taken after it, ISO 8601; None: without end.
        record: SQLite file (beside the project file) or postgresql:// URL.
        instructions: shown before the first item; plain text.
        contact: whom raters can ask, and ask to withdraw their data; plain text.
    """

    name: Annotated[str, text_like(r"^[a-z0-9][a-z0-9_-]{0,59}$", "1 to 60 lower-case letters, digits, - and _")]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    protocol: ProtocolName
    items: dict[str, object]
    raters: Annotated[int, Field(ge=1, le=1000)] | tuple[str, ...]
    experts: tuple[str, ...] = ()
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
