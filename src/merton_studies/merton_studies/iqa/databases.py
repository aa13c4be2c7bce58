"""Databases of images judged by people, read from folders that the user owns, in their published layouts.

Nothing is downloaded. LIVE release 2 (Sheikh et al. 2005), TID2013 (Ponomarenko et al. 2015), KADID-10k (Lin et al.
2019) and CSIQ (Larson and Chandler 2010).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.perception.quality.pairs import ImagePair
from merton.results.sheets import sheet_rows
from merton.results.tables import file_bytes, plain_number, read_cells
from merton.results.text import one_line


@dataclass(frozen=True)
class Database:
    """Judged images: the common table of all databases.

    Attributes:
        name: of `DATABASES`.
        pairs: (n,) distorted images with their references.
        labels: (n,) as published.
        better: whether a "higher" or a "lower" label means a better image: a DMOS counts what was lost.
        warnings: a sentence for each count that is not the published one.
    """

    name: str
    pairs: tuple[ImagePair, ...]
    labels: NDArray[np.float64]
    better: Literal["higher", "lower"]
    warnings: tuple[str, ...] = ()

    @property
    def scores(self) -> NDArray[np.float64]:
        """(n,) labels, higher is better."""
        return self.labels if self.better == "higher" else -self.labels


Row = tuple[Path, Path, float]
"""Distorted image, reference, label."""


@dataclass(frozen=True)
class _Layout:
    """Layout of a database: reader, direction, and the published number of distorted images and references."""

    rows: Callable[[Path], Iterator[Row]]
    better: Literal["higher", "lower"]
    images: int
    references: int


def read_database(name: str, folder: Path) -> Database:
    """A database of images judged by people.

    Args:
        name: of `DATABASES`.
        folder: its top folder, as unpacked.

    Raises:
        UnknownNameError: no such database.
        InputError: no such folder, a file of the layout is missing or unreadable, or there is no judged image.
        MissingDependencyError: a package that reads the file of labels is not installed.
    """
    if name not in DATABASES:
        raise UnknownNameError("database", name, DATABASES)
    layout = DATABASES[name]
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} for {name}: unpack the database there")
    rows = list(layout.rows(folder))
    if not rows:
        raise InputError(f"{str(folder)!r} has no judged image in the layout of {name}")
    for path in dict.fromkeys(path for distorted, reference, _ in rows for path in (distorted, reference)):
        if not path.is_file():
            raise InputError(f"{name}: {str(path)!r} is missing")
    labels = np.array([label for _, _, label in rows], np.float64)
    if not np.isfinite(labels).all():
        raise InputError(
            f"{name}: the label of {str(rows[int(np.flatnonzero(~np.isfinite(labels))[0])][0])!r} is no number"
        )
    references = len({reference for _, reference, _ in rows})
    warnings = tuple(
        f"{name} has {found} {noun}, and {published} were published"
        for found, published, noun in (
            (len(rows), layout.images, "distorted images"),
            (references, layout.references, "references"),
        )
        if found != published
    )
    pairs = tuple(ImagePair(distorted, reference) for distorted, reference, _ in rows)
    return Database(name, pairs, labels, layout.better, warnings)


LIVE_TYPES = (("jp2k", 227), ("jpeg", 233), ("wn", 174), ("gblur", 174), ("fastfading", 174))
"""Folders of LIVE in the order of its labels, and how many of the labels are of each."""


def _live(folder: Path) -> Iterator[Row]:
    """`info.txt` of each type's folder has a line "reference distorted strength"; imgN is the type's N-th label.

    Undistorted copies, which `orgs` marks, are left out.
    """
    labels, originals = _live_labels(folder)
    sizes = dict(LIVE_TYPES)
    lines = {kind: _lines(folder / kind / "info.txt") for kind, _ in LIVE_TYPES}
    if sum(sizes.values()) != len(labels):  # a part of the database: the folders say how many labels each has
        sizes = {kind: len(found) for kind, found in lines.items()}
    if sum(sizes.values()) != len(labels) or len(originals) != len(labels):
        raise InputError(
            f"live: {len(labels)} labels, {len(originals)} marks of originals and {sum(sizes.values())} images do not "
            "belong together"
        )
    start = 0
    for kind, _ in LIVE_TYPES:
        for line in lines[kind]:
            reference, distorted, *_ = (*line.split(), "", "")
            found = re.fullmatch(r"img(\d+)\.bmp", distorted, re.IGNORECASE)
            if found is None or not 1 <= int(found[1]) <= sizes[kind]:
                raise InputError(f"live: {kind}/info.txt has the line {one_line(line, 60)!r}, not 'reference imgN.bmp'")
            place = start + int(found[1]) - 1
            if not originals[place]:
                yield folder / kind / distorted, folder / "refimgs" / reference, float(labels[place])
        start += sizes[kind]


def _live_labels(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The realigned DMOS if it is there, else the raw one; and which rows are undistorted images."""
    from scipy.io import loadmat

    for file, name in (("dmos_realigned.mat", "dmos_new"), ("dmos.mat", "dmos")):
        if (folder / file).is_file():
            try:
                content = loadmat(folder / file)
                return np.ravel(content[name]).astype(np.float64), np.ravel(content["orgs"]).astype(np.bool_)
            except (KeyError, ValueError, NotImplementedError, TypeError, OSError) as error:
                raise InputError(f"live: {file} cannot be read as {name} and orgs: {one_line(error, 100)}") from None
    raise InputError(f"live: {str(folder)!r} has neither dmos_realigned.mat nor dmos.mat")


def _tid2013(folder: Path) -> Iterator[Row]:
    """`mos_with_names.txt` has a line "MOS i01_01_1.bmp"; capital letters differ between files and lines."""
    images, references = _by_lower_name(folder / "distorted_images"), _by_lower_name(folder / "reference_images")
    for line in _lines(folder / "mos_with_names.txt"):
        label, name, *_ = (*line.split(), "", "")
        found = re.fullmatch(r"(i\d+)_\d+_\d+\.bmp", name.lower())
        if found is None:
            raise InputError(f"tid2013: mos_with_names.txt has the line {one_line(line, 60)!r}, not 'MOS i01_01_1.bmp'")
        reference = f"{found[1]}.bmp"
        yield (
            images.get(name.lower(), folder / "distorted_images" / name),
            references.get(reference, folder / "reference_images" / reference),
            _number("tid2013", label),
        )


def _kadid10k(folder: Path) -> Iterator[Row]:
    """`dmos.csv` has the columns dist_img, ref_img, dmos, var; its DMOS is better when it is higher."""
    rows = read_cells("dmos.csv", _content(folder / "dmos.csv"))
    _, header = next(rows)
    columns = ("dist_img", "ref_img", "dmos")
    if not set(columns) <= set(header):
        raise InputError(f"kadid10k: dmos.csv must have the columns {', '.join(columns)}")
    for _, cells in rows:
        row = dict(zip(header, cells, strict=True))
        images = folder / "images"
        yield images / row["dist_img"], images / row["ref_img"], _number("kadid10k", row["dmos"])


CSIQ_FOLDERS = {
    "noise": "awgn",
    "blur": "blur",
    "contrast": "contrast",
    "fnoise": "fnoise",
    "jpeg": "jpeg",
    "jpeg2000": "jpeg2000",
}
"""Type in CSIQ's table of labels, without blanks, to its folder."""
_CSIQ_COLUMNS = ("image", "dst_type", "dst_lev", "dmos")


def _csiq(folder: Path) -> Iterator[Row]:
    """`csiq.DMOS.xlsx` has a sheet with image, dst_idx, dst_type, dst_lev, dmos_std and dmos, a row for each image."""
    labels = folder / "csiq.DMOS.xlsx"
    _content(labels)
    rows = [row for _, row in sheet_rows(labels, _CSIQ_COLUMNS) if row["image"]]
    references = _by_lower_name(folder / "src_imgs")
    images = {kind: _by_lower_name(folder / "dst_imgs" / kind) for kind in CSIQ_FOLDERS.values()}
    for row in rows:
        image = re.sub(r"\.0$", "", row["image"])
        kind = row["dst_type"].lower().replace(" ", "")
        if kind not in CSIQ_FOLDERS:
            raise InputError(f"csiq: unknown type of distortion {one_line(row['dst_type'], 40)!r}")
        level = int(_number("csiq", row["dst_lev"]))
        name = f"{image}.{CSIQ_FOLDERS[kind]}.{level}.png".lower()
        yield (
            images[CSIQ_FOLDERS[kind]].get(name, folder / "dst_imgs" / CSIQ_FOLDERS[kind] / name),
            references.get(f"{image}.png".lower(), folder / "src_imgs" / f"{image}.png"),
            _number("csiq", row["dmos"]),
        )


DATABASES = {
    "live": _Layout(_live, "lower", 779, 29),
    "tid2013": _Layout(_tid2013, "higher", 3000, 25),
    "kadid10k": _Layout(_kadid10k, "higher", 10125, 81),
    "csiq": _Layout(_csiq, "lower", 866, 30),
}
"""Name to layout, direction and published counts."""


def _content(file: Path) -> bytes:
    if not file.is_file():
        raise InputError(f"{str(file)!r} is missing")
    return file_bytes(file)


def _lines(file: Path) -> list[str]:
    text = _content(file).decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _by_lower_name(folder: Path) -> dict[str, Path]:
    """Lower-case file name to file."""
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is missing")
    return {path.name.lower(): path for path in sorted(folder.iterdir())}


def _number(name: str, text: str) -> float:
    if not text:
        raise InputError(f"{name}: a label or level is missing")
    value = plain_number(text)
    if value is None:
        raise InputError(f"{name}: {one_line(text, 40)!r} is no label or level")
    return value
