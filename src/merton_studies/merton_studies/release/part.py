"""A part of a publication: its tables, rows left out of them, and its sentences on the card."""

from __future__ import annotations

from dataclasses import dataclass, field

from merton_studies.release.table import Table


@dataclass(frozen=True)
class LeftOut:
    """Something that is not published.

    Attributes:
        table: the table that it would be in.
        name: of it.
        reason: a sentence.
    """

    table: str
    name: str
    reason: str


@dataclass(frozen=True)
class SourceLine:
    """A source on the card: what it is, how much is from it, its licence, and who is to be named."""

    name: str
    rows: str
    licence: str
    attribution: str = ""


@dataclass
class DatasetPart:
    """A part of a publication.

    Attributes:
        tables: in the order of the card.
        made: how it was made, a sentence each.
        provenance: names and values of versions, seeds and hashes.
        sources: with their licences.
        shares: of what its rows are, a name and counts such as "domain" and "real 9, simulation 300".
        floors: what doing nothing, or chance, scores: the score's name and its value.
        limits: a sentence each.
        privacy: what its pictures and texts show of people, a sentence each.
        left_out: what is not published.
    """

    tables: list[Table] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    provenance: list[tuple[str, str]] = field(default_factory=list)
    sources: list[SourceLine] = field(default_factory=list)
    shares: list[tuple[str, str]] = field(default_factory=list)
    floors: list[tuple[str, str]] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    privacy: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
