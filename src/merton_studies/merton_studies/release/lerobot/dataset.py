"""The folder of a dataset in the format v3.0 of LeRobot, put together from demonstrations.

    meta/info.json                                  features, rate, counts; it comes last: a loader finds all or nothing
    meta/stats.json                                 statistics of each feature
    meta/tasks.parquet                              instructions and their numbers
    meta/episodes/chunk-000/file-000.parquet        a row an episode: its frames, facts of its trial, statistics
    meta/merton.json                                provenance; LeRobot does not read it
    data/chunk-000/file-000.parquet                 a row a frame
    videos/<feature>/chunk-000/file-000.mp4         a file an episode and camera

The demands of LeRobot's loader were read from lerobot 0.4.4 and 0.6.1.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.decision.models.convention_entry import FEATURE, KEY, ConventionEntry
from merton.errors import InfrastructureError, require
from merton.files import write_file
from merton.results.parquet import parquet_bytes, parquet_writer, require_pyarrow
from merton_studies.lerobot.layout import A_FILE, DATA_PATH, IMAGES, INDICES, INFO, NEWEST, VIDEO_PATH, place
from merton_studies.lerobot.statistics import Statistics, of_shades, of_values
from merton_studies.release.lerobot.card import card
from merton_studies.release.lerobot.demonstration import VECTORS, Demonstration, kept, video

END = ("next.done", "next.success")
"""At the last frame of an episode: true, and whether the trial was a success. False before."""

Facts = Mapping[str, Any]
"""Columns of an episode: strings, numbers, truths or None, under the same names in all; `success` among them."""


@dataclass(frozen=True)
class Counts:
    """Numbers of a dataset: episodes, successes among them, frames, frames a second, bytes; and its cameras."""

    episodes: int
    successes: int
    frames: int
    fps: int
    size: int
    cameras: tuple[str, ...]


def put_together(
    out: Path,
    parts: Sequence[tuple[Path, Facts]],
    convention: ConventionEntry,
    provenance: Mapping[str, Any],
) -> Counts:
    """Write a dataset from demonstrations, each in the folder of `demonstration.keep`, with its facts.

    Args:
        out: a folder without a dataset; an unfinished one is written over.
        parts: at least one, all with the same cameras; their order is that of the episodes.
        convention: the meaning of states and actions, which stands in info.json; its rate is that of the frames.
        provenance: JSON values, `robot` among them, the name of the arm.

    Raises:
        InfrastructureError: a file cannot be written.
        MissingDependencyError: PyAV or pyarrow is not installed.
    """
    try:
        return _Writer(out, parts, convention, provenance["robot"]).written(provenance)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {out}: {error.strerror or error}") from None


class _Writer:
    """Writes a dataset; holds the frames of `A_FILE` episodes at a time."""

    def __init__(self, out: Path, parts: Sequence[tuple[Path, Facts]], convention: ConventionEntry, robot: str) -> None:
        self._pyarrow, self._out, self._parts = require_pyarrow(), out, parts
        self._convention, self._fps = convention, round(convention.rate_hz)
        self._robot = robot.lower()
        self._cameras = tuple(sorted(file.stem for file in parts[0][0].glob("*.mp4")))
        self._tasks: dict[str, int] = {}
        self._shades = {camera: np.zeros((3, 256), np.int64) for camera in self._cameras}
        self._frames = 0

    def written(self, provenance: Mapping[str, Any]) -> Counts:
        """The whole dataset."""
        for folder in ("meta/episodes", "data", "videos"):
            shutil.rmtree(self._out / folder, ignore_errors=True)
            (self._out / folder).mkdir(parents=True)
        for start in range(0, len(self._parts), A_FILE):
            rows, tables = [], []
            for episode in range(start, min(start + A_FILE, len(self._parts))):
                row, table = self._episode(episode)
                rows.append(row)
                tables.append(table)
            self._write_frames(self._data_file(start // A_FILE), tables)
            self._write_table(self._out / "meta/episodes" / place(start // A_FILE, ".parquet"), rows)
        self._write_tasks()
        self._write_json("meta/stats.json", self._statistics())
        successes = sum(bool(facts["success"]) for _, facts in self._parts)
        self._write_json("meta/merton.json", provenance)
        write_file(self._out / "README.md", card(len(self._parts), successes, self._frames, self._fps, provenance))
        self._write_json(str(INFO), self._info())
        size = sum(file.stat().st_size for folder in ("meta", "data", "videos") for file in _files(self._out / folder))
        return Counts(len(self._parts), successes, self._frames, self._fps, size, self._cameras)

    def _episode(self, episode: int) -> tuple[dict[str, Any], Any]:
        """An episode's row among the episodes, and the table of its frames; copies its videos to their places."""
        folder, facts = self._parts[episode]
        shown = kept(folder, self._cameras)
        columns = self._columns(shown, episode, bool(facts["success"]))
        statistics = {name: of_values(values) for name, values in columns.items()}
        places: dict[str, Any] = {}
        for camera in self._cameras:
            key = IMAGES + camera
            target = self._out / "videos" / key / place(episode, ".mp4")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(video(folder, camera), target)
            statistics[key] = of_shades(shown.shades[camera], len(shown))
            self._shades[camera] += shown.shades[camera]
            places |= {f"videos/{key}/chunk_index": episode // A_FILE, f"videos/{key}/file_index": episode % A_FILE,
                       f"videos/{key}/from_timestamp": 0.0,
                       f"videos/{key}/to_timestamp": len(shown) / self._fps}  # fmt: skip
        file = episode // A_FILE
        row = {
            "episode_index": episode, "tasks": [shown.instruction], "length": len(shown),
            "dataset_from_index": self._frames, "dataset_to_index": self._frames + len(shown),
            "data/chunk_index": file // A_FILE, "data/file_index": file % A_FILE,
            "meta/episodes/chunk_index": file // A_FILE, "meta/episodes/file_index": file % A_FILE,
            **places, **facts,
            **{f"stats/{key}/{name}": values for key, found in statistics.items() for name, values in found.items()},
        }  # fmt: skip
        self._frames += len(shown)
        return row, self._table(columns)

    def _columns(self, shown: Demonstration, episode: int, success: bool) -> dict[str, np.ndarray]:
        """Feature to its values in each frame of an episode, without the pictures."""
        count = len(shown)
        frame = np.arange(count)
        last = frame == count - 1
        task = self._tasks.setdefault(shown.instruction, len(self._tasks))
        numbers = (frame, np.full(count, episode), frame + self._frames, np.full(count, task))
        return {
            **shown.vectors,
            **dict(zip(END, (last, last & success), strict=True)),
            "timestamp": (frame / self._fps).astype(np.float32),
            **{name: values.astype(np.int64) for name, values in zip(INDICES, numbers, strict=True)},
        }

    def _table(self, columns: Mapping[str, np.ndarray]) -> Any:
        """Columns as a table; a vector is a list of fixed length."""
        lists = self._pyarrow.FixedSizeListArray
        return self._pyarrow.table({
            name: lists.from_arrays(values.ravel(), values.shape[1]) if values.ndim == 2 else values
            for name, values in columns.items()
        })  # fmt: skip

    def _write_frames(self, file: Path, tables: Sequence[Any]) -> None:
        """Tables as one file, a row group for each: one episode can be read without the others."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with parquet_writer(file, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)

    def _write_table(self, file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kinds = {key: self._kind(key) for key in rows[0]}
        schema = self._pyarrow.schema(list(kinds.items()))
        write_file(file, parquet_bytes(self._pyarrow.Table.from_pylist(list(rows), schema=schema)))

    def _kind(self, key: str) -> Any:
        """The type of a column of the episodes: the same in every file, whichever values are unknown in it."""
        arrow = self._pyarrow
        if key.startswith("stats/"):
            inner = arrow.int64() if key.endswith("/count") else arrow.float64()
            is_image = key.startswith(f"stats/{IMAGES}") and not key.endswith("/count")
            return arrow.list_(arrow.list_(arrow.list_(inner))) if is_image else arrow.list_(inner)
        if key == "tasks":
            return arrow.list_(arrow.string())
        known = [facts[key] for _, facts in self._parts if facts.get(key) is not None]
        if key.endswith("_timestamp"):
            return arrow.float64()
        return {str: arrow.string(), bool: arrow.bool_(), float: arrow.float64()}.get(
            type(known[0]) if known else int, arrow.int64()
        )

    def _write_tasks(self) -> None:
        """Instructions as the index of a table of pandas, from which LeRobot takes them."""
        note = {
            "index_columns": ["task"],
            "column_indexes": [],
            "columns": [
                {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64",
                 "metadata": None},
                {"name": "task", "field_name": "task", "pandas_type": "unicode", "numpy_type": "object",
                 "metadata": None},
            ],
            "pandas_version": "2.2.3",
        }  # fmt: skip
        table = self._pyarrow.table({"task_index": list(self._tasks.values()), "task": list(self._tasks)})
        table = table.replace_schema_metadata({"pandas": json.dumps(note)})
        write_file(self._out / "meta/tasks.parquet", parquet_bytes(table))

    def _statistics(self) -> dict[str, Statistics]:
        """Of all frames: each feature is read back alone, so that never all of them are in memory."""
        files = [self._data_file(number) for number in range(-(-len(self._parts) // A_FILE))]
        read = self._pyarrow.parquet.read_table
        found = {}
        for name in self._features():
            if name.startswith(IMAGES):
                found[name] = of_shades(self._shades[name.removeprefix(IMAGES)], self._frames)
                continue
            tables = [read(file, columns=[name]).column(name).combine_chunks() for file in files]
            values = [
                column.flatten().to_numpy().reshape(len(column), -1)
                if name in VECTORS
                else column.to_numpy(zero_copy_only=False)
                for column in tables
            ]
            found[name] = of_values(np.concatenate(values))
        return found

    def _features(self) -> dict[str, dict[str, Any]]:
        """Every feature, as info.json describes it."""
        return {
            **{IMAGES + camera: self._video_feature(camera) for camera in self._cameras},
            **{key: self._vector_feature(key, names) for key, names in VECTORS.items()},
            **{key: {"dtype": "bool", "shape": [1], "names": None} for key in END},
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            **{key: {"dtype": "int64", "shape": [1], "names": None} for key in INDICES},
        }

    def _vector_feature(self, key: str, names: Sequence[str]) -> dict[str, Any]:
        feature = {"dtype": "float32", "shape": [len(names)], "names": list(names)}
        if key != FEATURE:
            return feature
        return {**feature, KEY: self._convention.model_dump(mode="json", exclude_defaults=True)}

    def _video_feature(self, camera: str) -> dict[str, Any]:
        height, width, codec, pixels = _video_format(video(self._parts[0][0], camera))
        info = {"video.codec": codec, "video.pix_fmt": pixels, "video.fps": self._fps, "video.height": height,
                "video.width": width, "video.channels": 3, "is_depth_map": False, "has_audio": False}  # fmt: skip
        names = ["height", "width", "channels"]
        return {"dtype": "video", "shape": [height, width, 3], "names": names, "info": info}

    def _info(self) -> dict[str, Any]:
        return {
            "codebase_version": NEWEST, "robot_type": self._robot, "total_episodes": len(self._parts),
            "total_frames": self._frames, "total_tasks": len(self._tasks), "chunks_size": A_FILE,
            "data_files_size_in_mb": 100, "video_files_size_in_mb": 200, "fps": self._fps,
            "splits": {"train": f"0:{len(self._parts)}"}, "data_path": DATA_PATH, "video_path": VIDEO_PATH,
            "features": self._features(),
        }  # fmt: skip

    def _write_json(self, name: str, content: Mapping[str, Any]) -> None:
        write_file(self._out / name, f"{json.dumps(content, indent=2)}\n".encode())

    def _data_file(self, number: int) -> Path:
        return self._out / "data" / place(number, ".parquet")


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _video_format(file: Path) -> tuple[int, int, str, str]:
    """Height and width of a video [px], its codec and pixel format."""
    av = require("av", "people", "reading videos")
    with av.open(str(file)) as opened:
        stream = opened.streams.video[0]
        return stream.height, stream.width, stream.codec.canonical_name, stream.pix_fmt
