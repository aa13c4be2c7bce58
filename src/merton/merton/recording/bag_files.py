"""The files of a recording: one file, or the parts that `ros2 bag record` leaves in a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from merton.errors import InputError, needing, require
from merton.recording.compression import ZSTD
from merton.recording.mcap_file import MAGIC as MCAP
from merton.recording.mcap_file import McapFile
from merton.recording.sqlite_file import MAGIC as SQLITE
from merton.recording.sqlite_file import SqliteFile

with needing("recording", "reading bags of ROS"):
    import yaml

METADATA = "metadata.yaml"
ENDINGS = (".mcap", ".mcap.zstd", ".db3", ".db3.zstd")
"""Endings of the files of a bag: storage mcap or sqlite3, as they are or packed."""
_LARGEST_METADATA_BYTES = 4 << 20
_LONGEST_MAGIC = max(len(MCAP), len(SQLITE))


def is_recording(path: Path) -> bool:
    """Whether a path is called as a file of a recording, or is the folder of a bag; a run's folder is none."""
    if path.is_dir():
        return (path / METADATA).is_file() or (bool(_parts(path)) and not (path / "experiment.yaml").exists())
    return path.name.endswith(ENDINGS) or path.suffix == ".bag"


def files_of(path: Path) -> tuple[list[McapFile | SqliteFile], list[Path]]:
    """The parts of a recording in their order, and those that its metadata names and that are not there.

    A part that was packed or unpacked by hand counts as the one that is named. A recorder that was killed has not named
    its last parts: those of the same name and another number come last.

    Raises:
        InputError: no file of a recording, or a folder without any.
    """
    if not path.is_dir():
        return [opened(path)], []
    there, named = _parts(path), _named(path)
    if not there:
        raise InputError(f"the folder {str(path)!r} holds no recording; its files must end in {', '.join(ENDINGS)}")
    by_name = {_plain(file): file for file in there}
    known = [by_name[_plain(file)] for file in named if _plain(file) in by_name]
    if not known:
        return [opened(file) for file in there], []
    series = set(map(_series, known))
    further = [file for file in there if file not in known and _series(file) in series]
    return [opened(file) for file in (*known, *further)], [file for file in named if _plain(file) not in by_name]


def opened(path: Path) -> McapFile | SqliteFile:
    """The file of a recording, with any ending of its name.

    Raises:
        InputError: it cannot be read, or is of another kind.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(_LONGEST_MAGIC)
            packed = start.startswith(ZSTD)
            if packed:
                zstandard: Any = require("zstandard", "recording", "reading compressed recordings")
                stream.seek(0)
                try:
                    blocks = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
                    start = blocks.read(_LONGEST_MAGIC)
                except zstandard.ZstdError as error:
                    raise InputError(f"{path} is no recording: it cannot be unpacked: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read the recording {path}: {error.strerror}") from None
    if start.startswith(MCAP):
        return McapFile(path, packed)
    if start.startswith(SQLITE):
        database = SqliteFile(path, packed)
        if not packed:
            database.topics()  # any database begins so
        return database
    if start.startswith(b"#ROSBAG"):
        raise InputError(f"{path} is a bag of ROS 1, which is not read: convert it, rosbags-convert --src {path.name}")
    begins = "what it unpacks to begins" if packed else "it begins"
    raise InputError(f"{path} is no recording: {begins} neither as MCAP files nor as databases of rosbag2 do")


def _parts(folder: Path) -> list[Path]:
    """The files of a folder that end as those of a bag; number 10 comes after number 9."""
    try:
        there = {file.name: file for file in folder.iterdir() if file.name.endswith(ENDINGS) and file.is_file()}
    except OSError as error:
        raise InputError(f"cannot read the folder {str(folder)!r}: {error.strerror}") from None
    # what was unpacked by hand lies beside the packed file
    files = [file for name, file in there.items() if not name.endswith(".zstd") or name[:-5] not in there]
    return sorted(files, key=lambda file: [part.zfill(20) for part in re.split(r"(\d+)", file.name)])


def _plain(file: Path) -> str:
    """The name of a part without the ending of a packed file."""
    return file.name.removesuffix(".zstd")


def _series(file: Path) -> str:
    """The name of a part without its number and its endings: that of its bag."""
    return re.sub(r"_\d+(\.mcap|\.db3)(\.zstd)?$", "_", file.name)


def _named(folder: Path) -> list[Path]:
    """The files that the metadata of a bag name, in their order; none without metadata, as after a crash."""
    file = folder / METADATA
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_METADATA_BYTES:
            return []
        about = yaml.safe_load(file.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        return [folder / Path(str(name)).name for name in about["relative_file_paths"]]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError):
        return []
