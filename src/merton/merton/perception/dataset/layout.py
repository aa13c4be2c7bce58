"""The files of a dataset, each written whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

from merton.errors import InputError
from merton.files import UNFINISHED, file_sha256, written_whole

REFERENCES = "references"
DISTORTED = "distorted"
RECORDS = "records"
SETTINGS = "build.json"
MANIFEST = "manifest.parquet"
REFERENCE_TABLE = "references.parquet"
REFUSED = "refused.csv"
IMPORTED = "imported"
"""Key of the settings that only a dataset of somebody else's distortions has."""
ALIGNMENT = "alignment.json"
"""The table of severities, of a dataset with levels of equal quality."""
SUMS = "SHA256SUMS"
"""Hashes of the three tables, in the format of `sha256sum --check`."""


def unfinished(dataset: Path) -> InputError:
    """The error of a folder that is no finished dataset."""
    return InputError(f"{str(dataset)!r} holds no finished dataset: run `merton dataset build`, or import, to its end")


def refuse_unfinished(dataset: Path) -> None:
    """Raise InputError for a folder that is no finished dataset."""
    if not (dataset / MANIFEST).is_file() or not (dataset / REFERENCE_TABLE).is_file():
        raise unfinished(dataset)


def write(file: Path, content: bytes) -> str:
    """Write a file whole or not at all; returns the sha256 of `content` in hex."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(file, durable=False) as draft:  # `verify` and a further build check every hash
        draft.write(content)
    return hashlib.sha256(content).hexdigest()


def sha256_of(file: Path) -> str | None:
    """The sha256 of a file in hex; None if it cannot be read."""
    try:
        return file_sha256(file)
    except OSError:
        return None


def files_of(dataset: Path) -> set[str]:
    """Paths, relative to `dataset`, of all images and records, and of unfinished files anywhere."""
    parts = (REFERENCES, DISTORTED, RECORDS)
    found = {path for part in parts for path in (dataset / part).rglob("*") if path.is_file()}
    found |= set(dataset.glob(f"*{UNFINISHED}"))
    return {path.relative_to(dataset).as_posix() for path in found}
