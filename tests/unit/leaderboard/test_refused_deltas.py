"""A policy whose every delta the gate refuses scores as `hold` does: every board and report says so, and of whom."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from merton.decision.models.base import Policy
from merton.errors import ErrorCode
from merton.experiment.local import LocalPorts
from merton.experiment.plan import single_trial
from merton.experiment.runner import Runner
from merton.leaderboard.site import write_site
from merton.leaderboard.snapshot.store import from_json, of_trials, take, to_json
from merton.leaderboard.snapshot.terminal import render_snapshot
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.refusals import is_refused, refused_sentences
from merton.results.store import ResultStore
from merton.study.report import write_report
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import Observation

FAILED = TrialRecord(
    "e",
    "hold",
    TestCase("reach", 0, "reference", 0),
    Outcome.FAILURE,
    execution=78.5,
    decision=1.0,
    progress=0.0,
    cut_short=False,
    steps=1,
)
"""As a trial of `hold` in the embedded cell is recorded: no simulated time, nothing refused."""


def of_agent(agent: str, scenes: int = 4, **changes: object) -> list[TrialRecord]:
    return [
        replace(FAILED, agent=agent, case=TestCase("reach", seed, name, level), **changes)  # type: ignore[arg-type]
        for seed in range(scenes)
        for name, level in (("reference", 0), ("jpeg", 5))
    ]


REFUSED = {
    "cut_short": True,
    "steps": 6,
    "error_code": int(ErrorCode.STEP_LIMIT),
    "error_message": "delta 0 moves 0.090 m, limit 0.08 m",
}


def test_a_policy_whose_every_delta_is_refused_is_told_from_one_that_stands_still() -> None:
    records = [*of_agent("hold"), *of_agent("hands", **REFUSED)]
    found = refused_sentences(records)
    assert list(found) == ["hands"]
    assert found["hands"].startswith(
        "The gate refused every delta of 8 of 8 trials of hands (error 301: delta 0 moves 0.090 m, limit 0.08 m)"
    )
    assert "its scores are those of doing nothing" in found["hands"]
    random.Random(1).shuffle(records)
    assert refused_sentences(records) == found


@pytest.mark.parametrize(
    "changes",
    [
        {"simulated_s": 1.15},
        {"outcome": Outcome.EMERGENCY_STOP, "error_code": int(ErrorCode.COLLISION)},
        {"outcome": Outcome.INFRASTRUCTURE},
        {"cut_short": None},
    ],
    ids=["it moved", "a predicted collision", "a fault", "unknown"],
)
def test_other_trials_are_not_counted(changes: dict[str, object]) -> None:
    assert is_refused(replace(FAILED, **REFUSED))  # type: ignore[arg-type]
    assert not is_refused(replace(FAILED, **{**REFUSED, **changes}))  # type: ignore[arg-type]


def test_refusals_of_a_policy_that_mostly_moves_are_its_own_score() -> None:
    moved = of_agent("servo", 10, simulated_s=1.0)
    one = replace(moved[0], simulated_s=0.0, **REFUSED)  # type: ignore[arg-type]
    assert refused_sentences([one, *moved[1:]]) == {}
    some = [replace(record, simulated_s=0.0, **REFUSED) for record in moved[:2]]  # type: ignore[arg-type]
    said = refused_sentences([*some, *moved[2:]])["servo"]
    assert "2 of 20 trials of servo" in said
    assert "those trials' scores are" in said


def test_several_codes_are_counted_and_the_rest_numbered() -> None:
    codes = (ErrorCode.STEP_LIMIT, ErrorCode.STEP_LIMIT, ErrorCode.UNREACHABLE, ErrorCode.WORKSPACE)
    records = [
        replace(record, error_code=int(code), error_message="")
        for record, code in zip(of_agent("hands", 2, **REFUSED), codes, strict=True)
    ]
    said = refused_sentences(records)["hands"]
    assert "(error 301 in 2: a delta is longer" in said
    assert "error 201 in 1: a delta is out of reach; 1 more code)" in said


def test_board_site_json_and_report_say_it(tmp_path: Path) -> None:
    records = [*of_agent("hold"), *of_agent("hands", **REFUSED)]
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record_all(records)
        board = take(store)
        index = write_site(board, tmp_path / "site", store)
    (tmp_path / "run.json").write_text('{"id": "e"}')
    start = "The gate refused every delta of 8 of 8 trials of hands"
    assert f"! {start}" in " ".join(render_snapshot(board).split())  # without --all, too
    assert start in index.read_text()
    assert start in next((tmp_path / "site" / "agents").glob("hands*.html")).read_text()
    assert from_json(to_json(board)).agents == board.agents
    report = write_report(tmp_path).read_text()
    assert report.count(start) == 1
    assert not any(row.refused for row in of_trials(of_agent("hold")).agents)


class Hasty(Policy):
    """Asks for nine centimetres a delta, one more than the gate lets pass, as one that takes millimetres for metres."""

    name = "hasty"

    def act(self, observation: Observation) -> ActionChunk:
        return checked_chunk([[0.09, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]] * 3, 0.2, model=self.name)


@pytest.mark.usefixtures("renders")
def test_the_embedded_cell_records_such_a_trial_so_and_that_of_hold_otherwise() -> None:
    spec, trial = single_trial("glance", "reach", "jpeg", 5)
    standing = replace(trial, agent=trial.agent.model_copy(update={"vla": "hold"}))
    with LocalPorts() as ports:
        ports._policies["glance", None] = Hasty()
        hasty, hold = (
            Runner(spec, "id", ports).run_single(one, lambda stage, progress: None).record for one in (trial, standing)
        )
    assert (is_refused(hasty), hasty.error_code, hasty.simulated_s) == (True, ErrorCode.STEP_LIMIT, 0.0)
    assert (is_refused(hold), hold.error_code, hold.simulated_s) == (False, 0, 0.0)
    assert (hasty.outcome, hasty.execution) == (hold.outcome, hold.execution)
