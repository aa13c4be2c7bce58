"""Verdicts of people in a record, as the judge at a real robot gives them, but after the fact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import merton
from merton.errors import ErrorCode, InputError
from merton.execution.score import score as execution_score
from merton.files import write_file
from merton.results.records import SETTLED_PROGRESS, Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.project import Loaded
from merton_studies.people.protocols.trials import verdicts
from merton_studies.people.sheets import first_answers


@dataclass(frozen=True)
class JudgedTrials:
    """Numbers of trials that people judged.

    Attributes:
        same: that keep their outcome.
        changed: whose outcome is another one now.
        settled: that had none, since the judge could not tell, and have one now.
        undecided: without a majority; they keep what the record says.
    """

    same: int
    changed: int
    settled: int
    undecided: int


def judged_records(records: Sequence[TrialRecord], said: Mapping[str, bool]) -> list[TrialRecord]:
    """The trials of one run with the verdicts of people in place of their outcomes.

    A trial whose outcome is another one is scored as if a person had judged it at the robot: a success has 100 points
    of execution and a progress of 1; a failure loses a point a centimetre, and its progress is not known. A trial that
    was measured against an undistorted one of its agent learns whether people saw that one succeed. Distances stay:
    they do not depend on the outcome.

    Args:
        records: of one run.
        said: id of a trial to whether its task was done; trials that are not there stay as they are.
    """
    found = [_judged(record, said[record.id]) if record.id in said else record for record in records]
    undistorted = {(one.agent, one.case): one.success for one in found if one.case.is_reference}
    return [
        replace(one, reference_success=undistorted[one.agent, one.case.reference])
        if one.reference is Reference.OWN and undistorted.get((one.agent, one.case.reference)) is not None
        else one
        for one in found
    ]


def _judged(record: TrialRecord, success: bool) -> TrialRecord:
    if record.success is success:
        return record  # what the cell measured beside it is kept
    outcome = Outcome.SUCCESS if success else Outcome.FAILURE
    execution = None if record.distance_m is None else execution_score(outcome, record.distance_m)
    progress = SETTLED_PROGRESS.get(outcome)
    code, told = (0, "") if record.error_code != ErrorCode.NO_ANSWER else (record.error_code, record.error_message)
    return replace(record, outcome=outcome, execution=execution, progress=progress, error_code=code, error_message=told)


def write_judged_record(
    loaded: Loaded, items: Sequence[Item], answers: Sequence[Answer], run: Path, out: Path
) -> JudgedTrials:
    """Write a copy of a run's record in which the trials that people judged have their verdicts.

    The run's own record stays as it is. Beside `out` stands a JSON file of the same name with every verdict, its votes,
    and what it came from.

    Args:
        loaded: a project of the protocol trials.
        items: of it.
        answers: that stand.
        run: folder or record of the run.
        out: SQLite file that is not there yet.

    Raises:
        InputError: the project is of another protocol, nothing was judged yet, or `out` is there already.
        InfrastructureError: `out` cannot be written.
    """
    if loaded.project.protocol != "trials":
        raise InputError(
            f"{loaded.path}: the protocol is {loaded.project.protocol}; only trials has verdicts of trials"
        )
    if out.exists():
        raise InputError(f"{out} is there already: choose a new file for the record")
    trials = {item.id: item.facts["trial"] for item in items}
    votes = {trials[name]: found for name, found in verdicts(first_answers(answers)).items()}
    if not votes:
        raise InputError(f"the study {loaded.project.name!r} has no verdicts yet")
    said = {name: found["verdict"] == "success" for name, found in votes.items() if found["verdict"] != "unclear"}
    with ResultStore(run, read_only=True) as source:
        before = {record.id: record for record in source.records()}
        with ResultStore(out) as target:
            _copy_facts(source, target)
            target.record_all(judged_records(list(before.values()), said))
    counts = JudgedTrials(
        same=sum(before[name].success is success for name, success in said.items()),
        changed=sum(before[name].success is (not success) for name, success in said.items()),
        settled=sum(before[name].success is None for name in said),
        undecided=len(votes) - len(said),
    )
    trials_about = {name: {**found, "recorded": before[name].outcome.value} for name, found in sorted(votes.items())}
    about = {
        "merton": merton.__version__,
        "project": loaded.project.name,
        "definition_sha256": loaded.sha256,
        "experiments": sorted({record.experiment for record in before.values()}),
        "counts": asdict(counts),
        "trials": trials_about,
    }
    write_file(out.with_suffix(".json"), (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
    return counts


def _copy_facts(source: ResultStore, target: ResultStore) -> None:
    """Versions and hashes of experiments, agents and cases."""
    for experiment in source.experiment_records():
        target.register_experiment(**asdict(experiment))
    for agent in source.agents():
        target.register_agent(**asdict(agent))
    for case in source.cases():
        if not case.source and case.task is not None:
            known = TestCase(case.task, case.seed or 0, case.distortion or "", case.level or 0, case.group)
            target.register_case(known, case.reference_image)
