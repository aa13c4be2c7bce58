"""Tables of published benchmarks, row by row: CSV, Parquet files, and what `datasets` saves to disk.

Parquet and Arrow are read batch by batch, and a column that is not asked for is not read: pictures in a table may be
larger than memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from merton.errors import InputError, UnknownNameError
from merton.results.parquet import require_pyarrow
from merton.results.tables import file_bytes, json_object, read_cells, without_nan
from merton.results.text import one_line

BATCH = 64
"""Rows that are in memory at once. Ours."""


class Table(Protocol):
    """A table of a benchmark.

    Attributes:
        files: it is read from.
        kinds: column to what its cells are: "text", "number", "whole number", "picture", "texts" or "other".
    """

    @property
    def files(self) -> Sequence[Path]: ...

    @property
    def kinds(self) -> Mapping[str, str]: ...

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Place, such as "x.csv, line 2", and the named columns of every row."""


class CsvTable:
    """A CSV or TSV file with a header, see `read_cells`; raises InputError for a file that is none."""

    def __init__(self, path: Path) -> None:
        self.files = [path]
        cells = read_cells(str(path), file_bytes(path))
        _, self._header = next(cells)
        self._rows = [(where, dict(zip(self._header, row, strict=True))) for where, row in cells]
        self.kinds = dict.fromkeys(self._header, "text")

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for where, row in self._rows:
            yield where, {name: row[name] for name in columns}


class ArrowTable:
    """Parquet files, or the Arrow files of `Dataset.save_to_disk`, which are streams of record batches.

    Args:
        files: of one table, in their order.
        features: as `datasets` describes columns; a ClassLabel's numbers become its names.

    Raises:
        InputError: a file is none of these.
        MissingDependencyError: pyarrow is not installed.
    """

    def __init__(self, files: Sequence[Path], features: Mapping[str, Any] | None = None) -> None:
        self._arrow = require_pyarrow()
        self.files = list(files)
        schema = self._schema(files[0])
        twice = [name for name, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise InputError(f"{files[0]} has two columns called {one_line(twice[0])!r}")
        self._names = _class_names(_told(schema) if features is None else features)
        self.kinds = {field.name: self._kind(field.type) for field in schema}
        self.kinds |= {name: "text" for name in self._names if name in self.kinds}

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for file in self.files:
            at = 0
            for batch in self._batches(file, list(columns)):
                for cells in batch.to_pylist():
                    at += 1
                    row = {name: without_nan(cell) for name, cell in cells.items()}
                    for name in self._names.keys() & row.keys():
                        row[name] = self._label(name, row[name])
                    yield f"{file}, row {at}", row

    def _label(self, name: str, value: Any) -> Any:
        names = self._names[name]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    def _schema(self, file: Path) -> Any:
        try:
            if file.suffix == ".parquet":
                return self._arrow.parquet.read_schema(file)
            with self._arrow.memory_map(str(file)) as source:
                return self._arrow.ipc.open_stream(source).schema
        except (OSError, self._arrow.ArrowException) as error:
            raise InputError(f"{file} is no table: {str(error).splitlines()[0]}") from None

    def _batches(self, file: Path, columns: list[str]) -> Iterator[Any]:
        try:
            if file.suffix == ".parquet":
                with self._arrow.parquet.ParquetFile(file) as table:
                    yield from table.iter_batches(batch_size=BATCH, columns=columns)
                return
            with self._arrow.memory_map(str(file)) as source:
                for batch in self._arrow.ipc.open_stream(source):
                    for start in range(0, batch.num_rows, BATCH):
                        yield batch.slice(start, BATCH).select(columns)
        except (OSError, self._arrow.ArrowException, KeyError) as error:
            raise InputError(f"{file} cannot be read: {str(error).splitlines()[0]}") from None

    def _kind(self, type_: Any) -> str:
        types = self._arrow.types
        if types.is_dictionary(type_):  # as pandas writes categories
            return self._kind(type_.value_type)
        texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_boolean)
        if any(is_such(type_) for is_such in (*texts, types.is_null, types.is_temporal)):
            return "text"
        if types.is_integer(type_):
            return "whole number"
        if types.is_floating(type_) or types.is_decimal(type_):
            return "number"
        if types.is_binary(type_) or types.is_large_binary(type_):
            return "picture"
        if types.is_struct(type_):
            return "picture" if {field.name for field in type_} == {"bytes", "path"} else "other"
        if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
            inner = self._kind(type_.value_type)
            return {"picture": "picture", "text": "texts"}.get(inner, "other")
        return "other"


def _told(schema: Any) -> Any:
    """The features that `datasets` notes in the metadata of a file; empty where it does not."""
    try:
        return json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return {}


def _class_names(features: Any) -> dict[str, Sequence[str]]:
    """Column to the names of its numbers, of those that are a ClassLabel."""
    found = features.items() if isinstance(features, dict) else ()
    labels = {name: one["names"] for name, one in found if isinstance(one, dict) and isinstance(one.get("names"), list)}
    return {name: names for name, names in labels.items() if features[name].get("_type") == "ClassLabel"}


def parquet_table(path: Path, split: str) -> ArrowTable:
    """A Parquet file, or the files SPLIT-00000-of-00002.parquet of a folder; raises InputError if there is none."""
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        return ArrowTable([path])
    found = sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet"))
    if not found:
        raise InputError(f"{path} has no .parquet files, nor has a folder data in it")
    return ArrowTable(_of_split({file: file.name.split("-")[0].removesuffix(".parquet") for file in found}, split))


def _of_split(files: Mapping[Path, str], split: str) -> list[Path]:
    splits = sorted(set(files.values()))
    if split and split not in splits:
        raise UnknownNameError("split", split, splits)
    if len(splits) > 1 and not split:
        raise InputError(f"there are several splits: name one by --split: {', '.join(splits)}")
    return [file for file, name in files.items() if not split or name == split]


def saved_table(folder: Path, split: str) -> ArrowTable:
    """Table that `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote; raises InputError for another folder."""
    several = folder / "dataset_dict.json"
    if several.is_file():
        names = json_object(several).get("splits")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InputError(f"{several} does not name its splits in a list of texts under 'splits'")
        folder = _of_split({folder / name: name for name in names}, split)[0]
    state = folder / "state.json"
    if not state.is_file():
        raise InputError(f"{folder} was not written by save_to_disk: it has no state.json, and no dataset_dict.json")
    about = json_object(state)
    if about.get("_indices_data_files"):
        raise InputError(f"{folder} is of an old form with an index of rows: load it and save it again")
    info = folder / "dataset_info.json"
    features = json_object(info).get("features") if info.is_file() else None
    parts = about.get("_data_files")
    names = [part.get("filename") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    files = [folder / name for name in names if isinstance(name, str)]
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        raise InputError(f"{state} names {missing[0] if missing else 'no files'}, so there is nothing to read")
    return ArrowTable(files, features or {})
