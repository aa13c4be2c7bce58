"""A gate's table from a run: its outcomes, and the pictures that it kept of every trial's first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from merton.errors import InputError
from merton.experiment.run import RunDirectory
from merton.perception.images import read_image
from merton.perception.quality import METRICS
from merton.processes import carried_out
from merton.progress import OnProgress, unseen
from merton.results.records import TrialRecord
from merton_studies.iqa.gate_table import OUTCOMES, measured

WITH_REFERENCE = ("psnr", "ssim", "merton-fr")
"""Of the metrics that no robot has, these show what the reference is worth."""


def usable_metrics() -> list[str]:
    """The metrics without a reference, and some with one, whose packages and weights are there."""
    return [
        name
        for name, metric in METRICS.items()
        if (name in WITH_REFERENCE or not metric.needs_reference) and metric.missing() is None
    ]


def rows_of_run(
    run: RunDirectory,
    metrics: Sequence[str],
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> list[dict[str, object]]:
    """The rows of `gate_table.GateTable` of a run's trials, in the order of their names.

    Trials without pictures, infrastructure faults, refused chunks, and agents that do not look are left out. There is
    no disagreement: a picture alone does not tell what else the policy would have decided.

    Raises:
        InputError: no trial is left, or a picture is broken.
    """
    records = {record.id: record for record in run.records()}
    cameras = {agent.id: run.spec.vla_entry(agent.vla).cameras for agent in run.spec.agents}
    looking = [record for record in records.values() if record.outcome.value in OUTCOMES and cameras.get(record.agent)]
    folders = {record.id: run.path / "trials" / record.id for record in looking}
    jobs = [
        (folders[record.id], cameras[record.agent], tuple(metrics))
        for record in looking
        if all(file.exists() for pair in _pictures(folders[record.id], cameras[record.agent]) for file in pair)
    ]
    if not jobs:
        raise InputError(f"{run.path} has no trials with pictures of what a policy saw: nothing can be gated")
    values: dict[str, dict[str, float]] = {}
    for done, (index, row) in enumerate(carried_out(_measured, jobs, workers), start=1):
        values[jobs[index][0].name] = row
        on_progress(done, len(jobs))
    return [_row(records, name) | found for name, found in sorted(values.items())]


def _row(records: Mapping[str, TrialRecord], name: str) -> dict[str, object]:
    record = records[name]
    clean = records.get(f"{record.agent}.{record.case.reference.id}")
    of_clean = clean.outcome.value if clean and clean.outcome.value in OUTCOMES and not record.case.is_reference else ""
    case = record.case
    return {
        "trial": name,
        "subject": record.agent,
        "scene": case.scene,
        "distortion": case.distortion,
        "level": case.level,
        "outcome": record.outcome.value,
        "undistorted": of_clean,
    }


def _pictures(folder: Path, cameras: Sequence[str]) -> list[tuple[Path, Path]]:
    """(undistorted, distorted) files of the first step, of each camera."""
    return [(folder / f"00_{name}_reference.jpg", folder / f"00_{name}_distorted.jpg") for name in cameras]


def _measured(folder: Path, cameras: Sequence[str], metrics: Sequence[str]) -> dict[str, float]:
    pairs = _pictures(folder, cameras)
    return measured(((read_image(reference), read_image(distorted)) for reference, distorted in pairs), metrics)
