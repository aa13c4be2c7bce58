"""One reference of a dataset: decoded, distorted and described in a worker process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from merton.errors import InputError
from merton.perception.attributes import attributes
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.settings import REFERENCE_METRICS
from merton.perception.dataset.tags import Tags
from merton.perception.distortion import DISTORTIONS, REFERENCE_WIDTH_PX, distort
from merton.perception.images import encode_image
from merton.perception.quality import measure
from merton.seeding import derive_seed, generator
from merton.world.observation import Image

RANDOM_LEVELS = 1
ALL_LEVELS = 5
"""Distorted copies of a reference per type."""


class Copy(NamedTuple):
    """One distorted copy: type, level 1..5, the seed of everything random in it, and the severity, if it is not the
    level."""

    distortion: str
    level: int
    seed: int
    severity: float | None = None


@dataclass(frozen=True)
class ReferenceJob:
    """One reference, with everything a worker needs; `copies`, if given, instead of those that follow from the seed."""

    id: str
    source: Path
    out: Path
    tags: Tags
    seed: int
    levels: str
    bounds: Mapping[str, float]
    copies: Sequence[Copy] | None = None
    severities: Mapping[str, Mapping[int, float]] | None = None
    """Type to quality level to severity, for levels of equal quality."""


@dataclass(frozen=True)
class JobResult:
    """Result of a worker: a record, or the reason for a refusal."""

    id: str
    record: dict[str, Any] | None
    reason: str = ""
    reused: bool = False


def make_reference(job: ReferenceJob) -> JobResult:
    """Write the images and the record of a reference, unless valid ones exist already."""
    try:
        content = job.source.read_bytes()
    except OSError as error:
        return JobResult(job.id, None, f"cannot be read: {error.strerror}")
    source_sha256 = hashlib.sha256(content).hexdigest()
    record_file = job.out / layout.RECORDS / f"{job.id}.json"
    if record := _valid_record(job, record_file, source_sha256):
        return JobResult(job.id, record, reused=True)
    try:
        reference = decode(content)
    except InputError as reason:
        return JobResult(job.id, None, str(reason))
    quality = {name: measure(name, reference) for name in REFERENCE_METRICS}
    for name, bound in job.bounds.items():
        if quality[name] > bound:
            return JobResult(
                job.id, None, f"distorted already: {name} is {quality[name]:.3g}, at most {bound:g} is allowed"
            )
    file = f"{layout.REFERENCES}/{job.id}.png"
    record = {
        "id": job.id,
        "source": job.source.name,
        "source_sha256": source_sha256,
        **asdict(job.tags),
        "tasks": list(job.tags.tasks),
        **described(job.out, file, reference),
        **quality,
        "images": [_distorted(job, reference, copy) for copy in job.copies or _wanted(job, source_sha256)],
    }
    text = json.dumps(record, indent=1)
    layout.write(record_file, text.encode())
    return JobResult(job.id, record)


def _valid_record(job: ReferenceJob, file: Path, source_sha256: str) -> dict[str, Any] | None:
    """The record of an earlier build, if source and tags are the same and every image has its hash."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        tags = {**asdict(job.tags), "tasks": list(job.tags.tasks)}
        if record["source"] != job.source.name or record["source_sha256"] != source_sha256:
            return None
        if any(record[key] != value for key, value in tags.items()):
            return None
        images = (record, *record["images"])
        whole = all(layout.sha256_of(job.out / image["file"]) == image["sha256"] for image in images)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if whole else None


def _wanted(job: ReferenceJob, source_sha256: str) -> list[Copy]:
    """Every copy, in the order of the registry."""
    # the same seed at every level: levels differ in strength alone
    seeds = {name: derive_seed(job.seed, source_sha256, name) for name in DISTORTIONS}
    if job.severities is not None:
        return [
            Copy(name, level, seeds[name], severity)
            for name, found in job.severities.items()
            for level, severity in found.items()
        ]
    if job.levels == "all":
        return [Copy(name, level, seeds[name]) for name in DISTORTIONS for level in range(1, ALL_LEVELS + 1)]
    rngs = {name: generator(job.seed, source_sha256, name, "level") for name in DISTORTIONS}
    return [Copy(name, int(rng.integers(1, ALL_LEVELS + 1)), seeds[name]) for name, rng in rngs.items()]


def _distorted(job: ReferenceJob, reference: Image, copy: Copy) -> dict[str, Any]:
    """Write one copy; returns its row of the manifest."""
    name, level, seed, severity = copy
    entry = DISTORTIONS[name]
    severity = level if severity is None else severity
    image = distort(reference, name, severity, np.random.default_rng(seed))
    return {
        "reference_id": job.id,
        "distortion_id": entry.id,
        "distortion": name,
        "category": entry.category,
        "level": level,
        "value": float(entry.value(max(1.0, severity))),
        "unit": entry.unit,
        "reference_width_px": REFERENCE_WIDTH_PX,
        "seed": seed,
        **described(job.out, f"{layout.DISTORTED}/{job.id}/{name}_{level}.png", image),
        "psnr": measure("psnr", image, reference),
        "ssim": measure("ssim", image, reference),
    }


def described(out: Path, file: str, image: Image) -> dict[str, Any]:
    """Write an image as PNG, (height, width, 3) uint8 RGB; returns its file, hash, size and attributes."""
    height, width = image.shape[:2]
    sha256 = layout.write(out / file, encode_image(image))
    return {"file": file, "sha256": sha256, "width": width, "height": height, **asdict(attributes(image))}
