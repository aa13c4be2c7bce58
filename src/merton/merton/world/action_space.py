"""The rows that a world takes: named columns with units, and the time that a row lasts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Self

from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from merton.config import Model
from merton.world.action import ROWS, ActionChunk, checked_chunk

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ActionColumn(Model):
    """One number of a row.

    Attributes:
        name: such as "x", "left waist" or "gripper".
        unit: such as "m", "rad" or "px"; "1" for a number without one, such as a gripper's 0 closed .. 1 open.
        low, high: the numbers that the world tells apart; beyond them it clips.
        spread: the width in which undistorted actions vary, the 1st to the 99th percentile of demonstrations, by which
            two decisions are compared (`merton.decision.spread`); 0 for a column that never changes.
    """

    name: str
    unit: str
    low: Annotated[float, Field(allow_inf_nan=False)]
    high: Annotated[float, Field(allow_inf_nan=False)]
    spread: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _has_a_range(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"the column {self.name!r} goes from low to high, got {self.low:g} to {self.high:g}")
        return self


class ActionSpace(Model):
    """The form of a world's actions.

    Attributes:
        form: `tool_deltas`, Merton's own rows of 7 (`merton.world.action`) in the world's base frame, so that every
            policy of the catalogue with tool deltas can act; or `rows`, numbers of another meaning, such as the joints
            of two arms or a point in a plane, which only policies made for them give.
        columns: of a row, in order.
        period_s: time that a row lasts [s].
        spread_from: the demonstrations that the columns' `spread` was taken from, in words.
    """

    form: Literal["tool_deltas", "rows"]
    columns: Annotated[tuple[ActionColumn, ...], Field(min_length=1)]
    period_s: Positive
    spread_from: str

    @property
    def spread(self) -> tuple[float, ...]:
        """Of the columns, in order."""
        return tuple(column.spread for column in self.columns)

    def chunk(self, rows: ArrayLike, model: str = "", *, done: bool = False) -> ActionChunk:
        """Rows (n, columns) as a chunk that a world of this space carries out; raises as `checked_chunk`."""
        frame = ROWS if self.form == "rows" else "base_link"
        return replace(checked_chunk(rows, self.period_s, frame=frame, model=model, done=done), spread=self.spread)

    @model_validator(mode="after")
    def _something_varies(self) -> Self:
        if not any(self.spread):
            raise ValueError("no column has a spread, so no two decisions could be compared")
        return self

    @model_validator(mode="after")
    def _tool_deltas_have_seven(self) -> Self:
        if self.form == "tool_deltas" and len(self.columns) != 7:
            raise ValueError(f"tool_deltas are rows of 7 columns, got {len(self.columns)}")
        return self
