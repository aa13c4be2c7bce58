"""Tables that were made elsewhere about the images of a dataset: which column is which, and which image a row means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from merton.errors import InputError, UnknownNameError
from merton.perception.dataset import layout
from merton.perception.dataset.tables import read_table
from merton.results.parts import check_parts, column_of
from merton.results.tables import READABLE, named_rows, plain_number, plain_text
from merton.results.text import one_line
from merton_studies.annotate.dataset import REFERENCE

Image = tuple[str, str, int]
"""Reference, distortion and level; "reference" and 0 of the reference itself."""
IMAGE_PARTS = {
    "image": "file of the picture, as in the dataset or by its name alone",
    "reference": "its undistorted picture: id or file",
    "distortion": 'type of the distortion; "reference" or nothing for the undistorted picture',
    "level": "of the distortion; 0 for the undistorted picture",
}
"""Parts of a row that say which image it is about: `image`, or the others."""
_ALSO = {"reference": ("reference_id",)}
"""Names of a part in tables that Merton writes itself."""
Row = tuple[str, dict[str, Any]]


def rows_of(table: Path, parts: Mapping[str, str], columns: Mapping[str, str]) -> tuple[list[Row], list[str]]:
    """The rows of a table, part to cell, and the columns that are none of the parts.

    Args:
        table: .csv, .tsv, .jsonl or .parquet.
        parts: part of a row to its meaning.
        columns: part to the column that holds it, where that is called otherwise.

    Raises:
        InputError: no such table, no row, no such part, or a column that was named is not there.
    """
    check_parts(columns, parts)
    rows = list(named_rows(table, READABLE))
    there = list(dict.fromkeys(name for _, row in rows for name in row))
    if not rows:
        raise InputError(f"{table}: has no row")
    holding = column_of(str(table), there, parts, columns, _ALSO)
    unused = [name for name in there if name not in holding.values()]
    return [(where, {part: row.get(name) for part, name in holding.items()}) for where, row in rows], unused


def text_in(cells: Mapping[str, Any], part: str) -> str:
    """The text of a cell on one line; "" where it is empty or there is no such column."""
    return plain_text(cells.get(part))


class ImageFinder:
    """Finds the images of a dataset by what a row says of them.

    Args:
        dataset: a folder with both tables of a finished dataset.

    Raises:
        InputError: it is none.
        MissingDependencyError: pyarrow is not installed.
    """

    def __init__(self, dataset: Path) -> None:
        layout.refuse_unfinished(dataset)
        self._dataset = dataset
        self._references: dict[str, set[Image]] = {}
        self._files: dict[str, set[Image]] = {}
        self._levels: dict[tuple[str, str], list[int]] = {}
        for row in read_table(dataset / layout.REFERENCE_TABLE):
            image = (row["id"], REFERENCE, 0)
            self._levels[image[:2]] = [0]
            self._references.setdefault(row["id"], set()).add(image)
            for name in _names(row):
                for known in (self._references, self._files):
                    known.setdefault(name, set()).add(image)
        for row in read_table(dataset / layout.MANIFEST):
            image = (row["reference_id"], row["distortion"], row["level"])
            self._levels.setdefault(image[:2], []).append(image[2])
            for name in _names(row):
                self._files.setdefault(name, set()).add(image)

    def find(self, where: str, cells: Mapping[str, Any]) -> Image:
        """The image of a row.

        Raises InputError, with the place of the row, if it names none of the dataset, or one name stands for several.
        """
        if text_in(cells, "image") and not text_in(cells, "distortion"):  # a reference beside it is no other picture
            return self._one(where, "image", text_in(cells, "image"), self._files)
        if not text_in(cells, "reference"):
            raise InputError(f"{where}: says not which picture it is about: image, or reference and distortion")
        reference = self._one(where, "reference", text_in(cells, "reference"), self._references)[0]
        distortion = text_in(cells, "distortion") or REFERENCE
        levels = self._levels.get((reference, distortion))
        if levels is None:
            types = [name for of, name in self._levels if of == reference]
            raise InputError(
                f"{where}: {UnknownNameError(f'distortion of {one_line(reference, 40)!r}', distortion, types)}"
            )
        level = plain_number(cells.get("level"))
        if level is None and not text_in(cells, "level") and len(levels) == 1:
            return reference, distortion, levels[0]
        if level not in levels:
            said = f"level is {text_in(cells, 'level') or 'empty'}"
            raise InputError(
                f"{where}: {said}; {one_line(reference, 40)!r} under {distortion} has: {', '.join(map(str, levels))}"
            )
        return reference, distortion, int(level)

    def _one(self, where: str, part: str, name: str, known: Mapping[str, set[Image]]) -> Image:
        found = next((known[tail] for tail in (name, *_tails(name)) if tail in known), set())
        if len(found) > 1:
            raise InputError(
                f"{where}: {part} {one_line(name, 60)!r} stands for {len(found)} pictures of {self._dataset}; name its "
                "reference, distortion and level"
            )
        if not found:
            raise InputError(f"{where}: {part} {one_line(name, 60)!r} is not in {self._dataset}")
        return next(iter(found))


def _names(row: Mapping[str, Any]) -> Sequence[str]:
    """The names by which a picture is known: its file in the dataset, and that it was made of, from any folder on."""
    return list(dict.fromkeys(tail for path in (row["file"], row.get("source")) if path for tail in _tails(path)))


def _tails(path: str) -> list[str]:
    """A path from each of its folders on, the longest first: a/b/c.png, b/c.png, c.png."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return ["/".join(parts[start:]) for start in range(len(parts))]
