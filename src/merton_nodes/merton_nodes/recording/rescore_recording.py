"""Recomputes the scores of a recorded run from the answers, action chunks and poses in its recording."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from merton.errors import MertonError
from merton.experiment.scoring import Evidence, differences, score
from merton.recording.messages import namespace_of, own_name, reading
from merton.recording.reader import RecordingReader, torn_note
from merton.results.records import TrialRecord
from merton_nodes.ros import names, trial_messages


@dataclass(frozen=True)
class Difference:
    """A score that does not follow from its recorded evidence; None: not scored."""

    trial: str
    score: str
    recorded: float | None
    computed: float | None


@dataclass(frozen=True)
class Rescored:
    """The result of scoring a recording again.

    Attributes:
        checked: trials whose scores were computed again.
        unchecked: trials whose result was recorded without its evidence, as at the start of a late recording.
        differences: scores that differ by more than `merton.experiment.scoring.TOLERANCE`.
        torn: where the recording breaks off; empty if it does not.
    """

    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    differences: tuple[Difference, ...]
    torn: str


def rescored(path: Path) -> Rescored:
    """Score every trial of a recording again. Raises InputError for another file or a malformed message."""
    reader = RecordingReader(path)
    results: dict[tuple[str, str], TrialRecord] = {}
    evidence: dict[tuple[str, str], Evidence] = {}
    namespace = namespace_of(reader.topics(), path)
    for entry in reader.entries():
        topic = own_name(entry.topic, namespace)
        if topic not in (names.TRIAL_RESULTS, names.TRIAL_EVIDENCE):
            continue
        with reading(entry):
            message = entry.decode()
            key = (message.experiment_id, message.trial_id)
            if topic == names.TRIAL_RESULTS:
                results[key] = trial_messages.record_of(message)
            else:
                evidence[key] = trial_messages.evidence_of(message)
    found = [
        Difference(trial, *difference)
        for (experiment, trial), record in results.items()
        if (experiment, trial) in evidence
        for difference in differences(record, score(evidence[experiment, trial], record.outcome))
    ]
    return Rescored(
        tuple(trial for experiment, trial in results if (experiment, trial) in evidence),
        tuple(trial for experiment, trial in results if (experiment, trial) not in evidence),
        tuple(found),
        reader.torn,
    )


def show(found: Rescored, console: Console) -> int:
    """Print the result; returns the exit code: 1 if a score differs, or none could be computed."""
    if found.torn:
        console.print(torn_note(found.torn), markup=False, soft_wrap=True)
    if found.unchecked:
        console.print(
            f"not checked, since their evidence is not in the recording: {', '.join(found.unchecked)}",
            markup=False,
            soft_wrap=True,
        )
    if not found.checked:
        console.print("the recording has no trial with its result and its evidence", markup=False)
        return 1
    if not found.differences:
        console.print(f"identical: {len(found.checked)} trials, all scores", markup=False)
        return 0
    table = Table("trial", "score", "recorded", "computed anew")
    for difference in found.differences:
        table.add_row(difference.trial, difference.score, _number(difference.recorded), _number(difference.computed))
    console.print(table)
    return 1


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.15g}"


def main() -> None:
    """Entry point: exit code 0 if every score is as recorded, 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    try:
        code = show(rescored(parser.parse_args().recording), Console(highlight=False))
    except MertonError as error:
        print(f"merton: {error}", file=sys.stderr)
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
