"""Databases of images judged by people, read from folders that the user owns, in their published layouts.

Nothing is downloaded. LIVE release 2 (Sheikh et al. 2005), TID2013 (Ponomarenko et al. 2015), KADID-10k (Lin et al.
2019) and CSIQ (Larson and Chandler 2010).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.perception.dataset import database_types as types
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


class JudgedCopy(NamedTuple):
    """A distorted image of a database.

    Attributes:
        image, reference: its file, and that of the image it was made from.
        label: as published.
        number: of its type, from 1 on, in the database's own order.
        type: name of the type.
        level: 1 (weak) and up; None where the database has strengths instead.
        severity: rises with the strength; None where it has levels.
    """

    image: Path
    reference: Path
    label: float
    number: int
    type: str
    level: int | None
    severity: float | None = None


@dataclass(frozen=True)
class _Layout:
    """Layout of a database: its title, the names in its folder by which it is known, reader, direction, and the
    published number of distorted images and references."""

    title: str
    holds: tuple[str, ...]
    rows: Callable[[Path], Iterator[JudgedCopy]]
    better: Literal["higher", "lower"]
    images: int
    references: int


def layout_of(folder: Path) -> str | None:
    """The name of the database whose layout a folder has; None if it has none of `DATABASES`."""
    there = {path.name.lower() for path in folder.iterdir()}
    return next((name for name, layout in DATABASES.items() if set(layout.holds) <= there), None)


def read_copies(name: str, folder: Path) -> list[JudgedCopy]:
    """The distorted images of a database in the order of its labels.

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
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} for {name}: unpack the database there")
    rows = list(DATABASES[name].rows(folder))
    if not rows:
        raise InputError(f"{str(folder)!r} has no judged image in the layout of {name}")
    for path in dict.fromkeys(path for row in rows for path in (row.image, row.reference)):
        if not path.is_file():
            raise InputError(f"{name}: {str(path)!r} is missing")
    return rows


def read_database(name: str, folder: Path) -> Database:
    """A database of images judged by people; arguments and errors are those of `read_copies`."""
    rows = read_copies(name, folder)
    layout = DATABASES[name]
    labels = np.array([row.label for row in rows], np.float64)
    if not np.isfinite(labels).all():
        wrong = rows[int(np.flatnonzero(~np.isfinite(labels))[0])].image
        raise InputError(f"{name}: the label of {str(wrong)!r} is no number")
    warnings = _unlike_published(name, rows)
    pairs = tuple(ImagePair(row.image, row.reference) for row in rows)
    return Database(name, pairs, labels, layout.better, warnings)


def _unlike_published(name: str, rows: Sequence[JudgedCopy]) -> tuple[str, ...]:
    """A sentence for each count that is not the published one."""
    layout = DATABASES[name]
    references = len({row.reference for row in rows})
    return tuple(
        f"{name} has {found} {noun}, and {published} were published"
        for found, published, noun in (
            (len(rows), layout.images, "distorted images"),
            (references, layout.references, "references"),
        )
        if found != published
    )


def _live(folder: Path) -> Iterator[JudgedCopy]:
    """`info.txt` of each type's folder has a line "reference distorted strength"; imgN is the type's N-th label.

    Undistorted copies, which `orgs` marks, are left out.
    """
    labels, originals = _live_labels(folder)
    sizes = {one.folder: one.labels for one in types.LIVE}
    lines = {kind: _lines(folder / kind / "info.txt") for kind in sizes}
    if sum(sizes.values()) != len(labels):  # a part of the database: the folders say how many labels each has
        sizes = {kind: len(found) for kind, found in lines.items()}
    if sum(sizes.values()) != len(labels) or len(originals) != len(labels):
        raise InputError(
            f"live: {len(labels)} labels, {len(originals)} marks of originals and {sum(sizes.values())} images do not "
            "belong together"
        )
    start = 0
    for number, one in enumerate(types.LIVE, 1):
        kind = one.folder
        for line in lines[kind]:
            reference, distorted, strength, *_ = (*line.split(), "", "", "")
            found = re.fullmatch(r"img(\d+)\.bmp", distorted, re.IGNORECASE)
            if found is None or not 1 <= int(found[1]) <= sizes[kind]:
                raise InputError(f"live: {kind}/info.txt has the line {one_line(line, 60)!r}, not 'reference imgN.bmp'")
            place = start + int(found[1]) - 1
            if not originals[place]:
                severity = one.stronger * _number("live", strength)
                files = folder / kind / distorted, folder / "refimgs" / reference
                yield JudgedCopy(*files, float(labels[place]), number, kind, None, severity)
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


def _tid2013(folder: Path) -> Iterator[JudgedCopy]:
    """`mos_with_names.txt` has a line "MOS i01_01_1.bmp"; capital letters differ between files and lines."""
    images, references = _by_lower_name(folder / "distorted_images"), _by_lower_name(folder / "reference_images")
    for line in _lines(folder / "mos_with_names.txt"):
        label, name, *_ = (*line.split(), "", "")
        found = re.fullmatch(r"(i\d+)_(\d+)_(\d+)\.bmp", name.lower())
        if found is None or not 1 <= int(found[2]) <= len(types.TID2013):
            raise InputError(f"tid2013: mos_with_names.txt has the line {one_line(line, 60)!r}, not 'MOS i01_01_1.bmp'")
        reference = f"{found[1]}.bmp"
        yield JudgedCopy(
            images.get(name.lower(), folder / "distorted_images" / name),
            references.get(reference, folder / "reference_images" / reference),
            _number("tid2013", label),
            int(found[2]),
            types.TID2013[int(found[2]) - 1],
            int(found[3]),
        )


def _kadid10k(folder: Path) -> Iterator[JudgedCopy]:
    """`dmos.csv` has the columns dist_img, ref_img, dmos, var; its DMOS is better when it is higher."""
    rows = read_cells("dmos.csv", _content(folder / "dmos.csv"))
    _, header = next(rows)
    columns = ("dist_img", "ref_img", "dmos")
    if not set(columns) <= set(header):
        raise InputError(f"kadid10k: dmos.csv must have the columns {', '.join(columns)}")
    for _, cells in rows:
        row = dict(zip(header, cells, strict=True))
        images = folder / "images"
        found = re.fullmatch(r"i\d+_(\d+)_(\d+)\.png", row["dist_img"].lower())
        if found is None or not 1 <= int(found[1]) <= len(types.KADID10K):
            raise InputError(
                f"kadid10k: dmos.csv names the image {one_line(row['dist_img'], 60)!r}, not one such as I01_01_01.png"
            )
        number, label = int(found[1]), _number("kadid10k", row["dmos"])
        files = images / row["dist_img"], images / row["ref_img"]
        yield JudgedCopy(*files, label, number, types.KADID10K[number - 1], int(found[2]))


_CSIQ_COLUMNS = ("image", "dst_type", "dst_lev", "dmos")


def _csiq(folder: Path) -> Iterator[JudgedCopy]:
    """`csiq.DMOS.xlsx` has a sheet with image, dst_idx, dst_type, dst_lev, dmos_std and dmos, a row for each image."""
    labels = folder / "csiq.DMOS.xlsx"
    _content(labels)
    rows = [row for _, row in sheet_rows(labels, _CSIQ_COLUMNS) if row["image"]]
    references = _by_lower_name(folder / "src_imgs")
    images = {kind: _by_lower_name(folder / "dst_imgs" / kind) for kind in types.CSIQ.values()}
    for row in rows:
        image = re.sub(r"\.0$", "", row["image"])
        kind = row["dst_type"].lower().replace(" ", "")
        if kind not in types.CSIQ:
            raise InputError(f"csiq: unknown type of distortion {one_line(row['dst_type'], 40)!r}")
        level = int(_number("csiq", row["dst_lev"]))
        place = types.CSIQ[kind]
        name = f"{image}.{place}.{level}.png".lower()
        yield JudgedCopy(
            images[place].get(name, folder / "dst_imgs" / place / name),
            references.get(f"{image}.png".lower(), folder / "src_imgs" / f"{image}.png"),
            _number("csiq", row["dmos"]),
            list(types.CSIQ).index(kind) + 1,
            kind,
            level,
        )


DATABASES = {
    "live": _Layout("LIVE release 2", ("refimgs", "gblur"), _live, "lower", 779, 29),
    "tid2013": _Layout("TID2013", ("mos_with_names.txt", "distorted_images"), _tid2013, "higher", 3000, 25),
    "kadid10k": _Layout("KADID-10k", ("dmos.csv", "images"), _kadid10k, "higher", 10125, 81),
    "csiq": _Layout("CSIQ", ("csiq.dmos.xlsx", "dst_imgs"), _csiq, "lower", 866, 30),
}
"""Name to layout."""


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
