"""Commands that come twice, late, out of order, or from a view that is too old."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import ErrorCode, InputError
from merton.execution.gate.ledger import REMEMBERED_ANSWERS, REMEMBERED_TRIALS, CommandLedger, lead_verdict

NOW_NS = 10_000_000_000


@pytest.fixture
def ledger() -> CommandLedger[str]:
    return CommandLedger(max_observation_age_s=0.5)


def check(ledger: CommandLedger[str], sequence: int, trial: str = "t", age_s: float = 0.0) -> ErrorCode:
    return ledger.check(trial, sequence, NOW_NS - round(age_s * 1e9), NOW_NS).code


def test_commands_in_order_pass_and_gaps_are_no_danger(ledger: CommandLedger[str]) -> None:
    for sequence in (0, 1, 2, 7):
        assert check(ledger, sequence) is ErrorCode.OK
        ledger.record("t", sequence, f"answer {sequence}")


def test_a_duplicate_gets_the_recorded_answer(ledger: CommandLedger[str]) -> None:
    assert ledger.answer_for("t", 3) is None
    ledger.record("t", 3, "first")
    ledger.record("t", 3, "second")
    assert ledger.answer_for("t", 3) == "first"
    assert check(ledger, 3) is ErrorCode.OUT_OF_ORDER, "it must not be carried out again"
    assert ledger.answer_for("u", 3) is None


def test_a_command_after_its_successor_is_refused(ledger: CommandLedger[str]) -> None:
    ledger.record("t", 5, "five")
    verdict = ledger.check("t", 4, NOW_NS, NOW_NS)
    assert verdict.code is ErrorCode.OUT_OF_ORDER
    assert "4" in verdict.message
    assert "5" in verdict.message
    assert not verdict.stops
    assert check(ledger, 4, trial="another") is ErrorCode.OK


def test_checking_changes_nothing(ledger: CommandLedger[str]) -> None:
    assert [check(ledger, 0) for _ in range(3)] == [ErrorCode.OK] * 3


@pytest.mark.parametrize(
    ("age_s", "code"),
    [
        (0.0, ErrorCode.OK),
        (0.499, ErrorCode.OK),
        (0.501, ErrorCode.STALE),
        (3600.0, ErrorCode.STALE),
        (-0.4, ErrorCode.OK),
        (-3600, ErrorCode.STALE),
    ],
)
def test_the_observation_must_be_recent(ledger: CommandLedger[str], age_s: float, code: ErrorCode) -> None:
    assert check(ledger, 0, age_s=age_s) is code


@pytest.mark.parametrize(
    ("lead_s", "code"),
    [
        (-3600.0, ErrorCode.OK),
        (0.0, ErrorCode.OK),
        (1.99, ErrorCode.OK),
        (2.01, ErrorCode.STALE),
        (1e9, ErrorCode.STALE),
    ],
)
def test_an_observation_far_ahead_of_the_joint_states_is_not_waited_for(lead_s: float, code: ErrorCode) -> None:
    assert lead_verdict(NOW_NS + round(lead_s * 1e9), NOW_NS).code is code
    assert lead_verdict(NOW_NS + round(lead_s * 1e9), 0).ok, "before the first joint states"


def test_without_a_limit_nothing_is_stale() -> None:
    assert check(CommandLedger(np.inf), 0, age_s=1e6) is ErrorCode.OK


@pytest.mark.parametrize("age_s", [0.0, -1.0, np.nan])
def test_the_age_is_a_positive_number(age_s: float) -> None:
    with pytest.raises(InputError, match="max_observation_age_s"):
        CommandLedger(age_s)


def test_memory_is_bounded_and_forgotten_commands_are_not_repeated(ledger: CommandLedger[str]) -> None:
    for sequence in range(3 * REMEMBERED_ANSWERS):
        ledger.record("t", sequence, str(sequence))
    assert ledger.answer_for("t", 0) is None
    assert check(ledger, 0) is ErrorCode.OUT_OF_ORDER
    for trial in range(3 * REMEMBERED_TRIALS):
        ledger.record(f"trial {trial}", 0, "done")
    assert len(ledger._last) == REMEMBERED_TRIALS
    assert len(ledger._answers) == REMEMBERED_ANSWERS


def test_any_order_of_delivery_carries_out_rising_numbers_once_each(ledger: CommandLedger[str]) -> None:
    rng = np.random.default_rng(0)
    done: list[int] = []
    for sequence in rng.integers(0, 40, 400).tolist():
        if ledger.answer_for("t", sequence) is None and check(ledger, sequence) is ErrorCode.OK:
            ledger.record("t", sequence, str(sequence))
            done.append(sequence)
        elif sequence in done:
            assert ledger.answer_for("t", sequence) == str(sequence)
    assert done == sorted(set(done))
