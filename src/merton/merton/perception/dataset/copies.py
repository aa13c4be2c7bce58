"""Distorted copies of the images of a folder: `OUT/<type>/<level>/<path in the folder>`, and a manifest of them.

The layout is that of ImageNet-C: each `<type>/<level>` stands in for the whole folder. Every copy is written whole or
not at all, and the manifest gets its rows as images are done, so that a call that was killed is finished by the same
one. At the end the manifest is written in a fixed order: its bytes depend neither on interruptions nor on workers.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from merton.errors import InputError
from merton.files import UNFINISHED, claim_folder
from merton.perception.dataset import layout
from merton.perception.dataset.intake import CHECKED, decode
from merton.perception.dataset.settings import code_sha256, versions
from merton.perception.distortion import DISTORTIONS, LEVELS, distort, find_distortion
from merton.perception.distortion.base import check_level
from merton.perception.images import WRITTEN, decode_image, encode_image
from merton.perception.quality import measure
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.csv_writer import csv_text, write_rows
from merton.results.tables import read_cells
from merton.seeding import derive_seed
from merton.world.observation import Image

EVERY_TYPE = "all"
MANIFEST = "manifest.csv"
LEFT_OUT = "left_out.csv"
SETTINGS = "distort.json"
COLUMNS = ("source", "source_sha256", "distortion", "level", "seed", "output", "sha256", "psnr_db")
"""Columns of the manifest, a row per copy: `source` is relative to the folder of images, `output` to that of the
copies; `psnr_db` is against the source, infinite where the two are equal."""


class Setting(NamedTuple):
    """A type of distortion and its level, 0 (an exact copy) .. 5 (worst)."""

    distortion: str
    level: float

    @property
    def folder(self) -> str:
        """Path of its copies in the output folder, such as "lens_blur/3"."""
        return f"{self.distortion}/{self.level:g}"


@dataclass(frozen=True)
class CopiesResult:
    """Counts, and the files that gave no copy.

    Attributes:
        images: number of images that have all their copies.
        copies: number of copies that are there now.
        reused: number of them that an earlier call had made.
        failed: image to the reason why it has no copies.
        other_files: files that are no images by their ending, or hidden.
    """

    images: int
    copies: int
    reused: int
    failed: dict[str, str]
    other_files: tuple[str, ...]


def parse_settings(texts: Iterable[str]) -> tuple[Setting, ...]:
    """The settings that texts name, each once, in their order.

    Args:
        texts: "TYPE@LEVEL" such as "lens_blur@3", with a name or id of `DISTORTIONS`; TYPE alone stands for the levels
            1 to 5, and the type "all" for every type.

    Raises:
        InputError: a level that the type does not have.
        UnknownNameError: no such distortion.
    """
    found: dict[Setting, None] = {}
    for text in texts:
        name, at, level = text.partition("@")
        entries = list(DISTORTIONS.values()) if name == EVERY_TYPE else [find_distortion(name)]
        for entry in entries:
            for value in [_number(level)] if at else LEVELS[1:]:
                check_level(entry, value)
                found[Setting(entry.name, float(value))] = None
    return tuple(found)


def _number(text: str) -> float | str:
    """The text as a number; as it is if it is none, for the message."""
    try:
        return float(text)
    except ValueError:
        return text


def copy_seed(seed: int, source: str, setting: Setting) -> int:
    """The seed of everything random in a copy; `source` is the image's path in the folder, with "/"."""
    return derive_seed(seed, source, setting.distortion, f"{setting.level:g}")


def distorted_copy(image: Image, source: str, setting: Setting, seed: int) -> Image:
    """A distorted copy of an image (height, width, 3) uint8 RGB; see `copy_seed` and `distort`."""
    return distort(image, *setting, np.random.default_rng(copy_seed(seed, source, setting)))


def distort_folder(
    source: Path,
    out: Path,
    settings: Sequence[Setting],
    *,
    seed: int = 0,
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> CopiesResult:
    """Write distorted copies of every image in a folder and its subfolders, or finish a call that was interrupted.

    A copy is a PNG of the image's name, with .png behind another ending. Files of other kinds and hidden ones are left
    out; `left_out.csv` names them, and the images that cannot be read.

    Args:
        source: a folder, or one image. Images in `out` itself are not taken.
        out: new, empty, or with copies of the same folder by the same settings, seed and versions.
        settings: at least one.
        seed: every copy has a seed of its own, which follows from it, the image's path, type and level.
        workers: processes, >= 1; None: one for each core that this process may use.
        on_progress: called with (copies done, copies in all).

    Raises:
        InputError: no such folder, no image in it, or an `out` with other content or of another running call.
        InfrastructureError: `out` cannot be written, or a worker was killed; the same call goes on.
    """
    if workers is not None and workers < 1:
        raise InputError(f"at least one worker is needed, got {workers}")
    images, others = _images(source, out)
    if not images:
        raise InputError(f"{str(source)!r} holds no image; images end in one of: {', '.join(WRITTEN)}")
    about = {
        "source": str(source.resolve()),
        "seed": seed,
        "distortions": [f"{name}@{level:g}" for name, level in settings],
        "versions": versions(),
        "code_sha256": code_sha256(),
    }
    with resumable_work(out, "merton distort"):
        claim_folder(out / SETTINGS, about, "distorted copies")
        return _written(images, others, out, tuple(settings), seed, workers, on_progress)


def _images(source: Path, out: Path) -> tuple[dict[str, Path], list[str]]:
    """Images by their path in the folder, and the paths of all other files; each sorted."""
    if not source.exists():
        raise InputError(f"there is no file or folder {str(source)!r}")
    if not source.is_dir():
        return {_text(source.name): source}, []
    images, others = dict[str, Path](), list[str]()
    for folder, folders, files in os.walk(source):
        here = Path(folder)
        folders[:] = [name for name in folders if not (out.exists() and (here / name).samefile(out))]
        for path in (here / name for name in files):
            inside = path.relative_to(source)
            hidden = any(part.startswith(".") for part in inside.parts)
            if hidden or path.suffix.lower() not in WRITTEN:
                others.append(_text(inside.as_posix()))
            else:
                images[_text(inside.as_posix())] = path
    return dict(sorted(images.items())), sorted(others)


def _text(name: str) -> str:
    """A file's name, which may not be UTF-8, as text that can be written."""
    return name.encode("utf-8", "backslashreplace").decode()


class _Row(NamedTuple):
    """A row of the manifest; see `COLUMNS`."""

    source: str
    source_sha256: str
    distortion: str
    level: str
    seed: str
    output: str
    sha256: str
    psnr_db: str


@dataclass(frozen=True)
class _Job:
    """One image, with everything that a worker needs; `earlier` are the rows of a call before."""

    name: str
    file: Path
    out: Path
    settings: tuple[Setting, ...]
    seed: int
    earlier: tuple[_Row, ...]


@dataclass(frozen=True)
class _Done:
    """Rows of an image, so many of which were there before; or the reason why there are none."""

    rows: tuple[_Row, ...] = ()
    reused: int = 0
    reason: str = ""


def _written(
    images: Mapping[str, Path],
    others: Sequence[str],
    out: Path,
    settings: tuple[Setting, ...],
    seed: int,
    workers: int | None,
    on_progress: OnProgress,
) -> CopiesResult:
    """Carry all jobs out, then write the manifest in order."""
    earlier = _earlier_rows(out / MANIFEST)
    failed = _of_one_output(images)
    jobs = [
        _Job(name, file, out, settings, seed, tuple(earlier.get(name, ())))
        for name, file in images.items()
        if name not in failed
    ]
    finished: dict[str, tuple[_Row, ...]] = {}
    reused = done_copies = 0
    with (out / MANIFEST).open("w", encoding="utf-8", newline="") as journal:
        write_rows(journal, [COLUMNS, *itertools.chain.from_iterable(earlier.values())])
        journal.flush()
        for index, done in carried_out(_copies, [(job,) for job in jobs], workers):
            done_copies += len(settings)
            on_progress(done_copies, len(jobs) * len(settings))
            if done.reason:
                failed[jobs[index].name] = done.reason
                continue
            finished[jobs[index].name] = done.rows
            reused += done.reused
            write_rows(journal, done.rows)
            journal.flush()
    rows = [row for name in images for row in finished.get(name, ())]
    _remove_stale(out, earlier, rows)
    layout.write(out / MANIFEST, csv_text(COLUMNS, rows).encode())
    failed = dict(sorted(failed.items()))
    reasons = [*failed.items(), *((name, "hidden, or no image by its ending") for name in others)]
    layout.write(out / LEFT_OUT, csv_text(("file", "reason"), reasons).encode())
    return CopiesResult(len(finished), len(rows), reused, failed, tuple(others))


def _of_one_output(images: Iterable[str]) -> dict[str, str]:
    """Images whose copies would have the name of another one's, such as a.jpg.png beside a.jpg; with the reason."""
    first: dict[str, str] = {}
    return {
        name: f"its copies would have the names of those of {first[_png(name)]}"
        for name in images
        if first.setdefault(_png(name), name) != name
    }


def _png(name: str) -> str:
    """The path of an image's copies in the folder of a setting."""
    return name if name.endswith(".png") else f"{name}.png"


def _copies(job: _Job) -> _Done:
    """Write the copies of an image, but for those that are there."""
    try:
        content = job.file.read_bytes()
    except OSError as error:
        return _Done(reason=f"cannot be read: {error.strerror}")
    source_sha256 = hashlib.sha256(content).hexdigest()
    there = {row.output: row for row in job.earlier if row.source_sha256 == source_sha256}
    rows: list[_Row] = []
    image: Image | None = None
    reused = 0
    for setting in job.settings:
        output = f"{setting.folder}/{_png(job.name)}"
        if output in there and layout.sha256_of(job.out / output) == there[output].sha256:
            rows.append(there[output])
            reused += 1
            continue
        try:
            if image is None:
                image = decode(content) if content.startswith(CHECKED) else decode_image(content)
            copy = distorted_copy(image, job.name, setting, job.seed)
        except InputError as error:
            return _Done(reason=str(error))
        sha256 = layout.write(job.out / output, encode_image(copy))
        seed = str(copy_seed(job.seed, job.name, setting))
        psnr_db = f"{measure('psnr', copy, image):.4f}"
        rows.append(
            _Row(job.name, source_sha256, setting.distortion, f"{setting.level:g}", seed, output, sha256, psnr_db)
        )
    return _Done(tuple(rows), reused)


def _earlier_rows(manifest: Path) -> dict[str, list[_Row]]:
    """The rows of a manifest by source; none of one that is no such table, and no line that a killed call left torn."""
    rows: dict[str, list[_Row]] = {}
    whole_lines = manifest.read_bytes().rpartition(b"\n")[0] if manifest.is_file() else b""
    try:
        for _, cells in itertools.islice(read_cells(manifest.name, whole_lines), 1, None):
            row = _Row(*cells)
            rows.setdefault(row.source, []).append(row)
    except (InputError, TypeError):
        return {}
    return rows


def _remove_stale(out: Path, earlier: Mapping[str, Sequence[_Row]], rows: Sequence[_Row]) -> None:
    """Remove copies of images that are gone, as they were written, and drafts of a call that was killed."""
    wanted = {row.output for row in rows}
    for row in itertools.chain.from_iterable(earlier.values()):
        file = out / row.output
        inside = file.resolve().is_relative_to(out.resolve())
        if row.output not in wanted and inside and layout.sha256_of(file) == row.sha256:
            file.unlink()
    for draft in list(out.rglob(f"*{UNFINISHED}")):
        draft.unlink()
