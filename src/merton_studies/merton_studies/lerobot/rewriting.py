"""One file of a dataset with its pictures distorted: a video, or a table that holds pictures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.episodes.shown import EpisodePictures, ShownPart
from merton.errors import InputError
from merton.files import file_sha256, written_whole
from merton.perception.distortion.setting import Setting
from merton.perception.images import decode_image, encode_image
from merton.perception.quality import measure
from merton.perception.videos import open_video
from merton.recording.video import VideoForm, write_video_like
from merton.results.parquet import parquet_writer, require_pyarrow
from merton.world.observation import Image
from merton_studies.lerobot.conditions import pictures_of
from merton_studies.lerobot.folder import FRAME, Episode, LeRobotFolder

Shades = NDArray[np.int64]
COUNTED_FOR_KEYS = 200
"""Pictures by which the distance of those that can be decoded alone is told."""
MOST_KEY_EVERY = 250


@dataclass(frozen=True)
class Work:
    """A file and the conditions of the episodes in it.

    Attributes:
        source: folder of the dataset.
        file: path in it, and in the copy.
        keys: its cameras.
        is_video: else it is a table.
        episodes: number and setting of each, as they lie in the file.
        seed, part: of the plan.
    """

    source: Path
    file: Path
    keys: tuple[str, ...]
    is_video: bool
    episodes: tuple[tuple[int, Setting], ...]
    seed: int
    part: ShownPart

    @property
    def is_distorted(self) -> bool:
        """Whether any of its pictures is."""
        shown = self.part.cameras
        return any(shown is None or key in shown for key in self.keys) and any(one.level for _, one in self.episodes)

    def pictures(self) -> dict[int, EpisodePictures]:
        """Those of each episode."""
        return {number: pictures_of(setting, number, self.seed, self.part) for number, setting in self.episodes}


@dataclass(frozen=True)
class Done:
    """A file that was written and read back.

    Attributes:
        sha256: of it.
        shades: (episode, camera) to (3, 256), how many values of each brightness its pictures have in the copy.
        psnr_db: (episode, camera) of distorted ones in videos: of the middle picture as it was distorted, to the same
            as it is read back.
    """

    sha256: str
    shades: Mapping[tuple[int, str], Shades] = field(default_factory=dict)
    psnr_db: Mapping[tuple[int, str], float] = field(default_factory=dict)


def rewritten(work: Work, out: Path) -> Done:
    """Write a file of the copy; raises as `merton_studies.lerobot.distorted.distort_dataset`."""
    target = out / work.file
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = _folder(work.source)
    if not work.is_distorted:
        with written_whole(target) as copy, (work.source / work.file).open("rb") as content:
            shutil.copyfileobj(content, copy)
        kept: dict[int, Image] = {}
    elif work.is_video:
        kept = _video(work, folder, target)
    else:
        return _table(work, folder, target)
    return _read_back(work, folder, out, kept)


def _video(work: Work, folder: LeRobotFolder, target: Path) -> dict[int, Image]:
    """Write a video; returns the middle picture of each distorted episode, as it was distorted."""
    (key,) = work.keys
    source, shown, kept = work.source / work.file, work.pictures(), dict[int, Image]()
    spans = _spans(work, folder, key)
    seen = dict.fromkeys(shown, 0)

    def changed() -> Iterator[tuple[float, Image]]:
        place = 0
        for frame in video.frames:
            while place + 1 < len(spans) and frame.time_s >= spans[place + 1][0]:
                place += 1
            _, episode = spans[place]
            step = seen[episode.index]
            seen[episode.index] += 1
            picture = shown[episode.index].show(step, key, frame.image())
            if step == episode.length // 2 and not shown[episode.index].clean:
                kept[episode.index] = picture
            yield frame.time_s, picture

    with open_video(source) as video:
        form = VideoForm(video.codec, video.pixel_format, Fraction(video.time_base), video.rate_hz, _key_every(source))
        write_video_like(target, changed(), form)
    for number, count in seen.items():
        if count != (length := folder.episodes[number].length):
            target.unlink()
            raise InputError(f"{source} has {count} pictures of episode {number}, which has {length} frames")
    return kept


def _spans(work: Work, folder: LeRobotFolder, key: str) -> list[tuple[float, Episode]]:
    """The time from which on a picture belongs to an episode [s], in order."""
    episodes = [folder.episodes[number] for number, _ in work.episodes]
    half_s = 0.5 / folder.fps
    return sorted(((one.videos[key][1] - half_s, one) for one in episodes), key=lambda span: span[0])


def _key_every(file: Path) -> int:
    """The usual distance of the pictures of a video that can be decoded alone."""
    with open_video(file) as video:
        keys = [frame.is_key for _, frame in zip(range(COUNTED_FOR_KEYS), video.frames, strict=False)]
    return min(MOST_KEY_EVERY, max(1, round(len(keys) / max(1, sum(keys)))))


def _table(work: Work, folder: LeRobotFolder, target: Path) -> Done:
    """Write a table whose pictures are in it, row group by row group; all other columns stay as they are."""
    arrow = require_pyarrow()
    source = work.source / work.file
    shown = work.pictures()
    shades: dict[tuple[int, str], Shades] = {}
    for number, _ in work.episodes:
        folder.rows(folder.episodes[number], [FRAME])  # refuses a table whose rows are in disorder
    opened = arrow.parquet.ParquetFile(source)
    with written_whole(target) as file, parquet_writer(file, opened.schema_arrow) as writer:
        for group in range(opened.num_row_groups):
            table = opened.read_row_group(group)
            indices = (table.column(name).to_pylist() for name in ("episode_index", FRAME))
            places = list(zip(*indices, strict=True))
            for key in work.keys:
                cells = table.column(key).to_pylist()
                made = [
                    _cell(folder, shown[number], key, frame, cell, shades.setdefault((number, key), _no_shades()))
                    for (number, frame), cell in zip(places, cells, strict=True)
                ]
                at = table.schema.get_field_index(key)
                table = table.set_column(at, table.schema.field(at), arrow.array(made, table.schema.field(at).type))
            writer.write_table(table)
    return Done(file_sha256(target), shades)


def _cell(
    folder: LeRobotFolder, shown: EpisodePictures, key: str, frame: int, cell: Any, shades: Shades
) -> dict[str, Any]:
    try:
        content = folder.stored_picture(cell)
        picture = decode_image(content)
    except InputError as error:
        raise InputError(f"{folder.path}: a picture of {key!r} in frame {frame} of an episode: {error}") from None
    seen = shown.show(frame, key, picture)
    _count(seen, shades)
    changed = content if seen is picture else encode_image(seen)
    return {**dict.fromkeys(cell), "bytes": changed, "path": cell.get("path")}


def _read_back(work: Work, folder: LeRobotFolder, out: Path, kept: Mapping[int, Image]) -> Done:
    """Read all pictures of the copy's file: each frame has one, and its brightness is counted."""
    shades: dict[tuple[int, str], Shades] = {}
    psnr_db = {}
    for number, _ in work.episodes:
        episode = folder.episodes[number]
        for key in work.keys:
            counted = shades.setdefault((number, key), _no_shades())
            for frame, picture in folder.pictures(episode, key, within=out):
                _count(picture, counted)
                if frame == episode.length // 2 and number in kept:
                    psnr_db[number, key] = float(min(measure("psnr", picture, kept[number]), 100.0))
    return Done(file_sha256(out / work.file), shades, psnr_db)


def _no_shades() -> Shades:
    return np.zeros((3, 256), np.int64)


def _count(picture: Image, shades: Shades) -> None:
    for channel in range(3):
        shades[channel] += np.bincount(picture[..., channel].ravel(), minlength=256)


@lru_cache(maxsize=1)
def _folder(path: Path) -> LeRobotFolder:
    return LeRobotFolder(path)
