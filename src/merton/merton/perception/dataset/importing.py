"""Pictures that somebody else distorted, made into a dataset folder as a build makes it, with their types and levels.

Pictures are decoded and written as lossless PNG, so that all studies read them alike; names and hashes of the files
they came from stay in the tables. After a kill the same call keeps whole references and makes the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.files import claim_folder
from merton.perception.dataset import layout
from merton.perception.dataset.build import BuildResult, finish
from merton.perception.dataset.foreign import ForeignSet
from merton.perception.dataset.intake import CHECKED, decode
from merton.perception.dataset.numbering import Copy, Reference, plan
from merton.perception.dataset.reference import JobResult, described
from merton.perception.dataset.settings import REFERENCE_METRICS, code_sha256, versions
from merton.perception.distortion.base import SMALLEST_SIDE_PX
from merton.perception.images import decode_image
from merton.perception.quality import measure
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.parquet import require_pyarrow
from merton.world.observation import Image


def import_dataset(
    found: ForeignSet,
    out: Path,
    *,
    licence: str = "",
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> BuildResult:
    """Write a dataset of somebody else's distorted pictures, or finish one that was begun.

    A copy that cannot be read, or has another size than its reference, is left out with the reason, and so are all
    copies of a reference that cannot be read.

    Args:
        found: of `foreign.read_foreign`.
        out: folder of the dataset: new, empty, or with this data set begun.
        licence: of the pictures, such as CC-BY-4.0; "" where it is not known.
        workers: number of processes; if None, the number of cores that this process may use.
        on_progress: called with (pictures done, pictures in all) after every reference.

    Raises:
        InputError: rows that contradict each other (see `numbering.plan`), a folder with other content or of another
            running import, or no picture that can be read.
        InfrastructureError: the folder cannot be written, or a worker was killed; the same call continues.
        MissingDependencyError: pyarrow is not installed.
    """
    require_pyarrow()
    if out.exists() and not out.is_dir():
        raise InputError(f"{str(out)!r} is not a folder; choose another one")
    planned = plan(found.rows)
    settings = {
        layout.IMPORTED: {
            "name": found.name,
            "licence": licence,
            "layout": found.layout,
            "made": f"`merton dataset import` read the pictures of {found.name} as they are: nothing was distorted.",
            "rows_sha256": _sha256(planned.references),
        },
        "levels": planned.levels,
        "distortions": dict(planned.types),
        "versions": versions(),
        "code_sha256": code_sha256(),
    }
    with resumable_work(out, "merton dataset import"):
        claim_folder(out / layout.SETTINGS, settings, "a dataset")
        jobs = [_Job(reference, out) for reference in planned.references]
        total, written, results = sum(1 + len(job.reference.copies) for job in jobs), 0, []
        for index, done in carried_out(_import_reference, [(job,) for job in jobs], workers):
            results.append(done)
            written += 1 + len(jobs[index].reference.copies)
            on_progress(written, total)
        refused = {name: reason for done in results for name, reason in done.refused.items()}
        records = sorted((done.result.record for done in results if done.result.record), key=lambda row: str(row["id"]))
        if not records:
            raise InputError(f"no picture of {found.name} can be read: {next(iter(refused.values()))}")
        if not any(record["images"] for record in records):
            raise InputError(f"no distorted picture of {found.name} can be read: {next(iter(refused.values()))}")
        finish(out, records, refused, settings)
    distorted = sum(len(record["images"]) for record in records)
    reused = sum(len(done.result.record["images"]) for done in results if done.result.record and done.result.reused)
    return BuildResult(len(records), distorted, reused, dict(sorted(refused.items())))


@dataclass(frozen=True)
class _Job:
    reference: Reference
    out: Path


@dataclass(frozen=True)
class _Done:
    """The result of a reference, and the reasons why copies, or itself, were left out, by name in the source."""

    result: JobResult
    refused: Mapping[str, str]


def _import_reference(job: _Job) -> _Done:
    """Write the pictures and the record of a reference, unless valid ones exist already."""
    reference = job.reference
    contents, refused = _contents(reference)
    plan_sha256 = _sha256(reference, *(hashlib.sha256(content).hexdigest() for content in contents.values()), *refused)
    record_file = job.out / layout.RECORDS / f"{reference.id}.json"
    if (record := _valid_record(job.out, record_file, plan_sha256)) is not None:
        return _Done(JobResult(reference.id, record, reused=True), record["refused"])
    try:
        image = _decoded(contents, refused, reference.name)
    except InputError as reason:
        left_out = {copy.name: f"its reference {reference.name}: {reason}" for copy in reference.copies}
        return _Done(JobResult(reference.id, None, str(reason)), left_out | {reference.name: str(reason)})
    images = []
    for copy in reference.copies:
        try:
            images.append(_copy(job, copy, image, contents, refused))
        except InputError as reason:
            refused[copy.name] = str(reason)
    record = {
        "id": reference.id,
        "source": reference.name,
        "source_sha256": hashlib.sha256(contents[reference.name]).hexdigest(),
        **reference.about,
        "tasks": list(reference.about["tasks"]),
        **described(job.out, f"{layout.REFERENCES}/{reference.id}.png", image),
        **{name: measure(name, image) for name in REFERENCE_METRICS},
        "images": images,
        "refused": dict(refused),
        "plan_sha256": plan_sha256,
    }
    layout.write(record_file, json.dumps(record, indent=1).encode())
    return _Done(JobResult(reference.id, record), refused)


def _contents(reference: Reference) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of a reference and its copies by name in the source, and the reasons why some cannot be read."""
    contents, refused = {}, {}
    for name, file in ((reference.name, reference.file), *((copy.name, copy.file) for copy in reference.copies)):
        try:
            contents[name] = file.read_bytes()
        except OSError as error:
            refused[name] = f"cannot be read: {error.strerror}"
    return contents, refused


def _decoded(contents: Mapping[str, bytes], refused: Mapping[str, str], name: str) -> Image:
    """(height, width, 3) uint8 RGB; raises InputError for a file that is no whole picture, or too small."""
    if name in refused:
        raise InputError(refused[name])
    content = contents[name]
    image = decode(content) if content.startswith(CHECKED) else decode_image(content)  # databases have BMP files
    if min(image.shape[:2]) < SMALLEST_SIDE_PX:
        raise InputError(f"too small: sides of at least {SMALLEST_SIDE_PX} pixels are needed")
    return image


def _copy(
    job: _Job, copy: Copy, reference: Image, contents: Mapping[str, bytes], refused: Mapping[str, str]
) -> dict[str, Any]:
    """Write one copy; returns its row of the manifest."""
    image = _decoded(contents, refused, copy.name)
    if image.shape != reference.shape:
        (height, width), (other_height, other_width) = image.shape[:2], reference.shape[:2]
        raise InputError(
            f"is {width} x {height} pixels, and its reference {job.reference.name} {other_width} x {other_height}: a "
            "copy must have the size of its reference"
        )
    return {
        "reference_id": job.reference.id,
        "distortion_id": copy.number,
        "distortion": copy.type,
        "category": copy.category,
        "level": copy.level,
        "value": copy.severity,
        "unit": "" if copy.severity is None else "severity",
        "reference_width_px": reference.shape[1],
        "seed": None,
        **described(job.out, f"{layout.DISTORTED}/{job.reference.id}/{copy.type}_{copy.level}.png", image),
        "psnr": measure("psnr", image, reference),
        "ssim": measure("ssim", image, reference),
        "source": copy.name,
        "source_sha256": hashlib.sha256(contents[copy.name]).hexdigest(),
        "split": copy.split,
    }


def _valid_record(out: Path, file: Path, plan_sha256: str) -> dict[str, Any] | None:
    """The record of an earlier import, if it is of the same plan and files, and every image has its hash."""
    try:
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        images = (record, *record["images"])
        whole = record["plan_sha256"] == plan_sha256 and isinstance(record["refused"], dict)
        whole = whole and all(layout.sha256_of(out / image["file"]) == image["sha256"] for image in images)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if whole else None


def _sha256(*parts: Any) -> str:
    """Of plans, without the folder that the source lies in."""
    return hashlib.sha256(repr([_told(part) for part in parts]).encode()).hexdigest()


def _told(part: Any) -> Any:
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_told(one) for one in part]
    return part.told if isinstance(part, Reference) else part
