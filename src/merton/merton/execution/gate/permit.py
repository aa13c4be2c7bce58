"""May this command move the arm? The rule of the nodes that own an arm, for commands that any process could publish.

Each generation of the stop has a permit: a number that the latch draws when the generation begins, and again when the
stop is released. The safety state says which permit holds and whether motions are sent; every command that moves arm or
gripper bears the permit under which it was sent. Command and state come on different topics, so either may come first:
the permit in the command decides. A command that halts is always accepted, and is not asked about here.

A permit keeps out what is stale, replayed or stray. It is no secret: docs/lab/security.md is about malice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

WAIT_S = 20.0
"""Longest wait of a command for its safety state [s]. Ours: as long as arm_node waits for the arm to move; then it
halts. A process may be stopped for seconds between its message on one topic and that on the other."""

_TEXT = re.compile(r"permit (\d{1,19})")


class Decision(Enum):
    """The answer to a command. The value explains it."""

    MOVE = "the command bears the permit that holds, and motions are sent"
    NEWER = "its permit is newer than the newest safety state"
    NO_PERMIT = "it bears no permit: arm_node has not sent it"
    STALE = "it bears the permit of an earlier generation of the stop"
    STOPPED = "the stop is latched"


@dataclass(frozen=True)
class CommandRule:
    """The newest safety state, as far as it decides on commands; a value, replaced by each new state.

    Attributes:
        permit: the permit that holds; None before the first state, when nothing moves.
        running: whether motions are sent under it.
    """

    permit: int | None = None
    running: bool = False

    def decide(self, permit: int | None) -> Decision:
        """Whether a command that bears `permit`, None for none, may move the arm.

        One with a newer permit than the state waits: arm_node has sent its state already, or is about to. One with the
        permit of a latched state cannot come from arm_node, which sends nothing then.
        """
        if permit is None:
            return Decision.NO_PERMIT
        if self.permit is None or permit > self.permit:
            return Decision.NEWER
        if permit < self.permit:
            return Decision.STALE
        return Decision.MOVE if self.running else Decision.STOPPED


def permit_text(permit: int) -> str:
    """The permit as commands bear it."""
    return f"permit {permit}"


def permit_in(text: str) -> int | None:
    """The permit that a command bears, None if the text is none."""
    found = _TEXT.fullmatch(text)
    return int(found[1]) if found else None
