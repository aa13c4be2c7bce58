"""The images of a built dataset in the order of annotation: every reference, then its distorted copies."""

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
"""The name in place of a distortion for an undistorted image, as everywhere in Merton."""


@dataclass(frozen=True)
class ReferenceImage:
    """An undistorted image.

    Attributes:
        pixels: its `pixels_sha256`.
        scene: that it shows, as an imported dataset says; "" where its id says it.
    """

    id: str
    domain: str
    perspective: str
    tasks: tuple[str, ...]
    pixels: str
    scene: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any], pixels: str = "") -> ReferenceImage:
        """Of a row of the table of references."""
        return cls(row["id"], row["domain"], row["perspective"], tuple(row["tasks"]), pixels, row.get("scene") or "")


@dataclass(frozen=True)
class DatasetImage:
    """An image of the dataset, undistorted or distorted.

    Attributes:
        reference: its undistorted original; itself if it is one.
        distortion, level: "reference" and 0 for the reference itself.
        file: absolute path of the PNG.
        pixels: its `pixels_sha256`.
        size_px: (width, height).
    """

    reference: ReferenceImage
    distortion: str
    level: int
    file: Path
    pixels: str
    size_px: tuple[int, int]


def pixels_sha256(image: Image) -> str:
    """Hash of decoded pixels (height, width, 3) uint8, independent of their compression."""
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()


def read_dataset(folder: Path) -> list[DatasetImage]:
    """Every image of a dataset, decoded and hashed: references in their order, each before its copies.

    Raises:
        InputError: no finished dataset, or an image that differs from the tables.
        MissingDependencyError: pyarrow is not installed.
    """
    layout.refuse_unfinished(folder)
    references = read_table(folder / layout.REFERENCE_TABLE)
    copies: dict[str, list[Mapping[str, Any]]] = {row["id"]: [] for row in references}
    for row in read_table(folder / layout.MANIFEST):
        if row["reference_id"] not in copies:
            raise InputError(
                f"{str(folder)!r}: the manifest names a reference {row['reference_id']!r} that does not exist"
            )
        copies[row["reference_id"]].append(row)
    with ThreadPoolExecutor(2) as pool:  # hashing and decoding release the GIL
        rows = [row for reference in references for row in (reference, *copies[reference["id"]])]
        hashes = dict(zip((row["file"] for row in rows), pool.map(lambda row: _hashed(folder, row), rows), strict=True))
    images = []
    for row in references:
        reference = ReferenceImage.of_row(row, hashes[row["file"]])
        for one in (row, *copies[row["id"]]):
            images.append(
                DatasetImage(
                    reference,
                    one.get("distortion", REFERENCE),
                    one.get("level", 0),
                    (folder / one["file"]).absolute(),
                    hashes[one["file"]],
                    (one["width"], one["height"]),
                )
            )
    return images


def _hashed(folder: Path, row: Mapping[str, Any]) -> str:
    """The hash of a file's pixels; raises InputError if the file differs from the tables."""
    try:
        content = (folder / row["file"]).read_bytes()
    except OSError as error:
        raise InputError(f"{row['file']} of the dataset cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise InputError(f"{row['file']} has changed since the dataset was built: see `merton dataset verify`")
    return pixels_sha256(decode(content))
