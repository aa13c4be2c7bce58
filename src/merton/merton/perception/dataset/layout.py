"""Which file of a dataset is where, and how files are written so that a kill leaves none half done."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from merton.errors import InputError

REFERENCES = "references"
DISTORTED = "distorted"
RECORDS = "records"
SETTINGS = "build.json"
MANIFEST = "manifest.parquet"
REFERENCE_TABLE = "references.parquet"
REFUSED = "refused.csv"
SUMS = "SHA256SUMS"
"""Hashes of the three tables, in the format of `sha256sum --check`."""

_UNFINISHED = ".unfinished"


def write(file: Path, content: bytes) -> str:
    """Write a file so that it is there whole or not at all; returns the sha256 of `content` in hex."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{os.getpid()}{_UNFINISHED}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise
    return hashlib.sha256(content).hexdigest()


@contextmanager
def alone(dataset: Path) -> Iterator[None]:
    """Make the folder if need be and keep other builds out of it until the end of this process, however it ends.

    Raises:
        InputError: another build is at work there.
        OSError: there can be no such folder.
    """
    dataset.mkdir(parents=True, exist_ok=True)
    folder = os.open(dataset, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another build is writing into {str(dataset)!r}; wait for it, or choose another folder"
            ) from None
        except OSError:  # a file system that locks no folders, such as some network ones: nobody keeps watch there
            pass
        yield
    finally:
        os.close(folder)


def sha256_of(file: Path) -> str | None:
    """The sha256 of a file in hex; None if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def files_of(dataset: Path) -> set[str]:
    """Paths, relative to `dataset`, of all images and records, and of unfinished files anywhere."""
    parts = (REFERENCES, DISTORTED, RECORDS)
    found = {path for part in parts for path in (dataset / part).rglob("*") if path.is_file()}
    found |= set(dataset.glob(f"*{_UNFINISHED}"))
    return {path.relative_to(dataset).as_posix() for path in found}
