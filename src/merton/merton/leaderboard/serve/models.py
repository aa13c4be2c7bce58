"""The answers of the JSON API, besides the parts of a snapshot, which are sent as they are.

Every list comes in pages. Scores are 0..1 unless a name says otherwise, ratings are Elo points, intervals are 95 %,
times are UTC (ISO 8601), and a value that could not be measured is null.
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from merton.leaderboard.board import Board, plain_values, rounded
from merton.leaderboard.snapshot.contents import AgentRow, MethodCheck, Snapshot, Swap

Item = TypeVar("Item")

_ATTRIBUTE = re.compile(r"^ {4}(?P<names>[a-z_0-9]+(?:, [a-z_0-9]+)*): (?P<text>.+(?:\n {8}.+)*)", re.MULTILINE)


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    total: int = Field(description="How many items the whole list has.")
    offset: int = Field(description="How many items stand before this part.")
    items: list[Item]
    next: str | None = Field(description="Address of the part that follows; null at the end.")


class BoardAnswer(BaseModel):
    """The board: a snapshot without its test cases and matches, which have separate lists."""

    snapshot_sha256: str = Field(description="Of the whole snapshot; also the ETag.")
    name: str = Field(description="Of the snapshot.")
    metric: str = Field(description="By which trials are rated: success, progress, above_floor or execution.")
    rated_by: str = Field(description="All scores that are rated, in words, such as acc_at_1 of an imported matrix.")
    method: str = Field(description="How the ranks were made.")
    merton_version: str = Field(description="Of the code that took the snapshot.")
    schema_version: int = Field(description="Of the record.")
    inputs_sha256: str = Field(description="Of everything in the record that counts, in any order.")
    experiments: list[str] = Field(description="Ids of the experiments whose trials are in it.")
    sources: list[str] = Field(description="Which imported score matrices are in it.")
    window: str = Field(description="Day that began the window whose submissions are in it; empty if there are none.")
    agents: list[AgentRow] = Field(description="By rank; the unrated last, by id.")
    boards: list[Board] = Field(description="Agents against groups of cases.")
    cases: int = Field(description="How many test cases there are.")
    matches: int = Field(description="How many matches there are.")
    swaps: list[Swap] = Field(description="Neighbours by AGI-Elo whose order depends on the order of the matches.")
    chance_floor: float | None = Field(description="Mean execution score of doing nothing under distortion, 0..100.")
    warnings: list[str] = Field(description="Warnings to the reader.")
    diagnostics: list[MethodCheck] = Field(description="How good the ratings are, one check a method.")

    @classmethod
    def of(cls, snapshot: Snapshot, sha256: str) -> BoardAnswer:
        """The answer for a snapshot."""
        copied = {name: getattr(snapshot, name) for name in cls.model_fields if hasattr(snapshot, name)}
        counts = {"cases": len(snapshot.cases), "matches": len(snapshot.matches)}
        return cls.model_validate({**copied, **counts, "snapshot_sha256": sha256})


class BoardEntry(BaseModel):
    """A board of all those on the pages."""

    name: str = Field(description="For /api/boards/{name}; those under published rules begin with published-.")
    title: str = Field(description="Heading.")
    page: str = Field(description="Address of its page.")
    rows: int = Field(description="How many lines it has: an agent has one for each source of its scores.")

    @classmethod
    def of(cls, board: Board, page: str) -> BoardEntry:
        """The entry of a board."""
        return cls(name=board.name, title=board.title, page=page, rows=len(board.rows))


class GroupCell(BaseModel):
    """A score, or why it is missing."""

    score: float | None = Field(description="0 to the board's maximum; null if it is missing.")
    interval: tuple[float, float] | None = Field(description="95 %, of the score.")
    n: int = Field(description="How many scores it is the mean of.")
    rank: int | None = Field(description="In the column; null without a score.")
    missing: str = Field(description="Why there is no score; empty on boards of the record, and where there is one.")


class GroupLine(BaseModel):
    """A line of a board."""

    agent: str = Field(description="Id.")
    type: str = Field(description="general, embodied, or empty if it is not stated.")
    source: str = Field(description="Who measured its scores; empty if it is not stated.")
    total: GroupCell
    cells: list[GroupCell] = Field(description="One for each column.")


class GroupBoard(BaseModel):
    """A board: agents against columns."""

    name: str = Field(description="As /api/boards gives it.")
    title: str = Field(description="Heading.")
    page: str = Field(description="Address of its page.")
    note: str = Field(description="The rule of its total.")
    maximum: float = Field(description="The highest score there is; the lowest is 0.")
    columns: list[str] = Field(description="Headings of the cells.")
    rows: list[GroupLine] = Field(description="Best first, those without a total last.")
    warnings: list[str] = Field(description="Caveats.")

    @classmethod
    def of(cls, board: Board, page: str, snapshot: Snapshot) -> GroupBoard:
        """The answer for a board whose agents are names, or indices into the snapshot."""
        plain = rounded({**plain_values(board), "page": page})
        for row in plain["rows"]:
            if isinstance(row["agent"], int):
                row["agent"] = snapshot.agents[row["agent"]].id
        return cls.model_validate(plain)


class MatchAnswer(BaseModel):
    """An agent met a test case."""

    agent: str = Field(description="Id of the agent.")
    case: str = Field(description="Id of the test case.")
    score: float = Field(description="The agent's, 0..1; the case has the rest.")


class Health(BaseModel):
    """Whether the board that is served is that of the record."""

    status: str = Field(description='"ok", or "stale": an older board is served, because of `problem`.')
    problem: str | None = Field(description="Why the record could not be read, or its pages not be written.")
    snapshot_sha256: str = Field(description="Of the snapshot that is served.")
    since_utc: str = Field(description="Since when it is served.")


class Refusal(BaseModel):
    """The reason why a request was refused."""

    detail: str = Field(description="One sentence.")


def describe_attributes(schema: dict[str, Any]) -> None:
    """Move the "Attributes" of docstrings to the properties of an OpenAPI document, in place."""
    for part in schema.get("components", {}).get("schemas", {}).values():
        text, _, attributes = str(part.get("description", "")).partition("\nAttributes:\n")
        if not attributes:
            continue
        part["description"] = text.strip()
        for found in _ATTRIBUTE.finditer(attributes):
            for name in found["names"].split(", "):
                if name in part.get("properties", {}):
                    part["properties"][name]["description"] = " ".join(found["text"].split())
