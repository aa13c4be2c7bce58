"""Building a dataset: every reference distorted in every way, in parallel, so that a kill at any time costs little.

A reference's images are written first and its record last, each whole or not at all. Building again into the same
folder keeps whatever is right and makes the rest. The tables are put together from all records at the end, in a fixed
order, so their bytes do not depend on what was interrupted or on how many processes worked.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import cv2
import numpy as np
import scipy
import simplejpeg

import merton
from merton import __version__
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.files import locked_folder
from merton.perception.attributes import attributes
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.tables import require_pyarrow, write_tables
from merton.perception.dataset.tags import TAG_FILES, Tags, find_tags, read_tags
from merton.perception.distortion import DISTORTIONS, distort
from merton.perception.images import encode_image
from merton.perception.quality import measure
from merton.processes import one_thread_each, pool
from merton.seeding import derive_seed, generator
from merton.world.observation import Image

Levels = Literal["random", "all"]
"""One random level per reference and type, as in Embodied-IQA, section 3.1, or all five."""

REFERENCE_METRICS = ("blur_effect", "noise_sigma")
"""What is measured on every reference: lower is better, and nothing to compare with is needed."""

_RANDOM_LEVELS = 1
_ALL_LEVELS = 5


@dataclass(frozen=True)
class Result:
    """What a build has made.

    Attributes:
        references: number of references taken in.
        distorted: number of distorted images.
        reused: how many of them an earlier build had left.
        refused: file name to the reason why it was not taken in.
    """

    references: int
    distorted: int
    reused: int
    refused: dict[str, str]


@dataclass(frozen=True)
class _Job:
    """One reference: all that a worker needs."""

    id: str
    source: Path
    out: Path
    tags: Tags
    seed: int
    levels: Levels
    bounds: Mapping[str, float]


@dataclass(frozen=True)
class _Done:
    """What a worker answers: a record, or the reason for a refusal."""

    id: str
    record: dict[str, Any] | None
    reason: str = ""
    reused: bool = False


def build(
    references: Path,
    out: Path,
    *,
    tasks: Path | None = None,
    levels: Levels = "random",
    seed: int = 0,
    workers: int | None = None,
    bounds: Mapping[str, float] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Make a dataset from a folder of images, or finish one that was begun.

    Args:
        references: folder of PNG, JPEG and WEBP files; hidden files and subfolders are left out. The file name without
            its ending becomes the id.
        out: where the dataset goes: a new or empty folder, or one that holds a dataset with the same settings.
        tasks: the tag file (see `read_tags`); if None, the one in `references`.
        levels: "random" or "all".
        seed: everything random follows from it, from the image file's sha256 and from the type's name.
        workers: number of processes; if None, as many as there are cores for this one.
        bounds: largest value of a metric in `REFERENCE_METRICS` that a reference may have: one that is worse was
            distorted before anything was done to it, and is refused, as in Embodied-IQA, section 3.1.
        on_progress: called with (images done, images in all) after every reference.

    Raises:
        InputError: no images, a faulty tag file, a folder that holds something else or that another build is writing
            into, or a wrong argument.
        InfrastructureError: the folder cannot be written, or a worker was killed; the same call goes on from there.
        MissingDependencyError: pyarrow is not installed.
    """
    require_pyarrow()
    if levels not in get_args(Levels):
        raise InputError(f"levels must be one of {', '.join(get_args(Levels))}, got {levels!r}")
    if workers is None:
        workers = len(os.sched_getaffinity(0))
    if workers < 1:
        raise InputError(f"at least one worker is needed, got {workers}")
    bounds = dict(sorted((bounds or {}).items()))
    for name, bound in bounds.items():
        if name not in REFERENCE_METRICS:
            raise UnknownNameError("metric of references", name, REFERENCE_METRICS)
        if not math.isfinite(bound):
            raise InputError(f"the bound of {name} must be a finite number, got {bound!r}")
    settings = _settings(levels, seed, bounds)
    jobs, refused = _jobs(references, out, tasks, levels, seed, bounds)
    if out.exists() and not out.is_dir():
        raise InputError(f"{str(out)!r} is not a folder; choose another one")
    try:
        with locked_folder(out, "merton dataset build"):
            _claim(out, settings)
            return _built(jobs, refused, out, settings, workers, on_progress)
    except BrokenProcessPool:
        raise InfrastructureError(
            "a process of the build was killed, perhaps for lack of memory, which fewer workers need less of; "
            "the same command goes on from there"
        ) from None
    except OSError as error:
        raise InfrastructureError(
            f"cannot write into {str(out)!r}: {error.strerror}; once it can be, the same command goes on from there"
        ) from error


def _built(
    jobs: Sequence[_Job],
    refused: dict[str, str],
    out: Path,
    settings: dict[str, Any],
    workers: int,
    on_progress: Callable[[int, int], None] | None,
) -> Result:
    """Do all jobs, then write the tables."""
    images = len(DISTORTIONS) * (_ALL_LEVELS if settings["levels"] == "all" else _RANDOM_LEVELS)
    finished = []
    for done in _work(jobs, workers):
        finished.append(done)
        if on_progress:
            on_progress(len(finished) * images, len(jobs) * images)
    sources = {job.id: job.source.name for job in jobs}
    refused.update({sources[done.id]: done.reason for done in finished if done.record is None})
    records = sorted((done.record for done in finished if done.record), key=lambda record: str(record["id"]))
    _sweep(out, records)
    layout.write(out / layout.REFUSED, _csv(refused))
    write_tables(out, records, settings)
    reused = sum(len(done.record["images"]) for done in finished if done.record and done.reused)
    return Result(len(records), sum(len(record["images"]) for record in records), reused, dict(sorted(refused.items())))


def _jobs(
    references: Path, out: Path, tasks: Path | None, levels: Levels, seed: int, bounds: Mapping[str, float]
) -> tuple[list[_Job], dict[str, str]]:
    """A job for every file that has tags and a name of its own, and the reasons for all others."""
    if not references.is_dir():
        raise InputError(f"there is no folder {str(references)!r} of reference images")
    tag_file = tasks or find_tags(references)
    tags = read_tags(tag_file)
    files = sorted(
        path for path in references.iterdir()
        if path.is_file() and not path.name.startswith(".") and path.name not in TAG_FILES and path != tag_file
    )  # fmt: skip
    if absent := sorted(set(tags) - {path.name for path in files}):
        raise InputError(f"{tag_file.name} names {absent[0]!r}, which is not in {str(references)!r}")
    jobs: dict[str, _Job] = {}
    refused: dict[str, str] = {}
    for file in files:
        if file.name not in tags:
            shown = file.name.encode("utf-8", "backslashreplace").decode()  # it may not be UTF-8
            refused[shown] = f"no entry in {tag_file.name}"
        elif file.stem in jobs:
            refused[file.name] = f"same name as {jobs[file.stem].source.name}"
        else:
            jobs[file.stem] = _Job(file.stem, file, out, tags[file.name], seed, levels, bounds)
    if not jobs:
        raise InputError(f"{str(references)!r} holds no image with an entry in {tag_file.name}")
    return list(jobs.values()), refused


def _settings(levels: Levels, seed: int, bounds: Mapping[str, float]) -> dict[str, Any]:
    """Everything besides the references that the bytes of a dataset depend on."""
    return {
        "levels": levels,
        "seed": seed,
        "bounds": dict(bounds),
        "distortions": {name: [float(level) for level in entry.levels] for name, entry in DISTORTIONS.items()},
        "versions": {
            "merton": __version__,
            "numpy": np.__version__,
            "opencv": cv2.__version__,
            "scipy": scipy.__version__,
            "simplejpeg": simplejpeg.__version__,
        },
        "code_sha256": _code_sha256(),
    }


def _code_sha256() -> str:
    """Hash of the files that decide what is made: a version says nothing about a distortion somebody has changed."""
    library = Path(merton.__file__).parent
    shared = (
        library / name
        for name in ("models/convolution.py", "perception/attributes.py", "perception/quality.py", "seeding.py")
    )
    digest = hashlib.sha256()
    for file in (*sorted((library / "perception/distortion").glob("*.*")), *shared):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _claim(out: Path, settings: dict[str, Any]) -> None:
    """Mark a folder as ours; refuse one that holds anything else."""
    file = out / layout.SETTINGS
    if file.is_file():
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            found = {}
        different = [key for key in settings if not isinstance(found, dict) or found.get(key) != settings[key]]
        if different:
            what = " and ".join(different)
            raise InputError(f"{str(out)!r} holds a dataset with other {what}; choose another folder")
    elif any(out.iterdir()):
        raise InputError(f"{str(out)!r} is neither empty nor a dataset; choose another folder")
    else:
        layout.write(file, json.dumps(settings, indent=1).encode())


def _work(jobs: Sequence[_Job], workers: int) -> Iterator[_Done]:
    """Yield a `_Done` for every job, in the order in which they finish."""
    executor = pool(min(workers, len(jobs)))
    try:
        with one_thread_each():
            futures = [executor.submit(_make, job) for job in jobs]
        for future in as_completed(futures):
            yield future.result()
    finally:
        executor.shutdown(cancel_futures=True)


def _make(job: _Job) -> _Done:
    """Take in one reference and write its copies, unless all that is there already."""
    try:
        content = job.source.read_bytes()
    except OSError as error:
        return _Done(job.id, None, f"cannot be read: {error.strerror}")
    source_sha256 = hashlib.sha256(content).hexdigest()
    record_file = job.out / layout.RECORDS / f"{job.id}.json"
    if record := _valid_record(job, record_file, source_sha256):
        return _Done(job.id, record, reused=True)
    try:
        reference = decode(content)
    except InputError as reason:
        return _Done(job.id, None, str(reason))
    quality = {name: measure(name, reference) for name in REFERENCE_METRICS}
    for name, bound in job.bounds.items():
        if quality[name] > bound:
            return _Done(
                job.id, None, f"distorted already: {name} is {quality[name]:.3g}, at most {bound:g} is allowed"
            )
    file = f"{layout.REFERENCES}/{job.id}.png"
    record = {
        "id": job.id,
        "source": job.source.name,
        "source_sha256": source_sha256,
        **asdict(job.tags),
        "tasks": list(job.tags.tasks),
        **_described(job.out, file, reference),
        **quality,
        "images": [_distorted(job, reference, source_sha256, *which) for which in _wanted(job, source_sha256)],
    }
    text = json.dumps(record, indent=1)
    layout.write(record_file, text.encode())
    return _Done(job.id, record)


def _valid_record(job: _Job, file: Path, source_sha256: str) -> dict[str, Any] | None:
    """The record an earlier build has left, if it is of this source and these tags and every image is as it says."""
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


def _wanted(job: _Job, source_sha256: str) -> list[tuple[str, int]]:
    """(type, level) of every copy, in the order of the registry."""
    if job.levels == "all":
        return [(name, level) for name in DISTORTIONS for level in range(1, _ALL_LEVELS + 1)]
    rngs = {name: generator(job.seed, source_sha256, name, "level") for name in DISTORTIONS}
    return [(name, int(rng.integers(1, _ALL_LEVELS + 1))) for name, rng in rngs.items()]


def _distorted(job: _Job, reference: Image, source_sha256: str, name: str, level: int) -> dict[str, Any]:
    """Write one copy; the row of the manifest that tells of it."""
    entry = DISTORTIONS[name]
    # the same seed at every level: what differs between levels is the strength alone
    seed = derive_seed(job.seed, source_sha256, name)
    image = distort(reference, name, level, np.random.default_rng(seed))
    return {
        "reference_id": job.id,
        "distortion_id": entry.id,
        "distortion": name,
        "category": entry.category,
        "level": level,
        "value": float(entry.levels[level - 1]),
        "unit": entry.unit,
        "seed": seed,
        **_described(job.out, f"{layout.DISTORTED}/{job.id}/{name}_{level}.png", image),
        "psnr": measure("psnr", image, reference),
        "ssim": measure("ssim", image, reference),
    }


def _described(out: Path, file: str, image: Image) -> dict[str, Any]:
    """Write an image; where it is, its hash, size and attributes."""
    height, width = image.shape[:2]
    sha256 = layout.write(out / file, encode_image(image))
    return {"file": file, "sha256": sha256, "width": width, "height": height, **asdict(attributes(image))}


def _sweep(out: Path, records: Sequence[dict[str, Any]]) -> None:
    """Remove what no record names: unfinished files, and images of references that are gone."""
    keep = {entry["file"] for record in records for entry in (record, *record["images"])}
    keep |= {f"{layout.RECORDS}/{record['id']}.json" for record in records}
    for file in layout.files_of(out) - keep:
        (out / file).unlink()


def _csv(refused: dict[str, str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("file", "reason"), *sorted(refused.items())])
    return text.getvalue().encode()
