"""Videos of an import as frames: chosen by a rule, decoded once, kept in the pool.

    videos/KEY.json     of each video: its name and hash, the rule, and its frames with their times

The key is a hash of the video's content and of the rule: the same import, also after a kill, decodes no video twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.files import file_sha256, write_file
from merton.perception.images import JPEG_QUALITY, encode_image
from merton.perception.videos import CONTAINERS, frames_at, frames_evenly
from merton_studies.curation.question import Medium

FRAMES = 32
"""Frames of a video at equal distances, as many as the paper takes, unless another number is asked for."""
VIDEOS = "videos"
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
"""Endings of frames in a folder. One with "depth" in its name is none: OpenEQA's folders have both."""


class Frames:
    """The videos of a pool that is being made.

    Args:
        out: folder of the pool.
        count: of frames of a video without stamps, at least 1.

    Raises InputError for a count below 1.
    """

    def __init__(self, out: Path, count: int) -> None:
        if count < 1:
            raise InputError(f"at least one frame of a video is needed, got {count}")
        self._out, self.count = out, count
        self._known: dict[tuple[Path, tuple[float, ...]], tuple[Medium, ...]] = {}

    def of_file(
        self, file: Path, stamps_s: Sequence[float], where: str, keep: Callable[[bytes, str], Medium]
    ) -> tuple[Medium, ...]:
        """The frames of a video file, each kept by `keep`; at the stamps, or without any `count` of them evenly.

        Raises:
            InputError: no intact video, or a stamp outside it; the sentence begins with `where`.
            InfrastructureError: the folder cannot be written.
            MissingDependencyError: PyAV is not installed.
        """
        called = (file, tuple(stamps_s))
        if called not in self._known:
            try:
                self._known[called] = self._taken(file, stamps_s, where, keep)
            except OSError as error:
                raise InputError(f"{where}: the video {str(file)!r} cannot be read: {error.strerror}") from None
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
        return self._known[called]

    def _taken(
        self, file: Path, stamps_s: Sequence[float], where: str, keep: Callable[[bytes, str], Medium]
    ) -> tuple[Medium, ...]:
        rule: dict[str, Any] = {"stamps_s": list(stamps_s)} if stamps_s else {"evenly": self.count}
        about = {"sha256": file_sha256(file), "rule": rule, "jpeg_quality": JPEG_QUALITY}
        record = self._out / VIDEOS / f"{_key(about)}.json"
        kept = self._kept(record)
        if kept is None:
            taken = frames_at(file, stamps_s) if stamps_s else frames_evenly(file, self.count)
            kept = tuple(
                keep(encode_image(image, ".jpg"), where).model_copy(update={"time_s": round(time_s, 6)})
                for time_s, image in taken
            )
            frames = [frame.model_dump(mode="json") for frame in kept]
            written = {"file": file.name, **about, "av": version("av"), "frames": frames}
            record.parent.mkdir(parents=True, exist_ok=True)
            write_file(record, (json.dumps(written, indent=1) + "\n").encode())
        return kept

    def of_folder(self, folder: Path, where: str) -> list[Path]:
        """The pictures of a folder that is a video: at most `count` at equal distances; raises InputError for none."""
        files = sorted(file for file in folder.iterdir() if is_frame(file))
        if not files:
            raise InputError(f"{where}: the folder of frames {folder} has no pictures")
        self._known.setdefault((folder, ()), ())
        count = min(self.count, len(files))
        places = np.linspace(0, len(files) - 1, count).round() if count > 1 else [(len(files) - 1) // 2]
        return [files[int(place)] for place in places]

    def made(self) -> dict[str, Any]:
        """The rule and the counts, for the record of the pool; empty without a video."""
        files = {file for file, _ in self._known if not file.is_dir()}
        folders = {file for file, _ in self._known if file.is_dir()}
        if not files and not folders:
            return {}
        decoded = {"files": len(files), "av": version("av")} if files else {}
        return {"frames": {"rule": f"{self.count} at equal distances, or at stamps", "folders": len(folders)} | decoded}

    def _kept(self, record: Path) -> tuple[Medium, ...] | None:
        """The frames of an earlier call, if all are there still."""
        try:
            frames = tuple(Medium(**frame) for frame in json.loads(record.read_bytes())["frames"])
            whole = all(file_sha256(self._out / frame.path) == frame.sha256 for frame in frames)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return frames if frames and whole else None


def is_video(path: Path) -> bool:
    """Whether a file is a video, by its ending."""
    return path.suffix.lower() in CONTAINERS


def is_frame(file: Path) -> bool:
    """Whether a file in a folder is a frame of the video that the folder is."""
    return file.suffix.lower() in _PICTURES and "depth" not in file.name and not file.name.startswith(".")


def _key(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
