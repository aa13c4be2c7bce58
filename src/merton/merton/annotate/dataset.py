"""A built dataset as models are shown it: every reference, then its distorted copies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.tables import read_table
from merton.world.observation import Image

REFERENCE = "reference"
"""What stands for the distortion of an undistorted image, as everywhere in Merton."""


@dataclass(frozen=True)
class Reference:
    """An undistorted image: id, who saw it (`domain`, `perspective`), its tasks, `pixels_sha256` of its pixels."""

    id: str
    domain: str
    perspective: str
    tasks: tuple[str, ...]
    pixels: str


@dataclass(frozen=True)
class Shown:
    """An image that models are shown.

    Attributes:
        reference: what it is a copy of, or itself.
        distortion, level: "reference" and 0 for the reference itself.
        file: absolute path of the PNG.
        pixels: `pixels_sha256` of its pixels.
        size_px: (width, height).
    """

    reference: Reference
    distortion: str
    level: int
    file: Path
    pixels: str
    size_px: tuple[int, int]


def pixels_sha256(image: Image) -> str:
    """Hash of decoded pixels (height, width, 3) uint8: how they were compressed does not count."""
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()


def read_dataset(folder: Path, threads: int = 2) -> list[Shown]:
    """Every image of a dataset, decoded once and hashed: references in their order, each before its copies.

    Raises:
        InputError: no finished dataset, or an image that is not what the tables say.
        MissingDependencyError: pyarrow is not installed.
    """
    if not (folder / layout.MANIFEST).is_file():
        raise InputError(f"{str(folder)!r} holds no finished dataset: run `merton dataset build` to its end")
    references = read_table(folder / layout.REFERENCE_TABLE)
    copies: dict[str, list[Mapping[str, Any]]] = {row["id"]: [] for row in references}
    for row in read_table(folder / layout.MANIFEST):
        if row["reference_id"] not in copies:
            raise InputError(f"{str(folder)!r}: the manifest names a reference {row['reference_id']!r} there is not")
        copies[row["reference_id"]].append(row)
    with ThreadPoolExecutor(threads) as pool:  # hashing and decoding let go of the interpreter
        rows = [row for reference in references for row in (reference, *copies[reference["id"]])]
        hashes = dict(zip((row["file"] for row in rows), pool.map(lambda row: _hashed(folder, row), rows), strict=True))
    shown = []
    for row in references:
        who = Reference(row["id"], row["domain"], row["perspective"], tuple(row["tasks"]), hashes[row["file"]])
        for one in (row, *copies[row["id"]]):
            shown.append(
                Shown(
                    who,
                    one.get("distortion", REFERENCE),
                    one.get("level", 0),
                    (folder / one["file"]).absolute(),
                    hashes[one["file"]],
                    (one["width"], one["height"]),
                )
            )
    return shown


def _hashed(folder: Path, row: Mapping[str, Any]) -> str:
    """The hash of a file's pixels; raises InputError if the file is not what the tables say."""
    try:
        content = (folder / row["file"]).read_bytes()
    except OSError as error:
        raise InputError(f"{row['file']} of the dataset cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise InputError(f"{row['file']} has changed since the dataset was built: see `merton dataset verify`")
    return pixels_sha256(decode(content))
