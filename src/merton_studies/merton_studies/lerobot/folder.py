"""A dataset in LeRobot's format as it lies in a folder: its features, and the rows and pictures of each episode."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.files import file_sha256
from merton.perception.images import decode_image
from merton.perception.videos import open_video
from merton.results.parquet import read_columns, read_rows, read_schema
from merton.results.text import one_line
from merton.world.observation import Image
from merton_studies.lerobot import layout
from merton_studies.lerobot.cameras import Camera, cameras_of

FRAME = "frame_index"
TIMESTAMP_ERROR_S = 0.001
"""A picture's time in its video may differ by so much from its row's [s]. LeRobot allows 0.0001 s, but a timestamp of
an hour is a float32 of 0.0002 s."""
NUMBERS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


@dataclass(frozen=True)
class Episode:
    """An episode's place.

    Attributes:
        index: its number.
        length: frames.
        tasks: its instructions, as the table of episodes has them.
        data: path of the table of its frames, in the folder.
        videos: key of a camera to the path of the video in the folder, and the time of its first frame there [s].
    """

    index: int
    length: int
    tasks: tuple[str, ...]
    data: Path
    videos: Mapping[str, tuple[Path, float]]


class LeRobotFolder:
    """A dataset, read as far as it is asked for.

    Args:
        path: a folder with meta/info.json.

    Attributes:
        info: the content of that file.
        version: one of `layout.VERSIONS`.
        fps: frames a second.
        features: name to dtype, shape and names.
        cameras: key to camera, without those of depth and of other than three channels.
        depth: keys of the cameras that are marked as depth, which are not read.
        other: keys of the further ones whose pictures do not have three channels, which are not read either: one
            channel is grey or an unmarked depth, and no distortion is defined on the latter.

    Raises:
        InputError: no dataset, another version, or an info.json that cannot be used; the sentence says which.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not layout.is_dataset(path):
            raise InputError(f"{path} is no dataset of LeRobot: it has no {layout.INFO}")
        self.info: dict[str, Any] = read_json(path / layout.INFO)
        self.version = str(self.info.get("codebase_version"))
        if self.version not in layout.VERSIONS:
            raise InputError(
                f"{path} is of version {one_line(self.version, 20)} of LeRobot's format; "
                f"those that are read: {', '.join(layout.VERSIONS)}"
            )
        fps, features = self.info.get("fps"), self.info.get("features")
        if not isinstance(fps, int | float) or isinstance(fps, bool) or not math.isfinite(fps) or fps <= 0:
            raise InputError(f"{path / layout.INFO}: fps must be a number > 0, got {fps!r}")
        if not isinstance(features, dict) or not all(isinstance(one, dict) for one in features.values()):
            raise InputError(f"{path / layout.INFO}: features must be a table of features")
        self.fps, self.features = float(fps), features
        self.cameras, self.depth, self.other = cameras_of(features, path / layout.INFO)

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """All episodes in the order of their numbers.

        Raises:
            InputError: the table of episodes is missing, torn, or names a file outside of the folder.
        """
        rows = self._episode_rows()
        if not rows:
            raise InputError(f"{self.path} has no episode")
        found = sorted(map(self._episode, rows), key=lambda one: one.index)
        if wrong := [(place, one.index) for place, one in enumerate(found) if one.index != place]:
            raise InputError(
                f"{self.path}: the numbers of its episodes are not 0 to {len(found) - 1}, each once: {wrong[0][1]} "
                f"stands where {wrong[0][0]} is expected"
            )
        return tuple(found)

    @cached_property
    def tasks(self) -> Mapping[int, str]:
        """Number to instruction; empty if the dataset has none.

        Raises:
            InputError: the table of tasks is torn, or a row of it has no number or no text.
        """
        file, column = self._tasks_file, "task"
        if not file.is_file():
            return {}
        if self.version != layout.NEWEST:
            rows = json_lines(file)
        else:
            names = read_schema(file, ["task_index"]).names
            column = next((name for name in ("task", "__index_level_0__") if name in names), "task")
            rows = read_columns(file, ["task_index", column]).to_pylist()
        try:
            found = {int(row["task_index"]): row[column] for row in rows}
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file}: a row has no task_index or no task: {one_line(error, 80)}") from None
        if empty := [number for number, task in found.items() if not isinstance(task, str)]:
            raise InputError(f"{file}: the task of number {empty[0]} is no text")
        return found

    @property
    def _tasks_file(self) -> Path:
        return self.path / (layout.TASKS if self.version == layout.NEWEST else layout.TASKS_2)

    @cached_property
    def stats(self) -> Mapping[str, Any]:
        """meta/stats.json; empty where there is none, as in version 2.1."""
        file = self.path / layout.STATS
        return read_json(file) if file.is_file() else {}

    def vectors(self, names: Iterable[str] = (), *, prefix: str = "") -> list[str]:
        """The features of numbers among `names`, or that begin with `prefix`."""
        wanted = {*names}
        return [
            name
            for name, one in self.features.items()
            if one.get("dtype") in NUMBERS and (name in wanted or (prefix and name.startswith(prefix)))
        ]

    def rows(self, episode: Episode, columns: Collection[str]) -> dict[str, NDArray[Any]]:
        """Columns of an episode's frames: (frames,) or (frames, ...) each.

        Raises:
            InputError: the table is missing or torn, lacks a column, or has another number of frames.
        """
        table = self._table(episode, columns)
        found = {}
        for name in columns:
            try:
                found[name] = np.array(table.column(name).to_pylist())
                if found[name].dtype == object:
                    raise ValueError
            except ValueError:
                raise InputError(
                    f"{episode.data}: {name!r} of episode {episode.index} has rows of other lengths, or empty ones"
                ) from None
        return found

    def columns_of_all(self, name: str) -> list[NDArray[Any]]:
        """A column of all frames: a (frames,) or (frames, ...) of each table.

        Raises:
            InputError: a table is missing or torn, lacks the column, or has rows of other lengths.
        """
        found = []
        for file in sorted({episode.data for episode in self.episodes}):
            try:
                found.append(np.array(read_columns(self.path / file, [name]).column(name).to_pylist()))
            except ValueError:
                raise InputError(f"{file}: {name!r} has rows of other lengths, or empty ones") from None
            if found[-1].dtype == object:
                raise InputError(f"{file}: {name!r} has rows without numbers")
        return found

    def instructions(self, episode: Episode) -> list[str]:
        """The instruction of each frame; "" where the dataset has none.

        Raises:
            InputError: a frame has the number of a task that is not in the table of tasks.
        """
        if "task_index" not in self.features or not self.tasks:
            return [episode.tasks[0] if episode.tasks else ""] * episode.length
        numbers = self.rows(episode, ["task_index"])["task_index"].ravel()
        for frame, number in enumerate(numbers):
            if number not in self.tasks:
                raise InputError(
                    f"{self.path / episode.data}: frame {frame} of episode {episode.index} has task {number}, which "
                    f"{self._tasks_file.relative_to(self.path)} does not have: the dataset is damaged"
                )
        return [self.tasks[int(number)] for number in numbers]

    def pictures(
        self, episode: Episode, key: str, frames: Collection[int] | None = None, within: Path | None = None
    ) -> Iterator[tuple[int, Image]]:
        """Pictures of a camera, (height, width, 3) uint8 RGB, with the number of their frame, in order.

        Args:
            key: of `cameras`.
            frames: numbers in the episode; None for all.
            within: a folder with the videos of a copy; None for the dataset's own.

        Raises:
            InputError: a video or picture is missing or not intact, or has none at the time of a frame.
        """
        wanted = sorted(frames) if frames is not None else list(range(episode.length))
        camera = self.cameras[key]
        yield from (
            self._of_video(episode, camera, wanted, within or self.path)
            if camera.is_video
            else self._of_table(episode, key, wanted)
        )

    def _of_video(self, episode: Episode, camera: Camera, wanted: list[int], root: Path) -> Iterator[tuple[int, Image]]:
        if not wanted:
            return
        stamps_s = self.rows(episode, ["timestamp"])["timestamp"].astype(float).ravel()
        relative, from_s = episode.videos[camera.key]
        file = root / relative
        if not file.is_file():
            raise InputError(
                f"{self.path}: the video of {camera.key!r} of episode {episode.index} is missing: {relative}"
            )
        times_s = [from_s + stamps_s[number] for number in wanted]
        missing = (
            f"{file} has no picture of {camera.key!r} at {{:.4f}} s, where frame {{}} of episode {episode.index} is"
        )
        at = 0
        with open_video(file, from_s=times_s[0]) as video:
            for frame in video.frames:
                while at < len(wanted) and frame.time_s > times_s[at] + TIMESTAMP_ERROR_S:
                    raise InputError(missing.format(times_s[at], wanted[at]))
                if abs(frame.time_s - times_s[at]) <= TIMESTAMP_ERROR_S:
                    yield wanted[at], frame.image()
                    at += 1
                if at == len(wanted):
                    return
        raise InputError(missing.format(times_s[at], wanted[at]))

    def _of_table(self, episode: Episode, key: str, wanted: list[int]) -> Iterator[tuple[int, Image]]:
        column = self._table(episode, [key]).column(key)
        for number in wanted:
            try:
                yield number, decode_image(self.stored_picture(column[number].as_py()))
            except InputError as error:
                raise InputError(
                    f"{episode.data}: the picture of {key!r} in frame {number} of episode {episode.index}: {error}"
                ) from None

    def stored_picture(self, cell: Any) -> bytes:
        """The bytes of a picture's file by its cell in a table; raises InputError if they are not there."""
        if isinstance(cell, dict) and cell.get("bytes"):
            return bytes(cell["bytes"])
        name = cell.get("path") if isinstance(cell, dict) else None
        file = self.inside(str(name)) if name else None
        if file is None or not (self.path / file).is_file():
            raise InputError("its bytes are neither in the table nor in the file that it names")
        return (self.path / file).read_bytes()

    def inside(self, relative: str) -> Path:
        """A path in the folder; raises InputError for one that leads out of it."""
        place = os.path.normpath(relative)  # of links nothing is asked: the files of a hub's cache are links
        if os.path.isabs(place) or place.split(os.sep)[0] == os.pardir:
            raise InputError(f"{self.path} names a file outside of itself: {one_line(relative, 80)}")
        return Path(relative)

    def _table(self, episode: Episode, columns: Collection[str]) -> Any:
        """Columns of the rows of an episode, which stand in the order of its frames: LeRobot reads them by place."""
        order = [FRAME] if FRAME in self.features else []
        wanted = list(dict.fromkeys([*columns, *order]))
        table = read_rows(self.path / episode.data, wanted, "episode_index", episode.index)
        if len(table) != episode.length:
            raise InputError(
                f"{self.path / episode.data} has {len(table)} frames of episode {episode.index}, which has "
                f"{episode.length} by the table of episodes"
            )
        if order and np.array(table.column(FRAME).to_pylist()).ravel().tolist() != list(range(episode.length)):
            raise InputError(
                f"{self.path / episode.data}: the rows of episode {episode.index} are not its frames 0 to "
                f"{episode.length - 1} in this order, by {FRAME!r}: the dataset is damaged"
            )
        return table

    def _episode_rows(self) -> Sequence[Mapping[str, Any]]:
        if self.version != layout.NEWEST:
            return json_lines(self.path / layout.EPISODES_2)
        files = sorted((self.path / layout.EPISODES).glob("*/*.parquet"))
        if not files:
            raise InputError(f"{self.path} has no table of episodes in {layout.EPISODES}")
        rows: list[Mapping[str, Any]] = []
        for file in files:
            names = [name for name in read_schema(file, ["episode_index"]).names if not name.startswith("stats/")]
            rows += read_columns(file, names).to_pylist()
        return rows

    def _episode(self, row: Mapping[str, Any]) -> Episode:
        newest, videos = self.version == layout.NEWEST, [one.key for one in self.cameras.values() if one.is_video]
        try:
            index, length, tasks = int(row["episode_index"]), int(row["length"]), row.get("tasks") or []
            usual = {"episode_index": index, "episode_chunk": index // int(self.info.get("chunks_size", layout.A_FILE))}

            def filled(template: str, place: str, **further: str) -> Path:
                numbers = {
                    "chunk_index": row[f"{place}/chunk_index"], "file_index": row[f"{place}/file_index"],
                } if newest else usual  # fmt: skip
                return self.inside(str(self.info[template]).format(**numbers, **further))

            places = {
                key: (
                    filled("video_path", f"videos/{key}", video_key=key),
                    float(row[f"videos/{key}/from_timestamp"]) if newest else 0.0,
                )
                for key in videos
            }
            data = filled("data_path", "data")
        except InputError:
            raise
        except (KeyError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
            raise InputError(
                f"{self.path}: the row of an episode, or a path of {layout.INFO}, cannot be used: {one_line(error, 80)}"
            ) from None
        if length < 1:
            raise InputError(f"{self.path}: episode {index} has no frames")
        return Episode(index, length, tuple(map(str, [tasks] if isinstance(tasks, str) else tasks)), data, places)


def dataset_sha256(folder: Path) -> str:
    """Of the content of meta, and of name and size of each further file: the same for a copy, quick for a large one."""
    found = hashlib.sha256()
    for file in files_in(folder):
        inside = file.relative_to(folder).as_posix()
        if inside.startswith(("meta/", "data/", "videos/")):
            detail = file_sha256(file) if inside.startswith("meta/") else str(file.stat().st_size)
            found.update(f"{inside} {detail}\n".encode())
    return found.hexdigest()


def files_in(folder: Path) -> list[Path]:
    """All files below a folder, sorted; those behind links, as for videos on another disk, too."""
    return sorted(file for place, _, names in os.walk(folder, followlinks=True) for name in names
                  if (file := Path(place, name)).is_file())  # fmt: skip


def json_lines(file: Path) -> list[dict[str, Any]]:
    """The objects of a file with one a line.

    Raises:
        InputError: there is no such file, or a line is no JSON object; its number is named.
    """
    found = []
    try:
        lines = file.read_text(encoding="utf-8").split("\n")  # splitlines() would cut at U+2028, too
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {one_line(error, 100)}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            row = ()
        if row is not None:
            if not isinstance(row, dict):
                raise InputError(f"{file}, line {number}: is no JSON object; the file may be torn")
            found.append(row)
    return found


def read_json(file: Path) -> dict[str, Any]:
    """The object in a file; raises InputError if it cannot be read or is none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {file}: {one_line(error, 100)}") from None
    if not isinstance(found, dict):
        raise InputError(f"{file} is no JSON object")
    return found
