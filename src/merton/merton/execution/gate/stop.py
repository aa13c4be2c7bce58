"""The stop as one state machine: a state, a generation, and a table of the next state for each state and event.

`Stop` is a value without locks or messages; its one owner in a process is the `EmergencyStopLatch`. A motion keeps the
generation in which it began, and is over once `is_stopped(since)` is true for that generation; there is no other
protocol. docs/lab/safety.md shows the table and the diagram that `markdown_table` and `mermaid_diagram` write.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum

from merton.errors import ErrorCode
from merton.execution.gate.safety import Verdict


class StopState(Enum):
    """Motions are sent in RUNNING alone. The value explains the state."""

    RUNNING = "motions are sent"
    RELEASING = "a reset is being written to the latch file; nothing is sent before that is done"
    COLLISION = "latched: the gate predicted a collision with table or wall"
    CONTACT = "latched: the cell felt a contact, and holds the arm itself"
    EMERGENCY = "latched: a person stopped the arm, or the latch file says that it was stopped before the start"
    FAULT = "latched: the cell reports a fault, such as a lost heartbeat or a protective stop, and holds the arm itself"
    ENDED = "the stop path has ended, and with it all sending"


class StopEvent(Enum):
    """The events that reach the stop. The value explains the event."""

    MOTION = "a command that moves arm or gripper"
    HEARTBEAT = "the next `arm/heartbeat` is due"
    HALT = "the motion is cancelled, a watched camera is silent, or carrying out the chunk failed"
    DEACTIVATE = "arm_node is deactivated"
    COLLISION_PREDICTED = "the gate predicts a collision with table or wall"
    CELL_COLLISION = "the cell reports COLLISION_STOP on `cell/safety_state`"
    CELL_FAULT = "the cell reports FAULT there, as it does when the heartbeat is lost"
    CELL_NORMAL = "the cell reports that it holds the arm no longer"
    STOP = "`arm/stop`"
    LATCH_FOUND = "at the start the latch file says tripped, or cannot be understood"
    RESET_BY_OPERATOR = "`arm/reset_stop`"
    RESET_BY_EXPERIMENT = "`arm/release_collision`"
    RELEASE_WRITTEN = "the latch file says released"
    FAILURE = "the stop path itself failed"
    SHUTDOWN = "arm_node ends"


_RUN, _REL, _COL, _CON, _EME, _FAU, _END = StopState

# fmt: off
_ROWS: dict[StopEvent, tuple[StopState | None, ...]] = {
    #                               in RUNNING  RELEASING COLLISION CONTACT EMERGENCY FAULT ENDED
    StopEvent.MOTION:              (_RUN,       None,     None,     None,   None,     None, None),
    StopEvent.HEARTBEAT:           (_RUN,       _REL,     _COL,     _CON,   _EME,     _FAU, None),
    StopEvent.HALT:                (_RUN,       _REL,     _COL,     _CON,   _EME,     _FAU, _END),
    StopEvent.DEACTIVATE:          (_RUN,       _REL,     _COL,     _CON,   _EME,     _FAU, _END),
    StopEvent.COLLISION_PREDICTED: (_COL,       _COL,     _COL,     _CON,   _EME,     _FAU, _END),
    StopEvent.CELL_COLLISION:      (_CON,       _CON,     _CON,     _CON,   _EME,     _FAU, _END),
    StopEvent.CELL_FAULT:          (_FAU,       _FAU,     _FAU,     _FAU,   _FAU,     _FAU, _END),
    StopEvent.CELL_NORMAL:         (_RUN,       _REL,     _COL,     _COL,   _EME,     _FAU, _END),
    StopEvent.STOP:                (_EME,       _EME,     _EME,     _EME,   _EME,     _FAU, _END),
    StopEvent.LATCH_FOUND:         (_EME,       None,     None,     None,   None,     None, None),
    StopEvent.RESET_BY_OPERATOR:   (_REL,       None,     _REL,     _REL,   _REL,     _REL, None),
    StopEvent.RESET_BY_EXPERIMENT: (_RUN,       None,     _REL,     _REL,   None,     None, None),
    StopEvent.RELEASE_WRITTEN:     (None,       _RUN,     None,     None,   None,     None, None),
    StopEvent.FAILURE:             (_END,       _END,     _END,     _END,   _END,     _END, _END),
    StopEvent.SHUTDOWN:            (_END,       _END,     _END,     _END,   _END,     _END, _END),
}
# fmt: on

TABLE: dict[tuple[StopState, StopEvent], StopState | None] = {
    (state, event): target for event, row in _ROWS.items() for state, target in zip(StopState, row, strict=True)
}
"""The new state for every state and event; None if the event is refused in that state, and changes nothing."""

HALTS = frozenset({StopEvent.HALT, StopEvent.DEACTIVATE})
"""Events that end the motion under way and latch nothing: the next command moves the arm again."""

REPORTS = frozenset({StopEvent.CELL_COLLISION, StopEvent.CELL_FAULT})
"""Events that trip only if they change the state: the cell may report one stop several times."""

TRIPS = REPORTS | {
    StopEvent.COLLISION_PREDICTED,
    StopEvent.STOP,
    StopEvent.LATCH_FOUND,
    StopEvent.FAILURE,
    StopEvent.SHUTDOWN,
}
"""Events that stop the arm until a reset, or for good."""

_CODES = {StopState.COLLISION: ErrorCode.COLLISION, StopState.CONTACT: ErrorCode.CONTACT}
"""Of motions that end with these trips; all others are STOPPED."""

RELEASED = Verdict(ErrorCode.STOPPED, "stopped during the motion, and released meanwhile")
_NOTHING_ENDED = Verdict()


@dataclass(frozen=True)
class Stop:
    """The state of the stop at one instant.

    Attributes:
        state: see `StopState`.
        epoch: the generation; it grows with every trip and every halt, and never shrinks.
        last_trip: the generation that began with the newest trip, -1 before the first.
        verdict: why a motion that began in an earlier generation has ended. While the stop is latched, its message is
            the reason of the first trip since the last reset.
    """

    state: StopState = StopState.RUNNING
    epoch: int = 0
    last_trip: int = -1
    verdict: Verdict = _NOTHING_ENDED

    @property
    def tripped(self) -> bool:
        """True unless motions are sent."""
        return not self.accepts(StopEvent.MOTION)

    @property
    def reason(self) -> str:
        """The reason why it tripped, empty if it has not."""
        return self.verdict.message if self.tripped else ""

    def is_stopped(self, since: int) -> bool:
        """Whether a motion that began in generation `since` is over, even if the stop was released meanwhile."""
        return self.tripped or self.epoch != since

    def has_tripped(self, since: int) -> bool:
        """Whether the stop is latched, or was latched after generation `since`: a halt does not count."""
        return self.tripped or self.last_trip > since

    def accepts(self, event: StopEvent) -> bool:
        """Whether the table has a new state for the event."""
        return TABLE[self.state, event] is not None

    def after(self, event: StopEvent, why: str | Verdict = "") -> Stop:
        """The state after an event; this one if the event is refused.

        Args:
            event: the event.
            why: the reason of a trip, or the verdict on the motion that a halt ends.
        """
        state = TABLE[self.state, event]
        if state is None:
            return self
        if event in TRIPS and not (event in REPORTS and state is self.state):
            latched = self.tripped and self.state is not StopState.RELEASING
            reason = self.reason if latched else str(why) or "stopped"
            if latched and {state, self.state} <= _CODES.keys():
                code = self.verdict.code  # of the first trip, as its reason
            else:
                code = _CODES.get(state, ErrorCode.STOPPED)
            return Stop(state, self.epoch + 1, self.epoch + 1, Verdict(code, reason))
        if event in HALTS:
            verdict = why if isinstance(why, Verdict) and not self.tripped else self.verdict
            return replace(self, epoch=self.epoch + 1, verdict=verdict)
        return replace(self, state=state, verdict=RELEASED if event is StopEvent.RELEASE_WRITTEN else self.verdict)


def markdown_table() -> str:
    """The table in Markdown: a row for each event, a column for each state, "-" where the event is refused."""
    lines = [
        f"| event | {' | '.join(state.name for state in StopState)} |",
        f"|---|{'---|' * len(StopState)}",
    ]
    for event, row in _ROWS.items():
        lines.append(f"| {event.name} | {' | '.join('-' if target is None else target.name for target in row)} |")
    return "\n".join(lines)


def mermaid_diagram() -> str:
    """The diagram in Mermaid: an arrow for each change of the state, with all its events."""
    arrows: dict[tuple[StopState, StopState], list[str]] = defaultdict(list)
    for (state, event), target in TABLE.items():
        if target not in (None, state):
            arrows[state, target].append(event.name)
    lines = [f"    {state.name} --> {target.name}: {', '.join(events)}" for (state, target), events in arrows.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> RUNNING", *lines, "    ENDED --> [*]"])
