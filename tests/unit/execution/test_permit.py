"""May this command move the arm? The rule, for every order in which a safety state and a command can arrive."""

from __future__ import annotations

import itertools

import pytest

from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.permit import CommandRule, Decision, permit_in, permit_text
from merton.execution.gate.stop import StopEvent


@pytest.mark.parametrize(
    ("permit", "running", "latched"),
    [
        (None, Decision.NO_PERMIT, Decision.NO_PERMIT),
        (6, Decision.STALE, Decision.STALE),
        (7, Decision.MOVE, Decision.STOPPED),
        (8, Decision.NEWER, Decision.NEWER),
    ],
)
def test_a_command_moves_under_the_permit_of_a_running_state_alone(
    permit: int | None, running: Decision, latched: Decision
) -> None:
    assert CommandRule(7, running=True).decide(permit) is running
    assert CommandRule(7, running=False).decide(permit) is latched


def test_before_the_first_safety_state_nothing_moves() -> None:
    assert CommandRule().decide(None) is Decision.NO_PERMIT
    assert CommandRule().decide(0) is Decision.NEWER


@pytest.mark.parametrize(
    "text", ["", "base_link", "permit", "permit -1", "permit 7 ", "permit 7\n", "7", "permit " + "9" * 20]
)
def test_only_a_permit_is_read_as_one(text: str) -> None:
    assert permit_in(text) is None
    assert permit_in(permit_text(7)) == 7


def test_in_every_order_of_arrival_the_commands_of_the_gate_move_and_those_before_a_stop_do_not() -> None:
    """Two topics: the states come in their order, the commands in theirs, and any way between each other."""
    latch = EmergencyStopLatch()
    messages: list[tuple[str, int, bool]] = [("state", latch.permit, True), ("command", latch.permit, True)]
    latch.trip(StopEvent.STOP, "stopped by request")
    messages += [("state", latch.permit, False)]
    latch.reset(StopEvent.RESET_BY_OPERATOR)
    messages += [("state", latch.permit, True), ("command", latch.permit, True)]
    states = [message for message in messages if message[0] == "state"]
    commands = [message for message in messages if message[0] == "command"]
    orders = 0
    for places in itertools.combinations(range(len(messages)), len(states)):
        left = {"state": iter(states), "command": iter(commands)}
        rule, waiting, moved = CommandRule(), None, []
        for place in range(len(messages)):
            kind, permit, running = next(left["state" if place in places else "command"])
            rule = CommandRule(permit, running) if kind == "state" else rule
            waiting = permit if kind == "command" else waiting
            decision = rule.decide(waiting)
            if waiting is not None and decision is not Decision.NEWER:
                moved += [waiting] if decision is Decision.MOVE else []
                waiting = None
        assert moved[-1] == commands[-1][1], "the first motion after a release is not lost"
        assert set(moved) <= {permit for _, permit, _ in commands}
        orders += 1
    assert orders == 10
