"""The answers of the JSON API, besides the parts of a snapshot, which are sent as they are.

Every list comes in pages. Scores are 0..1 unless a name says otherwise, ratings are Elo points, intervals are 95 %,
times are UTC (ISO 8601), and a value that could not be measured is null.
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from merton.leaderboard.board import Board
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
