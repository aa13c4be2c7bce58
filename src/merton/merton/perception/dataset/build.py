"""Building a dataset: every reference is distorted in every way, in parallel; an interrupted build can be continued.

The images of a reference are written first and its record last, each whole or not at all. A further build in the same
folder keeps valid references and makes the rest. The tables are made from all records at the end, in a fixed order, so
their bytes depend neither on interruptions nor on the number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merton.config import validated
from merton.errors import InputError, UnknownNameError
from merton.files import claim_folder
from merton.perception.dataset import layout
from merton.perception.dataset.alignment import Alignment, align
from merton.perception.dataset.intake import decode
from merton.perception.dataset.reference import ALL_LEVELS, RANDOM_LEVELS, Copy, ReferenceJob, make_reference
from merton.perception.dataset.settings import ALIGNED, build_settings
from merton.perception.dataset.tables import read_table, write_tables
from merton.perception.dataset.tags import TAG_FILES, Tags, find_tags, read_tags
from merton.perception.distortion import DISTORTIONS
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.csv_writer import csv_text
from merton.results.parquet import require_pyarrow


@dataclass(frozen=True)
class BuildResult:
    """Counts of references and distorted images, and the refusals.

    Attributes:
        reused: number of distorted images of an earlier build.
        refused: file name to the reason why it was left out.
    """

    references: int
    distorted: int
    reused: int
    refused: dict[str, str]


def build(
    references: Path,
    out: Path,
    *,
    tasks: Path | None = None,
    levels: str = "random",
    seed: int = 0,
    workers: int | None = None,
    bounds: Mapping[str, float] | None = None,
    like: Path | None = None,
    on_progress: OnProgress = unseen,
) -> BuildResult:
    """Make a dataset from a folder of images, or continue one that was interrupted.

    Args:
        references: folder of PNG, JPEG and WEBP files; hidden files and subfolders are left out. The file name without
            its ending becomes the id.
        out: folder of the dataset: new, empty, or with a dataset of the same settings.
        tasks: the tag file (see `read_tags`); if None, the one in `references`. Without one there, references have
            neither tags nor tasks, and every file counts.
        levels: "random": one per image and type; "all": five; "aligned" or "aligned:METRIC": five levels of equal
            quality, whose table is written as alignment.json, or taken from there.
        seed: all random numbers follow from it, the image file's sha256 and the type's name.
        workers: number of processes; if None, the number of cores that this process may use.
        bounds: largest values of metrics in `REFERENCE_METRICS`: a reference above one is distorted already and is
            refused, as in Embodied-IQA, section 3.1.
        like: the manifest of another dataset of these references: its types, levels and seeds are taken, so that its
            labels belong to these images too, even where the references differ by a bit, as renderings of two machines
            may.
        on_progress: called with (images done, images in all) after every reference.

    Raises:
        InputError: no images, a faulty tag file, a folder with other content or of another running build, or a wrong
            argument.
        InfrastructureError: the folder cannot be written, or a worker was killed; the same call continues the build.
        MissingDependencyError: pyarrow is not installed.
    """
    require_pyarrow()
    bounds = dict(sorted((bounds or {}).items()))
    settings = build_settings(levels, seed, bounds)
    copies = _copies(like) if like else None
    if like:
        settings["like"] = layout.sha256_of(like)
    if workers is not None and workers < 1:
        raise InputError(f"at least one worker is needed, got {workers}")
    jobs, refused = _jobs(references, out, tasks, levels, seed, bounds)
    if copies is not None:
        jobs = [replace(job, copies=_of(copies, job.id, like)) for job in jobs]
    if out.exists() and not out.is_dir():
        raise InputError(f"{str(out)!r} is not a folder; choose another one")
    with resumable_work(out, "merton dataset build"):
        claim_folder(out / layout.SETTINGS, settings, "a dataset")
        if levels.partition(":")[0] == ALIGNED and not like:
            severities = _severities(out, jobs, levels.partition(":")[2] or "ssim", workers, on_progress)
            jobs = [replace(job, severities=severities) for job in jobs]
            settings |= {"alignment_sha256": layout.sha256_of(out / layout.ALIGNMENT)}
        return _built(jobs, refused, out, settings, workers, on_progress)


def _built(
    jobs: Sequence[ReferenceJob],
    refused: dict[str, str],
    out: Path,
    settings: dict[str, Any],
    workers: int | None,
    on_progress: OnProgress,
) -> BuildResult:
    """Run all jobs, then write the tables."""
    each = len(DISTORTIONS) * (ALL_LEVELS if settings["levels"] == "all" else RANDOM_LEVELS)
    aligned = sum(map(len, (jobs[0].severities or {}).values()))
    images = {job.id: len(job.copies or ()) or aligned or each for job in jobs}
    finished, written = [], 0
    for _, done in carried_out(make_reference, [(job,) for job in jobs], workers):
        finished.append(done)
        written += images[done.id]
        on_progress(written, sum(images.values()))
    sources = {job.id: job.source.name for job in jobs}
    refused.update({sources[done.id]: done.reason for done in finished if done.record is None})
    records = sorted((done.record for done in finished if done.record), key=lambda record: str(record["id"]))
    finish(out, records, refused, settings)
    reused = sum(len(done.record["images"]) for done in finished if done.record and done.reused)
    distorted = sum(len(record["images"]) for record in records)
    return BuildResult(len(records), distorted, reused, dict(sorted(refused.items())))


def _severities(
    out: Path, jobs: Sequence[ReferenceJob], metric: str, workers: int | None, on_progress: OnProgress
) -> dict[str, dict[int, float]]:
    """The severities of equal quality: of the table that is there, else found on the references and written."""
    file = out / layout.ALIGNMENT
    if not file.is_file():
        found = align(_intact([job.source for job in jobs]), metric, workers=workers, on_progress=on_progress)
        layout.write(file, found.content())
    return validated(Alignment, file.read_text(encoding="utf-8"), str(file)).severities()


def _intact(files: Sequence[Path]) -> list[Path]:
    """The pictures that can be decoded; the others are refused later, each with its reason."""
    found = []
    for file in files:
        try:
            decode(file.read_bytes())
        except (InputError, OSError):
            continue
        found.append(file)
    return found


def _jobs(
    references: Path, out: Path, tasks: Path | None, levels: str, seed: int, bounds: Mapping[str, float]
) -> tuple[list[ReferenceJob], dict[str, str]]:
    """A job for every file with tags and a unique name, and the reasons for all others."""
    if not references.is_dir():
        raise InputError(f"there is no folder {str(references)!r} of reference images")
    tag_file = tasks or find_tags(references)
    tags = read_tags(tag_file) if tag_file else None
    files = sorted(
        path
        for path in references.iterdir()
        if path.is_file() and not path.name.startswith(".") and path.name not in TAG_FILES and path != tag_file
    )
    if tag_file and (absent := sorted(set(tags or ()) - {path.name for path in files})):
        raise InputError(f"{tag_file.name} names {absent[0]!r}, which is not in {str(references)!r}")
    jobs: dict[str, ReferenceJob] = {}
    refused: dict[str, str] = {}
    for file in files:
        if tag_file and tags is not None and file.name not in tags:
            shown = file.name.encode("utf-8", "backslashreplace").decode()  # it may not be UTF-8
            refused[shown] = f"no entry in {tag_file.name}"
        elif file.stem in jobs:
            refused[file.name] = f"same name as {jobs[file.stem].source.name}"
        else:
            tagged = Tags() if tags is None else tags[file.name]
            jobs[file.stem] = ReferenceJob(file.stem, file, out, tagged, seed, levels, bounds)
    if not jobs:
        entry = f" with an entry in {tag_file.name}" if tag_file else ""
        raise InputError(f"{str(references)!r} holds no image{entry}")
    return list(jobs.values()), refused


def _copies(manifest: Path) -> dict[str, list[Copy]]:
    """The copies of each reference of a manifest; raises InputError if it is none, or of types that do not exist."""
    found: dict[str, list[Copy]] = {}
    for row in read_table(manifest):
        try:
            copy = Copy(row["distortion"], row["level"], row["seed"])
            found.setdefault(row["reference_id"], []).append(copy)
        except KeyError as missing:
            raise InputError(f"the manifest {str(manifest)!r} has no column {missing}") from None
        if copy.distortion not in DISTORTIONS:
            raise UnknownNameError("distortion", copy.distortion, DISTORTIONS)
        if copy.level not in range(1, ALL_LEVELS + 1):
            raise InputError(f"the manifest {str(manifest)!r} has the level {copy.level}; levels are 1 to {ALL_LEVELS}")
    return found


def _of(copies: Mapping[str, list[Copy]], reference: str, manifest: Path | None) -> list[Copy]:
    if reference not in copies:
        raise InputError(f"the manifest {str(manifest)!r} has no copies of the reference {reference!r}")
    return copies[reference]


def finish(out: Path, records: Sequence[dict[str, Any]], refused: Mapping[str, str], settings: dict[str, Any]) -> None:
    """Write the tables of all records, after removing files that none names: unfinished, or of removed references."""
    keep = {entry["file"] for record in records for entry in (record, *record["images"])}
    keep |= {f"{layout.RECORDS}/{record['id']}.json" for record in records}
    for file in layout.files_of(out) - keep:
        (out / file).unlink()
    layout.write(out / layout.REFUSED, csv_text(("file", "reason"), sorted(refused.items())).encode())
    write_tables(out, records, settings)
