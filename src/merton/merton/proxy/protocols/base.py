"""What a relay has to know of a protocol: which message is what, where its pictures are, and what the answer says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from merton.proxy.pictures import Picture
from merton.proxy.spans import Piece, replaced

Rows = NDArray[np.float64]


class Kind(Enum):
    """Of a message from the harness."""

    OBSERVATION = "observation"
    BEGIN = "begin"
    END = "end"
    OTHER = "other"


@dataclass(frozen=True)
class Message:
    """A message from the harness.

    Attributes:
        kind: what it is; a message that cannot be read is OTHER.
        number: by which the answer names it; None where the protocol has none.
        pictures: of an observation, by camera.
        instruction: of an observation or a beginning; "" if it has none.
        task, scene: of a beginning; None if it does not say.
        success: of an end; None if it does not say.
        problem: why it, or its pictures, could not be read; "" if they could.
    """

    kind: Kind
    number: int | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    instruction: str = ""
    task: str | None = None
    scene: int | str | None = None
    success: bool | None = None
    problem: str = ""


@dataclass(frozen=True)
class Reply:
    """A message from the policy.

    Attributes:
        is_answer: whether it answers an observation, with an action or an error.
        number: of the observation; None where the protocol has none.
        action: (n, columns); None if there is none of numbers.
        error: the policy's own words; "" if it has not failed.
    """

    is_answer: bool
    number: int | None = None
    action: Rows | None = None
    error: str = ""


class Protocol(ABC):
    """A protocol between harness and policy. Its methods read one message each and keep nothing."""

    name: ClassVar[str]
    websocket: ClassVar[bool] = True
    """Whether it is spoken through a websocket; else each observation is a request of HTTP."""
    has_episodes: ClassVar[bool] = False
    """Whether it says where an episode begins and ends."""
    greets: ClassVar[bool] = False
    """Whether the server speaks first, with a message that answers nothing."""
    answers_each: ClassVar[bool] = False
    """Whether each message of the harness has one answer, in their order; else answers bear numbers."""
    health: ClassVar[str] = "/healthz"
    """A path that the servers answer, by which one sees whether they are there."""

    @abstractmethod
    def message(self, data: bytes) -> Message:
        """A binary message of the harness; never raises."""

    @abstractmethod
    def reply(self, data: bytes | str) -> Reply:
        """A message of the policy; never raises."""

    def shown(self, data: bytes, pieces: list[Piece]) -> bytes:
        """The message with pieces of it replaced."""
        return replaced(data, pieces)

    def for_shadow(self, data: bytes) -> bytes:
        """A message from before an observation, for the second session; raises ValueError."""
        return data


def rows(value: Any) -> Rows | None:
    """An action (columns,) or (n, columns) as rows of finite numbers; None if it is none."""
    try:
        array = np.atleast_2d(np.asarray(value, np.float64))
    except (ValueError, TypeError):
        return None
    return array if array.ndim == 2 and array.size and np.isfinite(array).all() else None
