"""Verdicts of people in a record, and the command that puts them there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import ErrorCode
from merton.experiment.template import experiment_text
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_studies.people.item import Item
from merton_studies.people.judged import judged_records
from merton_studies.people.ledger import Answer, Ledger, Slot
from merton_studies.people.project import read_project

PROJECT = """
name: verdicts
title: Verdicts
protocol: trials
items: {run: {run: run}}
raters: 1
ratings: 1
"""
UTC = "2026-11-01T10:00:00.000000Z"
OWN = {"reference": Reference.OWN, "reference_success": True}


def a_record(level: int, outcome: Outcome, **values: object) -> TrialRecord:
    case = TestCase("pick", 0, "jpeg" if level else "reference", level)
    return replace(TrialRecord("run", "servo", case, outcome, distance_m=0.12), **OWN, **values)


def test_a_verdict_scores_a_trial_as_the_judge_at_the_robot_does() -> None:
    failed = a_record(1, Outcome.FAILURE, execution=88.0, progress=0.4)
    succeeded = a_record(2, Outcome.SUCCESS, execution=100.0, progress=1.0)
    not_judged = a_record(
        3, Outcome.INFRASTRUCTURE, error_code=int(ErrorCode.NOT_JUDGED), error_message="the operator was away"
    )
    untouched = a_record(4, Outcome.EMERGENCY_STOP, execution=0.0)
    same = a_record(5, Outcome.FAILURE, execution=88.0, progress=0.4)
    said = {failed.id: True, succeeded.id: False, not_judged.id: False, same.id: False}
    found = judged_records([failed, succeeded, not_judged, untouched, same], said)
    assert [(one.outcome, one.execution, one.progress) for one in found] == [
        (Outcome.SUCCESS, 100.0, 1.0),
        (Outcome.FAILURE, pytest.approx(88.0), None),
        (Outcome.FAILURE, pytest.approx(88.0), None),
        (Outcome.EMERGENCY_STOP, 0.0, None),
        (Outcome.FAILURE, 88.0, 0.4),
    ]
    assert (found[2].error_code, found[2].error_message) == (0, "")
    unmeasured = replace(not_judged, distance_m=None)
    assert judged_records([unmeasured], {unmeasured.id: True})[0].execution is None


def test_trials_learn_whether_people_saw_their_undistorted_one_succeed() -> None:
    undistorted, distorted = a_record(0, Outcome.SUCCESS), a_record(1, Outcome.FAILURE)
    of_oracle = replace(a_record(2, Outcome.FAILURE), reference=Reference.ORACLE)
    found = judged_records([undistorted, distorted, of_oracle], {undistorted.id: False})
    assert [one.reference_success for one in found] == [False, False, True]


def judge(file: Path, out: Path) -> Result:
    return CliRunner().invoke(app, ["people", "judge", str(file), "--out", str(out)])


def test_the_command_writes_a_record_and_leaves_the_runs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    make_fake_run(run, agents=("servo",), distortions=("jpeg",), tasks=("pick", "push"), levels=(1,))
    text = experiment_text("quickstart", ["servo"], ["pick", "push"], ["jpeg"], [0, 1], 1)
    (run / "experiment.yaml").write_text(text, encoding="utf-8")
    file, out = tmp_path / "study.yaml", tmp_path / "judged.sqlite"
    file.write_text(PROJECT, encoding="utf-8")
    loaded = read_project(file)
    with ResultStore(run, read_only=True) as before:
        old = {one.id: one for one in before.records() if one.success is not None}
    items = tuple(Item(name, one.case.scene, facts={"trial": name, "run": one.experiment}) for name, one in old.items())
    monkeypatch.setattr("merton_studies.people.sources.items_of", lambda *_: items)
    items = items[:2]
    was = [old[item.id].success for item in items]
    with Ledger(loaded.record, loaded.project.name, loaded.definition) as ledger:
        assert "has no verdicts yet" in str(judge(file, out).exception)
        rater = ledger.register("Ada").id
        slots = [Slot(rater, number, item.id, "design", UTC) for number, item in enumerate(items, 1)]
        ledger.hand_out(slots)
        for slot, success in zip(slots, (was[0], not was[1]), strict=True):
            verdict = {"verdict": "success" if success else "failure"}
            ledger.save(Answer(f"a{slot.number}", rater, slot.number, slot.item, "design", verdict, 3.0, UTC))
    told = judge(file, out)
    assert told.exit_code == 0, told.output
    assert "1 trials keep their outcome, 1 have another one, 0 have one now, 0 are undecided" in told.output
    with ResultStore(run, read_only=True) as before, ResultStore(out, read_only=True) as after:
        new = {one.id: one for one in after.records()}
        assert before.agents() == after.agents()
    changed = {name for name in old if old[name].outcome is not new[name].outcome}
    assert changed == {items[1].facts["trial"]}
    about = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert about["counts"] == {"same": 1, "changed": 1, "settled": 0, "undecided": 0}
    assert "is there already" in str(judge(file, out).exception)
