"""Metrics of image quality on the first picture of every distorted trial of a run: in parallel, resumed after a kill.

Each reference (task and scene) has a file in `metric_values/` of the run's folder, written whole. Agents that saw the
same picture share its values, since a value belongs to the hash of the two files it was measured on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from merton.errors import MertonError
from merton.files import written_whole
from merton.perception.images import decode_image
from merton.perception.quality import METRICS, measure
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.records import TrialRecord
from merton.results.trial_files import first_frame, jpeg, trial_detail
from merton_studies.iqa.values import PARTS, code_sha256

Values = Mapping[str, Mapping[str, float]]
"""Metric to {trial id: value}, the higher the better the image."""


@dataclass(frozen=True)
class _Job:
    """The distorted trials of one reference; `codes` has the hash of the code of each metric."""

    run: Path
    records: tuple[TrialRecord, ...]
    codes: Mapping[str, str]
    part: Path


def trial_values(
    run: Path,
    records: Sequence[TrialRecord],
    names: Sequence[str],
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> Values:
    """Measure the first distorted picture of every distorted trial, against the undistorted one of the same instant.

    A trial without its pictures, or whose picture a metric refuses, has no value. The value of a metric of which less
    is better has its sign turned.

    Args:
        run: the run's folder.
        records: its trials.
        names: metrics of `METRICS`.
        workers: processes; one for each usable core by default.
        on_progress: called with (references done, references in all).

    Raises:
        UnknownNameError: no such metric.
        MissingDependencyError: a metric needs a package that is not installed.
        InfrastructureError: the folder cannot be written, or a worker was killed.
    """
    codes = {name: code_sha256(name) for name in names}
    distorted = sorted((item for item in records if not item.case.is_reference), key=lambda item: (item.case, item.id))
    groups = groupby(distorted, key=lambda item: f"{item.case.task}.{item.case.seed}")
    jobs = [_Job(run, tuple(group), codes, run / PARTS / f"{name}.json") for name, group in groups]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    with resumable_work(run / PARTS, "measurement of metrics"):
        for done, (_, measured) in enumerate(carried_out(_work, [(job,) for job in jobs], workers), start=1):
            for name, values in measured.items():
                found[name].update(values)
            on_progress(done, len(jobs))
    return found


def _work(job: _Job) -> Values:
    """The values of the trials of one reference; what is missing is measured, and the part written."""
    kept = _kept(job)
    found: dict[str, dict[str, float]] = {name: {} for name in job.codes}
    before = json.dumps(kept, sort_keys=True)
    for record in job.records:
        frame = first_frame(trial_detail(job.run, record) or {})
        pictures = [jpeg(job.run, record, frame.get(side)) for side in ("distorted", "reference")]
        if any(picture is None for picture in pictures):
            continue
        key = hashlib.sha256(b"".join(hashlib.sha256(picture or b"").digest() for picture in pictures)).hexdigest()
        for name, code in job.codes.items():
            values = kept.setdefault(name, {"code": code, "values": {}})["values"]
            if key not in values:
                values[key] = _value(name, *(picture or b"" for picture in pictures))
            if values[key] is not None:
                found[name][record.id] = values[key] if METRICS[name].better == "higher" else -values[key]
    after = json.dumps(kept, sort_keys=True)
    if after != before:
        with written_whole(job.part, durable=False) as file:
            file.write(after.encode())
    return found


def _kept(job: _Job) -> dict[str, Any]:
    """Metric to its code and values, of a part that was written before and whose code is still the same."""
    try:
        part = json.loads(job.part.read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: entry for name, entry in part.items() if job.codes.get(name, entry["code"]) == entry["code"]}


def _value(name: str, distorted: bytes, reference: bytes) -> float | None:
    """The value of a metric; None where it cannot be measured."""
    try:
        value = float(measure(name, decode_image(distorted), decode_image(reference)))
    except MertonError:
        return None
    return None if math.isnan(value) else value
