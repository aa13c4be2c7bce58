"""The two tables of a dataset, as Parquet files.

`manifest.parquet` has a row for every distorted image, in the order of reference, type and level; `references.parquet`
has one for every reference.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.results.parquet import parquet_bytes, require_pyarrow

_FILE = {"file": "string", "sha256": "string", "width": "int32", "height": "int32"}
_ATTRIBUTES = dict.fromkeys(("luminance", "contrast", "chrominance", "blur", "spatial_information"), "float64")

MANIFEST_COLUMNS = {
    "reference_id": "string",
    "distortion_id": "string",
    "distortion": "string",
    "category": "string",
    "level": "int8",
    "value": "float64",
    "unit": "string",
    "reference_width_px": "int32",
    "seed": "int64",
    **_FILE,
    **_ATTRIBUTES,
    "psnr": "float64",
    "ssim": "float64",
}
"""Column to Arrow type. A value in pixels holds at the reference width. psnr is infinite where the copy equals the
reference."""

REFERENCE_COLUMNS = {
    "id": "string",
    "source": "string",
    "source_sha256": "string",
    "domain": "string",
    "perspective": "string",
    "object": "string",
    "background": "string",
    "tasks": "list<string>",
    **_FILE,
    **_ATTRIBUTES,
    "blur_effect": "float64",
    "noise_sigma": "float64",
}
"""Column to Arrow type. Tags and tasks are empty where there was no tag file. The last two columns measure faults of
the reference itself."""


IMPORTED_MANIFEST_COLUMNS = {"source": "string", "source_sha256": "string", "split": "string"}
IMPORTED_REFERENCE_COLUMNS = {"scene": "string"}
"""Further columns of a dataset that was imported: the name of the copy in its source and the hash of that file, the
part that its makers put it in, and the scene that a reference shows. Its `value` is the severity where it has one, and
it has no seed."""


def write_tables(out: Path, records: Sequence[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Write both tables, and the hashes of tables and refusals. The same records give the same bytes."""
    images = [image for record in records for image in record["images"]]
    of_copies, of_references = MANIFEST_COLUMNS, REFERENCE_COLUMNS
    if layout.IMPORTED in settings:
        of_copies, of_references = of_copies | IMPORTED_MANIFEST_COLUMNS, of_references | IMPORTED_REFERENCE_COLUMNS
    sums = {
        layout.MANIFEST: layout.write(out / layout.MANIFEST, _parquet(of_copies, images, settings)),
        layout.REFERENCE_TABLE: layout.write(out / layout.REFERENCE_TABLE, _parquet(of_references, records, settings)),
        layout.REFUSED: layout.sha256_of(out / layout.REFUSED),
    }
    if (out / layout.ALIGNMENT).is_file():
        sums[layout.ALIGNMENT] = layout.sha256_of(out / layout.ALIGNMENT)
    layout.write(out / layout.SUMS, "".join(f"{value}  {name}\n" for name, value in sums.items()).encode())


def read_table(file: Path) -> list[dict[str, Any]]:
    """The rows of one of the tables; raises InputError if it cannot be read."""
    pyarrow = require_pyarrow()
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file, partitioning=None).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read the table {str(file)!r}: {str(error).splitlines()[0]}") from None
    return rows


def _parquet(columns: dict[str, str], rows: Sequence[dict[str, Any]], settings: dict[str, Any]) -> bytes:
    pyarrow = require_pyarrow()
    texts = pyarrow.list_(pyarrow.string())
    types = [(name, texts if kind == "list<string>" else kind) for name, kind in columns.items()]
    schema = pyarrow.schema(types, metadata={"merton": json.dumps(settings)})
    table = pyarrow.Table.from_pylist([{name: row[name] for name in columns} for row in rows], schema=schema)
    return parquet_bytes(table)
